"""Rules between a PCS control plane and the rest of the file."""

from collections import Counter
from collections.abc import Iterator

from ultracluster.catalog import pcs
from ultracluster.config.fleet import Fleet
from ultracluster.config.node_groups import image_not_pinned, unknown_group
from ultracluster.config.pcs import Pcs
from ultracluster.config.problems import Problem


def pcs_problems(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """Validation problems between `fleet` and its control plane, at paths of the file."""
    yield from _cluster_size(fleet, settings)
    yield from _node_group_limit(fleet)
    yield from _queues_name_groups(fleet, settings)
    yield from _ultraserver_queues(fleet, settings)
    yield from _efa_only_on_pcs(fleet)
    yield from _pinned_images(fleet)
    yield from _block_starts(fleet)


def _cluster_size(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    nodes = settings.managed_nodes(fleet.nodes)
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


def _node_group_limit(fleet: Fleet) -> Iterator[Problem]:
    groups = len(fleet.launched_groups) + 1
    if groups > pcs.MAXIMUM_NODE_GROUPS:
        message = f"{groups} PCS node groups with the login group; a cluster has at most {pcs.MAXIMUM_NODE_GROUPS}"
        yield Problem("pcs-too-many-node-groups", "node_groups", message, "merge groups, or ask AWS for more")


def _queues_name_groups(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    names = [group.name for group in fleet.node_groups]
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


def _ultraserver_queues(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """UltraServer groups go in queues of their own, sizes in powers of two of each other.

    Source: AWS PCS User Guide, "Using UltraServers" (2026).
    """
    ultraserver = {group.name: group.purchase.ultraserver for group in fleet.node_groups}
    for i, queue in enumerate(settings.queues):
        kinds = Counter(bool(ultraserver.get(name)) for name in queue.node_groups)
        if len(kinds) > 1:
            message = "UltraServers share a queue with other nodes, which PCS does not allow"
            at = ("control_plane", "queues", i, "node_groups")
            yield Problem("queue-mixes-ultraservers", at, message, "give the UltraServers a queue of their own")


def _efa_only_on_pcs(fleet: Fleet) -> Iterator[Problem]:
    """PCS was reported not to pass `efa-only` interfaces on (awsome-distributed-ai, July 2026; not verified)."""
    for i, group in fleet.known_groups:
        if any(interface.kind == "efa-only" for interface in group.layout("pcs")):
            message = "PCS was reported not to pass efa-only interfaces on to the launch; whether it does now is open"
            hint = "check NCCL's NIC count on the first node"
            if group.interfaces != "auto":
                hint = "set interfaces: auto, or " + hint
            yield Problem("efa-only-unverified", ("node_groups", i, "interfaces"), message, hint, "warning")


def _pinned_images(fleet: Fleet) -> Iterator[Problem]:
    """AWS publishes only `latest`; a later deployment may resolve to a newer image and replace the nodes.

    Source: AWS PCS User Guide, "AMI release notes" (2026).
    """
    for i, group in enumerate(fleet.node_groups):
        if group.image == "auto" or group.image.startswith("ssm:"):
            yield image_not_pinned(i)


def _block_starts(fleet: Fleet) -> Iterator[Problem]:
    for i, group in enumerate(fleet.node_groups):
        if group.purchase.starts and group.purchase.type == "capacity_block":
            message = "PCS waits for the capacity block by itself, so starts would be ignored"
            at = ("node_groups", i, "purchase", "starts")
            yield Problem("capacity-block-start-ignored", at, message, "remove starts")
