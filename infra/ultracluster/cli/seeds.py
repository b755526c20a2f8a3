"""What an environment file names as existing, and that must exist before its stacks are deployed.

`local up` makes it in the embedded AWS. All of it comes from the file.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from ultracluster.catalog.zones import control_plane_zones
from ultracluster.config.bootstrap import scripts
from ultracluster.config.environment import Environment
from ultracluster.config.file_systems import MoreLustre
from ultracluster.config.network import ExistingNetwork
from ultracluster.config.pcs import Pcs

VPC_CIDR, NODE_CIDR = "10.0.0.0/16", "10.0.128.0/17"
CONTROL_PLANE_CIDRS = tuple(f"10.0.{16 * i}.0/20" for i in range(4))
ZONE_CIDRS = tuple(f"10.0.{64 + 8 * i}.0/21" for i in range(8))

Call = tuple[str, dict[str, Any]]
"""An operation of boto3's client of a service, and its arguments."""
Client = Callable[[str, str, str], Any]
"""boto3's client for service, Region and account."""
Create = Callable[..., None]
"""`localaws.services.given.create` or `Server.create`: they give a resource an id."""


@dataclass(frozen=True)
class Existing:
    """A resource that a file names: how to look it up, and how to make it. `given`: its id is one that AWS makes up."""

    kind: str
    id: str
    service: str
    look: Call
    create: Call
    after: Sequence[Call] = ()
    given: bool = True
    account: str = ""
    region: str = ""


def reservations(environment: Environment) -> Iterator[dict[str, Any]]:
    """The capacity reservations of the node groups, as arguments of `seed_reservation`."""
    for group in environment.launched_groups:
        launch = group.launch
        if launch.reservation_id:
            yield {
                "reservation_id": launch.reservation_id,
                "instance_type": group.one_type,
                "zone": environment.availability_zone,
                "count": group.max_count,
                "kind": "capacity-block" if launch.market == "capacity-block" else "default",
            }


def existing(environment: Environment) -> Iterator[Existing]:
    """Everything that the file names, without duplicates, in an order in which it can be made."""
    seen: set[tuple[str, str]] = set()
    for each in _existing(environment):
        if (each.kind, each.id) not in seen:
            seen.add((each.kind, each.id))
            yield each


def make(each: Existing, client: Client, create: Create, *, account: str, region: str) -> bool:
    """Makes a resource unless it exists. Returns whether it made it."""
    account, region = each.account or account, each.region or region
    service = client(each.service, region, account)
    operation, arguments = each.look
    try:
        getattr(service, operation)(**arguments)
    except ClientError:
        operation, arguments = each.create
        create(each.service, operation, arguments, account=account, region=region, id=each.id if each.given else None)
        for operation, arguments in each.after:
            getattr(service, operation)(**arguments)
        return True
    return False


def _existing(environment: Environment) -> Iterator[Existing]:
    if network := environment.network.existing:
        yield from _network(network, environment)
    if boundary := environment.permissions_boundary:
        yield _policy(boundary, "*")
    vpc = environment.network.existing.vpc_id if environment.network.existing else None
    groups: list[Any] = [*environment.node_groups]
    if isinstance(environment.control_plane, Pcs):
        groups.append(environment.control_plane.login)
    for group in groups:
        yield from map(_policy, group.policies)
        yield from (_security_group(each, vpc) for each in group.security_groups if vpc)
        if group.image.startswith("ami-"):
            yield _image(group.image)
        for script in scripts(group.bootstrap):
            if place := script.bucket_and_key:
                yield _bucket(place[0], environment.region)
    yield from _launch(environment)
    yield from _storage(environment)
    yield from _observability(environment)


