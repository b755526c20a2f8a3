"""Parts that sbatch scripts of several kinds share: the job's folder, the user's script, containers and variables."""

import re
import shlex
from collections.abc import Iterable, Mapping

from ultracluster.catalog.training import training_environment
from ultracluster.nodes.pcs import SCRATCH
from ultracluster.slurm.bash import exports, here_document
from ultracluster.slurm.jobs import SlurmJob

CONTAINER_VARIABLES = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
"""Without them Enroot gives a container no GPUs, or no CUDA (Enroot, hook 98-nvidia.sh)."""


def require_shared_folder(job: SlurmJob) -> str:
    """Fails a job that is submitted outside the shared file systems."""
    patterns = " | ".join(f"{path}/*" for path in job.folders)
    names = " or ".join(job.folders)
    return f"""
case $PWD/ in
    {patterns}) ;;
    *)
        echo "$PWD is not shared by the nodes: submit the job in a folder of {names}" >&2
        exit 2
        ;;
esac
"""


def job_folder() -> str:
    """Creates $JOB_FOLDER, and refuses one of another user."""
    return """
# The folder of this job. A restart uses the same folder.
export JOB_FOLDER=$PWD/$SLURM_JOB_NAME-$SLURM_JOB_ID
mkdir -p "$JOB_FOLDER"
# Other users may write to the parent folder, and the job runs files of this one.
if [[ ! -O $JOB_FOLDER || -L $JOB_FOLDER ]]; then
    echo "$JOB_FOLDER belongs to somebody else" >&2
    exit 2
fi
"""


def user_script(job: SlurmJob) -> str:
    """Writes the script of --script to $JOB_FOLDER."""
    return f"# Your script.\n{here_document(job.script.name, job.script.text)}" if job.script else ""


def network_exports(job: SlurmJob, more: Mapping[str, str]) -> str:
    """Exports the variables of NCCL and EFA, those of `more`, and those that containers need."""
    container = CONTAINER_VARIABLES if job.image else {}
    variables = {**training_environment(job.group.hardware, efa=job.group.efa), **more, **container}
    comment = (
        "# Without EFA or its plugin NCCL would fall back to TCP. With these settings the job fails instead.\n"
        if job.group.efa and job.nodes > 1
        else ""
    )
    return comment + exports(variables)


def container_options(job: SlurmJob, names: Iterable[str]) -> list[str]:
    """Options of srun for Pyxis: image, mounts, and `names` of variables that override those of the image."""
    if not job.image:
        return []
    folders = (*job.folders, *((SCRATCH,) if job.group.joins_disks else ()))
    return [
        f"--container-image={shlex.quote(pyxis_image(job.image))}",
        f"--container-mounts={','.join(f'{path}:{path}' for path in folders)}",
        '--container-workdir="$PWD"',
        "--no-container-mount-home",
        "--container-writable",
        *([f"--container-env={','.join(names)}"] if names else []),
    ]


def pyxis_image(image: str) -> str:
    """An image in the notation of Pyxis: the path of a file, or REGISTRY#REPOSITORY:TAG."""
    image = image.removeprefix("docker://")
    first, _, rest = image.partition("/")
    if image.startswith(("/", "./")) or "#" in image or not rest:
        return image
    return f"{first}#{rest}" if re.search(r"[.:]|^localhost$", first) else image
