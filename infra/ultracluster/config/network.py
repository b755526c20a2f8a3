"""The VPC of an environment: created, or existing."""

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Annotated, NamedTuple

from pydantic import Field

from ultracluster.config import effect_rules as rules
from ultracluster.config.effects import IN_PLACE
from ultracluster.config.fields import ZONE_DUMMIES, Many, SubnetId, VpcId, cdk_value, from_cdk, text
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings

RESERVED_ADDRESSES = 5
"""Addresses that AWS reserves in every subnet (VPC User Guide, "Subnet sizing")."""


LARGEST, SMALLEST, SMALLEST_SUBNET = 16, 24, 28
"""Prefix lengths that AWS accepts for a VPC and that the subnet plan can divide, and the longest of a subnet."""


FORBIDDEN = ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4")
"""Networks that AWS refuses for a VPC (VPC User Guide, "VPC CIDR blocks", 2026)."""

DOCKER = "172.17.0.0/16"
"""Network of Docker's default bridge (VPC User Guide, "VPC CIDR blocks", 2026)."""

_ZONE_NAME, _ZONE_ID = r"[a-z]{2,4}(-[a-z]+)+-\d[a-z]", r"[a-z]+\d-az\d"


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


ZONE_LETTERS = "abcdef"
"""Last letters of the names of Availability Zones."""


def zone_plan(cidr: IPv4Network) -> dict[str, IPv4Network]:
    """Subnets of nodes in further zones by the letter of the zone: thirty-seconds of a VPC of at least /23, else none.

    A zone keeps its subnet, whatever other zones there are.
    """
    if cidr.prefixlen + 5 > SMALLEST_SUBNET:
        return {}
    return dict(zip(ZONE_LETTERS, list(cidr.subnets(prefixlen_diff=5))[8:], strict=False))


