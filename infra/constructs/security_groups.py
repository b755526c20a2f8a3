"""Security groups, and the rules between them. Each rule is a resource that names a group: EFA counts no other kind."""

from typing import NamedTuple

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge


class Ports(NamedTuple):
    """What a rule lets through: a protocol and its range of ports."""

    protocol: str
    start: int | None = None
    end: int | None = None


ALL_TRAFFIC = Ports("-1")

ACCEPTED = {
    "NIST.800.53.R5-EC2RestrictedCommonPorts": "Open to the members of one security group, not to addresses. EFA "
    "needs all traffic among its members, and Slurm and MPI choose their ports freely."
}


def member_group(scope: Construct, id: str, *, vpc: ec2.IVpc, description: str) -> ec2.SecurityGroup:
    """A group whose members exchange everything with each other and may reach any address.

    EFA needs the rules among members in both directions and by group id: 0.0.0.0/0 does not count. The group is made
    without CDK's open egress, beside which CDK would drop every other egress rule in silence.

    Source: EC2 User Guide, "Get started with EFA" (2026).
    """
    group = ec2.SecurityGroup(scope, id, vpc=vpc, description=description, allow_all_outbound=False)
    allow(group, "Members", source=group, target=group, ports=ALL_TRAFFIC, description="Among members")
    ec2.CfnSecurityGroupEgress(
        group,
        "Anywhere",
        group_id=group.security_group_id,
        ip_protocol="-1",
        cidr_ip="0.0.0.0/0",
        description="To any address",
    )
    return group


def allow(
    scope: Construct,
    id: str,
    *,
    source: ec2.ISecurityGroup,
    target: ec2.ISecurityGroup,
    ports: Ports,
    description: str,
) -> Construct:
    """Lets `source` open connections to `target`: an egress rule of the one and an ingress rule of the other.

    Returns both rules as one construct, for what has to wait for them.
    """
    rules = Construct(scope, id)
    source_id, target_id = source.security_group_id, target.security_group_id
    ec2.CfnSecurityGroupEgress(
        rules,
        "Egress",
        group_id=source_id,
        destination_security_group_id=target_id,
        ip_protocol=ports.protocol,
        from_port=ports.start,
        to_port=ports.end,
        description=description,
    )
    ingress = ec2.CfnSecurityGroupIngress(
        rules,
        "Ingress",
        group_id=target_id,
        source_security_group_id=source_id,
        ip_protocol=ports.protocol,
        from_port=ports.start,
        to_port=ports.end,
        description=description,
    )
    if ports == ALL_TRAFFIC:
        acknowledge(ingress, ACCEPTED)
    return rules
