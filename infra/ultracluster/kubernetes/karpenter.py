"""What Karpenter may launch beside the static fleet: pools of On-Demand nodes, and how their nodes are made.

A pod gets such a node by selecting its pool with the label `labels.NODE_GROUP`, or when nothing else has room for it.
Pools of GPUs are small, so that no queue of pending pods buys a fleet; nothing but emptiness takes their nodes away.

Source: Karpenter 1.14, "NodePools", "NodeClasses", "Disruption", and its design "EFA Support For Static Capacity".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ultracluster.catalog import InstanceType, catalog, interface_layout
from ultracluster.catalog.eks import KUBERNETES_VERSIONS
from ultracluster.config.eks import Eks
from ultracluster.config.eks_fleet import ELASTIC_GROUPS
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.labels import DEVICE_STACK, GPU, GPU_TAINT, NODE_GROUP, OPERANDS
from ultracluster.kubernetes.parts import Deployed, Elastic, Object, Objects
from ultracluster.nodes.eks import karpenter_node_user_data

CPU_POOL = f"{ELASTIC_GROUPS}cpu"
CPU_CATEGORIES = ["c", "m", "r"]
OLDER_THAN_CPU = "5"
"""Newest generation of those categories that is left out."""
CPU_LIMIT = "512"
"""vCPUs of the CPU pool."""

G_POOL = f"{ELASTIC_GROUPS}g"
G_FAMILIES = ["g5", "g6", "g6e", "gr6", "g7e"]
"""Families with GPUs for inference and for work on one GPU, without NVLink."""
G_LIMIT = 16
"""GPUs of the pool of G families."""

P_NODES = 2
"""Nodes of each P type: as many as show whether a job runs over EFA."""

IDLE = "10m"
"""How long a node stays without pods."""

UNTIL_EMPTY = {
    "consolidationPolicy": "WhenEmpty",
    "consolidateAfter": IDLE,
    "budgets": [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}],
}
"""A node with GPUs outlives a change of its image or its pool until its job has ended."""

API = "karpenter.k8s.aws/v1"


def elastic(environment: Environment, deployed: Deployed) -> tuple[Objects, ...]:
    """Pools of CPU nodes, of G families, and of each P type that EC2 sells On-Demand; nothing without Karpenter.

    UltraServers are not among them: they come in capacity blocks alone, and Karpenter knows no ComputeDomains.
    """
    settings, place = environment.control_plane, deployed.elastic
    if not isinstance(settings, Eks) or place is None:
        return ()
    items: list[Object] = [*_cpu_pool(environment, settings, place), *_g_pool(environment, settings, place)]
    for hardware in catalog.values():
        if "on-demand" in hardware.usage_classes:
            items += _p_pool(environment, settings, place, hardware)
    return (Objects("elastic", tuple(items), after=("karpenter",)),)


def pool_name(hardware: InstanceType) -> str:
    """Pool of one P type, and NODE_GROUP of its nodes."""
    return f"{ELASTIC_GROUPS}{hardware.name.replace('.', '-')}"


def _cpu_pool(environment: Environment, settings: Eks, place: Elastic) -> tuple[Object, Object]:
    node_class = _node_class(
        environment,
        settings,
        place,
        name=CPU_POOL,
        subnets=place.cpu_subnet_ids,
        groups=(place.cluster_security_group_id,),
        root_volume_gib=100,
    )
    requirements = [
        _one_of("karpenter.k8s.aws/instance-category", *CPU_CATEGORIES),
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": [OLDER_THAN_CPU]},
    ]
    spec = {
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": IDLE},
        "limits": {"cpu": CPU_LIMIT},
        "template": _template(CPU_POOL, {}, requirements),
    }
    return node_class, _pool(CPU_POOL, spec)


def _g_pool(environment: Environment, settings: Eks, place: Elastic) -> tuple[Object, Object]:
    """One plain interface, so that a pod which asks for EFA does not come here."""
    node_class = _node_class(
        environment,
        settings,
        place,
        name=G_POOL,
        subnets=(place.node_subnet_id,),
        groups=(place.cluster_security_group_id,),
        root_volume_gib=300,
        instanceStorePolicy="RAID0",
        networkInterfaces=[{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}],
    )
    requirements = [_one_of("karpenter.k8s.aws/instance-family", *G_FAMILIES)]
    return node_class, _gpu_pool(environment, settings, G_POOL, requirements, gpus=G_LIMIT, weight=100)


def _p_pool(environment: Environment, settings: Eks, place: Elastic, hardware: InstanceType) -> tuple[Object, Object]:
    """Pods with few GPUs take the type with the fewest: the weight falls with the GPUs of a node."""
    name = pool_name(hardware)
    interfaces = [
        {"networkCardIndex": interface.card, "deviceIndex": interface.device, "interfaceType": interface.kind}
        for interface in interface_layout(hardware, "fewest_ips")
    ]
    node_class = _node_class(
        environment,
        settings,
        place,
        name=name,
        subnets=(place.node_subnet_id,),
        groups=(place.efa_security_group_id, place.cluster_security_group_id),
        root_volume_gib=300,
        hardware=hardware,
        instanceStorePolicy="RAID0",
        networkInterfaces=interfaces,
    )
    requirements = [_one_of("node.kubernetes.io/instance-type", hardware.name)]
    gpus, weight = P_NODES * hardware.gpu_count, 16 // hardware.gpu_count
    return node_class, _gpu_pool(environment, settings, name, requirements, gpus=gpus, weight=weight)


def _gpu_pool(
    environment: Environment, settings: Eks, name: str, requirements: Sequence[Object], *, gpus: int, weight: int
) -> Object:
    # one of two at most: a cluster has one device plugin, and Karpenter does not go with claimed GPUs
    [stack] = settings.used_device_stacks
    labels = {DEVICE_STACK: stack, **({} if stack == "gpu_operator" else {OPERANDS: "false"})}
    in_zone = [*requirements, _one_of("topology.kubernetes.io/zone", environment.availability_zone)]
    template = _template(name, labels, in_zone)
    template["spec"] |= {"expireAfter": "Never", "taints": [GPU_TAINT]}
    spec = {"disruption": UNTIL_EMPTY, "limits": {GPU: str(gpus)}, "template": template, "weight": weight}
    return _pool(name, spec)


def _node_class(
    environment: Environment,
    settings: Eks,
    place: Elastic,
    *,
    name: str,
    subnets: Sequence[str],
    groups: Sequence[str],
    root_volume_gib: int,
    hardware: InstanceType | None = None,
    **more: Any,
) -> Object:
    """How nodes of a pool are made; `hardware` where they have EFA. Karpenter knows which image of a release fits."""
    volume = {
        "volumeSize": f"{root_volume_gib}Gi",
        "volumeType": "gp3",
        "encrypted": True,
        "deleteOnTermination": True,
    }
    spec = {
        "amiSelectorTerms": [{"alias": f"al2023@{_release(settings.kubernetes_version)}"}],
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": volume}],
        # two hops, as for the static fleet: pods read what their node is
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 2},
        "role": place.node_role_name,
        "securityGroupSelectorTerms": [{"id": group} for group in groups],
        "subnetSelectorTerms": [{"id": subnet} for subnet in subnets],
        "tags": {
            "Name": f"{environment.name}-{name}",
            **environment.tags,
            "ultracluster:environment": environment.name,
            "ultracluster:node-group": name,
        },
        "userData": karpenter_node_user_data(hardware, lustre=environment.storage.lustre),
        **more,
    }
    return {"apiVersion": API, "kind": "EC2NodeClass", "metadata": {"name": name}, "spec": spec}


def _template(name: str, labels: Mapping[str, str], requirements: Sequence[Object]) -> Object:
    everywhere = [
        _one_of("karpenter.sh/capacity-type", "on-demand"),
        _one_of("kubernetes.io/arch", "amd64"),
        _one_of("kubernetes.io/os", "linux"),
    ]
    return {
        "metadata": {"labels": {NODE_GROUP: name, **labels}},
        "spec": {
            "nodeClassRef": {"group": API.partition("/")[0], "kind": "EC2NodeClass", "name": name},
            "requirements": [*everywhere, *requirements],
        },
    }


def _pool(name: str, spec: Object) -> Object:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def _one_of(key: str, *values: str) -> Object:
    return {"key": key, "operator": "In", "values": list(values)}


def _release(kubernetes_version: str) -> str:
    """Release of the images as Karpenter calls it: v20260714; its newest for a version newer than the catalogue."""
    known = KUBERNETES_VERSIONS.get(kubernetes_version)
    return f"v{known.image_release.rpartition('-')[2]}" if known else "latest"
