"""The Slurm control plane: an AWS PCS cluster with its login nodes and queues."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.catalog import pcs
from ultracluster.config import clock
from ultracluster.config.bootstrap import Bootstrap, Policies, Script, SecurityGroups, boot_problems, scripts
from ultracluster.config.fields import CpuType, Image, Many, Mirror, Name
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings
from ultracluster.config.slurm_settings import SlurmSettings, health_problems, setting_problems, truth, version_problems

NOTICE = timedelta(days=90)
"""How long before a Slurm version's end of life the warning starts."""

IDLE_SECONDS = 600
"""Default of PCS for the time before it terminates an idle node (PCS API Reference, ClusterSlurmConfiguration)."""


LOGIN_GROUPS = 2
"""Our security groups of login nodes: that of the cluster, and that of SSH."""


class Login(Settings):
    """Login nodes: a static node group outside every queue."""

    instance_type: CpuType = "m7i.4xlarge"
    """Instance type of the login nodes."""
    count: Annotated[int, Field(ge=1)] = 1
    """Number of login nodes."""
    image: Image = "auto"
    """auto: AWS's newest PCS image. Or an AMI id, or an SSM parameter that holds one."""
    root_volume_gib: Annotated[int, Field(ge=100, le=16384)] = 100
    """Size of the root volume in GiB."""
    bootstrap: Bootstrap = ()
    """Scripts that login nodes run at their first boot, after all other steps and in this order: paths, or mappings.
    After a failure the others do not run, but the node stays."""
    policies: Policies = ()
    """ARNs of further IAM policies. Login nodes then have a role of their own."""
    security_groups: SecurityGroups = ()
    """Ids of further security groups of login nodes."""

    @property
    def boot_scripts(self) -> tuple[Script, ...]:
        """The scripts of `bootstrap`, each with its settings."""
        return scripts(self.bootstrap)

    @rule
    def _boot_steps(self) -> Iterator[Problem]:
        yield from boot_problems(self.bootstrap, self.policies, self.security_groups, own_groups=LOGIN_GROUPS)


class Queue(Settings):
    """A Slurm partition over node groups. `slurm_settings` are partition parameters of slurm.conf."""

    name: Annotated[Name, Field(min_length=3)]
    """Name of the queue, which is the Slurm partition."""
    node_groups: Annotated[Many[str], Field(min_length=1)]
    """Node groups that run the queue's jobs."""
    slurm_settings: SlurmSettings = Field(default_factory=dict)
    """Parameters of slurm.conf that PCS allows for a queue."""

    @rule
    def _partition_of_its_own(self) -> Iterator[Problem]:
        """A partition DEFAULT, in any case, holds defaults of the others (slurm.conf man page, PartitionName)."""
        if self.name == "default":
            message = "default is the name under which Slurm keeps defaults of all queues, not a queue"
            yield Problem("queue-name-reserved", "name", message, "choose another name")

    @rule
    def _distinct_groups(self) -> Iterator[Problem]:
        for i, name in enumerate(self.node_groups):
            if name in self.node_groups[:i]:
                message = f"{name} is already node_groups[{self.node_groups.index(name)}]"
                yield Problem("duplicate-name", ("node_groups", i), message, "remove the duplicate")

    @rule
    def _allowed_settings(self) -> Iterator[Problem]:
        yield from setting_problems(self.slurm_settings, "queue")


