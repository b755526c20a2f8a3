"""What jobs share under Slurm and Kubernetes: checks of what a user asks for, and the program that watches a job."""
