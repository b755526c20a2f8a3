"""The Slurm control plane: an AWS PCS cluster with its login nodes and queues."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.catalog import pcs
from ultracluster.config import clock, cluster_effects, node_effects
from ultracluster.config import effect_rules as rules
from ultracluster.config.bootstrap import Bootstrap, Policies, Script, SecurityGroups, boot_problems, scripts
from ultracluster.config.containers import Containers
from ultracluster.config.effects import IN_PLACE, NEW_COMPUTE_NODES, NEW_FLEET, NEW_LOGIN_NODES, NEW_SECTION
from ultracluster.config.fields import FLAG, MAPPING, SWITCH, CpuType, Image, Many, Mirror, Name
from ultracluster.config.problems import Problem, repeated, repeated_names, rule
from ultracluster.config.settings import Settings
from ultracluster.config.slurm_conflicts import cluster_conflicts, queue_conflicts
from ultracluster.config.slurm_settings import (
    SlurmSettings,
    health_problems,
    kill_problems,
    newer_slurm,
    setting_problems,
    truth,
    version_problems,
)
from ultracluster.config.slurm_teams import SlurmTeam

NOTICE = timedelta(days=90)
"""How long before a Slurm version's end of life the warning starts."""

IDLE_SECONDS = 600
"""Default of PCS for the time before it terminates an idle node (PCS API Reference, ClusterSlurmConfiguration)."""


LOGIN_GROUPS = 2
"""Our security groups of login nodes: that of the cluster, and that of SSH."""


class Login(Settings):
    """Login nodes: a static node group outside every queue."""

    instance_type: Annotated[CpuType, cluster_effects.LOGIN_TYPE] = "m7i.4xlarge"
    """Instance type of the login nodes."""
    count: Annotated[int, Field(ge=1), IN_PLACE] = 1
    """Number of login nodes. Several need storage.home, or a boot script that mounts /home."""
    image: Annotated[Image, NEW_LOGIN_NODES] = "auto"
    """auto: AWS's newest PCS image. Or an AMI id, or an SSM parameter that holds one."""
    root_volume_gib: Annotated[int, Field(ge=100, le=16384), NEW_LOGIN_NODES] = 100
    """Size of the root volume in GiB."""
    bootstrap: Annotated[Bootstrap, NEW_LOGIN_NODES] = ()
    """Scripts that login nodes run at their first boot, after all other steps and in this order: paths, or mappings.
    After a failure the others do not run, but the node stays."""
    policies: Annotated[Policies, node_effects.LOGIN_POLICIES] = ()
    """ARNs of further IAM policies. Login nodes then have a role of their own."""
    security_groups: Annotated[SecurityGroups, NEW_LOGIN_NODES] = ()
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

    name: Annotated[Name, Field(min_length=3), cluster_effects.QUEUE_NAME]
    """Name of the queue, which is the Slurm partition."""
    node_groups: Annotated[Many[str], Field(min_length=1), IN_PLACE]
    """Node groups that run the queue's jobs."""
    slurm_settings: Annotated[SlurmSettings, IN_PLACE] = Field(default_factory=dict)
    """Parameters of slurm.conf that PCS allows for a queue."""

    @rule
    def _partition_of_its_own(self) -> Iterator[Problem]:
        """A partition DEFAULT, in any case, holds defaults of the others (slurm.conf man page, PartitionName)."""
        if self.name == "default":
            message = "default is the name under which Slurm keeps defaults of all queues, not a queue"
            yield Problem("queue-name-reserved", "name", message, "choose another name")

    @rule
    def _distinct_groups(self) -> Iterator[Problem]:
        yield from repeated("node_groups", self.node_groups)

    @rule
    def _allowed_settings(self) -> Iterator[Problem]:
        yield from setting_problems(self.slurm_settings, "queue")

    @rule
    def _conflicts(self) -> Iterator[Problem]:
        yield from queue_conflicts(self.slurm_settings)


