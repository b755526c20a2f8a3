"""Karpenter: its release, and pools of On-Demand nodes that it may launch beside the static fleet.

A pod gets such a node by selecting its pool with the label `labels.NODE_GROUP`, or when no other node has room for it.
GPU pools are small, so that pending pods cannot buy a whole fleet. Karpenter removes their nodes only when they are
empty.

Source: Karpenter 1.14, "NodePools", "NodeClasses", "Disruption", and its design "EFA Support For Static Capacity".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog import InstanceType, catalog, interface_layout
from ultracluster.catalog.eks import HUGE_PAGES_2MI, KUBERNETES_VERSIONS
from ultracluster.catalog.software import charts
from ultracluster.config.eks_fleet import ELASTIC_GROUPS
from ultracluster.kubernetes.deployed import DeployedResources, KarpenterResources
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import (
    DEVICE_STACK,
    GPU,
    GPU_TAINT,
    HUGE_PAGES,
    NODE_GROUP,
    OPERANDS,
    on_system_nodes,
)
from ultracluster.kubernetes.parts import Object, Objects, Release
from ultracluster.nodes.eks import karpenter_node_user_data

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

REMOVE_WHEN_EMPTY = {
    "consolidationPolicy": "WhenEmpty",
    "consolidateAfter": IDLE,
    "budgets": [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}],
}
"""A GPU node stays until its job has ended, even if its AMI or its pool changes."""

API = "karpenter.k8s.aws/v1"


def karpenter_release(environment: EksEnvironment, deployed: DeployedResources) -> Release | None:
    """Karpenter on the system nodes, if the environment uses it. Its queue announces interruptions of nodes.

    With node auto repair, it replaces nodes that EKS's node monitoring agent marks. It cannot reboot them. The gate is
    alpha in Karpenter 1.14, which stops repairs of a pool with more than 20 % of unhealthy nodes.
    """
    if deployed.karpenter is None:
        return None
    values = {
        "settings": {
            "clusterName": deployed.cluster_name,
            "interruptionQueue": deployed.karpenter.interruption_queue,
            "featureGates": {"nodeOverlay": True, "nodeRepair": environment.repairs_nodes},
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
    """Pools of CPU nodes, of G families, and of each P type that EC2 sells On-Demand; empty without Karpenter.

    There is no pool of UltraServers: AWS sells them only as capacity blocks, and Karpenter does not support
    ComputeDomains.
    """
    resources = deployed.karpenter
    if resources is None:
        return ()
    items: list[Object] = [*_cpu_pool(environment, resources), *_g_pool(environment, resources)]
    for hardware in _p_types():
        items += _p_pool(environment, resources, hardware)
    items.append(huge_pages_overlay())
    return (Objects("elastic", tuple(items), after=("karpenter",)),)


@dataclass(frozen=True)
class ElasticPool:
    """What a pool holds at most. `name` is also the value of NODE_GROUP on its nodes."""

    name: str
    cpus: int
    memory_gib: int
    gpus: int = 0
    efa_devices: int = 0


def elastic_pools() -> tuple[ElasticPool, ...]:
    """All pools, the one without GPUs first."""
    return (
        ElasticPool(CPU_POOL, CPU_LIMIT, CPU_LIMIT * CPU_POOL_GIB_PER_CPU),
        ElasticPool(G_POOL, G_LIMIT * G_CPUS_PER_GPU, G_LIMIT * G_GIB_PER_GPU, G_LIMIT),
        *(
            ElasticPool(
                pool_name(hardware),
                P_NODES * hardware.vcpus,
                P_NODES * int(hardware.memory_gib),
                P_NODES * hardware.gpu_count,
                P_NODES * sum(interface.kind != "interface" for interface in interface_layout(hardware, "fewest_ips")),
            )
            for hardware in _p_types()
        ),
    )


def _p_types() -> list[InstanceType]:
    """P types that EC2 sells On-Demand."""
    return [hardware for hardware in catalog.values() if "on-demand" in hardware.usage_classes]


def huge_pages_overlay() -> Object:
    """Tells Karpenter of the huge pages that nodes with EFA allocate at boot.

    Karpenter counts only resources that it knows of a type: without this it launches no node for a pod that requests
    huge pages (karpenter-provider-aws issue 3315). NodeOverlay is an alpha feature of Karpenter 1.14.
    """
    pools = [pool_name(hardware) for hardware in _p_types()]
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "huge-pages"},
        "spec": {
            "requirements": [_one_of("karpenter.sh/nodepool", *pools)],
            "capacity": {HUGE_PAGES: f"{HUGE_PAGES_2MI * 2}Mi"},
        },
    }


def pool_name(hardware: InstanceType) -> str:
    """Name of the pool of one P type, and value of NODE_GROUP on its nodes."""
    return f"{ELASTIC_GROUPS}{hardware.name.replace('.', '-')}"


def _cpu_pool(environment: EksEnvironment, resources: KarpenterResources) -> tuple[Object, Object]:
    node_class = _node_class(
        environment,
        resources,
        name=CPU_POOL,
        subnets=resources.cpu_subnet_ids,
        security_groups=(resources.cluster_security_group_id,),
        root_volume_gib=100,
    )
    requirements = [
        _one_of("karpenter.k8s.aws/instance-category", *CPU_CATEGORIES),
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": [OLDER_THAN_CPU]},
    ]
    spec = {
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": IDLE},
        "limits": {"cpu": str(CPU_LIMIT)},
        "template": _template(CPU_POOL, {}, requirements),
    }
    return node_class, _pool(CPU_POOL, spec)


def _g_pool(environment: EksEnvironment, resources: KarpenterResources) -> tuple[Object, Object]:
    """Nodes have one interface without EFA, so that pods that request EFA do not use this pool."""
    node_class = _node_class(
        environment,
        resources,
        name=G_POOL,
        subnets=(resources.node_subnet_id,),
        security_groups=(resources.cluster_security_group_id,),
        root_volume_gib=300,
        instanceStorePolicy="RAID0",
        networkInterfaces=[{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}],
    )
    requirements = [_one_of("karpenter.k8s.aws/instance-family", *G_FAMILIES)]
    return node_class, _gpu_pool(environment, G_POOL, requirements, gpus=G_LIMIT, weight=100)


def _p_pool(
    environment: EksEnvironment, resources: KarpenterResources, hardware: InstanceType
) -> tuple[Object, Object]:
    """The fewer GPUs a node has, the higher its weight, so that pods with few GPUs use the smallest type."""
    name = pool_name(hardware)
    interfaces = [
        {"networkCardIndex": interface.card, "deviceIndex": interface.device, "interfaceType": interface.kind}
        for interface in interface_layout(hardware, "fewest_ips")
    ]
    node_class = _node_class(
        environment,
        resources,
        name=name,
        subnets=(resources.node_subnet_id,),
        security_groups=(resources.efa_security_group_id, resources.cluster_security_group_id),
        root_volume_gib=300,
        hardware=hardware,
        instanceStorePolicy="RAID0",
        networkInterfaces=interfaces,
    )
    requirements = [_one_of("node.kubernetes.io/instance-type", hardware.name)]
    gpus, weight = P_NODES * hardware.gpu_count, 16 // hardware.gpu_count
    return node_class, _gpu_pool(environment, name, requirements, gpus=gpus, weight=weight)


def _gpu_pool(
    environment: EksEnvironment, name: str, requirements: Sequence[Object], *, gpus: int, weight: int
) -> Object:
    # exactly one: a cluster has one device plugin, and Karpenter does not support DRA
    [stack] = environment.device_stacks
    labels = {DEVICE_STACK: stack, **({} if stack == "gpu_operator" else {OPERANDS: "false"})}
    in_zone = [*requirements, _one_of("topology.kubernetes.io/zone", environment.availability_zone)]
    template = _template(name, labels, in_zone)
    template["spec"] |= {"expireAfter": "Never", "taints": [GPU_TAINT]}
    spec = {"disruption": REMOVE_WHEN_EMPTY, "limits": {GPU: str(gpus)}, "template": template, "weight": weight}
    return _pool(name, spec)


def _node_class(
    environment: EksEnvironment,
    resources: KarpenterResources,
    *,
    name: str,
    subnets: Sequence[str],
    security_groups: Sequence[str],
    root_volume_gib: int,
    hardware: InstanceType | None = None,
    **more: Any,
) -> Object:
    """The EC2NodeClass of a pool. `hardware` is for types with EFA. Karpenter chooses the AMI variant of a release."""
    volume = {
        "volumeSize": f"{root_volume_gib}Gi",
        "volumeType": "gp3",
        "encrypted": True,
        "deleteOnTermination": True,
    }
    spec = {
        "amiSelectorTerms": [{"alias": f"al2023@{_ami_release(environment)}"}],
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": volume}],
        # hop limit 1, as for the static fleet: no pod takes the role of its node
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1},
        "role": resources.node_role_name,
        "securityGroupSelectorTerms": [{"id": group} for group in security_groups],
        "subnetSelectorTerms": [{"id": subnet} for subnet in subnets],
        "tags": {
            "Name": f"{environment.name}-{name}",
            **environment.node_tags,
            "ultracluster:environment": environment.name,
            "ultracluster:node-group": name,
        },
        "userData": karpenter_node_user_data(hardware, lustre=environment.storage.client),
        **more,
    }
    return {"apiVersion": API, "kind": "EC2NodeClass", "metadata": {"name": name}, "spec": spec}


def _template(name: str, labels: Mapping[str, str], requirements: Sequence[Object]) -> Object:
    common = [
        _one_of("karpenter.sh/capacity-type", "on-demand"),
        _one_of("kubernetes.io/arch", "amd64"),
        _one_of("kubernetes.io/os", "linux"),
    ]
    return {
        "metadata": {"labels": {NODE_GROUP: name, **labels}},
        "spec": {
            "nodeClassRef": {"group": API.partition("/")[0], "kind": "EC2NodeClass", "name": name},
            "requirements": [*common, *requirements],
        },
    }


def _pool(name: str, spec: Object) -> Object:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def _one_of(key: str, *values: str) -> Object:
    return {"key": key, "operator": "In", "values": list(values)}


def _ami_release(environment: EksEnvironment) -> str:
    """AMI release in Karpenter's form, such as v20260714; `latest` for a version newer than the catalogue."""
    known = KUBERNETES_VERSIONS.get(environment.kubernetes_version)
    release = environment.settings.image_release or (known.image_release if known else "")
    return f"v{release.rpartition('-')[2]}" if release else "latest"
