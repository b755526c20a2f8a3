"""Instances: corrections of how moto launches and changes them.

It removes the security groups when the shutdown behavior changes, and takes little of a launch template.
"""

import base64
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.models.instances import Instance
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.responses.monitoring import Monitoring

from localaws.resources import pick
from localaws.services.patching import add, patch


@patch(InstanceResponse, "modify_instance_attribute")
def _modify_instance_attribute(original: Any, self: Any) -> ActionResult:
    data = self._get_param("UserData.Value")
    if isinstance(data, bytes):
        self.params["UserData"]["Value"] = base64.b64encode(data).decode()
    behavior = self._get_param("InstanceInitiatedShutdownBehavior.Value")
    if behavior is None:
        answer: ActionResult = original(self)
        return answer
    instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
    instance.instance_initiated_shutdown_behavior = behavior
    return EmptyResult()


OF_TEMPLATE = (
    "EbsOptimized",
    "IamInstanceProfile",
    "InstanceInitiatedShutdownBehavior",
    "MetadataOptions",
    "Monitoring",
)
"""Members of a launch template that an instance takes, besides those that moto gives it."""


@patch(InstanceResponse, "run_instances")
def _run_instances(original: Any, self: Any) -> ActionResult:
    if template := self._get_param("LaunchTemplate"):
        data = self.ec2_backend._get_template_from_args(template).data
        names = OF_TEMPLATE if self._get_param("SubnetId") else (*OF_TEMPLATE, "NetworkInterfaces")
        self.params |= {**pick(data, *names), **self.params}
    answer: ActionResult = original(self)
    return answer


@patch(Instance, "prep_nics")
def _prep_nics(original: Any, self: Any, nic_spec: list[dict[str, Any]], **given: Any) -> None:
    """EC2 deletes the interfaces that it creates with an instance when that terminates, by default."""
    there = set(self.ec2_backend.enis)
    original(self, nic_spec, **given)
    kept = [int(spec["DeviceIndex"]) for spec in nic_spec if spec.get("DeleteOnTermination") is False]
    for index, interface in self.nics.items():
        if interface.id not in there and index not in kept:
            interface.delete_on_termination = interface.attachment.delete_on_termination = True


@add(Monitoring, "monitor_instances")
def _monitor_instances(self: Any) -> ActionResult:
    return _set_monitoring(self, "enabled")


@add(Monitoring, "unmonitor_instances")
def _unmonitor_instances(self: Any) -> ActionResult:
    return _set_monitoring(self, "disabled")


def _set_monitoring(self: Any, state: str) -> ActionResult:
    listed = []
    for instance_id in self._get_param("InstanceIds"):
        self.ec2_backend.get_instance(instance_id).monitoring_state = state
        listed.append({"InstanceId": instance_id, "Monitoring": {"State": state}})
    return ActionResult({"InstanceMonitorings": listed})
