"""File systems that clients mount over NFS: OpenZFS and EFS, created, imported, and shared security groups."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from ultracluster.catalog import nfs
from ultracluster.config.backups import Backups
from ultracluster.config.file_systems import Efs, MoreEfs, OpenZfs
from ultracluster.constructs.alarms import openzfs_watches
from ultracluster.constructs.existing_servers import ExistingServers
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.nfs import ElasticFileSystem, NfsFileSystem, OpenZfsFileSystem, existing_nfs
from ultracluster.errors import InvalidArgument

HOMES = {"type": "openzfs", "capacity_gib": 512, "throughput_mbps": 320}
RETAINED = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
PORTS = {(protocol, port) for protocol in ("tcp", "udp") for port in (111, 2049, 20001)}


def openzfs(stack, place, **more):
    key = DataKey(stack, "Key", description="Data")
    arguments = {name: value for name, value in place(stack).items() if name != "efa_clients"}
    return OpenZfsFileSystem(stack, "Home", settings=OpenZfs(**HOMES), key=key, **arguments, **more)


def elastic(stack, place, **more):
    key = DataKey(stack, "Key", description="Data")
    arguments = {name: value for name, value in place(stack).items() if name != "efa_clients"}
    return ElasticFileSystem(stack, "Tools", settings=Efs(type="efs"), key=key, **arguments, **more)


@pytest.fixture(scope="module")
def homes(synth, place):
    window = Backups(retention_days=7, window="05:00")
    return synth(lambda stack: openzfs(stack, place, backups=window, maintenance_window="sun:06:00"))


@pytest.fixture(scope="module")
def tools(synth, place):
    return synth(lambda stack: elastic(stack, place, backups=True))


def one(template, kind):
    (resource,) = template.find_resources(kind).values()
    return resource["Properties"]


def test_openzfs_has_what_the_settings_say(homes):
    found = one(homes, "AWS::FSx::FileSystem")
    assert (found["FileSystemType"], found["StorageType"], found["StorageCapacity"]) == ("OPENZFS", "SSD", 512)
    configuration = found["OpenZFSConfiguration"]
    assert (configuration["DeploymentType"], configuration["ThroughputCapacity"]) == ("SINGLE_AZ_HA_2", 320)
    assert configuration["WeeklyMaintenanceStartTime"] == "7:06:00"
    assert (configuration["AutomaticBackupRetentionDays"], configuration["DailyAutomaticBackupStartTime"]) == (
        7,
        "05:00",
    )


def test_without_backups_fsx_keeps_none(synth, place):
    """The default of the API is 30 days."""
    configuration = one(synth(lambda stack: openzfs(stack, place)), "AWS::FSx::FileSystem")["OpenZFSConfiguration"]
    assert configuration["AutomaticBackupRetentionDays"] == 0
    assert "WeeklyMaintenanceStartTime" not in configuration


def test_data_is_retained_and_encrypted(homes, tools):
    homes.all_resources("AWS::FSx::FileSystem", RETAINED)
    homes.all_resources("AWS::EC2::SecurityGroup", RETAINED)
    tools.all_resources("AWS::EFS::FileSystem", RETAINED)
    for template, kind in ((homes, "AWS::FSx::FileSystem"), (tools, "AWS::EFS::FileSystem")):
        (key,) = template.find_resources("AWS::KMS::Key")
        assert one(template, kind)["KmsKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    assert one(tools, "AWS::EFS::FileSystem")["Encrypted"] is True


def test_a_mount_target_of_efs_goes_with_the_stack(tools):
    (target,) = tools.find_resources("AWS::EFS::MountTarget").values()
    assert "DeletionPolicy" not in target
    assert target["Properties"]["SubnetId"] == "subnet-1"
    assert one(tools, "AWS::EFS::FileSystem")["BackupPolicy"] == {"Status": "ENABLED"}


def opened(template, kind="AWS::EC2::SecurityGroupIngress"):
    return {
        (rule["Properties"]["IpProtocol"], rule["Properties"]["FromPort"])
        for rule in template.find_resources(kind).values()
    }


def test_clients_reach_the_ports_of_the_service_and_servers_open_nothing(homes, tools):
    assert opened(homes) == opened(homes, "AWS::EC2::SecurityGroupEgress") == PORTS
    assert opened(tools) == {("tcp", 2049)}
    (group,) = homes.find_resources("AWS::EC2::SecurityGroup")
    for rule in homes.find_resources("AWS::EC2::SecurityGroupEgress").values():
        assert rule["Properties"]["GroupId"] != {"Fn::GetAtt": [group, "GroupId"]}


@pytest.mark.parametrize(
    ("create", "attribute", "folder", "options"),
    [(openzfs, "DNSName", ":/fsx", nfs.OPENZFS_OPTIONS), (elastic, "IpAddress", ":/", nfs.EFS_OPTIONS)],
)
def test_a_client_mounts_the_dns_name_of_openzfs_and_the_address_of_efs(
    synth, place, create, attribute, folder, options
):
    found = []

    def fill(stack):
        found.append(create(stack, place).mount)
        cdk.CfnOutput(stack, "Source", value=found[0].source)

    server, path = synth(fill).to_json()["Outputs"]["Source"]["Value"]["Fn::Join"][1][-2:]
    assert (server["Fn::GetAtt"][1], path) == (attribute, folder)
    assert (found[0].path, found[0].options) == ("/home", options)


def test_further_clients_are_let_in_and_connect_on_port_2049(synth, place):
    def fill(stack):
        file_system = openzfs(stack, place)
        other = ec2.SecurityGroup.from_security_group_id(
            stack, "Other", "sg-0123456789abcdef9", allow_all_outbound=False
        )
        assert len(file_system.grant_mount("sg-0123456789abcdef8")) == 2 * len(PORTS)
        file_system.connections.allow_default_port_from(other)

    rules = synth(fill).find_resources("AWS::EC2::SecurityGroupIngress").values()
    sources = {rule["Properties"]["SourceSecurityGroupId"] for rule in rules}
    assert {"sg-0123456789abcdef8", "sg-0123456789abcdef9"} <= sources


def test_an_imported_file_system_needs_its_group_only_for_grants(synth):
    def fill(stack):
        found = NfsFileSystem.from_efs_attributes(stack, "Efs", file_system_id="fs-0123456789abcdef0", read_only=True)
        assert found.mount.argument.endswith(",_netdev,ro")
        with pytest.raises(InvalidArgument, match="security group of fs-0123456789abcdef0 is not known"):
            found.grant_mount("sg-0123456789abcdef0")

    synth(fill)


def test_settings_of_an_existing_file_system_create_none(synth, place):
    settings = OpenZfs(type="openzfs", existing="fs-0123456789abcdef0", volume="/fsx/home")

    def fill(stack):
        found = existing_nfs(stack, "Old", settings=settings, mount_path="/home")
        assert found.folder == "/fsx/home"
        arguments = {name: value for name, value in place(stack).items() if name != "efa_clients"}
        with pytest.raises(InvalidArgument, match="from_openzfs_attributes"):
            OpenZfsFileSystem(stack, "New", settings=settings, key=DataKey(stack, "Key", description=""), **arguments)

    synth(fill)


def test_file_systems_that_share_a_security_group_share_its_rules(synth):
    def fill(stack):
        servers = ExistingServers(stack, "Existing", clients="sg-0123456789abcdef1", efa_clients="sg-0123456789abcdef2")
        for service, efa in (("lustre", True), ("openzfs", False), ("efs", False), ("lustre", False)):
            servers.let_in("sg-0123456789abcdef0", service=service, efa=efa)

    rules = synth(fill).find_resources("AWS::EC2::SecurityGroupIngress").values()
    keys = [tuple(sorted((name, str(value)) for name, value in rule["Properties"].items())) for rule in rules]
    assert len(keys) == len(set(keys))
    assert len(keys) == len(PORTS) + 4 + 2  # NFS one way; Lustre's two ranges and EFA both ways


def test_alarms_of_openzfs_are_on_bytes_because_fsx_publishes_no_share():
    full, almost, *_ = openzfs_watches("fs-1", capacity_gib=100)
    assert (full.threshold, almost.threshold) == (80 * 2**30, 90 * 2**30)
    assert "UsedStorageCapacity" in full.query
    assert 'SCHEMA("AWS/FSx", FileSystemId)' in full.query


def test_settings_of_more_file_systems_are_those_of_the_construct(synth, place):
    settings = MoreEfs(type="efs", name="tools", mount_path="/tools")

    def fill(stack):
        arguments = {name: value for name, value in place(stack).items() if name != "efa_clients"}
        key = DataKey(stack, "Key", description="")
        made = ElasticFileSystem(stack, "More", settings=settings, key=key, mount_path="/tools", **arguments)
        assert made.mount.path == "/tools"

    synth(fill)
