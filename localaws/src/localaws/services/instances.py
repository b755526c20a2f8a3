"""EC2 instances: changes of user data, shutdown behavior and monitoring, which moto refuses or takes for others."""

import base64
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.responses.monitoring import Monitoring

from localaws.services.patching import patch_method


def activate() -> None:
    """Patch the actions."""
    patch_method(InstanceResponse, "modify_instance_attribute", _modify_instance_attribute)
    Monitoring.monitor_instances = lambda self: _set_monitoring(self, "enabled")
    Monitoring.unmonitor_instances = lambda self: _set_monitoring(self, "disabled")


def _modify_instance_attribute(original: Any, self: Any) -> ActionResult:
    """The shutdown behavior for which moto removes the security groups, and user data that the client encoded."""
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


def _set_monitoring(self: Any, state: str) -> ActionResult:
    listed = []
    for instance_id in self._get_param("InstanceIds"):
        self.ec2_backend.get_instance(instance_id).monitoring_state = state
        listed.append({"InstanceId": instance_id, "Monitoring": {"State": state}})
    return ActionResult({"InstanceMonitorings": listed})
