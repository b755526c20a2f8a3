"""The launch template of a group of nodes: interfaces, purchase, placement, disks and first boot."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.catalog import Interface
from ultracluster.catalog.instance_types import Architecture
from ultracluster.config.launch import Launch
from ultracluster.constructs.places import SecurityGroup, Subnet

SESSION_MANAGER_ACTIONS = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)
"""What Session Manager needs on a node (Systems Manager User Guide, "minimal Session Manager permissions")."""


class Image(NamedTuple):
    """What a launch template has to know of an image: its root device, and who is how far from the metadata service."""

    root_device: str
    metadata_hops: int


PCS_IMAGE = Image("/dev/sda1", 4)
"""Ubuntu as PCS publishes it; an image of your own needs the same (AWS PCS User Guide, launch templates, 2026)."""

EKS_IMAGE = Image("/dev/xvda", 2)
"""AL2023 as EKS publishes it; two hops let pods read what their node is (EKS User Guide, launch templates, 2026)."""


class NodeLaunchTemplate(Construct):
    """How nodes launch, whatever they are."""

    def _launch_with(self, data: dict[str, Any]) -> None:
        self._template = ec2.CfnLaunchTemplate(self, "Resource", launch_template_data=data)

    @property
    def launch_template_id(self) -> str:
        """Id of the launch template."""
        return self._template.ref

    @property
    def latest_version(self) -> str:
        """Number of the newest version. Bind to it: what launches from a fixed number never sees a change."""
        return self._template.attr_latest_version_number


class AcceleratedLaunchTemplate(NodeLaunchTemplate):
    """How accelerated nodes launch: every EFA card wired, bought and placed as decided.

    The root volume is encrypted gp3, the metadata service takes only tokens. A cluster placement group of its own
    comes with it where the launch asks for one. A managed node group brings its own subnet and allows none here.
    `ami_id` is for nodes whose group does not name an image.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        instance_type: str,
        launch: Launch,
        layout: Sequence[Interface],
        subnet: Subnet | None,
        security_groups: Sequence[SecurityGroup],
        root_volume_gib: int,
        user_data: str,
        tags: Mapping[str, str],
        image: Image = PCS_IMAGE,
        ami_id: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        groups = [group.security_group_id for group in security_groups]
        data = {
            **_common(image, root_volume_gib, user_data, tags),
            **_purchase(launch),
            "instanceType": instance_type,
            "networkInterfaces": _network_interfaces(layout, subnet.subnet_id if subnet else None, groups),
        }
        if ami_id:
            data["imageId"] = ami_id
        if group_name := self._placement_group(launch):
            data["placement"] = {"groupName": group_name}
        self._launch_with(data)

    def _placement_group(self, launch: Launch) -> str | None:
        if isinstance(launch.cluster_group, str):
            return launch.cluster_group
        if not launch.cluster_group:
            return None
        return ec2.CfnPlacementGroup(self, "PlacementGroup", strategy="cluster").ref


class CpuLaunchTemplate(NodeLaunchTemplate):
    """How login and system nodes launch: one interface, in a private subnet, reached through Session Manager."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        security_groups: Sequence[SecurityGroup],
        root_volume_gib: int,
        user_data: str,
        tags: Mapping[str, str],
        image: Image = PCS_IMAGE,
    ) -> None:
        super().__init__(scope, id)
        data = {
            **_common(image, root_volume_gib, user_data, tags),
            "securityGroupIds": [group.security_group_id for group in security_groups],
        }
        self._launch_with(data)


def group_name(name: str, *fixed: str) -> str:
    """`name` with six characters that stand for what can only change with a new group: at most 25 for 18.

    With a name of its own the new group is made beside the old one, which then goes.
    """
    return f"{name}-{hashlib.sha256(' '.join(fixed).encode()).hexdigest()[:6]}"


def ami_reference(image: str) -> str:
    """An AMI id as it is; `ssm:/path` as a dynamic reference, which CloudFormation resolves at each deployment."""
    return f"{{{{resolve:{image}}}}}" if image.startswith("ssm:") else image


def cpu_architecture(instance_type: str) -> Architecture:
    """Architecture of a type without GPUs: Graviton types have a g behind their generation, m7g, c8gn, r7gd."""
    return "arm64" if re.match(r"[a-z]+\d+g", instance_type) else "x86_64"


def _common(image: Image, root_volume_gib: int, user_data: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """What every node's launch template says. Keys in camel case: an L1 renders nothing for others."""
    ebs = {"volumeSize": root_volume_gib, "volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
    tag_list = [{"key": key, "value": value} for key, value in tags.items()]
    return {
        "blockDeviceMappings": [{"deviceName": image.root_device, "ebs": ebs}],
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": image.metadata_hops,
            "instanceMetadataTags": "enabled",
        },
        "tagSpecifications": [{"resourceType": kind, "tags": tag_list} for kind in ("instance", "volume")],
        "userData": cdk.Fn.base64(user_data),
    }


def _purchase(launch: Launch) -> dict[str, Any]:
    """Market and reservation target. Spot is said to PCS alone: its purchase option decides it."""
    data: dict[str, Any] = {}
    if launch.market and launch.market != "spot":
        data["instanceMarketOptions"] = {"marketType": launch.market}
    if launch.reservation_id:
        target = {"capacityReservationId": launch.reservation_id}
        data["capacityReservationSpecification"] = {"capacityReservationTarget": target}
    if launch.reservation_group_arn:
        target = {"capacityReservationResourceGroupArn": launch.reservation_group_arn}
        data["capacityReservationSpecification"] = {"capacityReservationTarget": target}
    return data


def _network_interfaces(layout: Sequence[Interface], subnet_id: str | None, groups: list[str]) -> list[dict[str, Any]]:
    """One entry for each interface. Security groups stand on each, since the template has interfaces.

    Whether an interface gets a public address is left unset: with several interfaces there is none, and `efa-only`
    refuses the field. Source: EC2 User Guide, "Launch instances with EFA" (2026).
    """
    return [
        {
            "networkCardIndex": interface.card,
            "deviceIndex": interface.device,
            "interfaceType": interface.kind,
            **({"subnetId": subnet_id} if subnet_id else {}),
            "groups": groups,
            "deleteOnTermination": True,
        }
        for interface in layout
    ]
