"""Resources in the embedded AWS, read through boto3 from each service."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import boto3
from botocore.exceptions import ClientError

from localaws.server import Server, kubernetes


@dataclass(frozen=True)
class InventoryRow:
    """One resource: its account and Region, its kind, its name or id, and a summary of its settings."""

    account: str
    region: str
    kind: str
    name: str
    details: str


def everything(server: Server) -> list[InventoryRow]:
    """The resources in all accounts and Regions that have or had a stack."""
    return [
        row
        for deployment in server.deployments()
        for row in inventory(deployment.account, deployment.region, server.connection(deployment.account))
    ]


def without_stack(server: Server) -> list[InventoryRow]:
    """Those of `everything` that belong to no stack: retained by an earlier stack, or created outside of stacks."""
    owned = set[str]()
    for deployment in server.deployments():
        connection = server.connection(deployment.account)
        cloudformation = boto3.client("cloudformation", region_name=deployment.region, **connection)
        for stack in deployment.stacks:
            pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
            owned |= {each.get("PhysicalResourceId", "") for page in pages for each in page["StackResourceSummaries"]}
    found = (row for row in everything(server) if row.kind in OUTLIVING)
    return [row for row in found if not {row.name, row.details.partition(",")[0]} & owned and OF_EKS not in row.details]


OUTLIVING = (
    "VPC",
    "Subnet",
    "Security group",
    "Bucket",
    "File system",
    "PCS cluster",
    "AMP workspace",
    "Log group",
    "Key",
)
"""Kinds that templates retain."""
OF_EKS = "EKS created security group"
"""The description of a group that EKS makes and deletes with its cluster."""


def inventory(account: str, region: str, connection: Mapping[str, Any]) -> list[InventoryRow]:
    """The resources of all environments in `region` of `account`; `connection` is passed to boto3's clients.

    A new account's default VPC and the CDK's bootstrap bucket are left out.
    """
    clients = {
        name: boto3.client(name, region_name=region, **connection)
        for name in ("ec2", "s3", "fsx", "efs", "pcs", "eks", "amp", "grafana", "logs", "kms")
    }
    contents = partial(kubernetes, connection["endpoint_url"], connection["aws_secret_access_key"])
    eks = partial(_eks, contents=contents)
    machines = (_network, _placement, _launch_templates, _instances)
    readers = (*machines, _buckets, _file_systems, _pcs, eks, _workspaces, _log_groups, _keys)
    return [InventoryRow(account, region, *row) for reader in readers for row in reader(clients)]


Row = tuple[str, str, str]
Clients = Mapping[str, Any]


def _network(clients: Clients) -> Iterator[Row]:
    ec2 = clients["ec2"]
    for vpc in ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"]:
        yield "VPC", vpc["VpcId"], vpc["CidrBlock"]
        here = [{"Name": "vpc-id", "Values": [vpc["VpcId"]]}]
        for subnet in sorted(ec2.describe_subnets(Filters=here)["Subnets"], key=lambda found: found["CidrBlock"]):
            free = f"{subnet['AvailableIpAddressCount']} addresses free"
            yield "Subnet", subnet["SubnetId"], f"{subnet['CidrBlock']} in {subnet['AvailabilityZone']}, {free}"
        for group in ec2.describe_security_groups(Filters=here)["SecurityGroups"]:
            if group["GroupName"] != "default":
                yield "Security group", group["GroupId"], _rules(group)


def _rules(group: dict[str, Any]) -> str:
    own = {
        way: any(pair["GroupId"] == group["GroupId"] for rule in group[key] for pair in rule["UserIdGroupPairs"])
        for way, key in (("in", "IpPermissions"), ("out", "IpPermissionsEgress"))
    }
    counts = f"{_count(len(group['IpPermissions']), 'rule')} in, {len(group['IpPermissionsEgress'])} out"
    itself = " and ".join(way for way, allowed in own.items() if allowed)
    return f"{group['Description']}: {counts}" + (f", itself {itself}" if itself else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _placement(clients: Clients) -> Iterator[Row]:
    for group in clients["ec2"].describe_placement_groups()["PlacementGroups"]:
        yield "Placement group", group["GroupName"], f"{group['Strategy']} strategy, {group['State']}"


def _launch_templates(clients: Clients) -> Iterator[Row]:
    ec2 = clients["ec2"]
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:
        (latest,) = ec2.describe_launch_template_versions(
            LaunchTemplateId=template["LaunchTemplateId"], Versions=["$Latest"]
        )["LaunchTemplateVersions"]
        data = latest["LaunchTemplateData"]
        interfaces = data.get("NetworkInterfaces", [])
        efa = sum(interface.get("InterfaceType", "").startswith("efa") for interface in interfaces)
        tags = {tag["Key"]: tag["Value"] for spec in data.get("TagSpecifications", ()) for tag in spec["Tags"]}
        wiring = _count(efa, "EFA interface") if interfaces else "one interface, no EFA"
        name = tags.get("Name", template["LaunchTemplateName"])
        what = f"{name}: {data.get('InstanceType', 'any type')}, {wiring}, version {latest['VersionNumber']}"
        yield "Launch template", template["LaunchTemplateId"], what


def _instances(clients: Clients) -> Iterator[Row]:
    for reservation in clients["ec2"].describe_instances()["Reservations"]:
        for instance in reservation["Instances"]:
            name = next((tag["Value"] for tag in instance.get("Tags", ()) if tag["Key"] == "Name"), "no name")
            state = instance["State"]["Name"]
            if state != "terminated":
                yield "Instance", instance["InstanceId"], f"{name}: {instance['InstanceType']}, {state}"


def _buckets(clients: Clients) -> Iterator[Row]:
    s3 = clients["s3"]
    for bucket in s3.list_buckets()["Buckets"]:
        name = bucket["Name"]
        region = s3.get_bucket_location(Bucket=name)["LocationConstraint"] or "us-east-1"
        if name.startswith("cdk-") or region != s3.meta.region_name:
            continue
        versioning = s3.get_bucket_versioning(Bucket=name).get("Status", "not enabled").lower()
        policy = "a bucket policy" if _answer(s3.get_bucket_policy, Bucket=name) else "no bucket policy"
        encrypted = _answer(s3.get_bucket_encryption, Bucket=name)
        rules = encrypted["ServerSideEncryptionConfiguration"]["Rules"] if encrypted else [S3_DEFAULT]
        algorithm = rules[0]["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"]
        yield "Bucket", name, f"versioning {versioning}, encrypted with {algorithm}, {policy}"


S3_DEFAULT = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
"""Of every bucket since January 2023 (S3 User Guide, "Default encryption")."""


def _answer(call: Callable[..., Any], **arguments: Any) -> Any:
    """The answer of a call; None for a setting that a bucket does not have."""
    try:
        return call(**arguments)
    except ClientError:
        return None


def _file_systems(clients: Clients) -> Iterator[Row]:
    fsx = clients["fsx"]
    for system in fsx.describe_file_systems()["FileSystems"]:
        settings = system.get("LustreConfiguration") or system.get("OpenZFSConfiguration") or {}
        size = f"{system['StorageCapacity']} GiB" if system.get("StorageCapacity") else "elastic"
        efa = ", EFA" if settings.get("EfaEnabled") else ""
        kind = "" if "LustreConfiguration" in system else f"{system['FileSystemType']} "
        yield "File system", system["FileSystemId"], f"{kind}{settings.get('DeploymentType')}, {size}{efa}"
    for link in fsx.describe_data_repository_associations()["Associations"]:
        yield "Association", link["AssociationId"], f"{link['FileSystemPath']} = {link['DataRepositoryPath']}"
    for backup in fsx.describe_backups()["Backups"]:
        yield "Backup", backup["BackupId"], f"of {backup['FileSystem']['FileSystemId']}"
    for system in clients["efs"].describe_file_systems()["FileSystems"]:
        yield "File system", system["FileSystemId"], f"EFS, {system['ThroughputMode']} throughput"


def _log_groups(clients: Clients) -> Iterator[Row]:
    for page in clients["logs"].get_paginator("describe_log_groups").paginate():
        for group in page["logGroups"]:
            kept = f"kept for {group['retentionInDays']} days" if "retentionInDays" in group else "kept for ever"
            yield "Log group", group["logGroupName"], kept


def _keys(clients: Clients) -> Iterator[Row]:
    """Customer managed keys that are not pending deletion."""
    kms = clients["kms"]
    for page in kms.get_paginator("list_keys").paginate():
        for key in page["Keys"]:
            about = kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]
            if about["KeyManager"] == "CUSTOMER" and about["KeyState"] != "PendingDeletion":
                yield "Key", key["KeyId"], about.get("Description", "")


def _pcs(clients: Clients) -> Iterator[Row]:
    pcs = clients["pcs"]
    for summary in pcs.list_clusters()["clusters"]:
        cluster = pcs.get_cluster(clusterIdentifier=summary["id"])["cluster"]
        slurm = f"Slurm {cluster['scheduler']['version']}, {cluster['size'].lower()}"
        yield "PCS cluster", cluster["name"], f"{cluster['id']}, {slurm}"
        for found in pcs.list_compute_node_groups(clusterIdentifier=cluster["id"])["computeNodeGroups"]:
            group = pcs.get_compute_node_group(clusterIdentifier=cluster["id"], computeNodeGroupIdentifier=found["id"])[
                "computeNodeGroup"
            ]
            scaling, (config, *_) = group["scalingConfiguration"], group["instanceConfigs"]
            least, most = scaling["minInstanceCount"], scaling["maxInstanceCount"]
            counts = str(most) if least == most else f"{least} to {most}"
            yield "Node group", group["name"], f"{counts} x {config['instanceType']}, {group['purchaseOption'].lower()}"
        for found in pcs.list_queues(clusterIdentifier=cluster["id"])["queues"]:
            queue = pcs.get_queue(clusterIdentifier=cluster["id"], queueIdentifier=found["id"])["queue"]
            yield "Queue", queue["name"], _count(len(queue["computeNodeGroupConfigurations"]), "node group")


def _eks(clients: Clients, contents: Callable[[str], dict[str, Any]]) -> Iterator[Row]:
    eks = clients["eks"]
    for name in eks.list_clusters()["clusters"]:
        cluster = eks.describe_cluster(name=name)["cluster"]
        tier = cluster["controlPlaneScalingConfig"]["tier"]
        endpoint = "public" if cluster["resourcesVpcConfig"]["endpointPublicAccess"] else "private"
        protection = ", protected from deletion" if cluster["deletionProtection"] else ""
        yield "EKS cluster", name, f"Kubernetes {cluster['version']}, {tier}, {endpoint} endpoint{protection}"
        for group in eks.list_nodegroups(clusterName=name)["nodegroups"]:
            yield "Node group", group, _nodes(clients, eks.describe_nodegroup(clusterName=name, nodegroupName=group))
        for add_on in eks.list_addons(clusterName=name)["addons"]:
            found = eks.describe_addon(clusterName=name, addonName=add_on)["addon"]
            yield "Add-on", add_on, found.get("addonVersion", "default version")
        for principal in eks.list_access_entries(clusterName=name)["accessEntries"]:
            place = {"clusterName": name, "principalArn": principal}
            kind = eks.describe_access_entry(**place)["accessEntry"]["type"]
            policies = eks.list_associated_access_policies(**place)["associatedAccessPolicies"]
            held = [policy["policyArn"].rpartition("/")[2] for policy in policies]
            yield "Access entry", principal, ", ".join(held) or kind
        yield from _kubernetes(contents(cluster["arn"]))


def _nodes(clients: Clients, answer: dict[str, Any]) -> str:
    """Size, type, purchase and image of a managed node group."""
    group = answer["nodegroup"]
    scaling, types = group["scalingConfig"], group.get("instanceTypes")
    if not types:
        template = group["launchTemplate"]
        (version,) = clients["ec2"].describe_launch_template_versions(
            LaunchTemplateId=template["id"], Versions=[template["version"]]
        )["LaunchTemplateVersions"]
        types = [version["LaunchTemplateData"]["InstanceType"]]
    sizes = f"{scaling['desiredSize']} ({scaling['minSize']} to {scaling['maxSize']})"
    image = f"{group['amiType']} {group.get('releaseVersion', '')}".strip()
    return f"{sizes} x {', '.join(types)}, {group['capacityType'].lower()}, {image}"


def _kubernetes(contents: dict[str, Any]) -> Iterator[Row]:
    """The Helm releases of a cluster, and the number of objects of each kind."""
    for release in contents["releases"]:
        what = f"{release['chart']} {release['version'] or ''}".strip()
        yield "Helm release", release["name"], f"{what} in {release['namespace']}, revision {release['revision']}"
    kinds = Counter(f"{found['kind']} {found['apiVersion']}" for found in contents["objects"])
    for kind, count in sorted(kinds.items()):
        yield "Kubernetes objects", kind.partition(" ")[0], f"{count} of {kind.partition(' ')[2]}"


def _workspaces(clients: Clients) -> Iterator[Row]:
    for workspace in clients["amp"].list_workspaces()["workspaces"]:
        yield "AMP workspace", workspace["workspaceId"], workspace.get("alias", "")
    for scraper in clients["amp"].list_scrapers()["scrapers"]:
        cluster = scraper["source"]["eksConfiguration"]["clusterArn"].rpartition("/")[2]
        yield "AMP scraper", scraper["scraperId"], f"{scraper.get('alias', '')} of cluster {cluster}".strip()
    for workspace in clients["grafana"].list_workspaces()["workspaces"]:
        yield "Grafana workspace", workspace["id"], f"version {workspace['grafanaVersion']}"