class CreateNetwork(Settings):
    """A new VPC: one node subnet in the environment's zone, control-plane and public subnets in two zones.

    Without NAT gateways (`nat_gateways: 0`) nothing in the VPC reaches the internet; AWS services then need
    `private_endpoints`. `flow_logs` go to CloudWatch Logs. A zone id names the same zone in every account, a zone
    name does not: by default the control plane is in the first two zones, by id, that EKS does not refuse.
    """

    cidr: Annotated[str, text(r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$", "a CIDR block such as 10.0.0.0/16"), rules.PLACE] = (
        "10.0.0.0/16"
    )
    """CIDR block of the VPC, /16 to /24. Half of its addresses are for nodes and file servers."""
    nat_gateways: Annotated[int, Field(ge=0, le=2), IN_PLACE] = 1
    """Number of NAT gateways. 0: no internet access, which needs private_endpoints."""
    private_endpoints: Annotated[bool, rules.ENDPOINTS] = True
    """Whether the VPC has endpoints for AWS services."""
    flow_logs: Annotated[bool, IN_PLACE] = True
    """Whether VPC flow logs go to CloudWatch Logs."""
    control_plane_zones: Annotated[
        Many[
            Annotated[
                str,
                text(
                    rf"^({_ZONE_NAME}|{_ZONE_ID})$",
                    "an Availability Zone such as us-east-2a, or its id such as use2-az1; never a Local Zone",
                ),
                cdk_value(ZONE_DUMMIES),
            ]
        ],
        Field(max_length=2),
        rules.PLACE,
    ] = ()
    """Two zones of the control-plane subnets, both by name or both by id. None: two zones that EKS accepts."""

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
        else:
            yield from _unusable(block)

    @rule
    def _two_zones(self) -> Iterator[Problem]:
        """A control plane has subnets in two zones (EKS User Guide, "VPC and subnet requirements", 2026)."""
        zones, at = self.control_plane_zones, "control_plane_zones"
        if len(zones) == 1:
            message = "one zone; the control plane has subnets in two"
            yield Problem("control-plane-zones", at, message, "add a second zone, or remove control_plane_zones")
        elif len(zones) == 2 and zones[0] == zones[1]:
            message = f"{zones[0]} is listed twice; the control plane has subnets in two zones"
            yield Problem("control-plane-zones", at, message, "set another zone")
        elif len({is_zone_id(zone) for zone in zones if not from_cdk(zone)}) > 1:
            message = f"{zones[0]} and {zones[1]} may be the same zone: one is a name, the other an id"
            yield Problem("control-plane-zones", at, message, "write two names or two ids")


def is_zone_id(zone: str) -> bool:
    """Whether `zone` is the id of a zone, such as use2-az1, and not a name."""
    return bool(re.fullmatch(_ZONE_ID, zone))


def _unusable(block: IPv4Network) -> Iterator[Problem]:
    """Networks that AWS refuses, or that conflict with Docker (VPC User Guide, "VPC CIDR blocks", 2026)."""
    hint = f"set cidr: 10.0.0.0/{block.prefixlen}"
    for network in FORBIDDEN:
        if block.overlaps(IPv4Network(network)):
            yield Problem("cidr-reserved", "cidr", f"{block} overlaps {network}, which AWS refuses for a VPC", hint)
    if block.is_global:
        message = f"{block} has public addresses: the nodes cannot reach the hosts on the internet that own them"
        yield Problem("cidr-conflict", "cidr", message, hint, "warning")
    if block.overlaps(IPv4Network(DOCKER)):
        message = f"{block} overlaps {DOCKER}, the network of Docker's default bridge and of some AWS services"
        yield Problem("cidr-conflict", "cidr", message, hint, "warning")


class ExistingNetwork(Settings):
    """An existing VPC, with DNS support and DNS hostnames enabled.

    The node subnet is in the environment's zone. PCS places its controller in the first control-plane subnet, which
    must not be in a Local Zone.
    """

    vpc_id: Annotated[VpcId, rules.PLACE]
    """The VPC, with DNS support and DNS hostnames enabled."""
    node_subnet_id: Annotated[SubnetId, rules.PLACE]
    """Subnet of the nodes and the file system, in the environment's zone."""
    zone_subnet_ids: Annotated[Mapping[str, SubnetId], rules.ZONE_SUBNETS] = Field(default_factory=dict)
    """Subnets of nodes in further Availability Zones, by the name of the zone, for the zones of node groups."""
    control_plane_subnet_ids: Annotated[Many[SubnetId], Field(min_length=1), rules.CONTROL_PLANE_SUBNETS]
    """Subnets of the control plane, none in a Local Zone. PCS uses the first."""


def zone_subnet_problems(existing: ExistingNetwork, own_zone: str) -> Iterator[Problem]:
    """Problems of `zone_subnet_ids`: a subnet is in one zone, and that of the environment's zone has its own key."""
    seen = {existing.node_subnet_id: "node_subnet_id"}
    for zone, subnet in existing.zone_subnet_ids.items():
        at = ("network", "existing", "zone_subnet_ids", zone)
        if zone == own_zone:
            message = f"the subnet of nodes in {zone} is node_subnet_id, so this one would be ignored"
            yield Problem("zone-subnet-ignored", at, message, f"remove {zone}")
        elif subnet in seen and not from_cdk(subnet):
            message = f"{subnet} is already {seen[subnet]}; a subnet is in one zone"
            yield Problem("duplicate-name", at, message, f"set the subnet of {zone}")
        seen.setdefault(subnet, f"the subnet of {zone}")


class Network(Settings):
    """Exactly one of `create` and `existing`."""

    create: Annotated[CreateNetwork | None, rules.PLACE] = None
    """Settings of a new VPC."""
    existing: Annotated[ExistingNetwork | None, rules.PLACE] = None
    """Ids of an existing VPC and its subnets."""

    @rule
    def _one_choice(self) -> Iterator[Problem]:
        if (self.create is None) == (self.existing is None):
            message = "both create and existing are set" if self.create else "neither create nor existing is set"
            message += "; set exactly one"
            hint = "remove create or existing" if self.create else "add create: {} for a new VPC"
            yield Problem("network-choice", (), message, hint)


def nodes_without_aws(network: Network) -> Iterator[Problem]:
    """Error of the whole file: nodes register with the control plane when they boot, by calls to AWS APIs.

    Source: AWS PCS User Guide, "Networking requirements"; EKS User Guide, "Deploy private clusters" (2026).
    """
    create = network.create
    if create and not create.nat_gateways and not create.private_endpoints:
        message = "without NAT gateways or VPC endpoints nodes cannot reach AWS APIs, so they never join the cluster"
        at = ("network", "create", "private_endpoints")
        yield Problem("nodes-without-aws", at, message, "set private_endpoints: true, or set nat_gateways: 1")