class PcsControlPlane(Settings):
    """Settings of an AWS PCS control plane alone, without login nodes and queues.

    `size: auto` is the smallest size that manages all nodes, login nodes included. `accounting` enables Slurm
    accounting in a database that PCS manages. `slurm_settings` are parameters of slurm.conf.

    Source: AWS PCS User Guide (2026); figures and lists in `infra/ultracluster/catalog/data/pcs.json`.
    """

    type: Annotated[Literal["pcs"], rules.KIND] = "pcs"
    """Type of control plane."""
    slurm_version: Annotated[str, cluster_effects.SLURM_VERSION]
    """Slurm version, in quotes."""
    size: Annotated[Literal["auto", "small", "medium", "large"], cluster_effects.SIZE] = "auto"
    """Size of the cluster. auto: the smallest size that manages all nodes."""
    accounting: Annotated[bool, cluster_effects.CLUSTER] = True
    """Whether Slurm accounting is enabled, in a database that PCS manages."""
    slurm_settings: Annotated[SlurmSettings, cluster_effects.CLUSTER_SETTINGS] = Field(default_factory=dict)
    """Parameters of slurm.conf that PCS allows for a cluster."""
    cgroup_settings: Annotated[SlurmSettings, cluster_effects.CLUSTER] = Field(default_factory=dict)
    """Parameters of cgroup.conf that PCS allows."""
    slurmdbd_settings: Annotated[SlurmSettings, cluster_effects.CLUSTER] = Field(default_factory=dict)
    """Parameters of slurmdbd.conf, of accounting, that PCS allows."""
    idle_seconds: Annotated[int, Field(ge=1, le=10_000_000), cluster_effects.CLUSTER] = IDLE_SECONDS
    """Seconds after which PCS terminates an idle node that its node group does not need for its minimum."""
    rest_api: Annotated[bool, cluster_effects.CLUSTER] = False
    """Whether PCS serves Slurm's REST API, over HTTP on port 6820 of the controller, to nodes of the cluster."""

    image_mirror: Annotated[Mirror | None, NEW_FLEET] = None
    """OCI registry with copies of the images of the metrics agents, under the paths that they have in their own."""
    metadata_access: Annotated[Literal["root", "all"], NEW_FLEET] = "root"
    """Who reaches instance metadata, and so the role of the node. root: only root and agents; users get credentials of
    a role of jobs, for the buckets of the file. all: every process, which can then act as a node of the cluster."""
    record_output: Annotated[bool, NEW_COMPUTE_NODES] = False
    """Whether the end of the output of each job goes to the log group of nodes, whose readers then read it."""

    @rule
    def _known_version(self) -> Iterator[Problem]:
        """Whether the cluster exists already is not known here, so time alone refuses nothing."""
        version, end = self.slurm_version, pcs.SLURM_VERSIONS.get(self.slurm_version)
        meant = next((known for known in pcs.SLURM_VERSIONS if version.startswith(f"{known}.")), pcs.NEWEST_SLURM)
        hint = f'set slurm_version: "{meant}"' if version != meant else "update this package, and name a newer version"
        if end is None:
            known = ", ".join(pcs.SLURM_VERSIONS)
            if newer_slurm(version):
                message = f"Slurm {version} is newer than the versions that this package knows: {known}"
                hint = "check that PCS offers it, and update this package"
                yield Problem("slurm-version-unknown", "slurm_version", message, hint, "warning")
            else:
                message = f"PCS does not offer Slurm {version}; known versions: {known}"
                yield Problem("slurm-version-unknown", "slurm_version", message, hint)
        elif end < clock.today():
            message = f"Slurm {version} reached its end of life on {end}; PCS creates no clusters with it"
            yield Problem("slurm-version-ended", "slurm_version", message, hint, "warning")
        elif end < clock.today() + NOTICE:
            message = f"Slurm {version} reaches its end of life on {end}; PCS then creates no clusters with it"
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
            message = "the REST API does not run CLI filter plugins, so jobs submitted through it bypass them"
            hint = "remove CliFilterPlugins, or set rest_api: false"
            yield Problem("rest-api-without-filters", "rest_api", message, hint, "warning")

    @rule
    def _health_checks(self) -> Iterator[Problem]:
        yield from health_problems(self.slurm_settings)
        yield from kill_problems(self.slurm_settings)

    @property
    def _preempts(self) -> bool:
        """Whether jobs evict others without a setting of the file."""
        return False

    @rule
    def _conflicts(self) -> Iterator[Problem]:
        yield from cluster_conflicts(self.slurm_settings, preempts=self._preempts)

    @rule
    def _metrics(self) -> Iterator[Problem]:
        """AWS PCS User Guide, "Slurm metrics" (2026)."""
        if self.slurm_version >= pcs.METRICS_SINCE and "PrivateData" in self.slurm_settings:
            message = "with PrivateData slurmctld serves no metrics, so dashboards show no queues and jobs"
            hint = "remove PrivateData, if users may see the jobs of others"
            at = ("slurm_settings", "PrivateData")
            yield Problem("slurm-metrics-private", at, message, hint, "warning")


class Pcs(PcsControlPlane):
    """An AWS PCS cluster with its login nodes and queues.

    `size: auto` is the smallest size that manages all nodes, login nodes included. `accounting` enables Slurm
    accounting in a database that PCS manages. `slurm_settings` are parameters of slurm.conf.

    Source: AWS PCS User Guide (2026); figures and lists in `infra/ultracluster/catalog/data/pcs.json`.
    """

    login: Annotated[Login, NEW_SECTION] = Login()
    """Login nodes."""
    containers: Annotated[Annotated[bool, FLAG] | Annotated[Containers, MAPPING], SWITCH, NEW_FLEET] = False
    """Whether jobs run containers with Enroot and Pyxis. true: the images of all nodes hold both. Or the folder from
    which nodes install them."""
    queues: Annotated[Many[Queue], Field(min_length=1), cluster_effects.QUEUES]
    """Queues for jobs."""
    teams: Annotated[Many[SlurmTeam], cluster_effects.ACCOUNTS] = ()
    """Teams that share the fleet: accounts of Slurm, each with a fair share, a QOS and a limit. Needs accounting."""

    def managed_nodes(self, nodes: int) -> int:
        """Nodes that the cluster manages at most: `nodes` and the login nodes."""
        return nodes + self.login.count

    @property
    def _preempts(self) -> bool:
        return self.accounting and bool(self.teams)

    @rule
    def _queue_limit(self) -> Iterator[Problem]:
        if len(self.queues) > pcs.MAXIMUM_QUEUES:
            message = f"{len(self.queues)} queues; the maximum is {pcs.MAXIMUM_QUEUES} per PCS cluster"
            yield Problem(
                "wrong-length", "queues", message, "merge queues, or split the fleet into several environments"
            )

    @rule
    def _distinct_queues(self) -> Iterator[Problem]:
        yield from repeated_names("queues", [queue.name for queue in self.queues])

    @rule
    def _distinct_teams(self) -> Iterator[Problem]:
        yield from repeated_names("teams", [team.name for team in self.teams])

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
