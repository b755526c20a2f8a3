"""The network of an EKS cluster: checks of subnets and security groups, and resources that EKS creates in the VPC."""

import ipaddress
import secrets
from collections.abc import Mapping
from typing import Any

from moto.ec2.exceptions import DependencyViolationError

from localaws.records import records
from localaws.services.eks_store import Cluster, invalid
from localaws.services.references import References
from localaws.services.service import Refusal

NO_CLUSTERS: tuple[str, ...] = tuple(records("eks")["zones"]["refused"])
SERVICE_CIDRS = ("10.100.0.0/16", "172.20.0.0/16")
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
MAX_SECURITY_GROUPS = 5
MAX_INTERFACES = 4


def check_subnets(references: References, ids: list[str]) -> list[Any]:
    """The subnets of a control plane, if they are in one VPC and in two or more zones that EKS supports."""
    subnets = [subnet_of(references, subnet_id) for subnet_id in ids]
    if len({subnet.vpc_id for subnet in subnets}) > 1:
        raise invalid("Subnets specified must belong to the same VPC.")
    zones = {subnet.availability_zone for subnet in subnets}
    if len(zones) < 2:
        raise invalid(f"Subnets specified must be in at least two different AZs, not in {', '.join(sorted(zones))}.")
    for subnet in subnets:
        if subnet.availability_zone_id in NO_CLUSTERS:
            message = f"Cannot create cluster because {subnet.availability_zone} does not have sufficient capacity."
            raise Refusal("UnsupportedAvailabilityZoneException", message)
        if subnet._availability_zone.zone_type != "availability-zone":
            raise invalid(
                f"{subnet.id} is in the Local Zone {subnet.availability_zone}, where no control plane can be."
            )
    return subnets


def subnet_of(references: References, subnet_id: str) -> Any:
    """The subnet of this id; Refusal when it does not exist."""
    subnet = references.subnet(subnet_id)
    if subnet is None:
        raise invalid(f"The subnet ID '{subnet_id}' does not exist.")
    return subnet


def check_security_groups(references: References, ids: list[str], vpc_id: str) -> None:
    """Refusal unless the security groups exist in the VPC."""
    for group_id in ids:
        group = references.security_group(group_id)
        if group is None or group.vpc_id != vpc_id:
            raise invalid(f"The security group '{group_id}' does not exist in VPC {vpc_id}.")


def check_endpoint(vpc: Mapping[str, Any]) -> None:
    """Refusal unless the endpoint is public, private or both."""
    if not vpc["endpointPublicAccess"] and not vpc["endpointPrivateAccess"]:
        raise invalid("Private and public endpoint access cannot be disabled both.")
    if len(vpc.get("securityGroupIds") or ()) > MAX_SECURITY_GROUPS:
        raise invalid(f"At most {MAX_SECURITY_GROUPS} security groups can be specified.")


def service_cidr(references: References, vpc_id: str, asked: str | None) -> str:
    """The CIDR block of Kubernetes services: the requested one if it is valid, else one outside the VPC.

    Source: EKS API reference, KubernetesNetworkConfigRequest (2026).
    """
    vpc = references.backend("ec2").vpcs[vpc_id]
    taken = [ipaddress.ip_network(found["cidr_block"]) for found in vpc.get_cidr_block_association_set()]
    if asked is None:
        return next(cidr for cidr in SERVICE_CIDRS if not _overlaps(cidr, taken))
    try:
        block = ipaddress.IPv4Network(asked)
    except ValueError as error:
        raise invalid(f"serviceIpv4Cidr {asked} is no CIDR block.") from error
    if not any(block.subnet_of(ipaddress.IPv4Network(private)) for private in PRIVATE):
        raise invalid(f"serviceIpv4Cidr {asked} must be within {', '.join(PRIVATE)}.")
    if not 12 <= block.prefixlen <= 24:
        raise invalid(f"serviceIpv4Cidr {asked} must be between /24 and /12.")
    if _overlaps(asked, taken):
        raise invalid(f"serviceIpv4Cidr {asked} overlaps with a CIDR block of VPC {vpc_id}.")
    return asked


def new_security_group(references: References, name: str, vpc_id: str) -> str:
    """The security group that EKS creates for a cluster: all traffic between members, all traffic out."""
    ec2 = references.backend("ec2")
    description = "EKS created security group applied to the control plane's interfaces and to managed nodes"
    tags = {"Name": f"eks-cluster-sg-{name}", "aws:eks:cluster-name": name, f"kubernetes.io/cluster/{name}": "owned"}
    number = secrets.randbelow(10**10)
    group = ec2.create_security_group(f"eks-cluster-sg-{name}-{number}", description, vpc_id, tags)
    itself = [{"GroupId": group.id}]
    ec2.authorize_security_group_ingress(group.id, "-1", None, None, [], source_groups=itself, vpc_id=vpc_id)
    return str(group.id)


def connect(references: References, cluster: Cluster) -> None:
    """Create the control plane's network interfaces in the cluster's subnets, in place of its old ones."""
    disconnect(references, cluster)
    vpc = cluster["resourcesVpcConfig"]
    groups = [cluster.security_group, *vpc.get("securityGroupIds", ())]
    for subnet_id in vpc["subnetIds"][:MAX_INTERFACES]:
        subnet = references.subnet(subnet_id)
        made = references.network_interface(subnet, groups, f"Amazon EKS {cluster['name']}")
        cluster.interfaces.append(made.id)


def disconnect(references: References, cluster: Cluster) -> None:
    """Delete the control plane's network interfaces."""
    for interface in cluster.interfaces:
        references.delete_network_interface(interface)
    cluster.interfaces = []


def delete_security_group(references: References, cluster: Cluster) -> None:
    """Delete the cluster's security group. A group in use stays and blocks the deletion of the VPC, as in AWS."""
    try:
        references.backend("ec2").delete_security_group(group_id=cluster.security_group)
    except DependencyViolationError:
        return


def _overlaps(cidr: str, taken: list[Any]) -> bool:
    return any(ipaddress.ip_network(cidr).overlaps(block) for block in taken)
