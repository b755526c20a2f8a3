"""The made-up Slurm cluster: its nodes, what they do, and what its parts share."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

from scripts.observe.course import Day, Values
from ultracluster.catalog import catalog

Labels = dict[str, str]
Series = tuple[Labels, Values]
State = Literal["idle", "held", "train", "hung"]

HARDWARE = catalog["p5en.48xlarge"]
CLUSTER = {"cluster": "prod-cluster", "environment": "prod"}
FILE_SYSTEM = "fs-0123456789abcdef0"
HOMES = "fs-0fedcba9876543210"
TERABYTE = 1e12
SPACE = 105.6 * TERABYTE
CHECKPOINT_EVERY = 1800

STRAGGLER, ECC, LOST, LOSSY = "train-5", "train-16", "train-14", "train-3"


@dataclass(frozen=True)
class Work:
    """What a node's GPUs do between two times."""

    start: int
    end: int
    state: State
    team: str = ""
    workload: str = ""
    tensor: float = 0.0


@dataclass(frozen=True)
class Node:
    """A node, and its work from the first sample to the last."""

    name: str
    work: tuple[Work, ...]

    @property
    def labels(self) -> Labels:
        """Labels that all series of the node have."""
        return {**CLUSTER, "node": self.name, "instance_type": HARDWARE.name, "node_group": "train"}

    def at(self, time: int) -> Work:
        """What the node does at a time."""
        return next(work for work in self.work if work.start <= time < work.end)


class Part:
    """Series of one topic. `wanted` are names of metrics; others are not made."""

    def __init__(self, day: Day, wanted: set[str], nodes: list[Node]) -> None:
        self.day, self.wanted, self.nodes, self.times = day, wanted, nodes, day.times

    def series(self) -> Iterator[Series]:
        """Every series."""
        raise NotImplementedError

    def _make(self, name: str, labels: Labels, values: Callable[[], Values]) -> Iterator[Series]:
        if name in self.wanted:
            yield {"__name__": name, **labels}, values()


def used(day: Day, time: int) -> float:
    """Share of the file system in use: it fills with checkpoints."""
    start = day.times[0]
    return 0.64 + 0.292 * ((time - start) // CHECKPOINT_EVERY * CHECKPOINT_EVERY) / (day.end - start)


def hash_of(*parts: object) -> int:
    """The same number for the same parts in every process."""
    return crc32("/".join(map(str, parts)).encode())


def noise_at(name: str, time: int) -> float:
    """Noise between -1 and 1 that changes every half hour."""
    return (hash_of(name, time // 1800) % 2001) / 1000 - 1


def nodes_of(day: Day) -> list[Node]:
    """The nodes with their work."""
    start, end = day.times[0], day.end + day.step

    def whole(work: Work) -> tuple[Work, ...]:
        return (work,)

    made = []
    for number in range(1, 17):
        if number <= 8:
            work = whole(Work(start, end, "train", "pretrain", "4711", 0.46))
        elif number <= 12:
            hung, began = day.ago(1.5), day.ago(20)
            work = (
                Work(start, began, "idle"),
                Work(began, hung, "train", "research", "4720", 0.38),
                Work(hung, end, "hung", "research", "4720"),
            )
        elif number == 13:
            work = (Work(start, day.ago(15), "idle"), Work(day.ago(15), end, "held", "research", "4698"))
        elif number <= 15:
            work = (
                Work(start, day.ago(10), "train", "eval", "4702", 0.29),
                Work(day.ago(10), day.ago(9), "idle"),
                Work(day.ago(9), end, "train", "eval", "4725", 0.33),
            )
        else:
            work = (Work(start, day.ago(3), "train", "eval", "4716", 0.31), Work(day.ago(3), end, "idle"))
        kept = tuple(each for each in work if each.end > start)
        first = kept[0]
        made.append(Node(f"train-{number}", (Work(start, *_rest(first)), *kept[1:])))
    return made


def _rest(work: Work) -> tuple[int, State, str, str, float]:
    return work.end, work.state, work.team, work.workload, work.tensor
