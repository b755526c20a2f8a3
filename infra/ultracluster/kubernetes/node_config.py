"""What a node of an EKS cluster does at its first boot: MIME multipart user data for nodeadm. Pure text, no CDK.

nodeadm reads the NodeConfig parts before cloud-init, and starts containerd and the kubelet after it. So a script that
fails keeps no node out of the cluster: cloud-init says so in its log, in the journal and on the console.

What the image sets well is left alone: images are pulled in parallel, nodes shut down gracefully from Kubernetes 1.34
on, and EFA's device plugin aligns cards with GPUs by itself, so no topology manager is asked to.

Source: amazon-eks-ami, nodeadm (July 2026); EKS User Guide, "Launch templates", "Manage EFA devices", "Optimize FSx for
Lustre performance on nodes" (2026); for locked memory and huge pages, libfabric's EFA overview and what Bottlerocket
does for EFA by itself (bottlerocket-core-kit, pull request 141).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog import InstanceType, Interface, lustre
from ultracluster.catalog.eks import HUGE_PAGES_2MI
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.storage import Lustre
from ultracluster.kubernetes.labels import GPU_TAINT

BOUNDARY = "==NODE=="

NODE_CONFIG, SCRIPT = "application/node.eks.aws", 'text/x-shellscript; charset="us-ascii"'

KUBELET = {"containerLogMaxSize": "100Mi", "containerLogMaxFiles": 5}
"""The kubelet keeps 50 MiB of a container's log by default, which NCCL fills in minutes when it is asked why."""

HOST_NETWORK_PODS = 2
"""Pods without an address of their own that EKS counts on each node: the VPC CNI and kube-proxy."""


@dataclass(frozen=True)
class ClusterEndpoint:
    """What a node of an image of one's own is told to join: EKS tells it to its own images. May be tokens.

    `certificate_authority` is in base64, `service_network` the CIDR of Kubernetes services.
    """

    name: str
    address: str
    certificate_authority: str
    service_network: str


def gpu_node_user_data(
    group: NodeGroup, labels: Mapping[str, str], *, lustre: Lustre | None, cluster: ClusterEndpoint | None
) -> str:
    """User data of a group's nodes. With `cluster` it is whole, since EKS adds nothing for an image of one's own.

    Such a node registers with its taint and `labels` too: EKS gives it those later, when pods may have come already.
    """
    layout = group.layout("eks")
    spec: dict[str, Any] = {"kubelet": {"config": {**KUBELET, **_pods(group.hardware, layout)}}}
    if group.local_storage == "raid0" and group.hardware.instance_store.disks:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    if cluster:
        spec["cluster"] = _coordinates(cluster)
        spec["kubelet"]["flags"] = _registration(labels)
    return _user_data(spec, _scripts(group.hardware, lustre))


def system_node_user_data(*, lustre: Lustre | None) -> str:
    """User data of nodes without GPUs; their pods mount the file system too."""
    return _user_data({"kubelet": {"config": KUBELET}}, _scripts(None, lustre))


def elastic_node_user_data(hardware: InstanceType | None, *, lustre: Lustre | None) -> str:
    """User data of nodes that Karpenter launches; None for types without EFA. What is not here, Karpenter adds."""
    return _user_data({"kubelet": {"config": KUBELET}}, _scripts(hardware, lustre))


def locked_memory() -> str:
    """Lets containers lock memory without end, since EFA registers every buffer.

    Containers inherit the limit of containerd, by default 8 MiB, beyond which NCCL falls back to TCP without a word.
    Not by containerd's base specification: nodeadm passes its numbers through floats, which infinity does not survive.
    """
    return """#!/bin/bash
set -euo pipefail
mkdir -p /etc/systemd/system/containerd.service.d
printf '[Service]\\nLimitMEMLOCK=infinity\\n' > /etc/systemd/system/containerd.service.d/locked-memory.conf
systemctl daemon-reload
"""


def huge_pages() -> str:
    """Sets aside the huge pages that EFA's samples ask for, at every boot. The kubelet counts them when it starts.

    By their size, not by `vm.nr_hugepages`: the default size is 512 MiB on arm64 kernels with pages of 64 KiB.
    """
    return f"""#!/bin/bash
set -euo pipefail
pages=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
echo "w $pages - - - - {HUGE_PAGES_2MI}" > /etc/tmpfiles.d/huge-pages.conf
systemd-tmpfiles --create /etc/tmpfiles.d/huge-pages.conf
if [ "$(cat "$pages")" -lt {HUGE_PAGES_2MI} ]; then
  echo "huge pages: only $(cat "$pages") of {HUGE_PAGES_2MI}; pods that ask for all of them do not fit" >&2
fi
"""


