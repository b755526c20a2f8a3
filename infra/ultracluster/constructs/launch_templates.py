"""Launch templates: network interfaces, purchase, placement, disks and user data of a group of nodes."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_ec2 import ILaunchTemplateRef, LaunchTemplateReference
from constructs import Construct

from ultracluster.catalog import Interface, instance_types
from ultracluster.catalog.instance_types import Architecture
from ultracluster.config.launch import Launch
from ultracluster.config.node_groups import Controller, NodeGroup
from ultracluster.constructs.references import SecurityGroup, Subnet, expect, security_group_id, subnet_id
from ultracluster.errors import InvalidArgument

SESSION_MANAGER_ACTIONS = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)
"""What Session Manager needs on a node (Systems Manager User Guide, "minimal Session Manager permissions")."""


class Image(NamedTuple):
    """An AMI in a launch template: its root device, and the IMDS hop limit of its software."""

    root_device: str
    hop_limit: int


IMAGES: dict[Controller, Image] = {"pcs": Image("/dev/sda1", 1), "eks": Image("/dev/xvda", 1)}
"""AMIs by control plane: Ubuntu as PCS publishes it, and AL2023 as EKS does. A custom AMI must match.

A hop limit of 1 keeps containers with a network of their own from the instance metadata, and so from the role of their
node: each pod on EKS that calls AWS has a role through EKS Pod Identity. Agents on the host network are not affected.

Source: AWS PCS User Guide, launch templates; EKS Best Practices Guide, "Identity and Access Management", access to the
instance profile of a node (2026).
"""


@jsii.implements(ILaunchTemplateRef)
class NodeLaunchTemplate(Construct):
    """Attributes of every launch template of nodes."""

    def _create(self, data: Mapping[str, Any]) -> None:
        self._template = ec2.CfnLaunchTemplate(self, "Resource", launch_template_data=dict(data))

    @cached_property
    def launch_template_id(self) -> str:
        """Id of the launch template."""
        return self._template.ref

    @cached_property
    def latest_version_number(self) -> str:
        """Number of the newest version. Nodes that are launched from a fixed version do not get later changes."""
        return self._template.attr_latest_version_number

    @property
    def launch_template_ref(self) -> LaunchTemplateReference:
        """Lets CDK constructs take this as an `ILaunchTemplateRef`."""
        return LaunchTemplateReference(launch_template_id=self.launch_template_id)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the launch template."""
        return self._template.env


class AcceleratedLaunchTemplate(NodeLaunchTemplate):
    """The launch template of a node group: interfaces on every EFA card, purchase and placement of the settings.

    The control plane names the instance types where there are several, and the subnets of nodes without EFA. The root
    volume is an encrypted gp3, and instance metadata requires IMDSv2 tokens. A cluster placement group is created where
    the settings allow one. Pass no `subnet` for EKS: a managed node group has its own.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: NodeGroup,
        control_plane: Controller,
        security_groups: Sequence[SecurityGroup],
        user_data: str,
        subnet: Subnet | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, id)
        expect(settings, NodeGroup, "settings")
        if len(settings.blocks()) > 1:
            raise InvalidArgument(
                f"settings name {len(settings.blocks())} UltraServers. Pass each of settings.blocks()"
            )
        launch = settings.launch
        interfaces = settings.layout(control_plane)
        groups = [security_group_id(group) for group in security_groups]
        data = {
            **_common(IMAGES[control_plane], settings.root_volume_gib, user_data, tags or {}),
            **_purchase(launch),
            **({"instanceType": settings.one_type} if settings.one_type else {}),
        }
        if settings.efa:
            where = subnet_id(subnet) if subnet else None
            data["networkInterfaces"] = _network_interfaces(interfaces, where, groups)
        else:
            data["securityGroupIds"] = groups
        # PCS takes the AMI of a node group, EKS that of its launch template
        if control_plane == "eks" and settings.image != "auto":
            data["imageId"] = ami_reference(settings.image)
        if group_name := self._placement_group(launch):
            data["placement"] = {"groupName": group_name}
        self._create(data)

    def _placement_group(self, launch: Launch) -> str | None:
        """Name of the placement group to launch into: an existing one, or one that is created here."""
        if isinstance(launch.cluster_group, str):
            return launch.cluster_group
        if not launch.cluster_group:
            return None
        return ec2.CfnPlacementGroup(self, "PlacementGroup", strategy="cluster").ref


class CpuLaunchTemplate(NodeLaunchTemplate):
    """The launch template of login and system nodes: one interface in a private subnet, access by Session Manager."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        control_plane: Controller,
        security_groups: Sequence[SecurityGroup],
        root_volume_gib: int,
        user_data: str,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, id)
        self._create(
            {
                **_common(IMAGES[control_plane], root_volume_gib, user_data, tags or {}),
                "securityGroupIds": [security_group_id(group) for group in security_groups],
            }
        )


def group_name(name: str, *fixed: str) -> str:
    """`name` with a six-character hash of `fixed`, the properties that only a new group can change.

    The new group then gets another name and is created beside the old one, which is deleted afterwards. 18 characters
    become at most 25.
    """
    return f"{name}-{hashlib.sha256(' '.join(fixed).encode()).hexdigest()[:6]}"


def ami_reference(image: str) -> str:
    """An AMI id as it is; `ssm:/path` as a dynamic reference, which CloudFormation resolves at each deployment."""
    return f"{{{{resolve:{image}}}}}" if image.startswith("ssm:") else image


def cpu_architecture(instance_type: str) -> Architecture:
    """Architecture of a type, also of one that is not in the list.

    Graviton types have a g after their generation: m7g, c8gn, r7gd.
    """
    if instance_type in instance_types:
        return instance_types[instance_type].architecture
    return "arm64" if re.match(r"[a-z]+\d+g", instance_type) else "x86_64"


def _common(image: Image, root_volume_gib: int, user_data: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Launch template data of every node. Keys are in camel case: an L1 renders nothing for others.

    Tags stay out of instance metadata, whatever the account's default is: with them, EC2 refuses to launch an instance
    with a space or / in a tag key, and EKS sets such keys itself.

    Source: EC2 User Guide, "View tags for your EC2 instances using instance metadata" (2026); eksctl issue 8446.
    """
    ebs = {"volumeSize": root_volume_gib, "volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
    tag_list = [{"key": key, "value": value} for key, value in tags.items()]
    specifications = [{"resourceType": kind, "tags": tag_list} for kind in ("instance", "volume")]
    return {
        "blockDeviceMappings": [{"deviceName": image.root_device, "ebs": ebs}],
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": image.hop_limit,
            "instanceMetadataTags": "disabled",
        },
        **({"tagSpecifications": specifications} if tags else {}),
        "userData": cdk.Fn.base64(user_data),
    }


def _purchase(launch: Launch) -> dict[str, Any]:
    """Market and reservation target. Spot is left out: PCS's purchase option and EKS's capacity type set it."""
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


def _network_interfaces(layout: Sequence[Interface], subnet: str | None, groups: list[str]) -> list[dict[str, Any]]:
    """One entry for each interface. Each names the security groups, as a template with interfaces requires.

    AssociatePublicIpAddress is left unset: an instance with several interfaces gets no public address, and `efa-only`
    refuses the field. Source: EC2 User Guide, "Launch instances with EFA" (2026).
    """
    return [
        {
            "networkCardIndex": interface.card,
            "deviceIndex": interface.device,
            "interfaceType": interface.kind,
            **({"subnetId": subnet} if subnet else {}),
            "groups": groups,
            "deleteOnTermination": True,
        }
        for interface in layout
    ]
