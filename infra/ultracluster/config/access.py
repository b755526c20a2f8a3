"""Access to an environment: private networks, an access host, and the users of the nodes."""

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Annotated

from pydantic import Field, WithJsonSchema

from ultracluster.config import effect_rules as rules
from ultracluster.config.directory import Directory
from ultracluster.config.effects import IN_PLACE
from ultracluster.config.fields import FLAG, MAPPING, SWITCH, CpuType, Many, cdk_value, from_cdk, text
from ultracluster.config.network import Network
from ultracluster.config.problems import Path, Problem, repeated, rule
from ultracluster.config.settings import Settings
from ultracluster.config.users import Users

PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
"""Networks of VPCs and offices: RFC 1918, and the shared address space of RFC 6598, which VPCs may use too."""

MAXIMUM_RANGES = 40
"""Ranges in a security group: it has 60 rules, some of which are generated (VPC User Guide, "Amazon VPC quotas")."""

PrivateCidr = Annotated[str, text(r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$", "a CIDR block such as 10.0.0.0/16"), cdk_value()]


class Host(Settings):
    """A small EC2 instance in a private subnet, reached through Session Manager. It has no open ports.

    It runs Amazon Linux 2023 and may connect to the Kubernetes API, or to SSH of the login nodes.
    """

    instance_type: Annotated[CpuType, rules.HOST] = "t4g.small"
    """Instance type of the host, with an x86_64 or an arm64 processor."""


class Access(Settings):
    """How people reach the Kubernetes API or the login nodes. Session Manager on login nodes needs nothing here."""

    private_ranges: Annotated[Many[PrivateCidr], Field(max_length=MAXIMUM_RANGES), IN_PLACE] = ()
    """Private networks, such as that of a VPN or a peered VPC, that may connect to the Kubernetes API on port 443, or
    to the login nodes on port 22. The routes are yours."""
    host: Annotated[Annotated[bool, FLAG] | Annotated[Host, MAPPING], SWITCH, rules.HOST] = False
    """Whether there is an access host, or its settings."""

    users: Annotated[Users | None, WithJsonSchema({"type": "string"}), rules.USERS] = None
    """Path, relative to this file, of the file of users: who has a login on every node of PCS, and on the access host.
    A change of that file replaces no node."""

    directory: Annotated[Directory | None, rules.DIRECTORY] = None
    """An existing Active Directory in place of users."""

    @property
    def access_host(self) -> Host | None:
        """Settings of the access host; None without one."""
        return self.host if isinstance(self.host, Host) else Host() if self.host else None

    @property
    def wanted(self) -> bool:
        """Whether the section creates resources. A directory alone does not: it exists, and nodes query it."""
        return bool(self.private_ranges or self.access_host or self.users)

    @rule
    def _one_source_of_users(self) -> Iterator[Problem]:
        if self.users and self.directory:
            message = "users and directory are both set, and their names and ids could collide"
            yield Problem("users-and-directory", "directory", message, "remove users or directory")

    @rule
    def _private_networks(self) -> Iterator[Problem]:
        """A VPN or peering connects private networks; the internet never reaches a private address."""
        for i, cidr in enumerate(self.private_ranges):
            for message, hint in () if from_cdk(cidr) else _not_private(cidr):
                yield Problem("private-range", ("private_ranges", i), f"{cidr} {message}", hint)

    @rule
    def _distinct_networks(self) -> Iterator[Problem]:
        yield from repeated("private_ranges", self.private_ranges)
        for i, network in (ranges := self.networks()).items():
            around = next((j for j, other in ranges.items() if network != other and network.subnet_of(other)), None)
            if around is not None:
                message = f"{network} is part of {ranges[around]}, which is private_ranges[{around}]"
                yield Problem("private-range-overlap", ("private_ranges", i), message, f"remove {network}")

    def networks(self) -> dict[int, IPv4Network]:
        """Valid networks of `private_ranges`, by index."""
        ranges = enumerate(self.private_ranges)
        return {i: IPv4Network(cidr) for i, cidr in ranges if not (from_cdk(cidr) or list(_not_private(cidr)))}


def access_problems(access: Access, network: Network, *, on_eks: bool, shared_homes: bool) -> Iterator[Problem]:
    """Problems of the section with the rest of the file, at paths of the file."""
    found = [
        *_ranges_of_the_vpc(access, network),
        *_places_of_users(access, on_eks=on_eks, shared_homes=shared_homes),
        *_directory_is_reached(access, network),
    ]
    for problem in found:
        yield replace(problem, at=("access", *problem.path))


def _places_of_users(access: Access, *, on_eks: bool, shared_homes: bool) -> Iterator[Problem]:
    """On EKS, people run pods; the only machine that they log in to is the access host."""
    key = "users" if access.users else "directory" if access.directory else None
    if key is None:
        return
    if on_eks and access.access_host is None:
        message = "on EKS users have a login on the access host only, and there is none"
        yield Problem("users-without-host", key, message, f"set host: true, or remove {key}")
    if not on_eks and not shared_homes:
        message = "home directories are on the disk of each node: a job does not see those of the login node, and they"
        message += " end with their node"
        yield Problem("homes-on-each-node", key, message, "set storage.home", "warning")


def _directory_is_reached(access: Access, network: Network) -> Iterator[Problem]:
    """Machines install SSSD from the distribution, and read the secret from Secrets Manager."""
    create = network.create
    if access.directory and create and not create.nat_gateways:
        message = "without NAT gateways instances can neither install SSSD nor read the secret"
        yield Problem("directory-without-internet", "directory", message, "set network.create.nat_gateways: 1")


def _ranges_of_the_vpc(access: Access, network: Network) -> Iterator[Problem]:
    """A network with addresses of the VPC can be neither peered nor routed to it (VPC Peering Guide, 2026)."""
    create = network.create
    if create is None or from_cdk(create.cidr) or any(each.severity == "error" for each in create.problems()):
        return
    vpc = create.block
    for i, private in access.networks().items():
        at: Path = ("private_ranges", i)
        if private.subnet_of(vpc):
            message = f"{private} is part of the VPC {vpc}: these are addresses of nodes, pods and file servers"
            hint = "list the networks of people, such as that of a VPN, outside the VPC"
            yield Problem("private-range-in-vpc", at, message, hint)
        elif private.overlaps(vpc):
            message = f"{private} contains the VPC {vpc}, so every node and every pod may connect too"
            yield Problem("private-range-around-vpc", at, message, "list narrower networks", "warning")


def _not_private(cidr: str) -> Iterator[tuple[str, str]]:
    """Why a network cannot be allowed as a private one, and what to do."""
    try:
        network = IPv4Network(cidr, strict=False)
    except ValueError:
        yield "is not an IPv4 network", "write it as 10.50.0.0/16"
        return
    if not any(network.subnet_of(private) for private in PRIVATE):
        allowed = ", ".join(map(str, PRIVATE))
        yield (
            f"is not inside a private network; private networks: {allowed}",
            "set the private networks that people connect from",
        )
    elif str(network) != cidr:
        address = cidr.split("/")[0]
        yield "is not the first address of its network", f"set {network}, or {address}/32 for one address"
