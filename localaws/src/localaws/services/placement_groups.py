"""EC2 placement groups, which moto lacks: create, describe and delete."""

import secrets
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, EC2_RESOURCE_TO_PREFIX

from localaws.services.capacity import matching
from localaws.services.patching import add

MAX_PARTITIONS = 7  # per zone; EC2 User Guide, "Placement strategies" (2026)

Group = dict[str, Any]


def activate() -> None:
    """Add the three actions to moto's EC2."""
    EC2_RESOURCE_TO_PREFIX["placement-group"] = "pg"
    EC2_PREFIX_TO_RESOURCE["pg"] = "placement-group"


def groups_of(backend: Any) -> dict[str, Group]:
    """A Region's placement groups by name, as DescribePlacementGroups returns them, without tags."""
    found: dict[str, Group] = backend.__dict__.setdefault("placement_groups", {})
    return found


@add(EC2Response, "create_placement_group")
def _create(self: Any) -> ActionResult:
    backend = self.ec2_backend
    name, strategy = self._get_param("GroupName"), self._get_param("Strategy", "cluster")
    partitions, spread = self._get_int_param("PartitionCount"), self._get_param("SpreadLevel")
    if name in groups_of(backend):
        raise EC2ClientError("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    if strategy not in ("cluster", "partition", "spread"):
        raise EC2ClientError("InvalidParameterValue", f"Value ({strategy}) for parameter strategy is invalid.")
    if partitions is not None and (strategy != "partition" or not 1 <= partitions <= MAX_PARTITIONS):
        raise EC2ClientError("InvalidParameterValue", f"{partitions} partitions are invalid for strategy {strategy}.")
    if spread is not None and strategy != "spread":
        raise EC2ClientError("InvalidParameterCombination", f"SpreadLevel is invalid for strategy {strategy}.")
    group_id = f"pg-{secrets.token_hex(8)}0"
    group = {
        "GroupName": name,
        "GroupId": group_id,
        "GroupArn": f"arn:{self.partition}:ec2:{self.region}:{self.current_account}:placement-group/{name}",
        "State": "available",
        "Strategy": strategy,
    }
    if strategy == "partition":
        group["PartitionCount"] = partitions or 2
    if strategy == "spread":
        group["SpreadLevel"] = spread or "rack"
    groups_of(backend)[name] = group
    tags = self._parse_tag_specification("placement-group").get("placement-group", {})
    if tags:
        backend.create_tags([group_id], tags)
    return ActionResult({"PlacementGroup": _with_tags(backend, group)})


@add(EC2Response, "describe_placement_groups")
def _describe(self: Any) -> ActionResult:
    names, ids = self._get_param("GroupNames", []), self._get_param("GroupIds", [])
    there = groups_of(self.ec2_backend)
    known = {*there, *(group["GroupId"] for group in there.values())}
    for unknown in [name for name in (*names, *ids) if name not in known]:
        raise _unknown(unknown)
    found = [group for name, group in there.items() if (not names or name in names)]
    found = [_with_tags(self.ec2_backend, group) for group in found if not ids or group["GroupId"] in ids]
    return ActionResult({"PlacementGroups": matching("PlacementGroup", found, self._filters_from_querystring())})


@add(EC2Response, "delete_placement_group")
def _delete(self: Any) -> ActionResult:
    name = self._get_param("GroupName")
    if name not in groups_of(self.ec2_backend):
        raise _unknown(name)
    del groups_of(self.ec2_backend)[name]
    return EmptyResult()


def _with_tags(backend: Any, group: Group) -> Group:
    tags = backend.describe_tags(filters={"resource-id": [group["GroupId"]]})
    return {**group, "Tags": [{"Key": tag["key"], "Value": tag["value"]} for tag in tags]}


def _unknown(name: str) -> Exception:
    error: Exception = EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    return error
