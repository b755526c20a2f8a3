"""The VPC of an environment: created, or existing."""

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Annotated, NamedTuple

from pydantic import Field

from ultracluster.config.fields import Many, SubnetId, VpcId, text
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings

RESERVED_ADDRESSES = 5
"""Addresses that AWS reserves in every subnet (VPC User Guide, "Subnet sizing")."""


LARGEST, SMALLEST = 16, 24
"""Prefix lengths that AWS accepts for a VPC and that the subnet plan can divide."""


class SubnetPlan(NamedTuple):
    """How a VPC's addresses are divided into subnets."""

    node: IPv4Network
    control_plane: tuple[IPv4Network, IPv4Network]
    public: tuple[IPv4Network, IPv4Network]

    @property
    def node_addresses(self) -> int:
        """Addresses for nodes and file servers."""
        return self.node.num_addresses - RESERVED_ADDRESSES

    @property
    def control_plane_addresses(self) -> int:
        """Addresses in each control-plane subnet."""
        return self.control_plane[0].num_addresses - RESERVED_ADDRESSES

    def holds(self, node_addresses: int, control_plane_addresses: int) -> bool:
        """Whether the node subnet and each control-plane subnet have that many addresses."""
        return self.node_addresses >= node_addresses and self.control_plane_addresses >= control_plane_addresses


def subnet_plan(cidr: IPv4Network) -> SubnetPlan:
    """The upper half for nodes, and from the lower half two sixteenths each for control plane and public subnets.

    Raises ValueError for a block that is too small: the smallest subnet that AWS allows is a /28.
    """
    sixteenths = list(cidr.subnets(prefixlen_diff=4))
    node = list(cidr.subnets(prefixlen_diff=1))[1]
    return SubnetPlan(node, (sixteenths[0], sixteenths[1]), (sixteenths[2], sixteenths[3]))


def wide_enough(cidr: IPv4Network, node_addresses: int, control_plane_addresses: int) -> IPv4Network | None:
    """The smallest network around `cidr` whose subnets have so many addresses; None when no VPC is that large."""
    for prefix in range(cidr.prefixlen, LARGEST - 1, -1):
        wider = cidr.supernet(new_prefix=prefix)
        if subnet_plan(wider).holds(node_addresses, control_plane_addresses):
            return wider
    return None


class CreateNetwork(Settings):
    """A new VPC: one node subnet in the environment's zone, control-plane and public subnets in two zones.

    Without NAT gateways (`nat_gateways: 0`) nothing in the VPC reaches the internet; AWS services then need
    `private_endpoints`. `flow_logs` go to CloudWatch Logs.
    """

    cidr: Annotated[str, text(r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$", "a CIDR block such as 10.0.0.0/16")] = "10.0.0.0/16"
    """CIDR block of the VPC, /16 to /24. Half of its addresses are for nodes and file servers."""
    nat_gateways: Annotated[int, Field(ge=0, le=2)] = 1
    """Number of NAT gateways. 0: no internet access, which needs private_endpoints."""
    private_endpoints: bool = True
    """Whether the VPC has endpoints for AWS services."""
    flow_logs: bool = True
    """Whether VPC flow logs go to CloudWatch Logs."""

    @property
    def block(self) -> IPv4Network:
        """`cidr` as a network."""
        return IPv4Network(self.cidr)

    @rule
    def _cidr_can_be_divided(self) -> Iterator[Problem]:
        """AWS accepts VPCs of /16 to /28; /24 is the smallest that this plan divides into /28s (VPC User Guide)."""
        try:
            block = IPv4Network(self.cidr, strict=False)
        except ValueError:
            message = f"{self.cidr} is not an IPv4 network"
            yield Problem("cidr-size", "cidr", message, "set cidr: 10.0.0.0/16")
            return
        prefix = min(max(block.prefixlen, LARGEST), SMALLEST)
        hint = f"set cidr: {IPv4Network((block.network_address, prefix), strict=False)}"
        if block.prefixlen != prefix:
            message = f"/{block.prefixlen} is not an allowed size; allowed: /{LARGEST} to /{SMALLEST}"
            yield Problem("cidr-size", "cidr", message, hint)
        elif str(block) != self.cidr:
            yield Problem("cidr-size", "cidr", f"{self.cidr} is not the first address of its network", hint)


class ExistingNetwork(Settings):
    """An existing VPC, with DNS support and DNS hostnames enabled.

    The node subnet is in the environment's zone. PCS places its controller in the first control-plane subnet, which
    must not be in a Local Zone.
    """

    vpc_id: VpcId
    """The VPC, with DNS support and DNS hostnames enabled."""
    node_subnet_id: SubnetId
    """Subnet of the nodes and the file system, in the environment's zone."""
    control_plane_subnet_ids: Annotated[Many[SubnetId], Field(min_length=1)]
    """Subnets of the control plane, none in a Local Zone. PCS uses the first."""


class Network(Settings):
    """Exactly one of `create` and `existing`."""

    create: CreateNetwork | None = None
    """Settings of a new VPC."""
    existing: ExistingNetwork | None = None
    """Ids of an existing VPC and its subnets."""

    @rule
    def _one_choice(self) -> Iterator[Problem]:
        if (self.create is None) == (self.existing is None):
            message = "both create and existing are set" if self.create else "neither create nor existing is set"
            message += "; set exactly one"
            hint = "remove create or existing" if self.create else "add create: {} for a new VPC"
            yield Problem("network-choice", (), message, hint)
