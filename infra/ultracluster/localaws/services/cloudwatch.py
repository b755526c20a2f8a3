"""CloudWatch: composite alarms, which moto stores but has no action for, and AlarmTypes of DescribeAlarms."""

from typing import Any

from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult

from ultracluster.localaws.services.patching import patch_method

_LISTS = {"MetricAlarm": "MetricAlarms", "CompositeAlarm": "CompositeAlarms"}


def activate() -> None:
    """Add the action, and list only the types that a request names: metric alarms, unless it names another."""
    CloudWatchResponse.put_composite_alarm = CloudWatchResponse.put_metric_alarm
    patch_method(CloudWatchResponse, "describe_alarms", _describe_alarms)


def _describe_alarms(original: Any, self: Any) -> ActionResult:
    found: ActionResult = original(self)
    wanted = self._get_param("AlarmTypes") or ["MetricAlarm"]
    found.result.update({name: [] for kind, name in _LISTS.items() if kind not in wanted})
    return found
