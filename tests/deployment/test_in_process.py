"""Every shipped environment deploys in this process, through boto3's CloudFormation client and moto's services."""

import json

import boto3
import pytest

from infra.catalog import interface_layout
from infra.config.loader import load
from infra.localaws import accounts, local_aws, seeds
from infra.localaws.services.capacity import seed_reservation
from tests.synthesis import FILES, templates

ORDER = ("network", "storage", "control-plane", "compute", "links", "observability")
CREATED_HERE = [name for name in FILES if not load(FILES[name]).network.existing]


@pytest.fixture(scope="module", params=CREATED_HERE)
def deployed(request):
    """An environment that is deployed whole."""
    environment = load(FILES[request.param])
    account = environment.account or accounts.DEFAULT
    with local_aws(account):
        for reservation in seeds.reservations(environment):
            seed_reservation(**reservation, account=account)
        seeds.make_reservation_groups(environment, client(environment, "resource-groups"))
        boto3.client("ssm", region_name=environment.region).put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
        )
        cloudformation = boto3.client("cloudformation", region_name=environment.region)
        for part in [part for part in ORDER if part in templates(request.param)]:
            cloudformation.create_stack(
                StackName=f"{environment.name}-{part}",
                TemplateBody=json.dumps(templates(request.param)[part]),
                Capabilities=["CAPABILITY_NAMED_IAM"],
            )
        yield environment


def client(environment, service):
    return boto3.client(service, region_name=environment.region)


def test_every_stack_is_complete(deployed):
    cloudformation = client(deployed, "cloudformation")
    stacks = {stack["StackName"]: stack["StackStatus"] for stack in cloudformation.describe_stacks()["Stacks"]}
    failed = {
        event["LogicalResourceId"]: event.get("ResourceStatusReason")
        for name in stacks
        for event in cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        if event["ResourceStatus"].endswith("_FAILED")
    }
    assert set(stacks.values()) == {"CREATE_COMPLETE"}, failed
    assert len(stacks) == (6 if deployed.storage.lustre.links else 5)


def test_every_node_group_launches_with_all_its_efa_interfaces(deployed):
    ec2 = client(deployed, "ec2")
    versions = [
        ec2.describe_launch_template_versions(LaunchTemplateId=found["LaunchTemplateId"])["LaunchTemplateVersions"][0]
        for found in ec2.describe_launch_templates()["LaunchTemplates"]
    ]
    wired = sorted(
        (data["InstanceType"], sum(n["InterfaceType"].startswith("efa") for n in data["NetworkInterfaces"]))
        for data in (version["LaunchTemplateData"] for version in versions)
        if "NetworkInterfaces" in data
    )
    assert wired == sorted(
        (group.instance_type, len(interface_layout(group.hardware, "fewest_ips")) - 1)
        for group in deployed.launched_groups
    )


def test_the_cluster_manages_every_group_and_queue_of_the_file(deployed):
    pcs = client(deployed, "pcs")
    (cluster,) = pcs.list_clusters()["clusters"]
    groups = pcs.list_compute_node_groups(clusterIdentifier=cluster["id"])["computeNodeGroups"]
    named = sorted(group["name"].rpartition("-")[0] for group in groups)
    assert named == sorted(["login", *(group.name for group in deployed.launched_groups)])
    queues = pcs.list_queues(clusterIdentifier=cluster["id"])["queues"]
    assert {queue["name"] for queue in queues} == {queue.name for queue in deployed.control_plane.queues}


def test_the_efa_group_admits_itself_both_ways(deployed):
    groups = client(deployed, "ec2").describe_security_groups()["SecurityGroups"]
    (efa,) = [group for group in groups if "EFA" in group["Description"]]
    for way in ("IpPermissions", "IpPermissionsEgress"):
        itself = [
            rule
            for rule in efa[way]
            if rule["IpProtocol"] == "-1" and efa["GroupId"] in [pair["GroupId"] for pair in rule["UserIdGroupPairs"]]
        ]
        assert itself, way


def test_the_file_system_is_what_the_file_asks_for(deployed):
    settings, fsx = deployed.storage.lustre, client(deployed, "fsx")
    (system,) = fsx.describe_file_systems()["FileSystems"]
    lustre = system["LustreConfiguration"]
    assert bool(lustre.get("EfaEnabled")) == settings.efa
    assert system.get("StorageCapacity") == settings.capacity_gib
    assert lustre.get("PerUnitStorageThroughput") == settings.throughput_mbps_per_tib
    assert lustre.get("RootSquashConfiguration", {}).get("RootSquash") == settings.root_squash
    links = fsx.describe_data_repository_associations()["Associations"]
    assert {link["FileSystemPath"] for link in links} == {link.path for link in settings.links}


def test_nodes_have_the_addresses_that_the_file_counts_on(deployed):
    subnets = client(deployed, "ec2").describe_subnets(
        Filters=[{"Name": "availability-zone", "Values": [deployed.availability_zone]}]
    )["Subnets"]
    largest = max(subnet["AvailableIpAddressCount"] for subnet in subnets if not subnet["DefaultForAz"])
    assert largest >= deployed.node_addresses
