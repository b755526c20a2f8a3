"""Rules about the instance types of login nodes, system nodes and CPU nodes."""

import re
from collections.abc import Iterable, Iterator

from ultracluster.catalog import instance_types
from ultracluster.catalog.ec2_types import nearest, read_on
from ultracluster.config.fleet import Fleet
from ultracluster.config.problems import Path, Problem

AGENTS = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent", "eks-node-monitoring-agent", "aws-ebs-csi-driver")
"""Add-ons with a pod on every node (EKS User Guide, "Available Amazon EKS add-ons from AWS", 2026)."""

SHARED_PODS = 5
"""Minimum of other pods on the system nodes: two each of CoreDNS and metrics-server, and one that queues jobs."""

_SIZE = re.compile(r"nano|micro|small|medium|large|\d*xlarge|metal(-\d+xl)?")
"""Sizes of instance types (EC2 User Guide, "Naming conventions", 2026). New types have new families or numbers."""


def unlisted_type(name: str, at: Path) -> Iterator[Problem]:
    """A type that is not in the list: an error if no type has such a size, else a warning, since it may be newer."""
    if name not in instance_types:
        message = f"{name} is not in the list of EC2 instance types of {read_on()}"
        near = nearest(name)
        hint = f"did you mean {near[0]}?" if near else "check the name with `aws ec2 describe-instance-types`"
        if _SIZE.fullmatch(name.partition(".")[2]):
            yield Problem("instance-type-unlisted", at, message, hint, "warning")
        else:
            yield Problem("unknown-instance-type", at, message, hint)


def login_architecture(fleet: Fleet, instance_type: str) -> Iterator[Problem]:
    """A warning about login nodes whose architecture no node group has.

    Source: ParallelCluster, InstanceArchitectureCompatibilityValidator (2026).
    """
    login = instance_types.get(instance_type)
    nodes = {group.hardware.architecture: group.name for _, group in reversed(fleet.known_groups)}
    if login is None or not nodes or login.architecture in nodes:
        return
    ((architecture, name), *_) = nodes.items()
    message = f"{instance_type} is {login.architecture} and {name} is {architecture}: programs built on the "
    message += "login node do not run on the nodes"
    hint = f"set instance_type: {'m7g' if architecture == 'arm64' else 'm7i'}.4xlarge"
    yield Problem("login-architecture", ("control_plane", "login", "instance_type"), message, hint, "warning")


def system_node_room(fleet: Fleet, instance_type: str, count: int) -> Iterator[Problem]:
    """System nodes whose pod limit is too low for the pods of the platform."""
    size = instance_types.get(instance_type)
    if size is None:
        return
    agents = _agents(fleet)
    needed, room = count * agents + SHARED_PODS, count * size.max_pods
    if room < needed:
        message = f"{count} nodes of {instance_type} hold {room} pods; the platform needs at least {needed}: "
        message += f"{agents} on each node and {SHARED_PODS} more"
        at: Path = ("control_plane", "system_nodes", "instance_type")
        yield Problem("system-nodes-too-small", at, message, "set instance_type: m7i.2xlarge")


def cpu_node_room(fleet: Fleet, named: Iterable[tuple[Path, str]]) -> Iterator[Problem]:
    """CPU nodes of EKS whose pod limit leaves no room beside agents; `named` are paths and instance types."""
    agents = _agents(fleet)
    for at, name in named:
        size = instance_types.get(name)
        if size and size.max_pods <= agents:
            message = (
                f"a node of {name} holds {size.max_pods} pods, and the cluster's own software has {agents} on each"
            )
            yield Problem("cpu-nodes-too-small", at, message, "set a larger type, such as m7i.large")


def _agents(fleet: Fleet) -> int:
    """Number of pods of DaemonSets of the platform on every node."""
    return len(AGENTS) + bool(fleet.storage.all_lustre) + bool(fleet.storage.buckets)
