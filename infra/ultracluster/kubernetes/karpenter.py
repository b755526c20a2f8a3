"""Karpenter: its release, and the default pools of On-Demand nodes that it may launch beside the static fleet.

A pod gets such a node by selecting its pool with the label `labels.NODE_GROUP`, or when no other node has room for it.
GPU pools are small, so that pending pods cannot buy a whole fleet. Karpenter removes their nodes only when they are
empty.

Source: Karpenter 1.14, "NodePools", "NodeClasses", "Disruption", and its design "EFA Support For Static Capacity".
"""

from collections.abc import Sequence

from ultracluster.catalog import InstanceType, catalog, efa_devices, interface_layout
from ultracluster.catalog.software import charts
from ultracluster.config.eks_fleet import ELASTIC_GROUPS
from ultracluster.kubernetes.deployed import DeployedResources, KarpenterResources
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
from ultracluster.kubernetes.karpenter_own import ElasticPool, elastic_group, own_elastic_pools, own_pools
from ultracluster.kubernetes.labels import GPU, on_system_nodes
from ultracluster.kubernetes.parts import Object, Objects, Release

KARPENTER_ACCOUNT = "karpenter"
"""Service account of Karpenter's controller, in the namespace of its chart. Its role is bound to it."""

CPU_POOL = f"{ELASTIC_GROUPS}cpu"
CPU_CATEGORIES = ["c", "m", "r"]
OLDER_THAN_CPU = "5"
"""Newest generation of those categories that the CPU pool excludes."""
CPU_LIMIT = 512
"""vCPUs of the CPU pool."""
CPU_POOL_GIB_PER_CPU = 4
"""Memory in GiB for each vCPU of the CPU pool, that of the m families."""

G_POOL = f"{ELASTIC_GROUPS}g"
G_FAMILIES = ["g5", "g6", "g6e", "gr6", "g7e"]
"""Families with GPUs but without NVLink, for inference and for work on a single GPU."""
G_LIMIT = 16
"""GPUs of the pool of G families."""
G_CPUS_PER_GPU, G_GIB_PER_GPU = 24, 192
"""vCPUs and memory in GiB for each GPU of the pool of G families, those of g6e.48xlarge."""

P_NODES = 2
"""Maximum number of nodes of each P type: two are enough to test a job over EFA."""

IDLE = "10m"
"""How long a node without pods is kept."""


def karpenter_release(environment: EksEnvironment, deployed: DeployedResources) -> Release | None:
    """Karpenter on the system nodes, if the environment uses it. Its queue announces interruptions of nodes.

    It repairs no node: the gate nodeRepair is alpha in Karpenter 1.14 and off by default. It would end a node without a
    drain, whatever the reason.
    """
    if deployed.karpenter is None:
        return None
    values = {
        "settings": {
            "clusterName": deployed.cluster_name,
            "interruptionQueue": deployed.karpenter.interruption_queue,
            "featureGates": {"nodeOverlay": True},
        },
        "serviceAccount": {"name": KARPENTER_ACCOUNT},
        "replicas": 2,
        # on a node of its own, Karpenter would disappear with that node
        **on_system_nodes(),
        "controller": {
            # pods cannot ask the instance metadata for the Region: the hop limit of nodes is 1
            "env": [{"name": "AWS_REGION", "value": environment.region}],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        },
    }
    return Release("karpenter", charts["karpenter"], values)


def karpenter_pools(environment: EksEnvironment, deployed: DeployedResources) -> tuple[Objects, ...]:
    """The pools of the file, or the default ones; empty without Karpenter.

    Default pools are of CPU nodes, of G families, and of each P type that EC2 sells On-Demand. There is no pool of
    UltraServers: AWS sells them only as capacity blocks, and Karpenter does not support ComputeDomains.
    """
    resources = deployed.karpenter
    if resources is None:
        return ()
    if environment.settings.pools:
        return own_pools(environment, resources)
    items: list[Object] = [*_cpu_pool(environment, resources), *_g_pool(environment, resources)]
    for hardware in p_types():
        items += _p_pool(environment, resources, hardware)
    items.append(huge_pages("huge-pages", [pool_name(hardware) for hardware in p_types()]))
    return (Objects("elastic", tuple(items), after=("karpenter",)),)


