"""FSx for Lustre file systems: settings, security group rules, grants and metrics."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Match

from ultracluster.config.backups import Backups
from ultracluster.config.lustre import Lustre
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.lustre import TrainingFileSystem, _properties
from ultracluster.constructs.references import WrongReference
from ultracluster.errors import InvalidArgument

SSD = {"capacity_gib": 9600, "throughput_mbps_per_tib": 500}
TCP_PORTS = [(988, 988), (1018, 1023)]
RETAINED = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}


def file_system(stack, place, **settings):
    key = DataKey(stack, "Key", description="Data")
    TrainingFileSystem(
        stack, "Lustre", settings=Lustre(**settings), key=key, **place(stack, efa=settings.get("efa", False))
    )


@pytest.fixture(scope="module")
def template(synth, place):
    squash = {"root_squash": "65534:65534", "no_squash_nids": ["10.0.0.5@tcp"]}
    return synth(lambda stack: file_system(stack, place, **SSD, efa=True, **squash))


@pytest.fixture(scope="module")
def plain(synth, place):
    return synth(lambda stack: file_system(stack, place, **SSD))


@pytest.fixture(scope="module")
def scratch(synth, place):
    return synth(lambda stack: file_system(stack, place, deployment="scratch_2", capacity_gib=1200))


def lustre_of(**settings):
    return _properties(Lustre(**settings))


def one(template, kind):
    (resource,) = template.find_resources(kind).values()
    return resource["Properties"]


# settings


def test_persistent_ssd_gives_capacity_tier_and_metadata():
    assert lustre_of(**SSD) == {
        "storage_type": "SSD",
        "storage_capacity": 9600,
        "lustre_configuration": {
            "deploymentType": "PERSISTENT_2",
            "perUnitStorageThroughput": 500,
            "dataCompressionType": "LZ4",
            "metadataConfiguration": {"mode": "AUTOMATIC"},
        },
    }


def test_a_number_of_metadata_iops_is_user_provisioned():
    metadata = lustre_of(**SSD, metadata_iops=12000)["lustre_configuration"]["metadataConfiguration"]
    assert metadata == {"mode": "USER_PROVISIONED", "iops": 12000}


def test_scratch_has_neither_tier_nor_metadata_settings():
    assert lustre_of(deployment="scratch_2", capacity_gib=1200)["lustre_configuration"] == {
        "deploymentType": "SCRATCH_2",
        "dataCompressionType": "LZ4",
    }


def test_intelligent_tiering_has_no_capacity_and_a_proportional_read_cache():
    settings = {"throughput_capacity_mbps": 8000, "metadata_iops": 6000, "compression": "none", "efa": True}
    assert lustre_of(deployment="intelligent_tiering", **settings) == {
        "storage_type": "INTELLIGENT_TIERING",
        "lustre_configuration": {
            "deploymentType": "PERSISTENT_2",
            "throughputCapacity": 8000,
            "dataReadCacheConfiguration": {"sizingMode": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY"},
            "metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 6000},
            "dataCompressionType": "NONE",
            "efaEnabled": True,
        },
    }


# the file system


def test_file_system_is_retained_on_delete_and_replacement(template, scratch):
    template.all_resources("AWS::FSx::FileSystem", RETAINED)
    scratch.all_resources("AWS::FSx::FileSystem", RETAINED)


def test_security_group_is_retained_with_the_file_system(template):
    template.all_resources("AWS::EC2::SecurityGroup", RETAINED)


def test_file_system_runs_lustre_2_15_in_the_node_subnet_encrypted_with_our_key(template):
    (key,) = template.find_resources("AWS::KMS::Key")
    (group,) = template.find_resources("AWS::EC2::SecurityGroup")
    expected = {
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "SubnetIds": ["subnet-1"],
        "SecurityGroupIds": [{"Fn::GetAtt": [group, "GroupId"]}],
        "KmsKeyId": {"Fn::GetAtt": [key, "Arn"]},
        "LustreConfiguration": Match.object_like({"EfaEnabled": True, "PerUnitStorageThroughput": 500}),
    }
    template.has_resource_properties("AWS::FSx::FileSystem", expected)


def test_scratch_has_no_key(scratch):
    assert "KmsKeyId" not in one(scratch, "AWS::FSx::FileSystem")


def test_without_efa_the_property_is_absent(plain):
    assert "EfaEnabled" not in one(plain, "AWS::FSx::FileSystem")["LustreConfiguration"]


def test_log_destination_is_the_arn_without_the_wildcard(plain):
    configuration = one(plain, "AWS::FSx::FileSystem")["LustreConfiguration"]["LogConfiguration"]
    (group,) = plain.find_resources("AWS::Logs::LogGroup")
    arn = ["arn:aws:logs:us-east-2:111122223333:log-group:", {"Ref": group}]
    assert configuration == {"Level": "WARN_ERROR", "Destination": {"Fn::Join": ["", arn]}}
    assert one(plain, "AWS::Logs::LogGroup")["LogGroupName"]["Fn::Join"][1][0].startswith("/aws/fsx/")


# security group rules


def rules(template):
    """Every rule as (group, direction, peer, protocol, first port, last port); `servers` is the file system's group."""
    (group,) = template.find_resources("AWS::EC2::SecurityGroup")
    found = set()
    for direction, peer in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        for rule in template.find_resources(f"AWS::EC2::SecurityGroup{direction}").values():
            each = rule["Properties"]
            owner, other = ("servers" if group in str(each[name]) else each[name] for name in ("GroupId", peer))
            found.add((owner, direction, other, each["IpProtocol"], each.get("FromPort"), each.get("ToPort")))
    return found


