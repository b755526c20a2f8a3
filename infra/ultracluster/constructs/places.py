"""What a construct has to know of the network it lives in: an id each. CDK's own VPCs, subnets and groups have one."""

from typing import NamedTuple, Protocol


class Vpc(Protocol):
    """A VPC: one of CDK's, or a `VpcById`."""

    @property
    def vpc_id(self) -> str:
        """Id of the VPC."""


class Subnet(Protocol):
    """A subnet: one of CDK's, or a `SubnetById`."""

    @property
    def subnet_id(self) -> str:
        """Id of the subnet."""


class SecurityGroup(Protocol):
    """A security group: one of CDK's, or a `SecurityGroupById`."""

    @property
    def security_group_id(self) -> str:
        """Id of the group."""


class VpcById(NamedTuple):
    """A VPC of which the id is known, or a token for it."""

    vpc_id: str


class SubnetById(NamedTuple):
    """A subnet of which the id is known, or a token for it."""

    subnet_id: str


class SecurityGroupById(NamedTuple):
    """A security group of which the id is known, or a token for it."""

    security_group_id: str
