"""Security groups, and the rules between them. Each rule is a resource that names a group, as EFA requires."""

from typing import NamedTuple

from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.retention import retain


class Ports(NamedTuple):
    """Protocol and port range of a rule."""

    protocol: str
    start: int | None = None
    end: int | None = None


ALL_TRAFFIC = Ports("-1")

NO_EGRESS = {"ipProtocol": "icmp", "fromPort": 252, "toPort": 86, "cidrIp": "255.255.255.255/32"}
"""An egress rule that matches no traffic, as the CDK writes it: a group without egress rules gets one to 0.0.0.0/0."""

ACCEPTED = {
    "NIST.800.53.R5-EC2RestrictedCommonPorts": "Open to the members of one security group, not to addresses. EFA "
    "needs all traffic among its members, and Slurm and MPI choose their ports freely."
}


def security_group(scope: Construct, id: str, *, vpc_id: str, description: str, retained: bool = False) -> str:
    """Creates a security group without any traffic in or out, and returns its id. Add rules with `allow`.

    A retained group survives the deletion of its stack, but not a creation that is rolled back.
    """
    group = ec2.CfnSecurityGroup(
        Construct(scope, id),
        "Resource",
        vpc_id=vpc_id,
        group_description=description,
        security_group_egress=[{**NO_EGRESS, "description": "Disallow all traffic"}],
    )
    if retained:
        retain(group)
    return group.attr_group_id


def member_group(scope: Construct, id: str, *, vpc_id: str, description: str, retained: bool = False) -> str:
    """Creates a security group with all traffic among its members and egress to any address, and returns its id.

    EFA needs the rules among members in both directions and by group id: 0.0.0.0/0 does not count.

    Source: EC2 User Guide, "Get started with EFA" (2026).
    """
    group_id = security_group(scope, id, vpc_id=vpc_id, description=description, retained=retained)
    allow(scope, f"{id}Members", source=group_id, target=group_id, ports=ALL_TRAFFIC, description="Among members")
    ec2.CfnSecurityGroupEgress(
        scope,
        f"{id}Anywhere",
        group_id=group_id,
        ip_protocol="-1",
        cidr_ip="0.0.0.0/0",
        description="To any address",
    )
    return group_id


def allow(scope: Construct, id: str, *, source: str, target: str, ports: Ports, description: str) -> list[CfnResource]:
    """Allows connections from the group `source` to the group `target`: an egress rule and an ingress rule.

    Returns both rules, for resources that depend on them.
    """
    egress = ec2.CfnSecurityGroupEgress(
        scope,
        f"{id}Egress",
        group_id=source,
        destination_security_group_id=target,
        ip_protocol=ports.protocol,
        from_port=ports.start,
        to_port=ports.end,
        description=description,
    )
    ingress = ec2.CfnSecurityGroupIngress(
        scope,
        f"{id}Ingress",
        group_id=target,
        source_security_group_id=source,
        ip_protocol=ports.protocol,
        from_port=ports.start,
        to_port=ports.end,
        description=description,
    )
    if ports == ALL_TRAFFIC:
        acknowledge(ingress, ACCEPTED)
    return [egress, ingress]


def allow_range(scope: Construct, cidr: str, *, target: str, ports: Ports, description: str) -> CfnResource:
    """Allows connections from the addresses `cidr` to the group `target`, in a resource that is named after `cidr`."""
    return ec2.CfnSecurityGroupIngress(
        scope,
        f"Range-{cidr.replace('/', '-')}",
        group_id=target,
        cidr_ip=cidr,
        ip_protocol=ports.protocol,
        from_port=ports.start,
        to_port=ports.end,
        description=description,
    )
