"""An alarm before a Capacity Block ends: EC2 sends an event forty minutes before, and publishes no metric.

Source: EC2 User Guide, "Monitor Capacity Blocks using EventBridge" (2026); EventBridge User Guide, "Monitoring Amazon
EventBridge", MatchedEvents (2026): EventBridge counts the events that match a rule, even one without targets.
"""

from collections.abc import Sequence

from aws_cdk import CfnResource
from constructs import Construct

from ultracluster.constructs.alarms import Watch

DETAIL_TYPES = ("Capacity Block Reservation Expiration Warning", "Capacity Block Expiration Warning")
"""Names of the event: editions of the guide differ, so either matches."""


def capacity_block_watch(scope: Construct, *, name: str, reservation_ids: Sequence[str]) -> Watch:
    """Adds a rule to `scope` that matches when one of `reservation_ids` is about to end; returns the alarm on it.

    EC2 begins to terminate instances ten minutes after the event, thirty minutes before the end. Instances of
    UltraServers have to be terminated sixty minutes before it: for them the event comes too late.
    """
    # the module aws_events takes a while to load
    rule = CfnResource(
        scope,
        "CapacityBlockEnd",
        type="AWS::Events::Rule",
        properties={
            "Description": f"Capacity Blocks of {name} that are about to end",
            "EventPattern": ending(reservation_ids),
        },
    )
    where = f"FROM \"AWS/Events\" WHERE RuleName = '{rule.ref}'"
    query = f"SELECT SUM(MatchedEvents) {where}"
    return Watch("CapacityBlockEnds", query, "A Capacity Block ends in less than 40 minutes", 0)


def ending(reservation_ids: Sequence[str]) -> dict[str, object]:
    """Pattern of the events of Capacity Blocks that are about to end."""
    return {
        "source": ["aws.ec2"],
        "detail-type": list(DETAIL_TYPES),
        "detail": {"capacity-reservation-id": list(reservation_ids)},
    }
