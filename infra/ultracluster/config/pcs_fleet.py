"""Rules between a PCS control plane and the rest of the file."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultracluster.catalog import catalog, pcs
from ultracluster.config.node_groups import image_not_pinned, unknown_group
from ultracluster.config.pcs import Pcs
from ultracluster.config.problems import Problem

if TYPE_CHECKING:
    from ultracluster.config.environment import Environment


def managed_nodes(environment: "Environment", settings: Pcs) -> int:
    """Nodes that the cluster manages at the most, login nodes included."""
    return environment.nodes + settings.login.count


def pcs_problems(environment: "Environment", settings: Pcs) -> Iterator[Problem]:
    """What speaks against running the fleet of `environment` under `settings`, its control plane."""
    yield from _cluster_size(environment, settings)
    yield from _node_group_limit(environment)
    yield from _queues_name_groups(environment, settings)
    yield from _ultraserver_queues(environment, settings)
    yield from _efa_only_on_pcs(environment)
    yield from _pinned_images(environment)
    yield from _block_starts(environment)


def _cluster_size(environment: "Environment", settings: Pcs) -> Iterator[Problem]:
    nodes = managed_nodes(environment, settings)
    smallest = pcs.smallest_size(nodes)
    if smallest is None:
        message = f"{nodes} nodes with login nodes; the largest PCS cluster manages {max(pcs.SIZES.values())}"
        yield Problem("pcs-too-many-nodes", "node_groups", message, "split them over environments")
    elif settings.size != "auto" and pcs.SIZES[settings.size] < nodes:
        message = (
            f"a {settings.size} cluster manages {pcs.SIZES[settings.size]} nodes; with login nodes there are {nodes}"
        )
        hint = f"set size: {smallest}, or auto"
        yield Problem("pcs-size-too-small", ("control_plane", "size"), message, hint)


def _node_group_limit(environment: "Environment") -> Iterator[Problem]:
    groups = len(environment.launched_groups) + 1
    if groups > pcs.MAXIMUM_NODE_GROUPS:
        message = f"{groups} PCS node groups with the login group; a cluster has at most {pcs.MAXIMUM_NODE_GROUPS}"
        yield Problem("pcs-too-many-node-groups", "node_groups", message, "merge groups, or ask AWS for more")


def _queues_name_groups(environment: "Environment", settings: Pcs) -> Iterator[Problem]:
    names = [group.name for group in environment.node_groups]
    used = {name for queue in settings.queues for name in queue.node_groups}
    for i, queue in enumerate(settings.queues):
        for j, name in enumerate(queue.node_groups):
            if name not in names:
                at = ("control_plane", "queues", i, "node_groups", j)
                yield unknown_group("queue-node-group-unknown", at, name, names)
    for i, name in enumerate(names):
        if name not in used:
            message = f"no queue uses {name}, so no job could run on it"
            hint = f"add {name} to a queue of control_plane"
            yield Problem("node-group-without-queue", ("node_groups", i, "name"), message, hint)


def _ultraserver_queues(environment: "Environment", settings: Pcs) -> Iterator[Problem]:
    """UltraServer groups go in queues of their own, sizes in powers of two of each other.

    Source: AWS PCS User Guide, "Using UltraServers" (2026).
    """
    ultraserver = {group.name: group.purchase.ultraserver for group in environment.node_groups}
    for i, queue in enumerate(settings.queues):
        kinds = Counter(bool(ultraserver.get(name)) for name in queue.node_groups)
        if len(kinds) > 1:
            message = "UltraServers share a queue with other nodes, which PCS does not allow"
            at = ("control_plane", "queues", i, "node_groups")
            yield Problem("queue-mixes-ultraservers", at, message, "give the UltraServers a queue of their own")


def _efa_only_on_pcs(environment: "Environment") -> Iterator[Problem]:
    """PCS was reported not to pass `efa-only` interfaces on (awsome-distributed-ai, July 2026; not verified)."""
    for i, group in enumerate(environment.node_groups):
        if group.instance_type not in catalog:
            continue
        if any(interface.kind == "efa-only" for interface in group.layout("pcs")):
            message = "PCS was reported not to pass efa-only interfaces on to the launch; whether it does now is open"
            hint = "check NCCL's NIC count on the first node"
            if group.interfaces != "auto":
                hint = "set interfaces: auto, or " + hint
            yield Problem("efa-only-unverified", ("node_groups", i, "interfaces"), message, hint, "warning")


def _pinned_images(environment: "Environment") -> Iterator[Problem]:
    """AWS publishes only `latest`; a later deployment may resolve to a newer image and replace the nodes.

    Source: AWS PCS User Guide, "AMI release notes" (2026).
    """
    for i, group in enumerate(environment.node_groups):
        if group.image == "auto" or group.image.startswith("ssm:"):
            yield image_not_pinned(i)


def _block_starts(environment: "Environment") -> Iterator[Problem]:
    for i, group in enumerate(environment.node_groups):
        if group.purchase.starts and group.purchase.type == "capacity_block":
            message = "PCS waits for the capacity block by itself, so starts would be ignored"
            at = ("node_groups", i, "purchase", "starts")
            yield Problem("capacity-block-start-ignored", at, message, "remove starts")
