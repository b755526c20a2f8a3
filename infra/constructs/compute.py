"""The launch template of a group of nodes: interfaces, purchase, placement, disks and first boot."""

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.catalog import Interface
from infra.config.launch import Launch

ROOT_DEVICE = "/dev/sda1"
"""Root device of the Ubuntu images that PCS publishes; an image of your own needs the same."""

METADATA_HOPS = 4
"""Hop limit of the metadata service that PCS recommends (AWS PCS User Guide, launch templates, 2026)."""


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
    comes with it where the launch asks for one.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        instance_type: str,
        launch: Launch,
        layout: Sequence[Interface],
        subnet: ec2.ISubnet,
        security_groups: Sequence[ec2.ISecurityGroup],
        root_volume_gib: int,
        user_data: str,
        tags: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id)
        groups = [group.security_group_id for group in security_groups]
        data = {
            **_common(root_volume_gib, user_data, tags),
            **_purchase(launch),
            "instanceType": instance_type,
            "networkInterfaces": _network_interfaces(layout, subnet.subnet_id, groups),
        }
        if group_name := self._placement_group(launch):
            data["placement"] = {"groupName": group_name}
        self._launch_with(data)

    def _placement_group(self, launch: Launch) -> str | None:
        if isinstance(launch.cluster_group, str):
            return launch.cluster_group
        if not launch.cluster_group:
            return None
        return ec2.CfnPlacementGroup(self, "PlacementGroup", strategy="cluster").ref


class LoginLaunchTemplate(NodeLaunchTemplate):
    """How login nodes launch: one interface, in a private subnet, reached through Session Manager."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        security_groups: Sequence[ec2.ISecurityGroup],
        root_volume_gib: int,
        user_data: str,
        tags: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id)
        data = {
            **_common(root_volume_gib, user_data, tags),
            "securityGroupIds": [group.security_group_id for group in security_groups],
        }
        self._launch_with(data)


def _common(root_volume_gib: int, user_data: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """What every node's launch template says. Keys in camel case: an L1 renders nothing for others."""
    ebs = {"volumeSize": root_volume_gib, "volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
    tag_list = [{"key": key, "value": value} for key, value in tags.items()]
    return {
        "blockDeviceMappings": [{"deviceName": ROOT_DEVICE, "ebs": ebs}],
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": METADATA_HOPS,
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


def _network_interfaces(layout: Sequence[Interface], subnet_id: str, groups: list[str]) -> list[dict[str, Any]]:
    """One entry for each interface. Security groups stand on each, since the template has interfaces.

    Whether an interface gets a public address is left unset: with several interfaces there is none, and `efa-only`
    refuses the field. Source: EC2 User Guide, "Launch instances with EFA" (2026).
    """
    return [
        {
            "networkCardIndex": interface.card,
            "deviceIndex": interface.device,
            "interfaceType": interface.kind,
            "subnetId": subnet_id,
            "groups": groups,
            "deleteOnTermination": True,
        }
        for interface in layout
    ]