def lustre_client(hardware: InstanceType | None, *, efa: bool) -> str:
    """Makes a node ready for the CSI driver to mount Lustre, and tunes the client. `hardware` is None without GPUs.

    With `efa`, AWS's own set-up is tried, as on Ubuntu. Where it fails, Lustre runs over TCP, and the node says so.
    """
    lines = ["#!/bin/bash", "set -euo pipefail"]
    if hardware:
        file = "/etc/modprobe.d/lustre-tuning.conf"
        options = lustre.module_options(hardware)
        lines += [f"echo 'options {option}' {'>>' if number else '>'} {file}" for number, option in enumerate(options)]
    lines += [
        "for attempt in $(seq 5); do",
        "  rpm -q lustre-client || dnf install -y lustre-client || sleep 10",
        "done",
        "rpm -q lustre-client",
    ]
    if hardware and efa:
        lines += _efa_client()
    if hardware:
        lines += _tuning(lustre.client_parameters(hardware))
    return "\n".join([*lines, ""])


def _efa_client() -> list[str]:
    """Whether the set-up worked is told by its unit, not by its script."""
    name = lustre.EFA_CLIENT_PACKAGE.rpartition("/")[2]
    return [
        f"active() {{ systemctl is-active --quiet {lustre.EFA_CLIENT_UNIT}; }}",
        "set_up() {",
        f"  cd /root && curl -fsSO --retry 5 {lustre.EFA_CLIENT_PACKAGE}.zip &&",
        f"    python3 -m zipfile -e {name}.zip . && cd {name} && bash ./setup.sh",
        "}",
        "active || (set_up) || true",
        "active || echo 'lustre: EFA is not set up, so Lustre runs over TCP on this node' >&2",
    ]


def _tuning(parameters: Sequence[str]) -> list[str]:
    """Every mount starts with defaults, and pods mount when they come: so a timer repeats the parameters."""
    if not parameters:
        return []
    return [
        "cat > /etc/systemd/system/lustre-tuning.service <<'UNIT'",
        "[Service]",
        "Type=oneshot",
        # a minus before a command: nothing may be mounted
        *(f"ExecStart=-/usr/sbin/lctl set_param {parameter}" for parameter in parameters),
        "StandardOutput=null",
        "StandardError=null",
        "LogLevelMax=warning",
        "UNIT",
        "cat > /etc/systemd/system/lustre-tuning.timer <<'UNIT'",
        "[Timer]",
        "OnBootSec=1min",
        "OnUnitActiveSec=1min",
        "[Install]",
        "WantedBy=timers.target",
        "UNIT",
        "systemctl enable --now lustre-tuning.timer",
    ]


def _scripts(hardware: InstanceType | None, file_system: Lustre | None) -> list[str]:
    scripts = [locked_memory(), huge_pages()] if hardware else []
    return [*scripts, *([lustre_client(hardware, efa=file_system.efa)] if file_system else [])]


def _pods(hardware: InstanceType, layout: Sequence[Interface]) -> dict[str, int]:
    """Pods that get an address, where EFA takes an interface of card 0 from them; EKS counts it as theirs.

    Source: the VPC CNI's formula; Karpenter, "EFA Support For Static Capacity" (2026).
    """
    card, taken = hardware.network_cards[0], sum(interface.card == 0 for interface in layout) - 1
    if not taken:
        return {}
    return {"maxPods": (card.max_interfaces - taken) * (hardware.ipv4_per_interface - 1) + HOST_NETWORK_PODS}


def _coordinates(cluster: ClusterEndpoint) -> dict[str, str]:
    return {
        "name": cluster.name,
        "apiServerEndpoint": cluster.address,
        "certificateAuthority": cluster.certificate_authority,
        "cidr": cluster.service_network,
    }


def _registration(labels: Mapping[str, str]) -> list[str]:
    return [
        f"--register-with-taints={GPU_TAINT['key']}={GPU_TAINT['value']}:{GPU_TAINT['effect']}",
        "--node-labels=" + ",".join(f"{key}={value}" for key, value in labels.items()),
    ]


def _user_data(spec: Mapping[str, Any], scripts: Sequence[str]) -> str:
    """A NodeConfig and scripts as one document. JSON, which nodeadm reads like YAML, since it quotes every token."""
    config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    parts = [(NODE_CONFIG, json.dumps(config, indent=2)), *((SCRIPT, script) for script in scripts)]
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"', ""]
    for kind, part in parts:
        lines += [f"--{BOUNDARY}", f"Content-Type: {kind}", "", part.strip(), ""]
    return "\n".join([*lines, f"--{BOUNDARY}--", ""])
