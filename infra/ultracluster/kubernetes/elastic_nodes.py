"""GPU nodes of Karpenter's pools for jobs, which take whole nodes of one size.

Source: Karpenter 1.14, "Scheduling", well-known labels; Kueue 0.19, flavor assigner.
"""

from dataclasses import dataclass

from ultracluster.catalog import InstanceType, Interface, efa_devices, instance_types, interface_layout
from ultracluster.catalog.ec2_types import family_types
from ultracluster.config.eks_fleet import ELASTIC_GROUPS
from ultracluster.config.node_groups import Controller
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.karpenter import G_FAMILIES, G_LIMIT, G_POOL, P_NODES, elastic_pools, p_types, pool_name
from ultracluster.kubernetes.karpenter_own import elastic_group

INSTANCE_TYPE = "node.kubernetes.io/instance-type"


@dataclass(frozen=True)
class ElasticNodes:
    """Nodes of a pool with the same number of GPUs. `hardware` is the smallest of their instance types.

    `name` is the value of the label NODE_GROUP. `max_count` is the number of nodes of `hardware` within the limits of
    the pool. `several` is whether the pool has other types with the same number of GPUs.
    """

    name: str
    hardware: InstanceType
    interfaces: tuple[Interface, ...]
    max_count: int
    several: bool

    @property
    def type_names(self) -> str:
        """The smallest instance type."""
        return self.hardware.name

    @property
    def efa(self) -> bool:
        """Whether the nodes have EFA interfaces."""
        return efa_devices(self.interfaces) > 0

    def layout(self, controller: Controller) -> tuple[Interface, ...]:  # noqa: ARG002 - as NodeGroup.layout
        """Interfaces of one node."""
        return self.interfaces

    def selector(self, nodes: int) -> dict[str, str]:
        """Node selector for a job on several nodes: one instance type, because a gang is as fast as its slowest GPU."""
        return {INSTANCE_TYPE: self.hardware.name} if self.several and nodes > 1 else {}


def pool_label(environment: EksEnvironment, name: str) -> str | None:
    """Value of NODE_GROUP for the pool with this name in the file or in the cluster; None if there is no such pool."""
    labels = [pool.name for pool in elastic_pools(environment)] if environment.settings.karpenter else []
    return next((label for label in labels if name in (label, label.removeprefix(ELASTIC_GROUPS))), None)


def gpu_pools(environment: EksEnvironment) -> list[str]:
    """Labels of the pools with GPUs on which jobs can be printed: under Kueue only."""
    if not environment.settings.karpenter or environment.settings.scheduler != "kueue":
        return []
    return [pool.name for pool in elastic_pools(environment) if elastic_nodes(environment, pool.name)]


def elastic_nodes(environment: EksEnvironment, label: str) -> list[ElasticNodes]:
    """Sizes of GPU nodes in the pool with `label`, most GPUs first; empty for a pool without GPUs."""
    kinds = [kind for kind in _types_of_pool(environment, label) if kind[0].gpu_count and kind[2]]
    found = []
    for gpus in sorted({hardware.gpu_count for hardware, _, _ in kinds}, reverse=True):
        size = [kind for kind in kinds if kind[0].gpu_count == gpus]
        hardware, layout, most = min(size, key=lambda kind: (kind[0].vcpus, kind[0].memory_gib, kind[0].name))
        found.append(ElasticNodes(label, hardware, layout, most, several=len(size) > 1))
    return found


def _types_of_pool(environment: EksEnvironment, label: str) -> list[tuple[InstanceType, tuple[Interface, ...], int]]:
    """Instance types of a pool, each with its interfaces and the number of nodes within the limits."""
    if environment.settings.pools:
        [pool] = [pool for pool in environment.settings.pools if elastic_group(pool) == label]
        return [(hardware, pool.layout, pool.most(hardware)) for hardware in pool.hardware]
    if label == G_POOL:
        types = [instance_types[name] for family in G_FAMILIES for name in family_types(family)]
        return [(each, interface_layout(each, "without_efa"), G_LIMIT // (each.gpu_count or 1)) for each in types]
    return [(each, interface_layout(each, "fewest_ips"), P_NODES) for each in p_types() if pool_name(each) == label]
