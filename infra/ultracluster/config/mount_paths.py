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
    "/opt/amazon": "EFA and Open MPI",
    "/opt/aws": "the PCS agent and Slurm",
}
"""Folders that the image fills. A new folder below them is allowed."""

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
    else:
        return
    message = f"{folder} {holds}, which the mounted file system would hide"
    yield Problem("mount-path-reserved", ("storage", "lustre", "mount_path"), message, "set mount_path: /fsx")
