"""sbatch scripts of jobs: programs of the nodes, or containers with Pyxis.

Tried on Slurm 22.05 and 26.05 with Pyxis 0.24: variables of a container image win over those of the job unless
--container-env names them; #SBATCH --container-image would run the script itself in the container; a step inherits the
number of tasks of the job; only static ranks keep Slurm's order of nodes.

Source: man pages of Slurm 25.11; documentation of Pyxis and Enroot; awsome-distributed-ai (2026).
"""

import re

from ultracluster.slurm.bash import joined, shell_words, wrapped
from ultracluster.slurm.header import PREPARE_SCRIPT, header
from ultracluster.slurm.jobs import SlurmJob
from ultracluster.slurm.nccl_tests import nccl_pairs, nccl_test
from ultracluster.slurm.parts import container_options, job_folder, require_shared_folder, user_script
from ultracluster.slurm.training import train


def sbatch_script(job: SlurmJob, printed_by: str) -> str:
    """The sbatch script of a job. `printed_by` is the command line that prints it."""
    bodies = {"train": train, "nccl-test": nccl_test, "nccl-pairs": nccl_pairs, "prepare": _prepare}
    return joined(header(job, printed_by), "set -euo pipefail", require_shared_folder(job), bodies[job.kind](job))


def _prepare(job: SlurmJob) -> str:
    """Runs a script or a command with CPUs of one node."""
    if job.script:
        program = "python3" if job.script.name.endswith(".py") else "bash"
        command = f'{program} "$JOB_FOLDER/{job.script.name}" {shell_words(job.command)}'.rstrip()
    else:
        command = shell_words(job.command or ["python3", PREPARE_SCRIPT])
    options = ["--ntasks=1", f"--cpus-per-task={job.cpus}", *container_options(job, ["JOB_FOLDER"])]
    folder = ("" if job.venv.startswith("/") else "$PWD/") + re.sub(r'([\\"$`])', r"\\\1", job.venv)
    activate = f'# The virtual environment.\nexport PATH="{folder}/bin:$PATH"\n' if job.venv else ""
    return joined(job_folder(), user_script(job), activate, f"srun {wrapped(options)} \\\n    {command}")
