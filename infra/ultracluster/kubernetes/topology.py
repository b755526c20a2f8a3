"""Network topology of nodes: the node labels that describe it, for each instance type.

Source: EC2 User Guide, "Instance topology" (2026); EKS User Guide, "Use P6e-GB200 UltraServers with Amazon EKS" (2026).
"""

from collections.abc import Mapping

from ultracluster.catalog import InstanceType
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import CLIQUE, HOSTNAME, network_layer
from ultracluster.kubernetes.parts import Object


def levels(instance_type: InstanceType) -> tuple[str, ...]:
    """Node labels from the farthest switch to the node itself.

    The host name is always the last: without it Kueue ignores taints and does not replace failed nodes. It is the only
    one for a type whose topology depth AWS does not document.

    UltraServers have their NVLink domain alone. Levels are a strict hierarchy, and AWS does not promise that the nodes
    of an UltraServer share a network node of any layer: below such a layer, one NVLink domain would look like several,
    and a job that fits into it would be split over two.
    """
    if instance_type.ultraserver_only:
        return (CLIQUE, HOSTNAME)
    layers = tuple(network_layer(number) for number in range(1, (instance_type.topology_depth or 0) + 1))
    return (*layers, HOSTNAME)


def topology_name(instance_type: InstanceType) -> str:
    """Name of the Topology of all types with the same levels; at most 20 characters."""
    if instance_type.ultraserver_only:
        return "nvlink-domains"
    depth = instance_type.topology_depth
    return f"network-{depth}-layers" if depth else HOSTS


def preferred_level(instance_type: InstanceType) -> str | None:
    """The narrowest level that several nodes share, where a job fits best. None if nodes share no level."""
    shared = levels(instance_type)[:-1]
    return shared[-1] if shared else None


HOSTS = "hosts"
"""Topology of nodes without known network layers. Its only level is the host name."""


def topologies(environment: EksEnvironment) -> dict[str, tuple[str, ...]]:
    """Levels by the name of their Topology, for the instance types of the environment."""
    types = [group.hardware for group in environment.gpu_groups]
    return {topology_name(hardware): levels(hardware) for hardware in types}


def topology_objects(levels: Mapping[str, tuple[str, ...]], api_version: str) -> tuple[Object, ...]:
    """A Topology of `api_version` for each list of levels; Kueue's and KAI's have the same fields."""
    return tuple(
        {
            "apiVersion": api_version,
            "kind": "Topology",
            "metadata": {"name": name},
            "spec": {"levels": [{"nodeLabel": label} for label in labels]},
        }
        for name, labels in levels.items()
    )