def elastic_pools(environment: EksEnvironment) -> tuple[ElasticPool, ...]:
    """All pools, those without GPUs first."""
    if environment.settings.pools:
        return own_elastic_pools(environment)
    return (
        ElasticPool(CPU_POOL, CPU_LIMIT, CPU_LIMIT * CPU_POOL_GIB_PER_CPU),
        ElasticPool(G_POOL, G_LIMIT * G_CPUS_PER_GPU, G_LIMIT * G_GIB_PER_GPU, G_LIMIT),
        *(
            ElasticPool(
                pool_name(hardware),
                P_NODES * hardware.vcpus,
                P_NODES * int(hardware.memory_gib),
                P_NODES * hardware.gpu_count,
                P_NODES * efa_devices(interface_layout(hardware, "fewest_ips")),
            )
            for hardware in p_types()
        ),
    )


def pool_groups(environment: EksEnvironment) -> dict[str, int]:
    """EFA devices of a node of each pool with GPUs, by the value of NODE_GROUP on its nodes."""
    pools = environment.settings.pools
    if pools:
        return {elastic_group(pool): efa_devices(pool.layout) for pool in pools if pool.has_gpus}
    if not environment.settings.karpenter:
        return {}
    return {pool_name(each): efa_devices(interface_layout(each, "fewest_ips")) for each in p_types()}


def p_types() -> list[InstanceType]:
    """P types that EC2 sells On-Demand."""
    return [hardware for hardware in catalog.values() if "on-demand" in hardware.usage_classes]


def pool_name(hardware: InstanceType) -> str:
    """Name of the pool of one P type, and value of NODE_GROUP on its nodes."""
    return f"{ELASTIC_GROUPS}{hardware.name.replace('.', '-')}"


def _cpu_pool(environment: EksEnvironment, resources: KarpenterResources) -> tuple[Object, Object]:
    node_class = ec2_node_class(
        environment,
        resources,
        name=CPU_POOL,
        subnets=resources.cpu_subnet_ids,
        security_groups=(resources.cluster_security_group_id,),
        root_volume_gib=100,
    )
    requirements = [
        one_of("karpenter.k8s.aws/instance-category", *CPU_CATEGORIES),
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": [OLDER_THAN_CPU]},
    ]
    spec = {
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": IDLE},
        "limits": {"cpu": str(CPU_LIMIT)},
        "template": node_template(CPU_POOL, {}, requirements),
    }
    return node_class, node_pool(CPU_POOL, spec)


def _g_pool(environment: EksEnvironment, resources: KarpenterResources) -> tuple[Object, Object]:
    """Nodes have one interface without EFA, so that pods that request EFA do not use this pool."""
    node_class = ec2_node_class(
        environment,
        resources,
        name=G_POOL,
        subnets=(resources.node_subnet_id,),
        security_groups=(resources.cluster_security_group_id,),
        root_volume_gib=300,
        instanceStorePolicy="RAID0",
        networkInterfaces=[{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}],
    )
    requirements = [one_of("karpenter.k8s.aws/instance-family", *G_FAMILIES)]
    return node_class, _gpu_pool(environment, G_POOL, requirements, gpus=G_LIMIT, weight=100)


def _p_pool(
    environment: EksEnvironment, resources: KarpenterResources, hardware: InstanceType
) -> tuple[Object, Object]:
    """The fewer GPUs a node has, the higher its weight, so that pods with few GPUs use the smallest type."""
    name = pool_name(hardware)
    node_class = ec2_node_class(
        environment,
        resources,
        name=name,
        subnets=(resources.node_subnet_id,),
        security_groups=(resources.efa_security_group_id, resources.cluster_security_group_id),
        root_volume_gib=300,
        hardware=hardware,
        instanceStorePolicy="RAID0",
        networkInterfaces=network_interfaces(interface_layout(hardware, "fewest_ips")),
    )
    requirements = [one_of("node.kubernetes.io/instance-type", hardware.name)]
    gpus, weight = P_NODES * hardware.gpu_count, 16 // hardware.gpu_count
    return node_class, _gpu_pool(environment, name, requirements, gpus=gpus, weight=weight)


def _gpu_pool(
    environment: EksEnvironment, name: str, requirements: Sequence[Object], *, gpus: int, weight: int
) -> Object:
    in_zone = [*requirements, one_of("topology.kubernetes.io/zone", environment.availability_zone)]
    template = with_gpus(environment, node_template(name, {}, in_zone))
    spec = {
        "disruption": remove_when_empty(IDLE),
        "limits": {GPU: str(gpus)},
        "template": template,
        "weight": weight,
    }
    return node_pool(name, spec)
