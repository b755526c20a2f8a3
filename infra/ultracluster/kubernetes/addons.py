"""Add-ons of EKS: which an environment needs, how they are configured, and which must be there before the nodes.

Source: EKS User Guide, "Available Amazon EKS add-ons from AWS" (2026); the VPC CNI's README; the configuration schema
in the repository of the node monitoring agent, v1.6.0 to v1.7.0.
"""

from dataclasses import dataclass
from typing import Any

from ultracluster.catalog.software import Addon, addons
from ultracluster.config.eks import POD_ADDRESSES
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.labels import GPU_TOLERATION

SPARE_ADDRESSES = 2
"""Addresses that the VPC CNI holds above those in use, once a node has more pods than POD_ADDRESSES."""


@dataclass(frozen=True)
class ClusterAddon:
    """An add-on of EKS with its configuration. `before_nodes` ones are what a node needs to become ready."""

    addon: Addon
    configuration: dict[str, Any]
    before_nodes: bool


def cluster_addons(environment: Environment) -> tuple[ClusterAddon, ...]:
    """Add-ons of an environment, those before the nodes first.

    The agents of the first three tolerate every taint by themselves. CoreDNS and metrics-server tolerate none of GPU
    nodes, so they stay on the system nodes, two replicas each by default.
    """
    storage = environment.storage
    return (
        _addon("vpc-cni", _addresses(), before_nodes=True),
        _addon("kube-proxy", {}, before_nodes=True),
        _addon("eks-pod-identity-agent", {}, before_nodes=True),
        _addon("coredns", {}),
        _addon("metrics-server", {}),
        _addon("eks-node-monitoring-agent", _looks_into_gpus()),
        *([_addon("aws-fsx-csi-driver", {})] if storage.lustre else []),
        # versions before 2.7 tolerate nothing unless told
        *([_addon("aws-mountpoint-s3-csi-driver", {"node": {"tolerateAllTaints": True}})] if storage.buckets else []),
    )


def _addresses() -> dict[str, Any]:
    """Without these the CNI holds a whole spare interface ready on each node, 50 addresses on P5.

    Nothing here concerns EFA: an interface of type `efa-only` has no address, and the CNI leaves it alone.
    """
    targets = {"MINIMUM_IP_TARGET": POD_ADDRESSES, "WARM_IP_TARGET": SPARE_ADDRESSES}
    return {"env": {name: str(value) for name, value in targets.items()}}


def _looks_into_gpus() -> dict[str, Any]:
    """Lets the agent's DCGM part onto GPU nodes; without it, only errors in the kernel's log are seen there.

    It is an engine of its own beside that of the GPU Operator's exporter: the agent asks port 5555 of its node and
    cannot be pointed elsewhere. On P6e it does not run, which is arm64.
    """
    return {"dcgmAgent": {"tolerations": [GPU_TOLERATION]}}


def _addon(name: str, configuration: dict[str, Any], *, before_nodes: bool = False) -> ClusterAddon:
    return ClusterAddon(addons[name], configuration, before_nodes)
