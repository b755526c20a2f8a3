"""How near nodes are to each other: the labels that say so, for each kind of instance.

Source: EC2 User Guide, "Instance topology" (2026); EKS User Guide, "Use P6e-GB200 UltraServers with Amazon EKS" (2026).
"""

from ultracluster.catalog import InstanceType
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.labels import CLIQUE, HOSTNAME, network_layer


def levels(instance_type: InstanceType) -> tuple[str, ...]:
    """Node labels from the farthest switch to the node itself.

    The last one is always the host name: without it Kueue ignores taints and replaces no failed node. A type whose
    depth AWS does not state has nothing else. UltraServers have their NVLink domain between switches and node.
    """
    depth = instance_type.topology_depth or 0
    layers = tuple(network_layer(number) for number in range(1, depth + 1))
    return (*layers, *([CLIQUE] if instance_type.ultraserver_only else []), HOSTNAME)


def topology_name(instance_type: InstanceType) -> str:
    """Name of the topology that nodes of a type share with all types of the same levels; at most 20 characters."""
    depth = instance_type.topology_depth
    name = f"network-{depth}-layers" if depth else "hosts"
    return f"{name}-nvl" if instance_type.ultraserver_only else name


def nearest(instance_type: InstanceType) -> str | None:
    """The narrowest level that several nodes can share: where a job is best put whole. None when there is none."""
    shared = levels(instance_type)[:-1]
    return shared[-1] if shared else None


def topologies(environment: Environment) -> dict[str, tuple[str, ...]]:
    """Levels by the name of the topology, for the types in a file."""
    types = [group.hardware for group in environment.node_groups]
    return {topology_name(hardware): levels(hardware) for hardware in types}
