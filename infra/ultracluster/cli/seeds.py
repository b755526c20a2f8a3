"""What an environment file names as existing, and that must exist before its stacks are deployed.

`local up` makes it in the embedded AWS. All of it comes from the file.
"""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from ultracluster.catalog import instance_types
from ultracluster.catalog.zones import control_plane_zones
from ultracluster.cli import seed_kinds as kinds
from ultracluster.cli.seed_kinds import Call, Client, Create, Existing
from ultracluster.config.environment import Environment
from ultracluster.config.file_systems import MoreLustre
from ultracluster.config.network import ExistingNetwork
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login, Pcs

CONTROL_PLANE_CIDRS = tuple(f"10.0.{16 * i}.0/20" for i in range(4))
ZONE_CIDRS = tuple(f"10.0.{64 + 8 * i}.0/21" for i in range(8))

PUBLIC_PARAMETERS = "/aws/service/"
"""Path of the parameters that AWS keeps in every account."""


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
    if exists(each, service):
        return False
    for operation, arguments in each.before:
        getattr(service, operation)(**arguments)
    operation, arguments = each.create
    create(each.service, operation, arguments, account=account, region=region, id=each.given)
    for operation, arguments in each.after:
        getattr(service, operation)(**arguments)
    return True


def exists(each: Existing, service: Any) -> bool:
    """Whether boto3's client `service` finds the resource."""
    operation, arguments = each.look
    try:
        answer = getattr(service, operation)(**arguments)
    except ClientError:
        return False
    return each.among is None or any(found[each.among[1]] == each.id for found in answer[each.among[0]])


def _existing(environment: Environment) -> Iterator[Existing]:
    if network := environment.network.existing:
        yield from _network(network, environment)
    if boundary := environment.permissions_boundary:
        yield kinds.policy(boundary, "*")
    for group in environment.node_groups:
        architecture = group.hardware.architecture
        yield from _nodes(group, environment, group.name, architecture)
    control_plane = environment.control_plane
    if isinstance(control_plane, Pcs):
        login = control_plane.login
        known = instance_types.get(login.instance_type)
        yield from _nodes(login, environment, "login", known.architecture if known else "x86_64")
    else:
        people = [*control_plane.admins, *(member for team in control_plane.teams for member in team.members)]
        yield from (kinds.role(arn, {"AWS": arn.split(":")[4]}) for arn in people)
    yield from _launch(environment)
    yield from _storage(environment)
    yield from _directory(environment)
    yield from _observability(environment)


def _nodes(group: NodeGroup | Login, environment: Environment, name: str, architecture: str) -> Iterator[Existing]:
    """What a group of nodes or login nodes names for itself. Security groups beside a new VPC are in one of theirs."""
    yield from map(kinds.policy, group.policies)
    network = environment.network.existing
    own = f"vpc-{kinds.derived(f'{environment.name} {name}')}"
    if group.security_groups and not network:
        yield kinds.vpc(own)
    yield from (kinds.security_group(each, network.vpc_id if network else own) for each in group.security_groups)
    if group.image.startswith("ami-"):
        yield kinds.image(group.image, architecture)
    parameter = group.image.removeprefix("ssm:")
    if parameter != group.image and not parameter.startswith(PUBLIC_PARAMETERS):
        found = f"ami-{kinds.derived(parameter)}"
        yield kinds.image(found, architecture)
        yield kinds.image_parameter(parameter, found)
    for script in group.boot_scripts:
        if place := script.bucket_and_key:
            yield kinds.bucket(place[0], environment.region)
            yield kinds.script(script)


def _network(network: ExistingNetwork, environment: Environment) -> Iterator[Existing]:
    """A VPC with one subnet for the nodes, one for each further zone, and those of the control plane."""
    vpc = network.vpc_id
    yield kinds.vpc(vpc)
    yield kinds.subnet(network.node_subnet_id, vpc, kinds.NODE_CIDR, AvailabilityZone=environment.availability_zone)
    for (zone, subnet), cidr in zip(network.zone_subnet_ids.items(), ZONE_CIDRS, strict=False):
        yield kinds.subnet(subnet, vpc, cidr, AvailabilityZone=zone)
    zones = control_plane_zones(environment.region)
    for i, (subnet, cidr) in enumerate(zip(network.control_plane_subnet_ids, CONTROL_PLANE_CIDRS, strict=False)):
        place = {"AvailabilityZoneId": zones[i % len(zones)]} if zones else {}
        yield kinds.subnet(subnet, vpc, cidr, **place)


def _launch(environment: Environment) -> Iterator[Existing]:
    """Resource groups and placement groups that nodes are launched into."""
    for group in environment.node_groups:
        if arn := group.purchase.reservation_group_arn:
            name = arn.rpartition("/")[2]
            asked: dict[str, Any] = {"Name": name, "Configuration": [{"Type": "AWS::EC2::CapacityReservationPool"}]}
            look: Call = ("get_group", {"GroupName": name})
            yield Existing("resource group", name, "resource-groups", look, ("create_group", asked))
        placed = getattr(group.placement, "existing", None)
        if placed:
            look = ("describe_placement_groups", {"GroupNames": [placed]})
            cluster = {"GroupName": placed, "Strategy": "cluster"}
            yield Existing("placement group", placed, "ec2", look, ("create_placement_group", cluster))


