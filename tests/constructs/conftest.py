"""Stacks that several tests look at, each synthesised once."""

from collections.abc import Callable

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from tests.synthesis import flags

US_EAST_2 = cdk.Environment(account="111122223333", region="us-east-2")


@pytest.fixture(scope="session")
def synth() -> Callable[[Callable[[cdk.Stack], object]], Template]:
    """The template of a stack that a function fills."""

    def synth(fill: Callable[[cdk.Stack], object], name: str = "prod-part") -> Template:
        stack = cdk.Stack(cdk.App(context=flags(), analytics_reporting=False), name, env=US_EAST_2)
        fill(stack)
        return Template.from_stack(stack)

    return synth


@pytest.fixture(scope="session")
def place() -> Callable[[cdk.Stack], dict[str, object]]:
    """An imported VPC, subnet and security groups for what lives in a network."""

    def place(stack: cdk.Stack) -> dict[str, object]:
        group = ec2.SecurityGroup.from_security_group_id
        return {
            "vpc": ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-2b"]),
            "subnet": ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-1"),
            "clients": group(stack, "Clients", "sg-clients"),
            "efa_clients": group(stack, "EfaClients", "sg-efa"),
        }

    return place
