"""Karpenter's pools of the environment file, each a set of objects of its own: sets are deleted, their parts are not.

Source: Karpenter 1.14, "NodePools", "NodeClasses", "Disruption"; the CDK's kubectl handler prunes no custom resources.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ultracluster.catalog import InstanceType, efa_devices
from ultracluster.config.eks_fleet import ELASTIC_GROUPS
from ultracluster.config.karpenter import KarpenterPool
from ultracluster.kubernetes.deployed import KarpenterResources
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.karpenter_objects import (
    ec2_node_class,
    huge_pages,
    network_interfaces,
    node_pool,
    node_template,
    one_of,
    remove_when_empty,
    with_gpus,
)
from ultracluster.kubernetes.labels import GPU
from ultracluster.kubernetes.parts import Object, Objects
from ultracluster.kubernetes.quotas import Room, node_room

CAPACITY_TYPES = {"on_demand": "on-demand", "spot": "spot"}
ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
LIMITS = {"nodes": "nodes", "cpus": "cpu", "gpus": GPU}
"""Keys of Karpenter's limits. It enforces that of nodes from 1.11 on (kubernetes-sigs/karpenter pull request 2526)."""


@dataclass(frozen=True)
class ElasticPool:
    """What a pool holds at most. `name` is also the value of NODE_GROUP on its nodes."""

    name: str
    cpus: int
    memory_gib: int
    gpus: int = 0
    efa_devices: int = 0


def own_pools(environment: EksEnvironment, resources: KarpenterResources) -> tuple[Objects, ...]:
    """A set for each pool, and one with the NodeOverlay for the huge pages of pools with EFA."""
    pools = environment.settings.pools
    sets = [
        Objects(elastic_group(pool), _objects(environment, resources, pool), after=("karpenter",)) for pool in pools
    ]
    if with_efa := [elastic_group(pool) for pool in pools if pool.efa]:
        # not the name of the default pools' overlay, which a change between the forms deletes last
        overlay = huge_pages("huge-pages-of-pools", with_efa)
        sets.append(Objects("huge-pages", (overlay,), after=("karpenter",)))
    return tuple(sets)


def own_elastic_pools(environment: EksEnvironment) -> tuple[ElasticPool, ...]:
    """All pools: those without GPUs first, then by weight, the order in which Kueue tries them."""
    pools = sorted(environment.settings.pools, key=lambda pool: (pool.has_gpus, -(pool.weight or 0)))
    return tuple(map(_elastic_pool, pools))


def elastic_group(pool: KarpenterPool) -> str:
    """Name of a pool's objects, and value of NODE_GROUP on its nodes."""
    return f"{ELASTIC_GROUPS}{pool.name}"


def elastic_cpu_pod(environment: EksEnvironment, cpus: int, name: str | None = None) -> tuple[str, int] | None:
    """The first pool of the file on which a pod can have `cpus` CPUs, by its label, and the GiB that go with them.

    Pools are without GPUs; with `name`, only the one of that name or label. None without such a pool, and where another
    scheduler than Kueue chooses nodes: whether Karpenter sees its pods in time is not verified.
    """
    for pool in elastic_cpu_pools(environment, name):
        rooms = [room for room in _cpu_rooms(pool) if cpus <= room.cpus]
        if rooms:
            return elastic_group(pool), min(cpus * room.memory_gib // room.cpus for room in rooms)
    return None


def largest_elastic_cpu_pod(environment: EksEnvironment, name: str | None = None) -> int:
    """CPUs of the largest pod that `elastic_cpu_pod` finds a pool for; 0 without one."""
    return max((room.cpus for pool in elastic_cpu_pools(environment, name) for room in _cpu_rooms(pool)), default=0)


def elastic_cpu_pools(environment: EksEnvironment, name: str | None = None) -> list[KarpenterPool]:
    """Pools of the file for pods without GPUs, in its order; with `name`, the one of that name or label."""
    if environment.settings.scheduler != "kueue":
        return []
    pools = [pool for pool in environment.settings.pools if not pool.has_gpus]
    return [pool for pool in pools if name in (None, pool.name, elastic_group(pool))]


def _cpu_rooms(pool: KarpenterPool) -> list[Room]:
    return [node_room((each.name,)) for each in pool.hardware if pool.most(each)]


def _elastic_pool(pool: KarpenterPool) -> ElasticPool:
    """The most of each resource that nodes within the limits have, all of one type."""

    def most(amount: Callable[[InstanceType], float]) -> int:
        return max(int(pool.most(each) * amount(each)) for each in pool.hardware)

    return ElasticPool(
        elastic_group(pool),
        cpus=most(lambda each: each.vcpus),
        memory_gib=most(lambda each: each.memory_gib),
        gpus=most(lambda each: each.gpu_count),
        efa_devices=most(lambda _: efa_devices(pool.layout)),
    )


def _objects(environment: EksEnvironment, resources: KarpenterResources, pool: KarpenterPool) -> tuple[Object, Object]:
    name = elastic_group(pool)
    zones = pool.zones or (environment.availability_zone,)
    subnets = [resources.zone_subnet_ids[zone] for zone in zones] if pool.zones else [resources.node_subnet_id]
    efa_group = (resources.efa_security_group_id,) if pool.efa else ()
    node_class = ec2_node_class(
        environment,
        resources,
        name=name,
        subnets=subnets,
        security_groups=(*efa_group, resources.cluster_security_group_id),
        root_volume_gib=pool.root_volume_gib,
        hardware=pool.hardware[0] if pool.efa else None,
        lustre_efa=pool.lustre_over_efa,
        **({"instanceStorePolicy": "RAID0"} if any(each.instance_store.disks for each in pool.hardware) else {}),
        networkInterfaces=network_interfaces(pool.layout),
    )
    idle = f"{pool.idle_minutes}m"
    spec = {
        "disruption": remove_when_empty(idle)
        if pool.has_gpus
        else {"consolidationPolicy": "WhenEmpty", "consolidateAfter": idle},
        "limits": {LIMITS[key]: str(limit) for key, limit in pool.limits if limit},
        "template": _template(environment, pool, zones),
        **({"weight": pool.weight} if pool.weight else {}),
    }
    return node_class, node_pool(name, spec)


def _template(environment: EksEnvironment, pool: KarpenterPool, zones: tuple[str, ...]) -> Object:
    types = (
        one_of("node.kubernetes.io/instance-type", *pool.instance_types)
        if pool.instance_types
        else one_of("karpenter.k8s.aws/instance-family", *pool.families)
    )
    template = node_template(
        elastic_group(pool),
        {},
        [types, one_of("topology.kubernetes.io/zone", *zones)],
        capacity_types=[CAPACITY_TYPES[market] for market in pool.markets],
        architecture=ARCHITECTURES[pool.hardware[0].architecture],
    )
    return with_gpus(environment, template) if pool.has_gpus else template