def _network(network: ExistingNetwork, environment: Environment) -> Iterator[Existing]:
    """A VPC with one subnet for the nodes, one for each further zone, and those of the control plane."""
    vpc = network.vpc_id
    names = ("EnableDnsSupport", "EnableDnsHostnames")
    dns = [("modify_vpc_attribute", {"VpcId": vpc, name: {"Value": True}}) for name in names]
    yield Existing(
        "VPC", vpc, "ec2", ("describe_vpcs", {"VpcIds": [vpc]}), ("create_vpc", {"CidrBlock": VPC_CIDR}), dns
    )
    yield _subnet(network.node_subnet_id, vpc, NODE_CIDR, AvailabilityZone=environment.availability_zone)
    for (zone, subnet), cidr in zip(network.zone_subnet_ids.items(), ZONE_CIDRS, strict=False):
        yield _subnet(subnet, vpc, cidr, AvailabilityZone=zone)
    zones = control_plane_zones(environment.region)
    for i, (subnet, cidr) in enumerate(zip(network.control_plane_subnet_ids, CONTROL_PLANE_CIDRS, strict=False)):
        place = {"AvailabilityZoneId": zones[i % len(zones)]} if zones else {}
        yield _subnet(subnet, vpc, cidr, **place)


def _subnet(subnet: str, vpc: str, cidr: str, **place: str) -> Existing:
    asked = {"VpcId": vpc, "CidrBlock": cidr, **place}
    return Existing("subnet", subnet, "ec2", ("describe_subnets", {"SubnetIds": [subnet]}), ("create_subnet", asked))


def _security_group(group: str, vpc: str) -> Existing:
    """A group without rules but AWS's own. Its name must not begin with sg-."""
    asked = {"GroupName": f"own-{group}", "Description": f"Made for {group}", "VpcId": vpc}
    look = ("describe_security_groups", {"GroupIds": [group]})
    return Existing("security group", group, "ec2", look, ("create_security_group", asked))


def _image(image: str) -> Existing:
    asked = {"Name": image, "Architecture": "x86_64", "RootDeviceName": "/dev/xvda"}
    return Existing("image", image, "ec2", ("describe_images", {"ImageIds": [image]}), ("register_image", asked))


def _policy(arn: str, allowed: str = "sts:GetCallerIdentity") -> Existing:
    """A policy that allows one action. A boundary allows all, which the roles' own policies narrow."""
    *_, account, resource = arn.split(":", 5)
    path, name = resource.removeprefix("policy").rpartition("/")[::2]
    statement = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    asked = {"PolicyName": name, "Path": f"{path}/", "PolicyDocument": document}
    look = ("get_policy", {"PolicyArn": arn})
    return Existing(
        "policy", arn, "iam", look, ("create_policy", asked), given=False, account=account.replace("aws", "")
    )