def both_ways(client, *ports):
    """The rules between a client and the file servers, and among the servers, in both directions."""
    return {
        (owner, direction, other, *ports)
        for owner, other in ((client, "servers"), ("servers", client), ("servers", "servers"))
        for direction in ("Ingress", "Egress")
    }


def test_lustre_ports_are_open_in_both_directions_between_clients_and_servers(plain):
    assert rules(plain) == {rule for ports in TCP_PORTS for rule in both_ways("sg-clients", "tcp", *ports)}


def test_efa_allows_all_traffic_in_both_directions_by_group_id(template, plain):
    assert rules(template) - rules(plain) == both_ways("sg-efa", "-1", None, None)


def test_file_system_is_created_after_the_rules_that_fsx_checks(template):
    (system,) = template.find_resources("AWS::FSx::FileSystem").values()
    rules = {
        *template.find_resources("AWS::EC2::SecurityGroupIngress"),
        *template.find_resources("AWS::EC2::SecurityGroupEgress"),
    }
    assert rules
    assert rules <= set(system["DependsOn"])


# with other CDK constructs


def vpc_of(stack):
    return ec2.Vpc(stack, "Vpc", max_azs=2)


def in_vpc(stack, **settings):
    vpc = vpc_of(stack)
    key = DataKey(stack, "Key", description="Data")
    lustre = Lustre(**SSD, **settings)
    made = TrainingFileSystem(stack, "Lustre", settings=lustre, vpc=vpc, subnet=vpc.private_subnets[0], key=key)
    return made, ec2.SecurityGroup(stack, "Nodes", vpc=vpc)


def ports_of_nodes(template, kind, key):
    return {
        (rule["Properties"]["IpProtocol"], rule["Properties"].get("FromPort"), rule["Properties"].get("ToPort"))
        for rule in template.find_resources(f"AWS::EC2::SecurityGroup{kind}").values()
        if "Nodes" in str(rule["Properties"].get(key))
    }


@pytest.mark.parametrize("over_efa", [False, True])
def test_grant_mount_opens_the_ports_in_both_directions(synth, over_efa):
    def fill(stack):
        made, nodes = in_vpc(stack, efa=True)
        made.grant_mount(nodes, over_efa=over_efa)

    template = synth(fill)
    expected = {("tcp", 988, 988), ("tcp", 1018, 1023)} | ({("-1", None, None)} if over_efa else set())
    assert ports_of_nodes(template, "Ingress", "SourceSecurityGroupId") == expected
    assert ports_of_nodes(template, "Egress", "DestinationSecurityGroupId") == expected
    (file_system,) = template.find_resources("AWS::FSx::FileSystem").values()
    assert any("Nodes" in name for name in file_system["DependsOn"])


