"""The Slurm control plane: an AWS PCS cluster, its login nodes and its queues."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.catalog import pcs
from ultracluster.config import clock
from ultracluster.config.fields import CpuType, Image, Many, Name, TextOrNumber
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings

NOTICE = timedelta(days=90)
"""How long before a Slurm version's end of life a file that names it is warned about."""

SlurmSettings = Mapping[str, TextOrNumber]


class Login(Settings):
    """Login nodes: a static node group that no queue uses."""

    instance_type: CpuType = "m7i.4xlarge"
    """Instance type of the login nodes."""
    count: Annotated[int, Field(ge=1)] = 1
    """Number of login nodes."""
    image: Image = "auto"
    """auto: AWS's newest PCS image. Or an AMI, or an SSM parameter that holds one."""


class Queue(Settings):
    """A Slurm partition over node groups. `slurm_settings` are slurm.conf parameters of a partition."""

    name: Annotated[Name, Field(min_length=3)]
    """Name of the queue: Slurm's partition."""
    node_groups: Annotated[Many[str], Field(min_length=1)]
    """Node groups that run the queue's jobs."""
    slurm_settings: SlurmSettings = Field(default_factory=dict)
    """Parameters of slurm.conf that PCS lets one set here."""

    @rule
    def _allowed_settings(self) -> Iterator[Problem]:
        yield from _not_allowed(self.slurm_settings, pcs.QUEUE_SETTINGS, "a queue")


class PcsControlPlane(Settings):
    """An AWS PCS cluster.

    `size` auto is the smallest that manages every node, login nodes included. `accounting` keeps Slurm's accounting in
    a database that PCS manages. `slurm_settings` are slurm.conf parameters that PCS lets a cluster set.

    Source: AWS PCS User Guide (2026); figures and lists in `infra/ultracluster/catalog/data/pcs.json`.
    """

    type: Literal["pcs"] = "pcs"
    """The kind of control plane."""
    slurm_version: str
    """Version of Slurm, in quotes."""
    size: Literal["auto", "small", "medium", "large"] = "auto"
    """Size of the cluster. auto: the smallest that manages every node."""
    accounting: bool = True
    """Whether PCS keeps Slurm's accounting database."""
    slurm_settings: SlurmSettings = Field(default_factory=dict)
    """Parameters of slurm.conf that PCS lets one set here."""

    @rule
    def _known_version(self) -> Iterator[Problem]:
        end = pcs.SLURM_VERSIONS.get(self.slurm_version)
        newest = max(pcs.SLURM_VERSIONS, key=lambda version: pcs.SLURM_VERSIONS[version])
        hint = f'set slurm_version: "{newest}"'
        if end is None:
            message = f"PCS has no Slurm {self.slurm_version}; known are {', '.join(pcs.SLURM_VERSIONS)}"
            yield Problem("slurm-version-unknown", "slurm_version", message, hint)
        elif end < clock.today():
            message = f"Slurm {self.slurm_version} ended on {end}; PCS creates no cluster with it"
            yield Problem("slurm-version-ended", "slurm_version", message, hint)
        elif end < clock.today() + NOTICE:
            message = f"Slurm {self.slurm_version} ends on {end}, after which PCS creates no cluster with it"
            yield Problem("slurm-version-ending", "slurm_version", message, hint, "warning")

    @rule
    def _allowed_settings(self) -> Iterator[Problem]:
        yield from _not_allowed(self.slurm_settings, pcs.CLUSTER_SETTINGS, "a cluster")


class Pcs(PcsControlPlane):
    """An AWS PCS cluster with its login nodes and queues.

    `size` auto is the smallest that manages every node, login nodes included. `accounting` keeps Slurm's accounting in
    a database that PCS manages. `slurm_settings` are slurm.conf parameters that PCS lets a cluster set.

    Source: AWS PCS User Guide (2026); figures and lists in `infra/ultracluster/catalog/data/pcs.json`.
    """

    login: Login = Login()
    """Login nodes."""
    queues: Annotated[Many[Queue], Field(min_length=1)]
    """Queues that jobs are submitted to."""

    def managed_nodes(self, nodes: int) -> int:
        """Nodes that the cluster manages at most: `nodes` and the login nodes."""
        return nodes + self.login.count

    @rule
    def _queue_limit(self) -> Iterator[Problem]:
        if len(self.queues) > pcs.MAXIMUM_QUEUES:
            message = f"{len(self.queues)} queues; a PCS cluster has at most {pcs.MAXIMUM_QUEUES}"
            yield Problem("wrong-length", "queues", message, "let queues share node groups, or ask AWS for more")

    @rule
    def _distinct_queues(self) -> Iterator[Problem]:
        names = [queue.name for queue in self.queues]
        for i, name in enumerate(names):
            if name in names[:i]:
                message = f"{name} is the name of queues[{names.index(name)}] already"
                yield Problem("duplicate-name", ("queues", i, "name"), message, "give it another name")


def _not_allowed(settings: SlurmSettings, allowed: frozenset[str], owner: str) -> Iterator[Problem]:
    """PCS rejects anything off its lists with a generic error."""
    for name in settings:
        if name not in allowed:
            near = get_close_matches(name, allowed, n=1)
            message = f"PCS does not let {owner} set {name}; it allows {len(allowed)} others, listed in docs/errors.md"
            hint = f"did you mean {near[0]}?" if near else f"remove {name}"
            yield Problem("slurm-setting-not-allowed", ("slurm_settings", name), message, hint)
