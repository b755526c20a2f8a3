"""Security groups, and the rules between them. Each rule is a resource that names a group: EFA counts no other kind."""

from typing import NamedTuple

from aws_cdk import CfnResource, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.places import SecurityGroup, SecurityGroupById, Vpc


class Ports(NamedTuple):
    """What a rule lets through: a protocol and its range of ports."""

    protocol: str
    start: int | None = None
    end: int | None = None


ALL_TRAFFIC = Ports("-1")

NOWHERE = {"ipProtocol": "icmp", "fromPort": 252, "toPort": 86, "cidrIp": "255.255.255.255/32"}
"""An egress rule that lets nothing out, as CDK writes it: EC2 gives a group without one a rule to anywhere."""

ACCEPTED = {
    "NIST.800.53.R5-EC2RestrictedCommonPorts": "Open to the members of one security group, not to addresses. EFA "
    "needs all traffic among its members, and Slurm and MPI choose their ports freely."
}


def security_group(
    scope: Construct, id: str, *, vpc: Vpc, description: str, retained: bool = False
) -> SecurityGroupById:
    """A group that lets nothing in or out until `allow` says so; `retained` groups outlive their stack."""
    group = ec2.CfnSecurityGroup(
        Construct(scope, id),
        "Resource",
        vpc_id=vpc.vpc_id,
        group_description=description,
        security_group_egress=[{**NOWHERE, "description": "Disallow all traffic"}],
    )
    if retained:
        group.apply_removal_policy(RemovalPolicy.RETAIN)
    return SecurityGroupById(group.attr_group_id)


def member_group(scope: Construct, id: str, *, vpc: Vpc, description: str, retained: bool = False) -> SecurityGroupById:
    """A group whose members exchange everything with each other and may reach any address.

    EFA needs the rules among members in both directions and by group id: 0.0.0.0/0 does not count.

    Source: EC2 User Guide, "Get started with EFA" (2026).
    """
    group = security_group(scope, id, vpc=vpc, description=description, retained=retained)
    allow(scope, f"{id}Members", source=group, target=group, ports=ALL_TRAFFIC, description="Among members")
    ec2.CfnSecurityGroupEgress(
        scope,
        f"{id}Anywhere",
        group_id=group.security_group_id,
        ip_protocol="-1",
        cidr_ip="0.0.0.0/0",
        description="To any address",
    )
    return group


def allow(
    scope: Construct, id: str, *, source: SecurityGroup, target: SecurityGroup, ports: Ports, description: str
) -> list[CfnResource]:
    """Lets `source` open connections to `target`: an egress rule of the one and an ingress rule of the other.

    Returns both rules, for what has to wait for them.
    """
    source_id, target_id = source.security_group_id, target.security_group_id
    egress = ec2.CfnSecurityGroupEgress(
        scope,
        f"{id}Egress",
        group_id=source_id,
        destination_security_group_id=target_id,
        ip_protocol=ports.protocol,
        from_port=ports.start,
        to_port=ports.end,
        description=description,
    )
    ingress = ec2.CfnSecurityGroupIngress(
        scope,
        f"{id}Ingress",
        group_id=target_id,
        source_security_group_id=source_id,
        ip_protocol=ports.protocol,
        from_port=ports.start,
        to_port=ports.end,
        description=description,
    )
    if ports == ALL_TRAFFIC:
        acknowledge(ingress, ACCEPTED)
    return [egress, ingress]
