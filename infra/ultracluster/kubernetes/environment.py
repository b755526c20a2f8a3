"""The typed view of an EKS environment that every module of this package takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from ultracluster.catalog.software import mirrored_image
from ultracluster.config.acceptance import Acceptance
from ultracluster.config.eks import DeviceStack, Eks, JobOperator, Team
from ultracluster.config.environment import Environment
from ultracluster.config.health import Health
from ultracluster.config.network import subnet_plan
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.observability import Observability
from ultracluster.config.storage import Storage
from ultracluster.errors import UltraclusterError
from ultracluster.kubernetes.quotas import CpuPool, Room, cpu_pools, fleet_gpus

QueueSoftware = Literal["kueue", "volcano", "kai"]

REQUIRED_OPERATORS: Mapping[JobOperator, tuple[JobOperator, ...]] = {"trainer": ("jobset",)}
"""Job operators that another operator needs to run its jobs."""


EVERYWHERE = ("0.0.0.0/0",)


class NotEks(UltraclusterError, TypeError):
    """The environment has another control plane than EKS."""


@dataclass(frozen=True)
class EksEnvironment:
    """An environment whose control plane is EKS. `settings` is its section `control_plane`."""

    name: str
    region: str
    availability_zone: str
    node_tags: Mapping[str, str]
    storage: Storage
    node_groups: tuple[NodeGroup, ...]
    observability: Observability
    settings: Eks
    health: Health = field(default_factory=Health)
    scraper_networks: tuple[str, ...] = EVERYWHERE
    """Where the AMP scraper connects from: the control-plane subnets, whose blocks only a new VPC says."""

    @classmethod
    def from_environment(cls, environment: Environment) -> Self:
        """The view of `environment`. Raises NotEks if its control plane is not EKS."""
        settings = environment.control_plane
        if not isinstance(settings, Eks):
            raise NotEks(f"{environment.name} has no EKS control plane: its control_plane.type is {settings.type}")
        created = environment.network.create
        return cls(
            name=environment.name,
            region=environment.region,
            availability_zone=environment.availability_zone,
            node_tags=environment.node_tags,
            storage=environment.storage,
            node_groups=environment.node_groups,
            observability=environment.observability,
            settings=settings,
            health=environment.health,
            scraper_networks=tuple(map(str, subnet_plan(created.block).control_plane)) if created else EVERYWHERE,
        )

    @property
    def gpu_groups(self) -> tuple[NodeGroup, ...]:
        """Node groups with GPUs."""
        return tuple(group for group in self.node_groups if group.hardware.gpu_count)

    @property
    def teams(self) -> tuple[Team, ...]:
        """Teams that share the fleet."""
        return self.settings.teams

    @property
    def kubernetes_version(self) -> str:
        """Minor version of Kubernetes, such as 1.35."""
        return self.settings.kubernetes_version

    @property
    def queue_manager(self) -> QueueSoftware:
        """The software that holds the teams' quotas and queues their jobs."""
        return self.settings.queues_with

    @property
    def gang_scheduler(self) -> QueueSoftware:
        """The software that chooses nodes for jobs: Kueue's Topology Aware Scheduling, Volcano or KAI."""
        return self.settings.places_with

    @property
    def job_operators(self) -> tuple[JobOperator, ...]:
        """Job operators of the file and those that they require, required ones first."""
        names = (name for job in self.settings.jobs for name in (*REQUIRED_OPERATORS.get(job, ()), job))
        return tuple(dict.fromkeys(names))

    @property
    def device_stacks(self) -> frozenset[DeviceStack]:
        """Device stacks that serve any node group."""
        return self.settings.used_device_stacks

    @property
    def uses_dra(self) -> bool:
        """Whether pods claim the devices of any node group through dynamic resource allocation (DRA)."""
        return "dra" in self.device_stacks

    def uses_dra_on(self, group: NodeGroup) -> bool:
        """Whether pods claim the devices of `group` through DRA."""
        return "dra" in self.settings.device_stacks(group.name)

    @property
    def acceptance(self) -> Acceptance | None:
        """How new nodes with GPUs, of node groups and of pools, are accepted; None without such nodes or checks."""
        return self.health.acceptance("eks", len(self.device_stacks))

    @property
    def has_ultraservers(self) -> bool:
        """Whether any node group is of UltraServers, whose jobs claim NVLink by a ComputeDomain."""
        return any(group.hardware.ultraserver_only for group in self.node_groups)

    @property
    def fleet_name(self) -> str:
        """Name of the parent of all teams' queues. It has a dot, so no team can have the same name."""
        return f"{self.name}.fleet"

    def image(self, name: str) -> str:
        """A public image, in the mirror if the environment has one."""
        mirror = self.settings.chart_mirror
        return mirrored_image(name, mirror) if mirror else name

    def quotas(self, team: Team) -> list[tuple[NodeGroup, int]]:
        """Node groups of `team` in its order, each with the GPUs guaranteed to the team."""
        groups = {group.name: group for group in self.node_groups}
        return [(groups[name], team.quotas.get(name, 0)) for name in team.node_groups]

    @property
    def cpu_pools(self) -> tuple[CpuPool, ...]:
        """Nodes without GPUs: the CPU nodes of the control plane, if their type is known, and node groups."""
        return cpu_pools(self.settings.cpu_nodes, self.node_groups)

    @property
    def cpu_shares(self) -> dict[str, Room]:
        """CPUs and memory of each of the CPU pools for each team, by the name of the pool."""
        return {pool.name: pool.share(len(self.teams)) for pool in self.cpu_pools}

    def cpu_pool(self, cpus: int, name: str | None = None) -> CpuPool | None:
        """The first of the CPU pools, or that with `name`, on which a pod of a team can have `cpus` CPUs, or None."""
        fitting = [pool for pool in self.cpu_pools if cpus <= self.pod_cpus(pool)]
        return next((pool for pool in fitting if name in (None, pool.name)), None)

    def pod_cpus(self, pool: CpuPool) -> int:
        """CPUs that one pod of a team can have: those of a node, within the share of the team."""
        return min(pool.each.cpus, pool.share(len(self.teams)).cpus)

    def unclaimed_gpus(self, group: NodeGroup) -> int:
        """GPUs of `group` that are not guaranteed to any team, without those of spare nodes, which no quota holds."""
        spares = self.health.spares.get(group.name, 0) * group.hardware.gpu_count
        return fleet_gpus(group) - spares - sum(team.quotas.get(group.name, 0) for team in self.teams)
