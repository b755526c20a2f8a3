"""CloudWatch: composite alarms, for which moto has no action, AlarmTypes of DescribeAlarms, and tags of dashboards."""

from typing import Any

from moto.cloudwatch.models import CloudWatchBackend
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult

from localaws.services.patching import patch_method

_LISTS = {"MetricAlarm": "MetricAlarms", "CompositeAlarm": "CompositeAlarms"}


def activate() -> None:
    """Add the action, and list only the types that a request names: metric alarms, unless it names another."""
    CloudWatchResponse.put_composite_alarm = CloudWatchResponse.put_metric_alarm
    patch_method(CloudWatchResponse, "describe_alarms", _describe_alarms)
    patch_method(CloudWatchBackend, "tag_resource", _tag_resource)


def _describe_alarms(original: Any, self: Any) -> ActionResult:
    found: ActionResult = original(self)
    wanted = self._get_param("AlarmTypes") or ["MetricAlarm"]
    found.result.update({name: [] for kind, name in _LISTS.items() if kind not in wanted})
    return found


def _tag_resource(original: Any, self: Any, arn: str, tags: dict[str, str]) -> None:
    if any(dashboard.arn == arn for dashboard in self.dashboards.values()):
        self.tagger.tag_resource(arn, self.tagger.convert_dict_to_tags_input(tags))
    else:
        original(self, arn, tags)
