"""AWS::PCS::*: Ref gives the ARN. The API checks names, references and limits; its errors become status reasons."""

import time
from typing import Any, ClassVar

from localaws.handlers.common import retag, undo_on_failure
from localaws.resources import Context, Handler, HandlerError, Properties, Resource, handler, lower_first

_LISTS = ("SlurmCustomSettings", "SlurmdbdCustomSettings", "CgroupCustomSettings", "GresCustomSettings")
_CLUSTER_DEFAULTS: Properties = {
    "ScaleDownIdleTimeInSeconds": 600,
    "Accounting": {"Mode": "NONE", "DefaultPurgeTimeInDays": -1},
    "SlurmRest": {"Mode": "NONE"},
}
_GROUP_DEFAULTS: Properties = {"ScaleDownIdleTimeInSeconds": -1}  # -1 follows the cluster
_GROUP_REMOVALS = {
    "amiId": "",
    "purchaseOption": "ONDEMAND",
    "spotOptions": {"allocationStrategy": "price-capacity-optimized"},
    "nodeLifecycleActions": {"stages": {}},
}
_WAIT_SECONDS = 60.0


class _PcsHandler(Handler):
    """Base of the three types: `kind` is the type's name in API actions, `member` its key in responses."""

    kind: ClassVar[str]
    member: ClassVar[str]
    name_limit: ClassVar[int]

    def create(self, context: Context, properties: Properties) -> Resource:
        parameters = self._parameters(properties)
        parameters[f"{self.member}Name"] = properties.get("Name") or context.physical_name(self.name_limit)
        parameters["tags"] = {**(properties.get("Tags") or {}), **context.tags}
        answer = getattr(context.client("pcs"), f"create_{self.kind}")(**parameters)
        arn = answer[self.member]["arn"]
        with undo_on_failure(lambda: self.delete(context, arn, properties)):
            return self._wait_until_active(context, arn)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        parameters = self._changes(old, new)
        if parameters:
            getattr(context.client("pcs"), f"update_{self.kind}")(**self._identifiers(physical_id), **parameters)
        retag(context.client("pcs"), physical_id, old, new)
        return self._wait_until_active(context, physical_id)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        getattr(context.client("pcs"), f"delete_{self.kind}")(**self._identifiers(physical_id))

    def _parameters(self, properties: Properties) -> dict[str, Any]:
        """Parameters of the create call without name and tags."""
        raise NotImplementedError

    def _changes(self, old: Properties, new: Properties) -> dict[str, Any]:
        """Parameters of the update call. Properties that the template no longer sets return to their defaults."""
        raise NotImplementedError

    def _identifiers(self, arn: str) -> dict[str, str]:
        """Identifiers of a resource from its ARN `...:cluster/<id>[/<kind>/<id>]`."""
        parts = arn.rsplit(":", 1)[1].split("/")
        address = {"clusterIdentifier": parts[1]}
        if len(parts) > 2:
            address[f"{self.member}Identifier"] = parts[3]
        return address

    def _wait_until_active(self, context: Context, arn: str) -> Resource:
        """The resource once it is ACTIVE. HandlerError when that fails or takes too long."""
        get = getattr(context.client("pcs"), f"get_{self.kind}")
        deadline = time.monotonic() + _WAIT_SECONDS
        while (found := get(**self._identifiers(arn))[self.member])["status"] != "ACTIVE":
            if found["status"].endswith("_FAILED") or time.monotonic() > deadline:
                raise HandlerError(f"{self.type} {found['name']} is {found['status']}: {found.get('errorInfo', '')}")
            time.sleep(0.05)
        shown = {name[:1].upper() + name[1:]: found[name] for name in ("arn", "id", "status")}
        return Resource(arn, {**shown, **self._extra_attributes(found)})

    def _extra_attributes(self, found: dict[str, Any]) -> dict[str, Any]:
        """Attributes other than Arn, Id and Status."""
        return {"ErrorInfo": found.get("errorInfo", [])}


@handler
class Cluster(_PcsHandler):
    """AWS::PCS::Cluster. PCS sets AuthKey and JwtAuth, so SlurmConfiguration may not contain them."""

    type = "AWS::PCS::Cluster"
    kind, member, name_limit = "cluster", "cluster", 40
    supported_properties = frozenset({"Name", "Networking", "Scheduler", "Size", "SlurmConfiguration", "Tags"})

    def _parameters(self, properties: Properties) -> dict[str, Any]:
        parameters = {"networking": lower_first(properties["Networking"]), "size": properties["Size"]}
        parameters["scheduler"] = lower_first(properties["Scheduler"])
        if "SlurmConfiguration" in properties:
            parameters["slurmConfiguration"] = _configuration(properties)
        return parameters

    def _changes(self, old: Properties, new: Properties) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if old["Scheduler"] != new["Scheduler"]:
            changes["scheduler"] = {"version": new["Scheduler"]["Version"]}
        if old.get("SlurmConfiguration") != new.get("SlurmConfiguration"):
            changes["slurmConfiguration"] = _configuration_change(old, new, _CLUSTER_DEFAULTS)
        return changes

    def _extra_attributes(self, found: dict[str, Any]) -> dict[str, Any]:
        endpoints = [{name[:1].upper() + name[1:]: value for name, value in end.items()} for end in found["endpoints"]]
        return {**super()._extra_attributes(found), "Endpoints": endpoints}


