"""Whether a Lambda function can connect to the API server of a cluster."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from localaws.services.eks_store import Cluster, invalid
from localaws.services.references import References

API_PORT = 443


def check_endpoint_access(references: References, cluster: Cluster, network: Mapping[str, Any]) -> None:
    """Refusal when a function with this VpcConfig cannot connect to the cluster's endpoint.

    A public endpoint accepts all clients. A private endpoint accepts clients in the cluster's VPC that a security group
    of the control plane's interfaces allows.
    """
    settings, name = cluster["resourcesVpcConfig"], cluster["name"]
    if settings["endpointPublicAccess"]:
        return
    words = (
        f"Unable to connect to the server: dial tcp: i/o timeout: the endpoint of {name} is private, and the function"
    )
    if network.get("VpcId") != settings["vpcId"]:
        raise invalid(f"{words} is not in VPC {settings['vpcId']}")
    allowing = [cluster.security_group, *settings["securityGroupIds"]]
    subnets = [references.subnet(subnet_id).cidr_block for subnet_id in network["SubnetIds"]]
    for group_id in allowing:
        for rule in references.security_group(group_id).ingress_rules:
            if _allows(rule, network["SecurityGroupIds"], subnets):
                return
    raise invalid(f"{words} is not allowed on port {API_PORT} by any of {', '.join(allowing)}")


def _allows(rule: Any, groups: list[str], subnets: list[str]) -> bool:
    """Whether the rule allows one of the groups, or all addresses of one of the subnets."""
    if rule.ip_protocol not in ("-1", "tcp"):
        return False
    if rule.ip_protocol == "tcp" and not int(rule.from_port) <= API_PORT <= int(rule.to_port):
        return False
    if rule.source_group.get("GroupId") in groups:
        return True
    block = rule.cidr_ipv4 and ipaddress.IPv4Network(rule.cidr_ipv4)
    return bool(block) and any(ipaddress.IPv4Network(subnet).subnet_of(block) for subnet in subnets)
