"""Where the file system may be mounted: on Slurm nodes and in pods alike, at the same path."""

from collections.abc import Iterator

from ultracluster.config.fleet import Fleet
from ultracluster.config.problems import Problem

SYSTEM_FOLDERS = (
    "bin",
    "boot",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr",
    "var",
)
"""Folders of the operating system (Filesystem Hierarchy Standard 3.0, chapters 3 and 6): nothing is mounted below."""

PARENT_FOLDERS = {
    "/home": "the home folders of users",
    "/opt": "software such as EFA and the PCS agent",
}
"""Folders that the image fills. A new folder below them is allowed."""

IMAGE_FOLDERS = {
    "/home/ec2-user": "the SSH keys of the image's user",
    "/home/ubuntu": "the SSH keys of the image's user",
    "/opt/amazon": "EFA and Open MPI",
    "/opt/aws": "the PCS agent and Slurm",
    "/opt/dlami": "the local disks",
    "/opt/nvidia": "NVIDIA's tools",
    "/opt/slurm": "Slurm",
    "/snap": "programs such as the Systems Manager agent",
}
"""Folders that the image fills and no other software may use: nothing is mounted there or below.

Source: DLAMI developer guide and AWS PCS User Guide (2026), for Ubuntu and Amazon Linux images.
"""

SCRATCH = "scratch"
"""Folder of the local disks, on nodes and in pods."""


def mount_path_problems(fleet: Fleet) -> Iterator[Problem]:
    """Problem of a mount that would hide a folder of nodes and of pods."""
    settings = fleet.storage.lustre
    if settings is None:
        return
    path = "/" + "/".join(filter(None, settings.mount_path.split("/")))
    top = path.split("/")[1]
    if top == SCRATCH:
        folder, holds = f"/{SCRATCH}", "is the folder of a node's local disks"
    elif top in SYSTEM_FOLDERS:
        folder, holds = f"/{top}", "is a folder of the operating system"
    elif path in PARENT_FOLDERS:
        folder, holds = path, f"holds {PARENT_FOLDERS[path]}"
    elif inside := next((of for of in IMAGE_FOLDERS if f"{path}/".startswith(f"{of}/")), None):
        folder, holds = inside, f"holds {IMAGE_FOLDERS[inside]}"
    else:
        return
    message = f"{folder} {holds}, which the mounted file system would hide"
    yield Problem("mount-path-reserved", ("storage", "lustre", "mount_path"), message, "set mount_path: /fsx")
