"""Synthesises stacks that a test fills, and imports a network for them."""

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from tests.synthesis import flags

US_EAST_2 = cdk.Environment(account="111122223333", region="us-east-2")

DEPLOYED = {"AWS::Partition": "aws", "AWS::Region": US_EAST_2.region, "AWS::AccountId": US_EAST_2.account}


def as_deployed(value: Any) -> Any:
    """A part of a template with the pseudo parameters of US_EAST_2 resolved."""
    match value:
        case {"Ref": str(name)} if name in DEPLOYED:
            return DEPLOYED[name]
        case {"Fn::Join": ["", list(parts)]}:
            return _joined(as_deployed(parts))
        case dict():
            return {key: as_deployed(each) for key, each in value.items()}
        case list():
            return [as_deployed(each) for each in value]
    return value


def _joined(parts: list[Any]) -> Any:
    shorter: list[Any] = [""]
    for part in parts:
        if isinstance(part, str) and isinstance(shorter[-1], str):
            shorter[-1] += part
        else:
            shorter.append(part)
    return shorter[0] if len(shorter) == 1 else {"Fn::Join": ["", shorter]}


@pytest.fixture(scope="session")
def synth() -> Callable[[Callable[[cdk.Stack], object]], Template]:
    """Synthesises a stack that a function fills, for US_EAST_2."""

    def synth(fill: Callable[[cdk.Stack], object], name: str = "prod-part") -> Template:
        stack = cdk.Stack(cdk.App(context=flags(), analytics_reporting=False), name, env=US_EAST_2)
        fill(stack)
        return Template.from_json(as_deployed(Template.from_stack(stack).to_json()))

    return synth


@pytest.fixture(scope="session")
def place() -> Callable[..., dict[str, object]]:
    """Imports a VPC, a subnet and security groups into a stack."""

    def place(stack: cdk.Stack, *, efa: bool = False) -> dict[str, object]:
        group = ec2.SecurityGroup.from_security_group_id
        return {
            "vpc": ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-2b"]),
            "subnet": ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-1"),
            "clients": group(stack, "Clients", "sg-clients"),
            **({"efa_clients": group(stack, "EfaClients", "sg-efa")} if efa else {}),
        }

    return place
