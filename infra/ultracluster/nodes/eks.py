"""User data of EKS nodes: nodeadm's NodeConfig, and steps for locked memory, huge pages, Lustre and its metrics.

nodeadm reads NodeConfig parts before cloud-init runs, and starts containerd and the kubelet after it.

Good defaults of the image stay: images are pulled in parallel, nodes shut down gracefully from Kubernetes 1.34 on, and
the EFA device plugin aligns EFA devices with GPUs by itself, so the topology manager stays off.

Source: amazon-eks-ami, nodeadm (July 2026); EKS User Guide, "Launch templates", "Manage EFA devices" (2026); for locked
memory and huge pages, libfabric's EFA overview and what Bottlerocket does for EFA by itself (bottlerocket-core-kit,
pull request 141).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog import InstanceType, Interface, instance_types
from ultracluster.catalog.eks import HUGE_PAGES_2MI
from ultracluster.config.lustre import Lustre
from ultracluster.config.node_groups import NodeGroup
from ultracluster.nodes.collectors import collector_steps
from ultracluster.nodes.eks_boot import guarded, unguarded
from ultracluster.nodes.lustre import prepare_client_steps
from ultracluster.nodes.mime import Part, multipart, shell_script
from ultracluster.nodes.steps import Step

NODE_CONFIG = "application/node.eks.aws"
"""Content type of a part that nodeadm reads."""

KUBELET = {"containerLogMaxSize": "100Mi", "containerLogMaxFiles": 5}
"""The kubelet keeps 50 MiB of a container's log by default, which NCCL's debug output fills in minutes."""

HOLD_GPUS = Step("hold-gpus")

COLLECT_SECONDS = 30
"""How often a node reads the counters of EFA and Lustre: as often as the AMP managed scraper does at most."""

HOST_NETWORK_PODS = 2
"""Pods on the host network that EKS counts on each node: the VPC CNI and kube-proxy."""


@dataclass(frozen=True)
class ClusterEndpoint:
    """What a node with a custom AMI needs to join the cluster; EKS passes it to nodes with its own AMIs.

    Values may be tokens. `certificate_authority` is base64, `service_network` the CIDR of Kubernetes services.
    """

    name: str
    address: str
    certificate_authority: str
    service_network: str


def group_user_data(
    group: NodeGroup,
    *,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
    lustre: Lustre | None,
    cluster: ClusterEndpoint | None,
    last: Sequence[Step] = (),
) -> str:
    """User data of a node group. `cluster` is for custom AMIs: EKS adds nothing to their user data.

    The steps `last` run after all others, before the node joins.

    Nodes with a custom AMI also register with `labels` and their `taints` (key, value, effect): EKS applies them
    only later, when pods may already run there.
    """
    layout = group.layout("eks")
    spec: dict[str, Any] = {"kubelet": {"config": {**KUBELET, **_max_pods(group, layout)}}}
    if group.joins_disks:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    if cluster:
        spec["cluster"] = _cluster(cluster)
        spec["kubelet"]["flags"] = _registration_flags(labels, taints)
    return _user_data(spec, guarded([*group_steps(group, lustre), *last]))


def group_steps(group: NodeGroup, lustre: Lustre | None) -> list[Step]:
    """Steps of the nodes of a node group, in order, before those of the user."""
    gpus = [HOLD_GPUS] if group.hardware.gpu_count else []
    return [*gpus, *_steps(group.hardware, lustre, efa=group.efa, lustre_efa=group.lustre_over_efa)]


def system_node_user_data(*, lustre: Lustre | None) -> str:
    """User data of system nodes, which have no GPUs; their pods mount the file system too.

    They join even if a step fails: without them nothing in the cluster runs.
    """
    return _user_data({"kubelet": {"config": KUBELET}}, unguarded(_steps(None, lustre, efa=False)))


def cpu_node_user_data(*, lustre: Lustre | None) -> str:
    """User data of CPU nodes, which run pods of teams."""
    return _user_data({"kubelet": {"config": KUBELET}}, guarded(_steps(None, lustre, efa=False)))


def karpenter_node_user_data(hardware: InstanceType | None, *, lustre: Lustre | None, lustre_efa: bool = True) -> str:
    """User data of nodes that Karpenter launches; `hardware` is None for types without EFA. Karpenter adds the rest.

    Without `lustre_efa`, nodes with EFA reach the file system over TCP.
    """
    efa = hardware is not None
    # nodes without EFA may have GPUs; those without GPUs have no toolkit, and the step does nothing
    steps = [HOLD_GPUS, *_steps(hardware, lustre, efa=efa, lustre_efa=efa and lustre_efa)]
    return _user_data({"kubelet": {"config": KUBELET}}, guarded(steps))


def _steps(
    hardware: InstanceType | None, lustre: Lustre | None, *, efa: bool, lustre_efa: bool | None = None
) -> list[Step]:
    """Steps of nodes with or without `efa`. Lustre uses EFA too unless `lustre_efa` is False."""
    over_efa = efa if lustre_efa is None else lustre_efa
    memory = [Step("allow-locked-memory"), Step("allocate-huge-pages", (str(HUGE_PAGES_2MI),))] if efa else []
    collectors = collector_steps(efa=efa, lustre=lustre is not None, seconds=COLLECT_SECONDS)
    client = prepare_client_steps(hardware, efa=lustre.efa and over_efa) if lustre else []
    return [*memory, *client, *collectors]


def _max_pods(group: NodeGroup, layout: Sequence[Interface]) -> dict[str, int]:
    """`maxPods` where EFA takes interfaces of network card 0, which EKS's own figure counts as available to pods.

    Of several types, that with the fewest counts.

    Source: the VPC CNI's formula; Karpenter, "EFA Support For Static Capacity" (2026).
    """
    taken = sum(interface.card == 0 for interface in layout) - 1
    if not taken:
        return {}
    types = [instance_types[name] for name in group.types]
    pods = min((each.network_cards[0].max_interfaces - taken) * (each.ipv4_per_interface - 1) for each in types)
    return {"maxPods": pods + HOST_NETWORK_PODS}


def _cluster(cluster: ClusterEndpoint) -> dict[str, str]:
    return {
        "name": cluster.name,
        "apiServerEndpoint": cluster.address,
        "certificateAuthority": cluster.certificate_authority,
        "cidr": cluster.service_network,
    }


def _registration_flags(labels: Mapping[str, str], taints: Sequence[Mapping[str, str]]) -> list[str]:
    named = ",".join(f"{taint['key']}={taint['value']}:{taint['effect']}" for taint in taints)
    return [
        *([f"--register-with-taints={named}"] if named else []),
        "--node-labels=" + ",".join(f"{key}={value}" for key, value in labels.items()),
    ]


def _user_data(spec: Mapping[str, Any], script: str | None) -> str:
    """A NodeConfig and a script. nodeadm reads JSON like YAML, and JSON quotes every token."""
    config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    return multipart([Part(NODE_CONFIG, json.dumps(config, indent=2)), *([shell_script(script)] if script else [])])
