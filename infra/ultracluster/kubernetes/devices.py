"""Device stacks, which advertise GPUs and EFA devices to Kubernetes. Each node has exactly one.

EKS's accelerated AMIs include NVIDIA's driver and container toolkit, so no chart here installs them.

Source: EKS User Guide, "Manage NVIDIA GPU devices", "Manage EFA devices", "Use P6e-GB200 UltraServers" (2026); the
charts' own values at the versions of `infra/ultracluster/catalog/data/software.json`.
"""

from typing import Any

from ultracluster.catalog.software import charts
from ultracluster.config.eks import DeviceStack
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import DEVICE_STACK, GPU_TOLERATION, NODE_GROUP, on_system_nodes
from ultracluster.kubernetes.parts import Release

Values = dict[str, Any]

ON, OFF = {"enabled": True}, {"enabled": False}

FEATURE_DISCOVERY: Values = {
    "master": on_system_nodes(),
    "gc": on_system_nodes(),
    "worker": {"tolerations": [GPU_TOLERATION]},
}
"""Node Feature Discovery: its workers are needed on accelerated nodes only."""

GPU_OPERATOR: Values = {
    "operator": on_system_nodes(),
    "driver": OFF,
    "toolkit": OFF,
    # the AMI's containerd injects devices itself; the operator's own NRI plugin would need its toolkit
    "cdi": {"enabled": True, "nriPluginEnabled": False},
    "nfd": ON,
    "gfd": ON,
    # MOFED takes every RDMA device of the node, including EFA devices
    "devicePlugin": {"enabled": True, "env": [{"name": "MOFED_ENABLED", "value": "false"}]},
    # the exporter has a release of its own, with an engine of its own: `ultracluster.kubernetes.exporters`
    "dcgm": OFF,
    "dcgmExporter": {"enabled": False, "serviceMonitor": OFF},
    "mig": {"strategy": "none"},
    "migManager": OFF,
    "sandboxWorkloads": OFF,
    "vgpuManager": OFF,
    "vgpuDeviceManager": OFF,
    "vfioManager": OFF,
    "sandboxDevicePlugin": OFF,
    "kataSandboxDevicePlugin": OFF,
    "ccManager": OFF,
    # the chart refuses both; GPUCluster is the operator's experimental support for dynamic resource allocation
    "clusterPolicy": {"deployCR": True},
    "gpuCluster": {"deployCR": False},
    "daemonsets": {"tolerations": [GPU_TOLERATION]},
    "node-feature-discovery": FEATURE_DISCOVERY,
}
"""Label `labels.OPERANDS` keeps its operands off nodes of other stacks; feature discovery runs on every node."""


def device_releases(environment: EksEnvironment) -> tuple[Release, ...]:
    """Releases for the device stacks in use, and for NVLink between the instances of UltraServers."""
    stacks = environment.device_stacks
    releases = []
    if "gpu_operator" in stacks:
        releases.append(_release("gpu-operator", GPU_OPERATOR))
    if "device_plugin" in stacks:
        releases.append(_release("nvidia-device-plugin", device_plugin_values()))
    plugins = tuple(release.name for release in releases)
    if environment.uses_dra:
        values = feature_discovery_values(with_nfd=not plugins)
        releases.append(_release("nvidia-device-plugin", values, name="gpu-feature-discovery", after=plugins))
        releases.append(_release("aws-dranet", on_nodes_of("dra")))
    if environment.uses_dra or environment.has_ultraservers:
        # the operator's chart has the ComputeDomain CRDs too; `after` fixes which of the two comes first
        releases.append(_release("dra-driver-nvidia-gpu", dra_driver_values(environment), after=plugins))
    releases += [_release("aws-efa-k8s-device-plugin", on_nodes_of(stack)) for stack in sorted(stacks - {"dra"})]
    return tuple(releases)


def _release(chart: str, values: Values, *, name: str | None = None, after: tuple[str, ...] = ()) -> Release:
    return Release(name or chart, charts[chart], values, after, waits=False)


MOUNTED: Values = {"deviceListStrategy": "envvar,volume-mounts"}
"""How NVIDIA's device plugin hands GPUs out. Nodes ignore the default, a variable; those from before take only that.

With it the chart gives the pods of the plugin and of feature discovery the capability SYS_ADMIN, by which the toolkit
tells that they are privileged. The GPU Operator uses CDI, and its pods are privileged.
"""


def on_nodes_of(stack: DeviceStack) -> Values:
    """Values of a chart whose DaemonSet runs on all nodes of one stack, with or without the GPU taint.

    AWS's EFA charts tolerate no taint by default.
    """
    return {"nodeSelector": {DEVICE_STACK: stack}, "tolerations": [GPU_TOLERATION]}


def device_plugin_values() -> Values:
    """NVIDIA's device plugin with feature discovery, on the nodes of stack `device_plugin`."""
    return {
        **on_nodes_of("device_plugin"),
        **MOUNTED,
        # MOFED takes EFA's RDMA devices; GDRCopy needs a kernel module that the pinned AMIs do not have
        "mofedEnabled": False,
        "gdrcopyEnabled": False,
        "gfd": ON,
        "nfd": {"enabled": True, **FEATURE_DISCOVERY},
    }


def feature_discovery_values(*, with_nfd: bool) -> Values:
    """GPU feature discovery without a device plugin, for nodes of stack `dra`. Among others, it labels NVLink domains.

    `with_nfd` installs Node Feature Discovery, of which a cluster has only one.
    """
    return {
        **on_nodes_of("dra"),
        **MOUNTED,
        "devicePlugin": OFF,
        "gfd": ON,
        "nfd": {"enabled": with_nfd, **FEATURE_DISCOVERY},
    }


def dra_driver_values(environment: EksEnvironment) -> Values:
    """NVIDIA's DRA driver: GPUs of the groups of stack `dra`, and ComputeDomains where there are UltraServers.

    On UltraServers of another stack it serves only ComputeDomains; the device plugin serves the GPUs.
    """
    uses_dra = environment.uses_dra
    groups = [
        group.name
        for group in environment.gpu_groups
        if (environment.uses_dra_on(group) if uses_dra else group.hardware.ultraserver_only)
    ]
    in_groups = {"key": NODE_GROUP, "operator": "In", "values": groups}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [in_groups]}]}
    return {
        "resources": {
            "gpus": {"enabled": uses_dra},
            "computeDomains": {"enabled": environment.has_ultraservers},
        },
        # confirms to the chart that no device plugin serves the same nodes
        "gpuResourcesEnabledOverride": uses_dra,
        "controller": on_system_nodes(),
        "kubeletPlugin": {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            "tolerations": [GPU_TOLERATION],
        },
    }
