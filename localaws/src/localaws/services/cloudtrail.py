"""CloudTrail's LookupEvents, which the CDK CLI calls after a failure. It is empty: real events take minutes."""

from typing import Any

from moto.core.responses import ActionResult


def activate() -> None:
    """Add the action to moto."""
    from moto.cloudtrail.responses import CloudTrailResponse

    CloudTrailResponse.lookup_events = _lookup_events


def _lookup_events(_: Any) -> ActionResult:
    return ActionResult({"Events": []})
