"""Names that nodes, queues and jobs agree on: labels, the taint of GPU nodes, and resources."""

from ultracluster.config.eks import Eks
from ultracluster.config.eks_fleet import SYSTEM_GROUP

NODE_GROUP = "ultracluster/node-group"
"""Label of a node: the group in the environment file, for UltraServers without the block's number."""

DEVICE_STACK = "ultracluster/device-stack"
"""Label of a GPU node: what shows its GPUs to Kubernetes."""

TEAM = "ultracluster/team"
"""Label of a team's namespace, with its name."""

SYSTEM = SYSTEM_GROUP
"""NODE_GROUP of the CPU nodes that serve the cluster."""

GPU = "nvidia.com/gpu"
EFA = "vpc.amazonaws.com/efa"
HUGE_PAGES = "hugepages-2Mi"

HOSTNAME = "kubernetes.io/hostname"
CLIQUE = "nvidia.com/gpu.clique"
"""Label that NVIDIA's feature discovery gives the nodes of one NVLink domain."""

OPERANDS = "nvidia.com/gpu.deploy.operands"
"""Label of a node: `false` keeps all that the GPU Operator deploys off it."""

GPU_CLASS = "gpu.nvidia.com"
EFA_CLASS = "efa.networking.k8s.aws"
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
"""Device classes that pods claim from: GPUs, EFA cards, and channels of a ComputeDomain, NVLink between instances."""

FILE_SYSTEM_CLAIM = "training"
"""Claim of the environment's file system in each team's namespace."""

GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
GPU_TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


def network_layer(number: int) -> str:
    """Label that AWS's cloud provider gives nodes: the switch of layer `number`, 1 the farthest from the instance."""
    return f"topology.k8s.aws/network-node-layer-{number}"


def team_group(team: str) -> str:
    """Kubernetes group of a team's members: access entries put them into it, a RoleBinding says what it may do."""
    return f"team:{team}"


def node_labels(name: str, settings: Eks) -> dict[str, str]:
    """Labels of the nodes of the group that the file calls `name`."""
    stack = settings.device_stacks(name)[0]
    other = {} if stack == "gpu_operator" else {OPERANDS: "false"}
    return {NODE_GROUP: name, DEVICE_STACK: stack, **other}
