"""Objects of Karpenter that its default pools and those of the environment file share.

Source: Karpenter 1.14, "NodePools", "NodeClasses", "Disruption".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ultracluster.catalog import InstanceType, Interface
from ultracluster.catalog.eks import HUGE_PAGES_2MI, KUBERNETES_VERSIONS
from ultracluster.kubernetes.deployed import KarpenterResources
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import DEVICE_STACK, GPU_TAINT, HUGE_PAGES, NODE_GROUP, NOT_ACCEPTED, OPERANDS
from ultracluster.kubernetes.parts import Object
from ultracluster.nodes.eks import karpenter_node_user_data

API = "karpenter.k8s.aws/v1"


def ec2_node_class(
    environment: EksEnvironment,
    resources: KarpenterResources,
    *,
    name: str,
    subnets: Sequence[str],
    security_groups: Sequence[str],
    root_volume_gib: int,
    hardware: InstanceType | None = None,
    lustre_efa: bool = True,
    **more: Any,
) -> Object:
    """The EC2NodeClass of a pool. Karpenter chooses the AMI variant of a release.

    `hardware` is for types with EFA, over which the nodes reach Lustre unless `lustre_efa` is False.
    """
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
        "userData": karpenter_node_user_data(hardware, lustre=environment.storage.client, lustre_efa=lustre_efa),
        **more,
    }
    return {"apiVersion": API, "kind": "EC2NodeClass", "metadata": {"name": name}, "spec": spec}


def node_template(
    name: str,
    labels: Mapping[str, str],
    requirements: Sequence[Object],
    *,
    capacity_types: Sequence[str] = ("on-demand",),
    architecture: str = "amd64",
) -> Object:
    """The nodes of a NodePool with the EC2NodeClass of the same name."""
    common = [
        one_of("karpenter.sh/capacity-type", *capacity_types),
        one_of("kubernetes.io/arch", architecture),
        one_of("kubernetes.io/os", "linux"),
    ]
    return {
        "metadata": {"labels": {NODE_GROUP: name, **labels}},
        "spec": {
            "nodeClassRef": {"group": API.partition("/")[0], "kind": "EC2NodeClass", "name": name},
            "requirements": [*common, *requirements],
        },
    }


def with_gpus(environment: EksEnvironment, template: Object) -> Object:
    """The template for nodes with GPUs, which last until their jobs have ended.

    The cluster has exactly one device stack: it has one device plugin, and Karpenter does not support DRA.
    """
    [stack] = environment.device_stacks
    labels = {DEVICE_STACK: stack, **({} if stack == "gpu_operator" else {OPERANDS: "false"})}
    template["metadata"]["labels"] |= labels
    template["spec"] |= {"expireAfter": "Never", "taints": [GPU_TAINT]}
    if environment.acceptance:
        template["spec"]["startupTaints"] = [NOT_ACCEPTED]
    return template


def huge_pages(name: str, pools: Sequence[str]) -> Object:
    """The NodeOverlay with the huge pages that nodes of `pools`, which have EFA, allocate at boot.

    Karpenter counts only resources that it knows of a type: without this it launches no node for a pod that requests
    huge pages (karpenter-provider-aws issue 3315). NodeOverlay is an alpha feature of Karpenter 1.14.
    """
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {
            "requirements": [one_of("karpenter.sh/nodepool", *pools)],
            "capacity": {HUGE_PAGES: f"{HUGE_PAGES_2MI * 2}Mi"},
        },
    }


def remove_when_empty(idle: str) -> Object:
    """A GPU node stays until its job has ended, even if its AMI or its pool changes."""
    return {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": idle,
        "budgets": [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}],
    }


def network_interfaces(layout: Sequence[Interface]) -> list[Object]:
    """Network interfaces of an EC2NodeClass."""
    return [
        {"networkCardIndex": interface.card, "deviceIndex": interface.device, "interfaceType": interface.kind}
        for interface in layout
    ]


def node_pool(name: str, spec: Object) -> Object:
    """A NodePool."""
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def one_of(key: str, *values: str) -> Object:
    """A requirement of a label."""
    return {"key": key, "operator": "In", "values": list(values)}


def _ami_release(environment: EksEnvironment) -> str:
    """AMI release in Karpenter's form, such as v20260714; `latest` for a version newer than the catalogue."""
    known = KUBERNETES_VERSIONS.get(environment.kubernetes_version)
    release = environment.settings.image_release or (known.image_release if known else "")
    return f"v{release.rpartition('-')[2]}" if release else "latest"
