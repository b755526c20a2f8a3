"""Options of `ultracluster job` that Slurm and Kubernetes share, and their checks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import PurePath
from typing import Literal

from ultracluster.catalog import InstanceType
from ultracluster.catalog.training import Use, closest_image, default_image
from ultracluster.errors import UltraclusterError

Kind = Literal["train", "nccl-test", "nccl-pairs"]
USES: dict[Kind, Use] = {"train": "training", "nccl-test": "nccl-tests", "nccl-pairs": "nccl-tests"}
TESTS = ("nccl-test", "nccl-pairs")
"""Kinds with a command of their own, on whole nodes."""

PAIR_ARGUMENTS = ("-b", "16G", "-e", "16G", "-g", "1", "-c", "1", "-n", "20", "-w", "5")
"""Arguments of all_reduce_perf for a pair of nodes."""

PAIR_SECONDS = 300
"""Time limit of a pair. Its 50 all-reduces take 5 seconds at the line rate of P5, and a minute at a tenth of it."""

MAXIMUM_RESTARTS = 3
"""Restarts of a job after failures."""

MAXIMUM_NAME = 40
"""Characters of a job's name. Operators append to it for names of pods, which have 63 at most, and Ray takes 47."""

MAXIMUM_SCRIPT = 500_000
"""Bytes of a script in a job: a ConfigMap holds 1 MiB, and sbatch accepts 4 MB."""

RENDEZVOUS_PORT = 29500

STALLED_SECONDS = 1800
"""Seconds without a heartbeat of a rank after which a job hangs."""

CANNOT_START = (2, 126, 127)
"""Exit codes of a shell for a command that cannot start: the job is not restarted."""

_REFERENCE = re.compile(
    r"([A-Za-z0-9.-]+(:\d+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?", re.ASCII
)
_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?", re.ASCII)


class JobRefused(UltraclusterError, ValueError):
    """The environment cannot run the job. The message says why, and what is allowed."""


@dataclass(frozen=True)
class Script:
    """A program of the user that the printed job contains."""

    name: str
    text: str

    @classmethod
    def checked(cls, path: str, content: bytes, kind: str) -> "Script":
        """The script with this content. Raises JobRefused if the job cannot contain or start it."""
        name = PurePath(path).name
        allowed = (".py",) if kind == "train" else (".py", ".sh")
        if not name.endswith(allowed):
            raise JobRefused(f"--script {path}: {kind} starts {' or '.join(f'*{end}' for end in allowed)}")
        if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or name == WATCH_JOB:
            raise JobRefused(f"--script {path}: rename it; letters, digits, '.', '_' and '-' are allowed")
        if len(content) > MAXIMUM_SCRIPT:
            raise JobRefused(f"--script {path}: {len(content)} bytes; a job contains at most {MAXIMUM_SCRIPT}")
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise JobRefused(f"--script {path}: it is not text in UTF-8") from None
        if "\0" in text or not text.strip():
            raise JobRefused(f"--script {path}: it is {'empty' if not text.strip() else 'not text'}")
        return cls(name, text if text.endswith("\n") else f"{text}\n")


WATCH_JOB, PAIR_NODES = "watch_job.py", "pair_nodes.py"


def program(name: str) -> str:
    """Text of a program of this package that runs in jobs."""
    return files("ultracluster.jobs").joinpath(name).read_text()


def check_name(name: str) -> None:
    """Raises JobRefused for a name that jobs may not have."""
    if len(name) > MAXIMUM_NAME or not _NAME.fullmatch(name):
        allowed = f"a letter, then lower-case letters, digits and -, at most {MAXIMUM_NAME} characters"
        raise JobRefused(f"{name!r} is not a valid job name; allowed: {allowed}, no - at the end")


def check_image(image: str) -> None:
    """Raises JobRefused for a text that names neither an image nor a file."""
    if not re.fullmatch(r"[\w./:@#%+~-]+", image, re.ASCII):
        raise JobRefused(f"{image!r} is not an image; write REGISTRY/NAME:TAG, or on Slurm the path of a file")


def check_reference(image: str) -> None:
    """Raises JobRefused for an image that no kubelet pulls: a file, or a name with capital letters.

    Source: distribution/reference, the grammar of image references (2026).
    """
    if not _REFERENCE.fullmatch(image):
        text = f"{image!r} is no image of a registry, which Kubernetes needs"
        raise JobRefused(f"{text}; write REGISTRY/NAME:TAG, with the name in lower-case letters")


def check_command(kind: str, command: Sequence[str], script: Script | None) -> None:
    """Raises JobRefused if a test, which has its own command, gets a command or a script."""
    if kind not in TESTS:
        return
    for option, given in (("--command", command), ("--script", script)):
        if given:
            raise JobRefused(f"{kind} has its own command; remove {option}, or use --kind train")


def check_pairs(nodes: int, gpus_per_node: int, type_names: str, *, efa: bool) -> None:
    """Raises JobRefused for nodes that nccl-pairs cannot measure."""
    if not efa:
        raise JobRefused(f"nccl-pairs measures EFA, and these nodes of {type_names} have none; use nodes with EFA")
    if nodes < 2:
        text = f"nccl-pairs measures pairs of nodes: {type_names} has {gpus_per_node} GPUs"
        raise JobRefused(f"{text}, so request at least {2 * gpus_per_node}, or all nodes of the group")


def pair_environment(hardware: InstanceType) -> dict[str, str]:
    """Environment variables of NCCL with which the bandwidth of a pair is that of EFA.

    For two nodes NCCL prefers trees, whose bus bandwidth may exceed the network's (NVIDIA/nccl-tests, issue 196).
    """
    return {"NCCL_ALGO": "Ring", **({"NCCL_MNNVL_ENABLE": "0"} if hardware.ultraserver_only else {})}


def unknown(name: str, kind: str, known: Sequence[str]) -> str:
    """Message for an unknown name, with the known ones and the most similar."""
    near = get_close_matches(name, known, n=1)
    return f"{name} is not {kind}; allowed: {', '.join(known)}" + (f". Did you mean {near[0]}?" if near else "")


def public_image(hardware: InstanceType, type_names: str, kind: Kind) -> str:
    """AWS's image for jobs on an instance type. Raises JobRefused if none meets its minimum versions."""
    found = default_image(hardware, USES[kind])
    if found is None:
        closest = closest_image(hardware, USES[kind])
        lacking = f": {closest.name} has {'; '.join(closest.shortfalls(hardware))}" if closest else ""
        raise JobRefused(
            f"no public image of AWS meets the minimum versions of {type_names}{lacking}. "
            f"Build an image with what `ultracluster catalog {hardware.name}` lists, and pass it with --image"
        )
    return found.name


def whole_nodes(gpus: int, each: int, most: int, type_names: str) -> JobRefused:
    """The error for GPUs that are not whole nodes of `each` GPUs. `most` is the largest possible number of GPUs."""
    below = max(gpus // each, 0) * each
    choices = [count for count in (below, below + each) if each <= count <= most] or [most]
    advice = " or ".join(map(str, choices))
    return JobRefused(f"{gpus} GPUs are not whole nodes: {type_names} has {each}; request {advice}")