def _role(arn: str) -> Existing:
    account, resource = arn.split(":", 5)[4:]
    path, name = resource.removeprefix("role").rpartition("/")[::2]
    trust = {"Effect": "Allow", "Principal": {"Service": "grafana.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    asked = {"RoleName": name, "Path": f"{path}/", "AssumeRolePolicyDocument": document}
    look = ("get_role", {"RoleName": name})
    return Existing("role", arn, "iam", look, ("create_role", asked), given=False, account=account)


def _launch(environment: Environment) -> Iterator[Existing]:
    """Resource groups and placement groups that nodes are launched into."""
    for group in environment.node_groups:
        if arn := group.purchase.reservation_group_arn:
            name = arn.rpartition("/")[2]
            asked: dict[str, Any] = {"Name": name, "Configuration": [{"Type": "AWS::EC2::CapacityReservationPool"}]}
            look: Call = ("get_group", {"GroupName": name})
            yield Existing("resource group", name, "resource-groups", look, ("create_group", asked), given=False)
        placed = getattr(group.placement, "existing", None)
        if placed:
            look = ("describe_placement_groups", {"GroupNames": [placed]})
            cluster = {"GroupName": placed, "Strategy": "cluster"}
            yield Existing("placement group", placed, "ec2", look, ("create_placement_group", cluster), given=False)


def _bucket(name: str, region: str) -> Existing:
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    look = ("head_bucket", {"Bucket": name})
    return Existing("bucket", name, "s3", look, ("create_bucket", {"Bucket": name, **place}), given=False)


def _key(arn: str) -> Existing:
    """A key with KMS's default policy, in the account and Region of its ARN."""
    _, _, _, region, account, resource = arn.split(":", 5)
    key = resource.removeprefix("key/")
    asked = {"Description": f"Made for {key}", "MultiRegion": key.startswith("mrk-")}
    look = ("describe_key", {"KeyId": key})
    return Existing("key", key, "kms", look, ("create_key", asked), account=account, region=region)


def _storage(environment: Environment) -> Iterator[Existing]:
    storage = environment.storage
    for bucket in storage.buckets.values():
        if bucket.existing:
            yield _bucket(bucket.existing, environment.region)
        if bucket.key_arn:
            yield _key(bucket.key_arn)
    yield from (_bucket(name, environment.region) for name in storage.read_only_buckets)
    for each in (storage.home, *storage.more):
        if not isinstance(each, str) and each.existing:
            yield from _file_system(each.existing, each.type, each.security_group, environment)


def _file_system(name: str, type_: str, group: str | None, environment: Environment) -> Iterator[Existing]:
    """The smallest file system of a type, in the subnet of the nodes, and the security group of its servers.

    The group allows all traffic among its members, as Lustre's servers need. A file system that a file names beside a
    new VPC has one of its own.
    """
    digits = name.removeprefix("fs-")
    vpc, subnet = f"vpc-{digits}", f"subnet-{digits}"
    if network := environment.network.existing:
        vpc, subnet = network.vpc_id, network.node_subnet_id
    else:
        yield Existing("VPC", vpc, "ec2", ("describe_vpcs", {"VpcIds": [vpc]}), ("create_vpc", {"CidrBlock": VPC_CIDR}))
        yield _subnet(subnet, vpc, NODE_CIDR, AvailabilityZone=environment.availability_zone)
    servers = group or f"sg-{digits}"
    among = {"GroupId": servers, "IpPermissions": [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": servers}]}]}
    rules = [("authorize_security_group_ingress", among), ("authorize_security_group_egress", among)]
    yield replace(_security_group(servers, vpc), after=rules)
    kind = "file system"
    look: Call = ("describe_file_systems", {"FileSystemIds": [name]})
    if type_ == "efs":
        look = ("describe_file_systems", {"FileSystemId": name})
        target = ("create_mount_target", {"FileSystemId": name, "SubnetId": subnet, "SecurityGroups": [servers]})
        yield Existing(kind, name, "efs", look, ("create_file_system", {"CreationToken": name}), [target])
        return
    asked: dict[str, Any] = {"SubnetIds": [subnet], "SecurityGroupIds": [servers]}
    if type_ == "openzfs":
        sizes = {"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 64}
        asked |= {"FileSystemType": "OPENZFS", "StorageCapacity": 64, "OpenZFSConfiguration": sizes}
    else:
        asked |= {"FileSystemType": "LUSTRE", **_lustre(environment, name)}
    yield Existing(kind, name, "fsx", look, ("create_file_system", asked))


def _lustre(environment: Environment, name: str) -> dict[str, Any]:
    """A Lustre file system, with EFA if the file says so of it."""
    if not any(each.efa for each in environment.storage.more if isinstance(each, MoreLustre) and each.existing == name):
        return {"StorageCapacity": 1200, "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}}
    settings = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 1000, "EfaEnabled": True}
    return {
        "StorageCapacity": 4800,
        "LustreConfiguration": {**settings, "MetadataConfiguration": {"Mode": "AUTOMATIC"}},
    }


def _observability(environment: Environment) -> Iterator[Existing]:
    section = environment.observability
    if metrics := section.metrics:
        workspace = metrics.existing
        look = ("describe_workspace", {"workspaceId": workspace})
        yield Existing("Prometheus workspace", workspace, "amp", look, ("create_workspace", {"alias": "existing"}))
    grafana = section.grafana
    if grafana.role_arn:
        yield _role(grafana.role_arn)
    if grafana.existing:
        asked = {
            "accountAccessType": "CURRENT_ACCOUNT",
            "authenticationProviders": ["SAML"],
            "permissionType": "CUSTOMER_MANAGED",
            "workspaceRoleArn": grafana.role_arn,
        }
        look = ("describe_workspace", {"workspaceId": grafana.existing})
        yield Existing("Grafana workspace", grafana.existing, "grafana", look, ("create_workspace", asked))
    if topic := section.alerts and section.alerts.sns_topic_arn:
        look = ("get_topic_attributes", {"TopicArn": topic})
        region, account, name = topic.split(":")[3:]
        make_topic = partial(Existing, "topic", topic, "sns", look, ("create_topic", {"Name": name}), given=False)
        yield make_topic(account=account, region=region)
