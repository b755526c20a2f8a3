"""CloudTrail's LookupEvents, which the CDK CLI asks after a failure: a trail lags by minutes, so it is empty yet."""

from typing import Any

from moto.core.responses import ActionResult


def activate() -> None:
    """Add the action to moto."""
    from moto.cloudtrail.responses import CloudTrailResponse

    CloudTrailResponse.lookup_events = _lookup_events


def _lookup_events(_: Any) -> ActionResult:
    return ActionResult({"Events": []})
