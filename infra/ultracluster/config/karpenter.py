"""Karpenter's pools: the nodes that it may launch beside the static fleet, and within which limits."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.catalog import InstanceType, Interface, UltraClusterType, catalog, instance_types, interface_layout
from ultracluster.catalog.ec2_types import family_types
from ultracluster.config import cluster_effects
from ultracluster.config.effects import CONTENT, NEW_SECTION
from ultracluster.config.fields import KIND, LIST, TEXT, ZONE_DUMMIES, Many, Name, cdk_value
from ultracluster.config.pool_types import limit_problems, pool_type_problems, pool_wiring_problems
from ultracluster.config.problems import Problem, repeated, repeated_names, rule
from ultracluster.config.settings import Settings

PoolPurchase = Literal["on_demand", "spot"]

RESERVED_POOLS = frozenset({"cpu", "g", *(name.replace(".", "-") for name in catalog)})
"""Names of the pools of `karpenter: true`. A change between the two forms deletes those of the old form last."""


class PoolLimits(Settings):
    """What all nodes of a pool may have together. Karpenter launches no node above any of them.

    Pods that wait would otherwise buy a whole fleet. Karpenter counts again after each launch, so that a burst of pods
    may exceed a limit by a few nodes (Karpenter 1.14, "NodePools").
    """

    nodes: Annotated[Annotated[int, Field(ge=1)] | None, CONTENT] = None
    """Number of nodes."""
    cpus: Annotated[Annotated[int, Field(ge=1)] | None, CONTENT] = None
    """vCPUs of all nodes."""
    gpus: Annotated[Annotated[int, Field(ge=1)] | None, CONTENT] = None
    """GPUs of all nodes."""

    @rule
    def _any_limit(self) -> Iterator[Problem]:
        if not (self.nodes or self.cpus or self.gpus):
            message = "no limit: pods that wait could buy any number of nodes"
            yield Problem("pool-without-limit", (), message, "add nodes, cpus or gpus")


class KarpenterPool(Settings):
    """Nodes that Karpenter launches for pods that wait, and terminates once they are empty.

    A pool has types of one architecture, all with GPUs or all without. Of spot and on_demand Karpenter takes Spot
    first. With `efa` the nodes have every EFA card of their type, and all types have the same cards.
    """

    name: Annotated[Name, cluster_effects.POOL_NAME]
    """Name of the pool. The value of the label ultracluster/node-group of its nodes is elastic-NAME."""
    instance_types: Annotated[Many[str], cluster_effects.POOL_NODES] = ()
    """Instance types that Karpenter chooses from."""
    families: Annotated[Many[str], cluster_effects.POOL_NODES] = ()
    """Instead of instance_types: families such as g6e, in all sizes."""
    purchase: Annotated[
        Annotated[PoolPurchase, TEXT] | Annotated[Annotated[Many[PoolPurchase], Field(min_length=1)], LIST],
        KIND,
        cluster_effects.POOL_NODES,
    ] = "on_demand"
    """on_demand, spot, or a list of both."""
    zones: Annotated[Many[Annotated[str, cdk_value(ZONE_DUMMIES)]], cluster_effects.POOL_ZONES] = ()
    """Availability Zones of nodes without EFA. Without it, the availability_zone of the environment."""
    limits: Annotated[PoolLimits, NEW_SECTION]
    """What all nodes of the pool may have together."""
    efa: Annotated[bool, cluster_effects.POOL_NODES] = False
    """Whether the nodes have EFA, in the availability_zone of the environment."""
    weight: Annotated[Annotated[int, Field(ge=1, le=100)] | None, CONTENT] = None
    """Of several pools that fit a pod, Karpenter takes the one with the highest weight."""
    root_volume_gib: Annotated[int, Field(ge=100, le=16384), cluster_effects.POOL_NODES] = 300
    """Size of the root volume in GiB."""
    idle_minutes: Annotated[int, Field(ge=1, le=10_080), CONTENT] = 10
    """Minutes without pods after which a node is terminated."""

    @property
    def markets(self) -> tuple[PoolPurchase, ...]:
        """How its nodes are bought."""
        return (self.purchase,) if isinstance(self.purchase, str) else self.purchase

    @property
    def types(self) -> tuple[str, ...]:
        """Names of its instance types, those of a family in the order of EC2's list."""
        return self.instance_types or tuple(name for family in self.families for name in family_types(family))

    @property
    def hardware(self) -> tuple[InstanceType, ...]:
        """Its instance types, without unknown names, which a rule refuses."""
        return tuple(instance_types[name] for name in self.types if name in instance_types)

    @property
    def has_gpus(self) -> bool:
        """Whether its nodes have GPUs."""
        return any(each.gpu_count for each in self.hardware)

    @property
    def layout(self) -> tuple[Interface, ...]:
        """Network interfaces of one node."""
        return interface_layout(self.hardware[0], "fewest_ips" if self.efa else "without_efa")

    @property
    def lustre_over_efa(self) -> bool:
        """Whether the nodes can reach a file system over EFA: it is verified for types of UltraClusters only."""
        return self.efa and all(isinstance(each, UltraClusterType) for each in self.hardware)

    def most(self, hardware: InstanceType) -> int:
        """Nodes of one of its types that the limits allow."""
        limits = self.limits
        wholes = (
            limits.nodes,
            limits.cpus and limits.cpus // hardware.vcpus,
            limits.gpus and hardware.gpu_count and limits.gpus // hardware.gpu_count,
        )
        return min((whole for whole in wholes if whole is not None), default=0)

    @rule
    def _instance_types(self) -> Iterator[Problem]:
        """See `infra/ultracluster/config/pool_types.py`."""
        yield from pool_type_problems(self.instance_types, self.families, self.markets, efa=self.efa)

    @rule
    def _limits(self) -> Iterator[Problem]:
        yield from limit_problems(self.hardware, cpus=self.limits.cpus, gpus=self.limits.gpus)

    @rule
    def _wiring(self) -> Iterator[Problem]:
        yield from pool_wiring_problems(self.hardware, self.zones, efa=self.efa)

    @rule
    def _distinct_entries(self) -> Iterator[Problem]:
        for key in ("instance_types", "families", "zones"):
            yield from repeated(key, getattr(self, key))
        yield from repeated("purchase", self.markets)

    @rule
    def _name_is_free(self) -> Iterator[Problem]:
        if self.name in RESERVED_POOLS:
            message = f"{self.name} is a pool of karpenter: true"
            yield Problem("pool-name-reserved", "name", message, f"set name: own-{self.name}"[: len("set name: ") + 15])


class KarpenterPools(Settings):
    """Karpenter with the pools of this file."""

    pools: Annotated[Many[KarpenterPool], Field(min_length=1), cluster_effects.POOLS]
    """Pools of nodes."""

    @rule
    def _distinct_names(self) -> Iterator[Problem]:
        yield from repeated_names("pools", [pool.name for pool in self.pools])
