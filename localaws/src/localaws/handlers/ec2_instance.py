"""EC2: instances. They are records: no machine starts."""

import base64
from typing import Any

from localaws.resources import Context, Properties
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting

_ATTRIBUTES: dict[str, Any] = {
    "DisableApiTermination": False,
    "EbsOptimized": False,
    "InstanceInitiatedShutdownBehavior": "stop",
    "InstanceType": None,
    "SourceDestCheck": True,
    "UserData": "",
}
"""Attributes that an instance can change, with their defaults, None if it has none.

Source: EC2 API Reference, ModifyInstanceAttribute (2026).
"""


def _decoded(properties: Properties) -> Properties:
    """A template has user data in base64; the client encodes them."""
    data = properties.get("UserData")
    return {**properties, "UserData": base64.b64decode(data)} if data else properties


def _set_profile_and_monitoring(context: Context, old: Properties, new: Properties) -> None:
    """An instance has at most one instance profile."""
    ec2, instance = context.client("ec2"), new["ref"]
    if old.get("Monitoring") != new.get("Monitoring"):
        (ec2.monitor_instances if new.get("Monitoring") else ec2.unmonitor_instances)(InstanceIds=[instance])
    if old.get("IamInstanceProfile") == new.get("IamInstanceProfile"):
        return
    given = [{"Name": "instance-id", "Values": [instance]}]
    for found in ec2.describe_iam_instance_profile_associations(Filters=given)["IamInstanceProfileAssociations"]:
        ec2.disassociate_iam_instance_profile(AssociationId=found["AssociationId"])
    if profile := new.get("IamInstanceProfile"):
        ec2.associate_iam_instance_profile(InstanceId=instance, IamInstanceProfile={"Name": profile})


def _volumes(properties: Properties) -> list[object]:
    """Block devices without DeleteOnTermination, the only member that a running instance can change."""
    devices = properties.get("BlockDeviceMappings") or []
    return [{**device, "Ebs": {**(device.get("Ebs") or {}), "DeleteOnTermination": None}} for device in devices]


register(
    Row(
        type="AWS::EC2::Instance",
        service="ec2",
        properties="AvailabilityZone BlockDeviceMappings DisableApiTermination EbsOptimized IamInstanceProfile ImageId "
        "InstanceInitiatedShutdownBehavior InstanceType KeyName LaunchTemplate MetadataOptions Monitoring "
        "NetworkInterfaces PrivateIpAddress SecurityGroupIds SourceDestCheck SubnetId Tags UserData",
        ignored="BlockDeviceMappings.Ebs.Iops NetworkInterfaces.AssociateCarrierIpAddress "
        "NetworkInterfaces.EnaSrdSpecification NetworkInterfaces.Ipv6AddressCount NetworkInterfaces.Ipv6Addresses "
        "NetworkInterfaces.PrivateIpAddresses NetworkInterfaces.SecondaryPrivateIpAddressCount",
        create="RunInstances",
        delete="TerminateInstances",
        ref="{Instances.0.InstanceId}",
        ident={"InstanceId": "{ref}", "InstanceIds": "{ref}", "MinCount": "1", "MaxCount": "1", "Resources": "{ref}"},
        renames={
            "AvailabilityZone": "Placement.AvailabilityZone",
            "NetworkInterfaces.GroupSet": "Groups",
        },
        settings=(
            *(
                Setting(
                    name,
                    put="ModifyInstanceAttribute",
                    renames={name: f"{name}.Value"},
                    reset={name: default},
                    kept=default is None,
                    at_creation=name in ("DisableApiTermination", "SourceDestCheck"),
                )
                for name, default in _ATTRIBUTES.items()
            ),
            Setting(
                "SecurityGroupIds",
                put="ModifyInstanceAttribute",
                renames={"SecurityGroupIds": "Groups"},
                at_creation=False,
                kept=True,
            ),
            Setting(
                "MetadataOptions",
                put="ModifyInstanceMetadataOptions",
                spread=True,
                reset={
                    "HttpEndpoint": "enabled",
                    "HttpProtocolIpv6": "disabled",
                    "HttpPutResponseHopLimit": 1,
                    "HttpTokens": "optional",
                    "InstanceMetadataTags": "disabled",
                },
                at_creation=False,
            ),
        ),
        attributes={
            **{
                name: f"Instances.0.{name}|"
                for name in ("InstanceId", "PrivateDnsName", "PublicDnsName", "State", "VpcId")
            },
            "AvailabilityZone": "Instances.0.Placement.AvailabilityZone",
            "PrivateIp": "Instances.0.PrivateIpAddress",
            "PublicIp": "Instances.0.PublicIpAddress|",
        },
        tag="CreateTags",
        untag="DeleteTags",
        must_exist={
            "IamInstanceProfile": "instance profile",
            "InstanceType": "instance type",
            "KeyName": "key pair",
            "SecurityGroupIds": "security group",
            "SubnetId": "subnet",
        },
        replaces=lambda old, new: _volumes(old) != _volumes(new),
        prepare=_decoded,
        by_hand="IamInstanceProfile Monitoring",
        hook=_set_profile_and_monitoring,
    ),
)