def _storage(environment: Environment) -> Iterator[Existing]:
    storage = environment.storage
    for bucket in storage.buckets.values():
        if bucket.existing:
            yield kinds.bucket(bucket.existing, environment.region)
        if bucket.key_arn:
            yield kinds.key(bucket.key_arn)
    yield from (kinds.bucket(name, environment.region) for name in storage.read_only_buckets)
    for each in (storage.home, *storage.more):
        if not isinstance(each, str) and each.existing:
            yield from _file_system(each.existing, each.type, each.security_group, environment)


def _file_system(name: str, type_: str, group: str | None, environment: Environment) -> Iterator[Existing]:
    """The smallest file system of a type, in the subnet of the nodes, and the security group of its servers.

    The group allows all traffic among its members, as Lustre's servers need. A file system that a file names beside a
    new VPC has one of its own.
    """
    digits = kinds.derived(name)  # not those of the name: the file may name a group with them
    vpc, subnet = f"vpc-{digits}", f"subnet-{digits}"
    if network := environment.network.existing:
        vpc, subnet = network.vpc_id, network.node_subnet_id
    else:
        yield kinds.vpc(vpc)
        yield kinds.subnet(subnet, vpc, kinds.NODE_CIDR, AvailabilityZone=environment.availability_zone)
    servers = group or f"sg-{digits}"
    among = {"GroupId": servers, "IpPermissions": [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": servers}]}]}
    rules = [("authorize_security_group_ingress", among), ("authorize_security_group_egress", among)]
    yield kinds.security_group(servers, vpc, rules)
    kind = "file system"
    look: Call = ("describe_file_systems", {"FileSystemIds": [name]})
    if type_ == "efs":
        look = ("describe_file_systems", {"FileSystemId": name})
        target = ("create_mount_target", {"FileSystemId": name, "SubnetId": subnet, "SecurityGroups": [servers]})
        create: Call = ("create_file_system", {"CreationToken": name})
        yield Existing(kind, name, "efs", look, create, after=[target], given=name)
        return
    asked: dict[str, Any] = {"SubnetIds": [subnet], "SecurityGroupIds": [servers]}
    if type_ == "openzfs":
        sizes = {"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 64}
        asked |= {"FileSystemType": "OPENZFS", "StorageCapacity": 64, "OpenZFSConfiguration": sizes}
    else:
        asked |= {"FileSystemType": "LUSTRE", **_lustre(environment, name)}
    yield Existing(kind, name, "fsx", look, ("create_file_system", asked), given=name)


def _lustre(environment: Environment, name: str) -> dict[str, Any]:
    """A Lustre file system, with EFA if the file says so of it."""
    if not any(each.efa for each in environment.storage.more if isinstance(each, MoreLustre) and each.existing == name):
        return {"StorageCapacity": 1200, "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}}
    settings = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 1000, "EfaEnabled": True}
    return {
        "StorageCapacity": 4800,
        "LustreConfiguration": {**settings, "MetadataConfiguration": {"Mode": "AUTOMATIC"}},
    }


def _directory(environment: Environment) -> Iterator[Existing]:
    """The directory of the domain with its secret, in the VPC of the file or, beside a new VPC, in one of its own."""
    settings, network = environment.access.directory, environment.network.existing
    if settings is None:
        return
    if settings.secret_key_arn:
        yield kinds.key(settings.secret_key_arn)
    yield kinds.secret(settings.secret_arn, ("username", "password"), settings.secret_key_arn)
    if network:
        yield kinds.directory(settings, network.vpc_id, network.control_plane_subnet_ids[:2])
        return
    digits = kinds.derived(settings.domain)
    vpc, subnets = f"vpc-{digits}", [f"subnet-{i}{digits[1:]}" for i in range(2)]
    yield kinds.vpc(vpc)
    zones = control_plane_zones(environment.region)
    for subnet, cidr, zone in zip(subnets, kinds.OWN_CIDRS, zones, strict=False):
        yield kinds.subnet(subnet, vpc, cidr, AvailabilityZoneId=zone)
    yield kinds.directory(settings, vpc, subnets)


def _observability(environment: Environment) -> Iterator[Existing]:
    section = environment.observability
    if workspace := section.existing_workspace:
        look = ("describe_workspace", {"workspaceId": workspace})
        yield Existing(
            "Prometheus workspace", workspace, "amp", look, ("create_workspace", {"alias": "existing"}), given=workspace
        )
    grafana = section.grafana
    if grafana.role_arn:
        yield kinds.role(grafana.role_arn, {"Service": "grafana.amazonaws.com"})
    if grafana.existing:
        asked = {
            "accountAccessType": "CURRENT_ACCOUNT",
            "authenticationProviders": ["SAML"],
            "permissionType": "CUSTOMER_MANAGED",
            "workspaceRoleArn": grafana.role_arn,
        }
        look = ("describe_workspace", {"workspaceId": grafana.existing})
        create: Call = ("create_workspace", asked)
        yield Existing("Grafana workspace", grafana.existing, "grafana", look, create, given=grafana.existing)
    if section.alerts and section.alerts.sns_topic_arn:
        yield kinds.topic(section.alerts.sns_topic_arn)
    if section.alerts and section.alerts.pagerduty:
        pagerduty = section.alerts.pagerduty
        yield kinds.secret(pagerduty.secret_arn, (pagerduty.secret_key or "key",))
