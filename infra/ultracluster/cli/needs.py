"""Service quotas that an environment needs, with every node group at its maximum count."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from ultracluster.catalog import instance_types
from ultracluster.catalog.quotas import Market, Quota, service_quotas, vcpu_quota
from ultracluster.config.eks import Eks
from ultracluster.config.eks_nodes import CPU_VOLUME_GIB, SYSTEM_VOLUME_GIB
from ultracluster.config.environment import Environment
from ultracluster.config.file_systems import Efs, OpenZfs
from ultracluster.config.pcs import Pcs
from ultracluster.kubernetes import karpenter


@dataclass(frozen=True)
class Need:
    """How much of a quota the environment uses, and for which resources."""

    quota: Quota
    needed: int
    purpose: str

    @property
    def exceeds(self) -> bool:
        """Whether it exceeds the quota of a new account."""
        return self.needed > self.quota.default


@dataclass(frozen=True)
class _Nodes:
    """Nodes of one node group or pool. `markets` is empty for Capacity Blocks, which count toward no vCPU quota."""

    name: str
    types: tuple[str, ...]
    count: int
    markets: tuple[Market, ...] = ("on_demand",)
    volume_gib: int = 0
    interfaces: int = 1


def quota_needs(environment: Environment) -> list[Need]:
    """Quotas that the environment uses, those of vCPUs first.

    Node groups count at their maximum; system nodes and CPU nodes of EKS with one more each, which an update launches.
    Karpenter's pools count at their limits.
    """
    nodes = [*_nodes(environment)]
    return [
        *_vcpus(nodes, environment),
        *_volumes_and_addresses(nodes, environment),
        *_storage(environment),
        *_control_plane(environment),
    ]


def _nodes(environment: Environment) -> Iterator[_Nodes]:
    plane = environment.control_plane
    for group in environment.node_groups:
        special: dict[str, tuple[Market, ...]] = {"spot": ("spot",), "capacity_block": ()}
        markets = special.get(group.purchase.type, ("on_demand",))
        interfaces = len(group.layout(plane.type))
        yield _Nodes(group.name, group.types, group.max_count, markets, group.root_volume_gib, interfaces)
    if host := environment.access.access_host:
        yield _Nodes("access host", (host.instance_type,), 1)
    if isinstance(plane, Pcs):
        login = plane.login
        yield _Nodes("login nodes", (login.instance_type,), login.count, volume_gib=login.root_volume_gib)
    else:
        yield from _nodes_of_eks(plane)


def _nodes_of_eks(plane: Eks) -> Iterator[_Nodes]:
    system, cpu = plane.system_nodes, plane.cpu_nodes
    yield _Nodes("system nodes", (system.instance_type,), system.count + 1, volume_gib=SYSTEM_VOLUME_GIB)
    if cpu.count:
        yield _Nodes("CPU nodes", (cpu.instance_type,), cpu.count + 1, volume_gib=CPU_VOLUME_GIB)
    for pool in plane.pools:
        name, interfaces = f"pool {pool.name}", len(pool.layout)
        # the number of nodes within the pool's limits depends on the type
        for hardware in pool.hardware:
            yield _Nodes(name, (hardware.name,), pool.most(hardware), pool.markets, pool.root_volume_gib, interfaces)


def _largest(nodes: list[_Nodes]) -> dict[tuple[str, Quota], int]:
    """Number of vCPUs by node group and quota; of several instance types, the one that needs most counts."""
    found: dict[tuple[str, Quota], int] = {}
    for each in nodes:
        for market in each.markets:
            for name in each.types:
                quota, hardware = vcpu_quota(name, market), instance_types.get(name)
                if quota and hardware:
                    key = (each.name, quota)
                    found[key] = max(found.get(key, 0), each.count * hardware.vcpus)
    return found


def _vcpus(nodes: list[_Nodes], environment: Environment) -> Iterator[Need]:
    needed: dict[Quota, int] = defaultdict(int)
    users: dict[Quota, list[str]] = defaultdict(list)
    for (name, quota), vcpus in (_largest(nodes) | _default_pools(environment)).items():
        needed[quota] += vcpus
        users[quota].append(name)
    for quota, vcpus in needed.items():
        yield Need(quota, vcpus, ", ".join(users[quota]))


def _default_pools(environment: Environment) -> dict[tuple[str, Quota], int]:
    """Limits of the pools of `karpenter: true` in vCPUs."""
    plane = environment.control_plane
    if not isinstance(plane, Eks) or plane.karpenter is not True:
        return {}
    limits = {
        ("pool cpu", "m7i.large"): karpenter.CPU_LIMIT,
        ("pool g", "g6.xlarge"): karpenter.G_LIMIT * karpenter.G_CPUS_PER_GPU,
        ("pools of P types", "p5.48xlarge"): sum(
            karpenter.P_NODES * hardware.vcpus for hardware in karpenter.p_types()
        ),
    }
    quotas = {name: vcpu_quota(example, "on_demand") for name, example in limits}
    return {(name, quota): limits[name, example] for name, example in limits if (quota := quotas[name])}


def _volumes_and_addresses(nodes: list[_Nodes], environment: Environment) -> Iterator[Need]:
    """Root volumes and network interfaces of nodes, and Elastic IP addresses of NAT gateways."""
    quotas = service_quotas(environment.region)
    largest: dict[str, tuple[int, int]] = {}
    for each in nodes:
        volumes, interfaces = largest.get(each.name, (0, 0))
        largest[each.name] = (max(volumes, each.count * each.volume_gib), max(interfaces, each.count * each.interfaces))
    tib = ceil(sum(volumes for volumes, _ in largest.values()) / 1024)
    yield Need(quotas["gp3"], tib, "root volumes of nodes")
    yield Need(quotas["interfaces"], sum(count for _, count in largest.values()), "interfaces of nodes at their launch")
    create = environment.network.create
    if create and create.nat_gateways:
        yield Need(quotas["addresses"], create.nat_gateways, "NAT gateways")


def _storage(environment: Environment) -> Iterator[Need]:
    quotas, storage = service_quotas(environment.region), environment.storage
    for key, deployments in (("lustre_capacity", {"persistent_2"}), ("lustre_scratch", {"scratch_1", "scratch_2"})):
        capacity = sum(each.capacity_gib or 0 for _, each in storage.new_lustre if each.deployment in deployments)
        if capacity:
            yield Need(quotas[key], capacity, "file systems")
    openzfs = [each for _, each in storage.new_nfs if isinstance(each, OpenZfs)]
    if openzfs:
        yield Need(quotas["openzfs_systems"], len(openzfs), "file systems")
        yield Need(quotas["openzfs_capacity"], sum(each.capacity_gib or 0 for each in openzfs), "file systems")
        yield Need(quotas["openzfs_throughput"], sum(each.throughput_mbps or 0 for each in openzfs), "file systems")
    efs = [each for _, each in storage.new_nfs if isinstance(each, Efs)]
    if efs:
        yield Need(quotas["efs_systems"], len(efs), "file systems")
        yield Need(quotas["efs_targets"], len(efs), "one mount target of each")


def _control_plane(environment: Environment) -> Iterator[Need]:
    quotas, plane = service_quotas(environment.region), environment.control_plane
    groups = len(environment.launched_groups)
    if isinstance(plane, Pcs):
        yield Need(quotas["pcs_clusters"], 1, "this environment")
        yield Need(quotas["pcs_groups"], groups + 1, "node groups, and the login nodes")
        yield Need(quotas["pcs_queues"], len(plane.queues), "queues")
    else:
        total = groups + 1 + bool(plane.cpu_nodes.count)
        yield Need(quotas["eks_groups"], total, "node groups, system nodes and CPU nodes")
        largest = max(group.max_count for group in environment.launched_groups)
        yield Need(quotas["eks_nodes"], largest, "the largest node group")
    if environment.observability.metrics is None:
        yield Need(quotas["workspaces"], 1, "metrics")
