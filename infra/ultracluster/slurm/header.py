"""Head of an sbatch script: comments for the user, and #SBATCH options."""

from ultracluster.jobs.request import TESTS
from ultracluster.slurm.jobs import SlurmJob

NOTICE_SECONDS = 300
"""Time before the end of a job at which Slurm signals it."""

TRAINING_SCRIPT, PREPARE_SCRIPT = "train.py", "prepare.py"
"""Files that a job runs without --command and --script."""


def header(job: SlurmJob, printed_by: str) -> str:
    """Shebang, comments and #SBATCH options. `printed_by` is the command that prints the script."""
    folder = _submit_folder(job)
    files = "" if job.kind in TESTS else f", with {_required_files(job)}"
    lines = [
        "#!/bin/bash",
        f"# {_title(job)}",
        f"# Printed by: {printed_by}",
        f"# Submit it on a login node, in a folder that all nodes share{files}:",
        f"#   cd {folder} && sbatch FILE",
        f"#SBATCH --job-name={job.name}",
        f"#SBATCH --partition={job.queue.name}",
        *([f"#SBATCH --account={job.account}"] if job.account else []),
        *_resources(job),
        "# The output file is in the folder of submission; a restart appends to it.",
        "#SBATCH --output=%x-%j.out",
        "#SBATCH --open-mode=append",
        "# Resource limits of the nodes, not of the submitting session: EFA needs unlimited locked memory.",
        "#SBATCH --propagate=NONE",
        "# When a node fails, Slurm requeues the job.",
        "#SBATCH --requeue",
    ]
    if job.kind == "train":
        lines += [
            f"# Slurm sends USR1 to the script {NOTICE_SECONDS} seconds before the time limit, and on preemption.",
            f"#SBATCH --signal=B:USR1@{NOTICE_SECONDS}",
        ]
    return "\n".join(lines)


def _title(job: SlurmJob) -> str:
    nodes = _counted(job.nodes, "node")
    match job.kind:
        case "train":
            each = _counted(job.gpus_per_node, "GPU")
            return f"Trains on {nodes} of queue {job.queue.name} with {each}{' each' * (job.nodes > 1)}, by torchrun."
        case "nccl-test":
            return f"Measures all_reduce between {job.gpus} GPUs on {nodes} of queue {job.queue.name}."
        case "nccl-pairs":
            return f"Measures all_reduce between pairs of {nodes} of queue {job.queue.name}, and names slow nodes."
        case "prepare":
            return f"Prepares data with {job.cpus} CPUs of a node of queue {job.queue.name}."


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' if number > 1 else ''}"


def _submit_folder(job: SlurmJob) -> str:
    first = job.folders[0]
    return f"{first}/queues/{job.queue.name}" if job.environment.storage.lustre else first


def _required_files(job: SlurmJob) -> str:
    """What the folder of submission must contain, in words."""
    environment = f"the virtual environment {job.venv}" if job.venv and not job.image else ""
    if job.script:
        return environment or "nothing else, since this file holds the script"
    script = job.command[0] if job.command else PREPARE_SCRIPT if job.kind == "prepare" else TRAINING_SCRIPT
    return f"{script} and {environment}" if environment else script


def _resources(job: SlurmJob) -> list[str]:
    if job.kind == "prepare":
        return ["#SBATCH --nodes=1", "#SBATCH --ntasks=1", f"#SBATCH --cpus-per-task={job.cpus}"]
    tasks = job.gpus_per_node if job.kind in TESTS else 1
    lines = [
        f"#SBATCH --nodes={job.nodes}",
        f"#SBATCH --ntasks-per-node={tasks}",
        f"#SBATCH --gpus-per-node={job.gpus_per_node}",
    ]
    if not job.exclusive:
        return [*lines, f"#SBATCH --cpus-per-task={job.cpus_of_gpus}"]
    lines += ["# Whole nodes. The script starts when all of them have booted.", "#SBATCH --exclusive"]
    lines.append("#SBATCH --wait-all-nodes=1")
    if job.segment:
        lines += [
            f"# Each segment of {job.segment} nodes is in one UltraServer, so NVLink connects its GPUs.",
            f"#SBATCH --segment={job.segment}",
        ]
    return lines
