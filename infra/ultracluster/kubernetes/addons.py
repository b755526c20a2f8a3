"""Amazon EKS add-ons: which ones an environment needs, their configuration, and which ones nodes need to become ready.

Source: EKS User Guide, "Available Amazon EKS add-ons from AWS" (2026); the VPC CNI's README; the configuration schema
in the repository of the node monitoring agent, v1.6.0 to v1.7.0.
"""

from dataclasses import dataclass
from typing import Any

from ultracluster.catalog.software import Addon, addons
from ultracluster.config.eks import POD_ADDRESSES
from ultracluster.config.storage import Storage
from ultracluster.kubernetes.labels import GPU_TOLERATION, NOT_ACCEPTED, SYSTEM_TOLERATION

SPARE_ADDRESSES = 2
"""Addresses that the VPC CNI keeps above those in use, once a node has more pods than POD_ADDRESSES."""


@dataclass(frozen=True)
class ClusterAddon:
    """An EKS add-on with its configuration. With `before_nodes`, nodes need it to become ready."""

    addon: Addon
    configuration: dict[str, Any]
    before_nodes: bool


def cluster_addons(storage: Storage, *, environment: str) -> tuple[ClusterAddon, ...]:
    """Add-ons of the environment of this name with this storage, those before the nodes first.

    Agents on every node tolerate every taint by themselves. Controllers, with two replicas each by default, tolerate
    the taint of system nodes: those of the CSI drivers for FSx and EBS by default, the others by their configuration.
    Of the Mountpoint driver, 2.0.0 refused tolerations of its controller (containers-roadmap issue 2676).
    """
    return (
        _addon("vpc-cni", {**_address_targets(), "enableNetworkPolicy": "true"}, before_nodes=True),
        _addon("kube-proxy", {}, before_nodes=True),
        _addon("eks-pod-identity-agent", {}, before_nodes=True),
        _addon("coredns", {"tolerations": [SYSTEM_TOLERATION]}),
        _addon("metrics-server", {"tolerations": [SYSTEM_TOLERATION]}),
        _addon("eks-node-monitoring-agent", _dcgm_tolerations()),
        _addon("aws-ebs-csi-driver", _volume_tags(environment)),
        *([_addon("aws-fsx-csi-driver", {})] if storage.all_lustre else []),
        *([_addon("aws-mountpoint-s3-csi-driver", _mountpoint_tolerations())] if storage.buckets else []),
    )


def _volume_tags(environment: str) -> dict[str, Any]:
    """The tag of the environment on each volume of EBS that the driver creates.

    Volumes of claims that still exist when the cluster is deleted stay, and `ultracluster leftovers` finds them by it.
    A StorageClass takes tags too, but none of its parameters can be changed.

    Source: aws-ebs-csi-driver, "Tagging" (2026); configuration schema of the add-on.
    """
    return {"controller": {"extraVolumeTags": {"ultracluster:environment": environment}}}


def _mountpoint_tolerations() -> dict[str, Any]:
    """Tolerations of the Mountpoint driver, whose versions before 2.7 tolerate no taint by default."""
    return {"node": {"tolerateAllTaints": True}, "controller": {"tolerations": [SYSTEM_TOLERATION]}}


def _address_targets() -> dict[str, Any]:
    """Address targets of the VPC CNI. Without them it keeps a whole spare interface on each node, 50 addresses on P5.

    They do not affect EFA: an `efa-only` interface has no address, and the CNI ignores it.
    """
    targets = {"MINIMUM_IP_TARGET": POD_ADDRESSES, "WARM_IP_TARGET": SPARE_ADDRESSES}
    return {"env": {name: str(value) for name, value in targets.items()}}


def _dcgm_tolerations() -> dict[str, Any]:
    """Lets the monitoring agent's DCGM run on GPU nodes; without it, the agent sees only errors in the kernel log.

    It is a second DCGM engine beside that of the GPU Operator's exporter: the agent connects to port 5555 of its node,
    which cannot be changed. It does not run on P6e, which is arm64. It also tolerates the taint of nodes that are not
    accepted yet: an agent that finds no DCGM for a minute sets its condition to False until it restarts.

    Source: eks-node-monitoring-agent v1.7.0, monitors/nvidia/monitor.go and pkg/manager/node_exporter.go.
    """
    not_accepted = {"key": NOT_ACCEPTED["key"], "operator": "Exists", "effect": NOT_ACCEPTED["effect"]}
    return {"dcgmAgent": {"tolerations": [GPU_TOLERATION, not_accepted]}}


def _addon(name: str, configuration: dict[str, Any], *, before_nodes: bool = False) -> ClusterAddon:
    return ClusterAddon(addons[name], configuration, before_nodes)
