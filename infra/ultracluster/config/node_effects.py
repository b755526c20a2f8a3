"""Effects of fields of node groups and login nodes that depend on values."""

from collections.abc import Iterable
from typing import Any

from ultracluster.catalog import eks
from ultracluster.config.effect_rules import IN_PLACE, JOBS_FIRST, NEW_GROUP, NEW_NODES
from ultracluster.config.effects import ByValue, Change, Effect, Effects, On, refused


def _count(change: Change) -> Effect:
    on_pcs = change.before.control_plane.type == "pcs"
    low = _maximum(change.new) < _maximum(change.old)
    # the health checks of nodes treat a fault in another way
    other_checks = on_pcs and _is_dynamic(change.new) != _is_dynamic(change.old) and change.after.health.checks_nodes
    kept = Effect("nodes", "group", note="a static group becomes dynamic, or the reverse") if other_checks else IN_PLACE
    if on_pcs and low:
        return kept._replace(
            note="PCS removes nodes down to the new maximum",
            jobs="jobs on the removed nodes fail and return to their queues",
            jobs_lost=True,
            first="drain the nodes: PCS chooses which nodes it removes",
        )
    if not on_pcs and _minimum(change.new) < _minimum(change.old):
        return Effect(
            "in-place",
            note="EC2 Auto Scaling chooses the nodes, EKS drains them",
            jobs="pods on them are evicted",
            jobs_lost=True,
            first="let jobs end, or cordon and drain as many nodes",
        )
    return kept


def _maximum(count: Any) -> int:
    return count if isinstance(count, int) else int(count.max)


def _minimum(count: Any) -> int:
    return count if isinstance(count, int) else int(count.min)


def _is_dynamic(count: Any) -> bool:
    return _minimum(count) < _maximum(count)


_COUNT = "in place; a lower maximum on PCS, or a lower count on EKS, ends the jobs on the removed nodes"
COUNT = Effects(
    ByValue(f"{_COUNT}; from a static group to a dynamic one, or back, replaces nodes on PCS", _count),
    whole=True,
)


def _types(change: Change) -> Effect:
    old, new = change.old_owner, change.owner
    if len(old.types) > 1 or len(new.types) > 1 or _image_types(old) != _image_types(new):
        return NEW_GROUP
    return NEW_NODES


def _image_types(group: Any) -> str:
    if group.image != "auto":
        return ""
    hardware = group.hardware
    return eks.image_type(hardware.architecture, accelerated=hardware.gpu_count > 0)


TYPE = Effects(
    On(
        pcs=NEW_GROUP,
        eks=ByValue("replaces nodes; a new group for several types, or if AWS's image differs", _types),
    )
)
TYPES = Effects(NEW_GROUP)


def _purchase(change: Change) -> Effect:
    markets = _market(change.old), _market(change.new)
    if change.before.control_plane.type == "eks":
        return NEW_NODES if markets[0] == markets[1] else NEW_GROUP
    if {change.old, change.new} == {"on_demand", "spot"}:
        return Effect("in-place", note="applies to new nodes; AWS does not document whether PCS replaces running ones")
    return NEW_NODES


def _market(purchase: str) -> str:
    return {"spot": "spot", "capacity_block": "capacity_block"}.get(purchase, "on_demand")


PURCHASE_TYPE = Effects(
    On(
        pcs=ByValue("replaces nodes; between on_demand and spot in place", _purchase),
        eks=ByValue("a new group; between on_demand and reservation replaces nodes", _purchase),
    )
)


def _zones(change: Change) -> Effect:
    if change.before.control_plane.type == "eks":
        return removed_zones(change, change.old) or NEW_GROUP
    stays = Effect("in-place", note="new nodes are launched there; running ones stay")
    return removed_zones(change, change.old) or stays


def removed_zones(change: Change, zones: Iterable[str], *, platform: bool = False) -> Effect | None:
    """Effect of removing zones that the new file does not use: their subnets are deleted. None if no subnet is."""
    named = {*change.after.further_zones, change.after.availability_zone}
    lost = [zone for zone in zones if zone not in named]
    if not (lost and change.after.network.create):
        return None
    user, stacks = (
        ("NAME-platform", "'NAME-compute*' NAME-platform") if platform else ("NAME-compute", "'NAME-compute*'")
    )
    return refused(
        f"npx cdk deploy --exclusively {stacks} -c env=NAME, then all stacks",
        f"nothing names {', '.join(lost)} any more, so its subnet is deleted, and {user} still imports the subnet",
    )


ZONES = Effects(
    On(
        pcs=ByValue("in place; a zone that nothing else names needs two steps", _zones),
        eks=ByValue("a new group; a zone that nothing else names needs two steps", _zones),
    )
)


def _image(change: Change) -> Effect:
    return NEW_GROUP if "auto" in (change.old, change.new) else NEW_NODES


IMAGE = Effects(
    On(pcs=NEW_NODES, eks=ByValue("replaces nodes; from or to auto a new group", _image)),
)


_OF_ROLE = Effect("in-place", note="applies to the role at once")


def _policies(change: Change) -> Effect:
    if change.old and change.new:
        return _OF_ROLE
    return NEW_GROUP if change.before.control_plane.type == "eks" else NEW_NODES


POLICIES = Effects(
    On(
        pcs=ByValue(
            "in place; adding the first or removing the last changes the role, which replaces nodes", _policies
        ),
        eks=ByValue(
            "in place; adding the first or removing the last changes the role, which needs a new group", _policies
        ),
    )
)


def _blocks(change: Change) -> Effect:
    old, new = len(change.old), len(change.new)
    if old == new:
        return NEW_NODES
    if min(old, new) > 1:
        return Effect("creates", "group") if new > old else Effect("deletes", "group", jobs_lost=True, first=JOBS_FIRST)
    note = "the node group is recreated: each block is a node group of its own"
    return Effect("deletes", "group", note=note, jobs_lost=True, first=JOBS_FIRST)


BLOCKS = Effects(ByValue("replaces nodes; node groups are created or deleted with blocks", _blocks))
ULTRASERVER = Effects(Effect("in-place", note="together with count"))


def _login_policies(change: Change) -> Effect:
    return _OF_ROLE if change.old and change.new else Effect("nodes", "login")


def _removed_group(change: Change) -> Effect:
    gone = Effect("deletes", "group", jobs_lost=True, first=JOBS_FIRST)
    return removed_zones(change, change.old.zones) or gone


LOGIN_POLICIES = Effects(
    ByValue("in place; adding the first or removing the last replaces login nodes", _login_policies)
)
NODE_GROUPS = Effects(
    IN_PLACE,
    added=Effect("creates"),
    removed=On(
        pcs=ByValue("deletes the group; a zone that nothing else names needs two steps", _removed_group),
        eks=Effect(
            "deletes",
            "group",
            jobs_lost=True,
            first=f"{JOBS_FIRST}. Its stack leaves the app, so delete it with the old file: "
            "npx cdk destroy NAME-compute-GROUP -c env=NAME",
        ),
    ),
)
NODE_GROUP_NAME = Effects(Effect("group", "group", note="a new name is a new group", first=JOBS_FIRST))
