"""Where file systems may be mounted: on Slurm nodes and in pods alike, at the same path."""

from collections.abc import Iterator, Sequence
from itertools import chain, count

from ultracluster.config.file_systems import HOME
from ultracluster.config.fleet import Fleet
from ultracluster.config.problems import Path, Problem, dotted

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
    "/opt/ultracluster": "the programs that Slurm runs before and after each job",
    "/snap": "programs such as the Systems Manager agent",
}
"""Folders that the image or a boot step fills and no other software may use: nothing is mounted there or below.

Source: DLAMI developer guide and AWS PCS User Guide (2026), for Ubuntu and Amazon Linux images.
"""

SCRATCH = "scratch"
"""Folder of the local disks, on nodes and in pods."""


def mount_path_problems(fleet: Fleet) -> Iterator[Problem]:
    """Problems of mounts that would hide a folder of nodes and of pods, or each other."""
    storage = fleet.storage
    given: list[tuple[Path, str, str]] = []
    if storage.lustre:
        given.append((("lustre", "mount_path"), storage.lustre.mount_path, "fsx"))
    given += [(("more", i, "mount_path"), each.mount_path, each.name) for i, each in enumerate(storage.more)]
    used = [HOME, *(path for _, path, _ in given)]
    taken: list[tuple[str, str]] = [("storage.home", HOME)] if storage.homes else []
    seen: set[str] = set()
    for at, path, name in given:
        advice = _free(name, [each for each in used if each != path])
        other = next(((of, place) for of, place in taken if _overlap(path, place)), None)
        if hidden := _hidden(path):
            message = f"{hidden[0]} {hidden[1]}, which the mounted file system would hide"
            yield Problem("mount-path-reserved", ("storage", *at), message, f"set mount_path: {advice}")
        elif other and name not in seen:  # a repeated entry is an error of its own
            same = "is" if path == other[1] else "overlaps"
            message = f"{path} {same} the mount path of {other[0]}" + (f", {other[1]}" if same == "overlaps" else "")
            yield Problem("mount-path-overlap", ("storage", *at), message, f"set mount_path: {advice}")
        if at[0] == "more":
            seen.add(name)
        taken.append((f"storage.{dotted(at[:-1])}", path))


def _hidden(given: str) -> tuple[str, str] | None:
    """The folder that a mount at this path would hide, and what it holds."""
    path = "/" + "/".join(filter(None, given.split("/")))
    top = path.split("/")[1]
    if top == SCRATCH:
        return f"/{SCRATCH}", "is the folder of a node's local disks"
    if top in SYSTEM_FOLDERS:
        return f"/{top}", "is a folder of the operating system"
    if path in PARENT_FOLDERS:
        return path, f"holds {PARENT_FOLDERS[path]}"
    inside = next((of for of in IMAGE_FOLDERS if f"{path}/".startswith(f"{of}/")), None)
    return (inside, f"holds {IMAGE_FOLDERS[inside]}") if inside else None


def _free(name: str, used: Sequence[str]) -> str:
    """A path for a file system of this name that hides nothing and overlaps none of the `used` paths."""
    paths = chain((f"/{name}", f"/mnt/{name}"), (f"/data/{name}-{number}" for number in count(1)))
    return next(path for path in paths if not _hidden(path) and not any(_overlap(path, each) for each in used))


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
