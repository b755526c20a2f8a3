"""Names that nodes, queues and jobs share: labels, resources, device classes, and the taints of nodes."""

from typing import Any

from ultracluster.config.eks import Eks
from ultracluster.config.eks_fleet import CPU_GROUP, SYSTEM_GROUP

NODE_GROUP = "ultracluster/node-group"
"""Label of a node: its group in the environment file, for UltraServers without the number of the block."""

DEVICE_STACK = "ultracluster/device-stack"
"""Label of a GPU node: the device stack that serves it."""

TEAM = "ultracluster/team"
"""Label of a team's namespace: the team's name."""

IN_TEAMS: dict[str, Any] = {"matchExpressions": [{"key": TEAM, "operator": "Exists"}]}
"""Selector of the namespaces of teams."""

SYSTEM = SYSTEM_GROUP
"""Value of NODE_GROUP on system nodes, the CPU nodes for the cluster's own software."""

CPU = CPU_GROUP
"""Value of NODE_GROUP on the CPU nodes for pods of teams."""

GPU = "nvidia.com/gpu"
EFA = "vpc.amazonaws.com/efa"
HUGE_PAGES = "hugepages-2Mi"

EVERY_GPU = "/var/run/nvidia-container-devices/all"
"""Where a pod of the platform mounts /dev/null of its node to see all GPUs without a request."""

HOSTNAME = "kubernetes.io/hostname"
CLIQUE = "nvidia.com/gpu.clique"
"""Label of the nodes of one NVLink domain, set by NVIDIA's GPU feature discovery."""

OPERANDS = "nvidia.com/gpu.deploy.operands"
"""Label of a node: `false` keeps all operands of the GPU Operator off it."""

GPU_CLASS = "gpu.nvidia.com"
EFA_CLASS = "efa.networking.k8s.aws"
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
"""Device classes that pods claim from: GPUs, EFA devices and channels of a ComputeDomain, NVLink between instances."""

FILE_SYSTEM_CLAIM = "training"
"""Claim of a team's folder of the file system, in the team's namespace."""

HOME_CLAIM = "home"
"""Claim of a team's folder of the file system of homes. No name of another claim is without a hyphen."""

GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
GPU_TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}

NOT_ACCEPTED = {"key": "ultracluster/not-accepted", "value": "true", "effect": "NoSchedule"}
"""Startup taint of nodes with GPUs: the agent of `acceptance` removes it once their checks pass."""

DIAGNOSTICS = "ultracluster/diagnostics"
"""Label of a node while its GPUs are diagnosed: DCGM's tools come to it, and DCGM exporter leaves it."""

SYSTEM_TAINT = {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}
"""Taint of system nodes: pods of teams do not run beside the operators. CoreDNS and AWS's CSI drivers tolerate it."""
SYSTEM_TOLERATION = {"key": "CriticalAddonsOnly", "operator": "Exists"}


def network_layer(number: int) -> str:
    """Label of a node that AWS's cloud provider sets: its switch in layer `number`, 1 the farthest from the node."""
    return f"topology.k8s.aws/network-node-layer-{number}"


def on_system_nodes(*, selector: str = "nodeSelector", tolerations: str = "tolerations") -> dict[str, Any]:
    """Helm values, or fields of a pod, that place it on the system nodes. The arguments are the keys of a chart."""
    return {selector: {NODE_GROUP: SYSTEM}, tolerations: [dict(SYSTEM_TOLERATION)]}


def team_group(team: str) -> str:
    """Kubernetes group of a team's members. Access entries add them to it; a RoleBinding grants it access."""
    return f"team:{team}"


def node_labels(name: str, settings: Eks, *, gpus: bool = True) -> dict[str, str]:
    """Labels of the nodes of group `name` of the environment file. Those without `gpus` have no device stack."""
    if not gpus:
        return {NODE_GROUP: name}
    stack = settings.device_stacks(name)[0]
    other = {} if stack == "gpu_operator" else {OPERANDS: "false"}
    return {NODE_GROUP: name, DEVICE_STACK: stack, **other}
