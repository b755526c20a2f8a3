"""Jobs for Slurm: sbatch scripts from an environment and the catalogue. No CDK in here."""
