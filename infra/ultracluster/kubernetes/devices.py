"""What shows GPUs and EFA cards to Kubernetes: one set of charts for each device stack, never two on a node.

EKS's accelerated images hold NVIDIA's driver and container toolkit, so nothing here installs them.

Source: EKS User Guide, "Manage NVIDIA GPU devices", "Manage EFA devices", "Use P6e-GB200 UltraServers" (2026); the
charts' own values at the versions of `infra/ultracluster/catalog/data/software.json`.
"""

from typing import Any

from ultracluster.catalog.software import charts
from ultracluster.config.eks import DeviceStack, Eks
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.labels import DEVICE_STACK, GPU_TOLERATION, NODE_GROUP
from ultracluster.kubernetes.parts import Release
from ultracluster.kubernetes.shares import has_ultraservers

Values = dict[str, Any]

ON, OFF = {"enabled": True}, {"enabled": False}

GPU_OPERATOR: Values = {
    "driver": OFF,
    "toolkit": OFF,
    # containerd of the image injects devices itself; the operator's own NRI plugin would need its toolkit
    "cdi": {"enabled": True, "nriPluginEnabled": False},
    "nfd": ON,
    "gfd": ON,
    # MOFED takes every RDMA device of the node, and EFA's are among them
    "devicePlugin": {"enabled": True, "env": [{"name": "MOFED_ENABLED", "value": "false"}]},
    # the exporter has an engine of its own; a second one would want the port that EKS's monitoring agent listens on
    "dcgm": OFF,
    "dcgmExporter": {"enabled": True, "serviceMonitor": OFF},
    "mig": {"strategy": "none"},
    "migManager": OFF,
    "sandboxWorkloads": OFF,
    "vgpuManager": OFF,
    "vgpuDeviceManager": OFF,
    "vfioManager": OFF,
    "sandboxDevicePlugin": OFF,
    "kataSandboxDevicePlugin": OFF,
    "ccManager": OFF,
    # the chart refuses both: GPUCluster is the operator's experimental way to dynamic resources
    "clusterPolicy": {"deployCR": True},
    "gpuCluster": {"deployCR": False},
    "daemonsets": {"tolerations": [GPU_TOLERATION]},
    "node-feature-discovery": {"worker": {"tolerations": [GPU_TOLERATION]}},
}
"""Its operands stay off nodes of other stacks by the label `labels.OPERANDS`; feature discovery runs on every node."""


def device_releases(environment: Environment, settings: Eks) -> tuple[Release, ...]:
    """Releases for the device stacks in use, and for NVLink between the instances of UltraServers."""
    stacks = settings.used_device_stacks
    releases = []
    if "gpu_operator" in stacks:
        releases.append(_release("gpu-operator", GPU_OPERATOR))
    if "device_plugin" in stacks:
        releases.append(_release("nvidia-device-plugin", device_plugin_values()))
    first = tuple(release.name for release in releases)
    if "dra" in stacks:
        values = feature_discovery_values(finds_nodes=not first)
        releases.append(_release("nvidia-device-plugin", values, name="gpu-feature-discovery", after=first))
        releases.append(_release("aws-dranet", on_nodes_of("dra")))
    if "dra" in stacks or has_ultraservers(environment):
        # the operator brings the CRDs of ComputeDomains too; which of the two comes first is settled here
        releases.append(_release("dra-driver-nvidia-gpu", dra_driver_values(environment, settings), after=first))
    releases += [_release("aws-efa-k8s-device-plugin", on_nodes_of(stack)) for stack in sorted(stacks - {"dra"})]
    return tuple(releases)


def _release(chart: str, values: Values, *, name: str | None = None, after: tuple[str, ...] = ()) -> Release:
    return Release(name or chart, charts[chart], values, after, waits=False)


def on_nodes_of(stack: DeviceStack) -> Values:
    """Values of a chart whose DaemonSet runs on the nodes of one stack, GPU taint or not.

    AWS's charts for EFA tolerate no taint by themselves.
    """
    return {"nodeSelector": {DEVICE_STACK: stack}, "tolerations": [GPU_TOLERATION]}


def device_plugin_values() -> Values:
    """NVIDIA's device plugin with feature discovery, on the nodes of its stack."""
    return {
        **on_nodes_of("device_plugin"),
        # MOFED takes EFA's RDMA devices; GDRCopy needs a module that the pinned images do not have
        "mofedEnabled": False,
        "gdrcopyEnabled": False,
        "gfd": ON,
        "nfd": {"enabled": True, "worker": {"tolerations": [GPU_TOLERATION]}},
    }


def feature_discovery_values(*, finds_nodes: bool) -> Values:
    """Feature discovery alone, for nodes whose GPUs are claimed: it labels NVLink domains, among others.

    `finds_nodes` is whether it brings Node Feature Discovery, which a cluster has once.
    """
    return {
        **on_nodes_of("dra"),
        "devicePlugin": OFF,
        "gfd": ON,
        "nfd": {"enabled": finds_nodes, "worker": {"tolerations": [GPU_TOLERATION]}},
    }


def dra_driver_values(environment: Environment, settings: Eks) -> Values:
    """NVIDIA's DRA driver: GPUs of the `dra` groups, and ComputeDomains where there are UltraServers.

    On UltraServers of another stack it serves ComputeDomains alone: the device plugin has the GPUs.
    """
    claimed = "dra" in settings.used_device_stacks
    served = [
        group.name
        for group in environment.node_groups
        if ("dra" in settings.device_stacks(group.name) if claimed else group.hardware.ultraserver_only)
    ]
    groups = {"key": NODE_GROUP, "operator": "In", "values": served}
    nodes = {"nodeSelectorTerms": [{"matchExpressions": [groups]}]}
    return {
        "resources": {
            "gpus": {"enabled": claimed},
            "computeDomains": {"enabled": has_ultraservers(environment)},
        },
        # the chart's word that no device plugin serves the same nodes
        "gpuResourcesEnabledOverride": claimed,
        "kubeletPlugin": {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": nodes}},
            "tolerations": [GPU_TOLERATION],
        },
    }
