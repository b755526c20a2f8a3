"""A stack that calls handlers directly, with the checks of the engine."""

import copy
from typing import Any

from localaws import properties as checks
from localaws import schemas
from localaws.handlers import ec2_compute  # noqa: F401 - importing one module registers them all
from localaws.resources import HANDLERS, Context, Resource

ACCOUNT = "123456789012"

# Read-only properties of the registry that Fn::GetAtt does not return, or that need features without handlers.
NOT_GIVEN = {
    "AWS::EKS::Capability": {"Configuration"},  # of Argo CD
    "AWS::EKS::Cluster": {"Id"},  # of clusters on Outposts
    "AWS::EC2::VPC": {"VpcEncryptionControl"},
    "AWS::EC2::Subnet": {"BlockPublicAccessStates"},
    "AWS::EC2::NatGateway": {"AutoProvisionZones", "AutoScalingIps", "RouteTableId"},
    "AWS::FSx::FileSystem": {"LustreMountName", "RootVolumeId"},  # of the other type each
    "AWS::Logs::DeliverySource": {"Status", "StatusReason"},
    "AWS::S3::Bucket": {"MetadataTableConfiguration", "MetadataConfiguration"},
}


class Stack:
    def __init__(self, region: str = "us-east-1") -> None:
        self.region = region
        self._properties: dict[tuple[str, str], dict[str, Any]] = {}

    def context(self, type_name: str, logical_id: str = "Thing") -> Context:
        stack_id = f"arn:aws:cloudformation:{self.region}:{ACCOUNT}:stack/Train/1"
        return Context(ACCOUNT, self.region, "Train", stack_id, logical_id, type_name)

    def client(self, service: str) -> Any:
        return self.context("AWS::EC2::VPC").client(service)

    def create(self, type_name: str, **properties: Any) -> Resource:
        context = self.context(type_name)
        properties = self._checked(type_name, properties)
        made = HANDLERS[type_name].create(context, properties)
        self._properties[type_name, made.physical_id] = properties
        self._check_attributes(type_name, made)
        return made

    def make(self, type_name: str, **properties: Any) -> str:
        return self.create(type_name, **properties).physical_id

    def update(self, type_name: str, physical_id: str, old: dict[str, Any], new: dict[str, Any]) -> Resource:
        old, new = self._checked(type_name, old), self._checked(type_name, new)
        assert checks.replacement(type_name, old, new, self.region) == "False"
        made = HANDLERS[type_name].update(self.context(type_name), physical_id, old, new)
        assert made.physical_id == physical_id
        self._properties[type_name, physical_id] = new
        self._check_attributes(type_name, made)
        return made

    def delete(self, type_name: str, physical_id: str, **properties: Any) -> None:
        """Delete it with `properties`, or without any with those of the last create or update, as the engine does."""
        known = properties or self._properties.get((type_name, physical_id), {})
        HANDLERS[type_name].delete(self.context(type_name), physical_id, known)

    def _checked(self, type_name: str, properties: dict[str, Any]) -> dict[str, Any]:
        properties = schemas.coerce(type_name, copy.deepcopy(properties), self.region)
        checks.check(type_name, "Thing", properties, self.region)
        return properties

    def _check_attributes(self, type_name: str, made: Resource) -> None:
        read_only = schemas.schema(type_name, self.region).get("readOnlyProperties", ())
        names = {pointer.split("/")[2] for pointer in read_only if "*" not in pointer} - NOT_GIVEN.get(type_name, set())
        assert names <= {name.split(".")[0] for name in made.attributes}


def tags(**values: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in values.items()]


def own_tags(found: list[dict[str, str]]) -> dict[str, str]:
    """Tags without those that CloudFormation adds."""
    return {tag["Key"]: tag["Value"] for tag in found if not tag["Key"].startswith("aws:")}