@handler
class ComputeNodeGroup(_PcsHandler):
    """AWS::PCS::ComputeNodeGroup. CustomLaunchTemplate is optional in the schema but required by the API."""

    type = "AWS::PCS::ComputeNodeGroup"
    kind, member, name_limit = "compute_node_group", "computeNodeGroup", 25
    supported_properties = frozenset(
        {
            *("AmiId", "ClusterId", "CustomLaunchTemplate", "IamInstanceProfileArn", "InstanceConfigs", "Name"),
            *("NodeLifecycleActions", "PurchaseOption", "ScalingConfiguration", "SlurmConfiguration", "SpotOptions"),
            *("SubnetIds", "Tags"),
        }
    )

    def _parameters(self, properties: Properties) -> dict[str, Any]:
        kept = properties.keys() - {"Name", "Tags", "ClusterId", "CustomLaunchTemplate", "SlurmConfiguration"}
        parameters = lower_first({name: properties[name] for name in kept})
        parameters["clusterIdentifier"] = properties["ClusterId"]
        if template := properties.get("CustomLaunchTemplate"):
            parameters["customLaunchTemplate"] = {
                name: template[key] for name, key in (("id", "TemplateId"), ("version", "Version")) if key in template
            }
        if "SlurmConfiguration" in properties:
            parameters["slurmConfiguration"] = _configuration(properties)
        return dict(parameters)

    def _changes(self, old: Properties, new: Properties) -> dict[str, Any]:
        before, after = self._parameters(old), self._parameters(new)
        dropped = before.keys() - after.keys() - {"slurmConfiguration"}
        if fixed := dropped - _GROUP_REMOVALS.keys():
            raise HandlerError(f"{self.type} must keep {', '.join(sorted(fixed))}")
        changes = {name: value for name, value in after.items() if before.get(name) != value}
        changes |= {name: _GROUP_REMOVALS[name] for name in dropped}
        if after.get("purchaseOption") != "SPOT" and "spotOptions" in dropped:
            del changes["spotOptions"]
        changes.pop("slurmConfiguration", None)
        if old.get("SlurmConfiguration") != new.get("SlurmConfiguration"):
            changes["slurmConfiguration"] = _configuration_change(old, new, _GROUP_DEFAULTS)
        return changes


@handler
class Queue(_PcsHandler):
    """AWS::PCS::Queue."""

    type = "AWS::PCS::Queue"
    kind, member, name_limit = "queue", "queue", 25
    supported_properties = frozenset(
        {"ClusterId", "ComputeNodeGroupConfigurations", "Name", "SlurmConfiguration", "Tags"}
    )

    def _parameters(self, properties: Properties) -> dict[str, Any]:
        parameters: dict[str, Any] = {"clusterIdentifier": properties["ClusterId"]}
        if "ComputeNodeGroupConfigurations" in properties:
            groups = lower_first(properties["ComputeNodeGroupConfigurations"])
            parameters["computeNodeGroupConfigurations"] = groups
        if "SlurmConfiguration" in properties:
            parameters["slurmConfiguration"] = _configuration(properties)
        return parameters

    def _changes(self, old: Properties, new: Properties) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if old.get("ComputeNodeGroupConfigurations") != new.get("ComputeNodeGroupConfigurations"):
            groups = lower_first(new.get("ComputeNodeGroupConfigurations") or [])
            changes["computeNodeGroupConfigurations"] = groups
        if old.get("SlurmConfiguration") != new.get("SlurmConfiguration"):
            changes["slurmConfiguration"] = _configuration_change(old, new, {})
        return changes


def _configuration(properties: Properties) -> dict[str, Any]:
    """SlurmConfiguration as the create call takes it."""
    return _lower_first_letters(properties.get("SlurmConfiguration") or {})


def _lower_first_letters(configuration: Properties) -> dict[str, Any]:
    """CamelCase keys, except in gres records, whose keys are those of gres.conf."""
    lowered: dict[str, Any] = lower_first(configuration)
    if "GresCustomSettings" in configuration:
        lowered["gresCustomSettings"] = configuration["GresCustomSettings"]
    return lowered


def _configuration_change(old: Properties, new: Properties, defaults: Properties) -> dict[str, Any]:
    """The new configuration. Removed members, also in blocks, return to their defaults; removed lists become empty."""
    before, after = old.get("SlurmConfiguration") or {}, new.get("SlurmConfiguration") or {}
    for name, value in after.items():
        if value == []:  # the API would clear the list, but refuse it in a new cluster
            raise HandlerError(f"SlurmConfiguration.{name} is an empty list, which AWS PCS refuses; leave it out")
    full = {name: [] if name in _LISTS else defaults[name] for name in before if name not in after}
    for name, value in after.items():
        full[name] = {**defaults.get(name, {}), **value} if isinstance(value, dict) else value
    changed = {name: value for name, value in full.items() if before.get(name) != value}
    return _lower_first_letters(changed)