class PcsControlPlane(Settings):
    """Settings of an AWS PCS control plane alone, without login nodes and queues.

    `size: auto` is the smallest size that manages all nodes, login nodes included. `accounting` enables Slurm
    accounting in a database that PCS manages. `slurm_settings` are parameters of slurm.conf.

    Source: AWS PCS User Guide (2026); figures and lists in `infra/ultracluster/catalog/data/pcs.json`.
    """

    type: Literal["pcs"] = "pcs"
    """Type of control plane."""
    slurm_version: str
    """Slurm version, in quotes."""
    size: Literal["auto", "small", "medium", "large"] = "auto"
    """Size of the cluster. auto: the smallest size that manages all nodes."""
    accounting: bool = True
    """Whether Slurm accounting is enabled, in a database that PCS manages."""
    slurm_settings: SlurmSettings = Field(default_factory=dict)
    """Parameters of slurm.conf that PCS allows for a cluster."""
    cgroup_settings: SlurmSettings = Field(default_factory=dict)
    """Parameters of cgroup.conf that PCS allows."""
    slurmdbd_settings: SlurmSettings = Field(default_factory=dict)
    """Parameters of slurmdbd.conf, of accounting, that PCS allows."""
    idle_seconds: Annotated[int, Field(ge=1, le=10_000_000)] = IDLE_SECONDS
    """Seconds after which PCS terminates an idle node that its node group does not need for its minimum."""
    rest_api: bool = False
    """Whether PCS serves Slurm's REST API, over HTTP on port 6820 of the controller, to nodes of the cluster."""

    image_mirror: Mirror | None = None
    """OCI registry with copies of the images of the metrics agents, under the paths that they have in their own."""

    @rule
    def _known_version(self) -> Iterator[Problem]:
        end = pcs.SLURM_VERSIONS.get(self.slurm_version)
        newest = max(pcs.SLURM_VERSIONS, key=lambda version: pcs.SLURM_VERSIONS[version])
        meant = next((known for known in pcs.SLURM_VERSIONS if self.slurm_version.startswith(f"{known}.")), newest)
        hint = f'set slurm_version: "{meant}"'
        if end is None:
            message = f"PCS does not offer Slurm {self.slurm_version}; known versions: {', '.join(pcs.SLURM_VERSIONS)}"
            yield Problem("slurm-version-unknown", "slurm_version", message, hint)
        elif end < clock.today():
            message = f"Slurm {self.slurm_version} reached its end of life on {end}; PCS creates no clusters with it"
            yield Problem("slurm-version-ended", "slurm_version", message, hint)
        elif end < clock.today() + NOTICE:
            message = (
                f"Slurm {self.slurm_version} reaches its end of life on {end}; PCS then creates no clusters with it"
            )
            yield Problem("slurm-version-ending", "slurm_version", message, hint, "warning")

    @rule
    def _allowed_settings(self) -> Iterator[Problem]:
        yield from setting_problems(self.slurm_settings, "cluster")
        yield from version_problems(self.slurm_settings, self.slurm_version, "cluster")
        yield from setting_problems(self.cgroup_settings, "cgroup.conf")
        yield from setting_problems(self.slurmdbd_settings, "slurmdbd.conf")

    @rule
    def _database(self) -> Iterator[Problem]:
        """Slurmdbd is the daemon of accounting (AWS PCS User Guide, "Configuring custom SlurmDBD settings", 2026)."""
        if self.slurmdbd_settings and not self.accounting:
            message = "without accounting there is no slurmdbd, so slurmdbd_settings would be ignored"
            yield Problem(
                "slurmdbd-without-accounting",
                "slurmdbd_settings",
                message,
                "remove slurmdbd_settings, or set accounting: true",
            )

    @rule
    def _filters(self) -> Iterator[Problem]:
        """CLI filters run in the commands of Slurm (AWS PCS User Guide, "Slurm REST API", limitations, 2026)."""
        if self.rest_api and "CliFilterPlugins" in self.slurm_settings:
            message = (
                "the REST API does not run CLI filter plugins, so jobs that are submitted through it pass no filter"
            )
            hint = "remove CliFilterPlugins, or set rest_api: false"
            yield Problem("rest-api-without-filters", "rest_api", message, hint, "warning")

    @rule
    def _health_checks(self) -> Iterator[Problem]:
        yield from health_problems(self.slurm_settings)

    @rule
    def _metrics(self) -> Iterator[Problem]:
        """AWS PCS User Guide, "Slurm metrics" (2026)."""
        if self.slurm_version >= pcs.METRICS_SINCE and "PrivateData" in self.slurm_settings:
            message = "Slurm serves no metrics while data are private, so queues and jobs are on no dashboard"
            hint = "remove PrivateData, if users may see the jobs of others"
            at = ("slurm_settings", "PrivateData")
            yield Problem("slurm-metrics-private", at, message, hint, "warning")


class Pcs(PcsControlPlane):
    """An AWS PCS cluster with its login nodes and queues.

    `size: auto` is the smallest size that manages all nodes, login nodes included. `accounting` enables Slurm
    accounting in a database that PCS manages. `slurm_settings` are parameters of slurm.conf.

    Source: AWS PCS User Guide (2026); figures and lists in `infra/ultracluster/catalog/data/pcs.json`.
    """

    login: Login = Login()
    """Login nodes."""
    queues: Annotated[Many[Queue], Field(min_length=1)]
    """Queues for jobs."""

    def managed_nodes(self, nodes: int) -> int:
        """Nodes that the cluster manages at most: `nodes` and the login nodes."""
        return nodes + self.login.count

    @rule
    def _queue_limit(self) -> Iterator[Problem]:
        if len(self.queues) > pcs.MAXIMUM_QUEUES:
            message = f"{len(self.queues)} queues; the maximum is {pcs.MAXIMUM_QUEUES} per PCS cluster"
            yield Problem(
                "wrong-length", "queues", message, "merge queues, or split the fleet into several environments"
            )

    @rule
    def _distinct_queues(self) -> Iterator[Problem]:
        names = [queue.name for queue in self.queues]
        for i, name in enumerate(names):
            if name in names[:i]:
                message = f"{name} is already the name of queues[{names.index(name)}]"
                yield Problem("duplicate-name", ("queues", i, "name"), message, "choose another name")

    @rule
    def _queue_versions(self) -> Iterator[Problem]:
        for i, queue in enumerate(self.queues):
            yield from version_problems(queue.slurm_settings, self.slurm_version, "queue", ("queues", i))

    @rule
    def _one_default_queue(self) -> Iterator[Problem]:
        """Slurm keeps one default partition, the last that asks for it (slurm.conf man page, Default)."""
        defaults = [i for i, queue in enumerate(self.queues) if truth(queue.slurm_settings.get("Default"))]
        for i in defaults[1:]:
            first = self.queues[defaults[0]].name
            message = f"{first} is already the default queue; a cluster has one"
            at = ("queues", i, "slurm_settings", "Default")
            yield Problem("queue-default-twice", at, message, "remove Default from one of the queues")