def test_rules_of_grant_mount_have_the_same_ids_at_each_synth(synth):
    def fill(stack):
        made, nodes = in_vpc(stack)
        made.grant_mount(nodes)
        made.grant_mount(ec2.CfnSecurityGroup(stack, "More", group_description="x").attr_group_id)
        made.grant_mount("sg-0123456789abcdef0")

    first, second = (set(synth(fill).find_resources("AWS::EC2::SecurityGroupIngress")) for _ in range(2))
    assert first == second


def test_mounting_over_efa_needs_a_file_system_with_efa():
    made, nodes = in_vpc(cdk.Stack(cdk.App(), "stack"))
    with pytest.raises(InvalidArgument, match="Set efa: true"):
        made.grant_mount(nodes, over_efa=True)


def test_connections_default_to_the_ports_of_lustre(synth):
    def fill(stack):
        made, nodes = in_vpc(stack)
        made.connections.allow_default_port_from(nodes)

    assert ("tcp", 988, 1023) in ports_of_nodes(synth(fill), "Ingress", "SourceSecurityGroupId")


def test_metrics_have_the_file_system_as_dimension(synth):
    def fill(stack):
        made, _ = in_vpc(stack)
        metric = made.metric_free_data_storage_capacity()
        cloudwatch.Alarm(stack, "Alarm", metric=metric, threshold=1, evaluation_periods=1)

    template = synth(fill)
    (file_system,) = template.find_resources("AWS::FSx::FileSystem")
    dimension = {"Name": "FileSystemId", "Value": {"Ref": file_system}}
    expected = {"Namespace": "AWS/FSx", "MetricName": "FreeDataStorageCapacity", "Dimensions": [dimension]}
    template.has_resource_properties("AWS::CloudWatch::Alarm", expected)


def test_connections_to_clients_are_allowed_on_both_sides(synth):
    def fill(stack):
        made, nodes = in_vpc(stack)
        made.connections.allow_to(nodes, ec2.Port.tcp(988))

    template = synth(fill)
    assert ports_of_nodes(template, "Egress", "DestinationSecurityGroupId") == {("tcp", 988, 988)}
    assert ports_of_nodes(template, "Ingress", "GroupId") == {("tcp", 988, 988)}


def test_clients_may_mount_an_existing_file_system(synth):
    def fill(stack):
        existing = TrainingFileSystem.from_file_system_attributes(
            stack, "Lustre", file_system_id="fs-1", mount_name="abcd", security_group="sg-1"
        )
        existing.grant_mount("sg-2")
        cdk.CfnOutput(stack, "Name", value=existing.dns_name)

    template = synth(fill)
    template.resource_count_is("AWS::EC2::SecurityGroupIngress", 4)
    (output,) = template.find_outputs("*").values()
    assert output["Value"] == "fs-1.fsx.us-east-2.amazonaws.com"


@pytest.mark.parametrize("wrong", [None, ["sg-1"], "nodes"])
def test_a_wrong_client_says_what_to_pass(wrong):
    made, _ = in_vpc(cdk.Stack(cdk.App(), "stack"))
    with pytest.raises(WrongReference, match="Pass "):
        made.grant_mount(wrong)


def test_backups_and_maintenance_have_their_times(synth, place):
    def make(stack):
        key = DataKey(stack, "Key", description="Data")
        times = {"backups": Backups(retention_days=7, window="05:00"), "maintenance_window": "sun:06:00"}
        TrainingFileSystem(stack, "Lustre", settings=Lustre(**SSD), key=key, **times, **place(stack))

    expected = {
        "AutomaticBackupRetentionDays": 7,
        "DailyAutomaticBackupStartTime": "05:00",
        "WeeklyMaintenanceStartTime": "7:06:00",
    }
    synth(make).has_resource_properties("AWS::FSx::FileSystem", {"LustreConfiguration": Match.object_like(expected)})


def test_without_them_fsx_chooses(plain):
    absent = ("AutomaticBackupRetentionDays", "DailyAutomaticBackupStartTime", "WeeklyMaintenanceStartTime")
    configuration = {"LustreConfiguration": dict.fromkeys(absent, Match.absent())}
    plain.has_resource_properties("AWS::FSx::FileSystem", configuration)
