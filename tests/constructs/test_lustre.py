"""FSx for Lustre: its settings, its links to S3, and who may talk to it."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Match

from ultracluster.config.storage import Bucket, Lustre, S3Link
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.links import S3Links, _association
from ultracluster.constructs.lustre import TrainingFileSystem, _properties
from ultracluster.errors import InvalidArgument

SSD = {"capacity_gib": 9600, "throughput_mbps_per_tib": 500}
DATASETS = S3Link(path="/datasets", bucket="datasets", prefix="raw/v1", import_events=("new", "changed", "deleted"))
CHECKPOINTS = S3Link(path="/checkpoints", bucket="checkpoints", export_events=("new",))
ARCHIVE = S3Link(path="/archive", bucket="theirs")
TCP_PORTS = [(988, 988), (1018, 1023)]
RETAINED = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


def file_system(stack, place, **settings):
    key = DataKey(stack, "Key", description="Data")
    asked = {"datasets": Bucket(), "checkpoints": Bucket(), "theirs": Bucket(existing="their-bucket")}
    buckets = {
        name: TrainingBucket(stack, name, settings=each, key=None if each.existing else key)
        for name, each in asked.items()
    }
    lustre = Lustre(**settings)
    made = TrainingFileSystem(stack, "Lustre", settings=lustre, key=key, **place(stack))
    S3Links(stack, "Links", settings=lustre.links, file_system=made, buckets=buckets)


@pytest.fixture(scope="module")
def template(synth, place):
    links = (DATASETS, CHECKPOINTS, ARCHIVE)
    return synth(lambda stack: file_system(stack, place, **SSD, efa=True, root_squash="65534:65534", links=links))


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


def test_metadata_iops_of_one_s_own_are_user_provisioned():
    metadata = lustre_of(**SSD, metadata_iops=12000)["lustre_configuration"]["metadataConfiguration"]
    assert metadata == {"mode": "USER_PROVISIONED", "iops": 12000}


def test_scratch_has_neither_tier_nor_metadata_settings():
    assert lustre_of(deployment="scratch_2", capacity_gib=1200)["lustre_configuration"] == {
        "deploymentType": "SCRATCH_2",
        "dataCompressionType": "LZ4",
    }


def test_intelligent_tiering_grows_by_itself_behind_a_proportional_read_cache():
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


def test_it_is_retained_whatever_happens(template, scratch):
    template.all_resources("AWS::FSx::FileSystem", RETAINED)
    scratch.all_resources("AWS::FSx::FileSystem", RETAINED)


def test_its_security_group_stays_with_it(template):
    template.all_resources("AWS::EC2::SecurityGroup", RETAINED)


def test_it_runs_lustre_2_15_in_the_node_subnet_encrypted_with_our_key(template):
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


def test_scratch_takes_no_key(scratch):
    assert "KmsKeyId" not in one(scratch, "AWS::FSx::FileSystem")


def test_no_efa_is_said_by_saying_nothing(plain):
    assert "EfaEnabled" not in one(plain, "AWS::FSx::FileSystem")["LustreConfiguration"]


def test_it_logs_to_a_group_whose_name_fsx_takes_without_the_star(plain):
    configuration = one(plain, "AWS::FSx::FileSystem")["LustreConfiguration"]["LogConfiguration"]
    (group,) = plain.find_resources("AWS::Logs::LogGroup")
    arn = ["arn:aws:logs:us-east-2:111122223333:log-group:", {"Ref": group}]
    assert configuration == {"Level": "WARN_ERROR", "Destination": {"Fn::Join": ["", arn]}}
    assert one(plain, "AWS::Logs::LogGroup")["LogGroupName"]["Fn::Join"][1][0].startswith("/aws/fsx/")


# who may talk to it


def rules(template):
    """Every rule as (owner, direction, other, protocol, first port, last port); the file servers are `servers`."""
    (group,) = template.find_resources("AWS::EC2::SecurityGroup")
    found = set()
    for direction, peer in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        for rule in template.find_resources(f"AWS::EC2::SecurityGroup{direction}").values():
            each = rule["Properties"]
            owner, other = ("servers" if group in str(each[name]) else each[name] for name in ("GroupId", peer))
            found.add((owner, direction, other, each["IpProtocol"], each.get("FromPort"), each.get("ToPort")))
    return found


def both_ways(client, *ports):
    """The rules that let a client and the file servers, and the servers among each other, open connections."""
    return {
        (owner, direction, other, *ports)
        for owner, other in ((client, "servers"), ("servers", client), ("servers", "servers"))
        for direction in ("Ingress", "Egress")
    }


def test_lustre_s_ports_are_open_both_ways_between_clients_and_servers(plain):
    assert rules(plain) == {rule for ports in TCP_PORTS for rule in both_ways("sg-clients", "tcp", *ports)}


def test_efa_opens_all_traffic_both_ways_by_group_id(template, plain):
    assert rules(template) - rules(plain) == both_ways("sg-efa", "-1", None, None)


# links


def links(template):
    found = template.find_resources("AWS::FSx::DataRepositoryAssociation")
    return {resource["Properties"]["FileSystemPath"]: (name, resource) for name, resource in found.items()}


def test_imported_events_come_with_an_import_of_what_is_there():
    assert _association(DATASETS, "bucket") == {
        "file_system_path": "/datasets",
        "data_repository_path": "s3://bucket/raw/v1",
        "batch_import_meta_data_on_create": True,
        "s3": {"autoImportPolicy": {"events": ["NEW", "CHANGED", "DELETED"]}},
    }


def test_exports_import_nothing():
    association = _association(CHECKPOINTS, "bucket")
    assert association["batch_import_meta_data_on_create"] is False
    assert association["s3"] == {"autoExportPolicy": {"events": ["NEW"]}}


def test_a_link_without_events_has_no_policies_and_a_whole_bucket_no_prefix():
    association = _association(ARCHIVE, "bucket")
    assert "s3" not in association
    assert association["data_repository_path"] == "s3://bucket"


def test_links_are_made_one_after_the_other(template):
    made = links(template)
    datasets, checkpoints, archive = (made[path] for path in ("/datasets", "/checkpoints", "/archive"))
    assert "DependsOn" not in datasets[1]
    assert checkpoints[1]["DependsOn"] == [datasets[0]]
    assert archive[1]["DependsOn"] == [checkpoints[0]]


def test_links_whose_paths_look_alike_are_different_resources(synth, place):
    paths = ("/a/b", "/ab", "/aB", "/a-b")
    alike = tuple(S3Link(path=path, bucket="datasets", prefix=str(i)) for i, path in enumerate(paths))
    assert set(links(synth(lambda stack: file_system(stack, place, **SSD, links=alike)))) == set(paths)


def test_the_role_of_the_links_may_use_the_key_for_our_buckets_alone(template):
    statements = [each for each in one(template, "AWS::KMS::Key")["KeyPolicy"]["Statement"] if "FSx" in str(each)]
    assert statements == [
        {
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::111122223333:root"},
            "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            "Resource": "*",
            "Condition": {
                "StringEquals": {
                    "kms:CallerAccount": "111122223333",
                    "kms:ViaService": "s3.us-east-2.amazonaws.com",
                },
                "ArnLike": {
                    "aws:PrincipalArn": "arn:aws:iam::111122223333:role/aws-service-role/"
                    "s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*"
                },
                "StringLike": {"kms:EncryptionContext:aws:s3:arn": "arn:aws:s3:::prod-part-*"},
            },
        }
    ]


def test_without_links_the_key_serves_no_role(plain):
    assert "FSx" not in str(one(plain, "AWS::KMS::Key")["KeyPolicy"])


# root squash


def test_root_squash_is_set_on_the_file_system(template):
    squash = one(template, "Custom::LustreRootSquash")
    (file_system_id,) = template.find_resources("AWS::FSx::FileSystem")
    assert squash["RootSquash"] == "65534:65534"
    assert squash["FileSystemId"] == {"Ref": file_system_id}


def test_the_function_changes_only_this_file_system(template):
    (file_system_id,) = template.find_resources("AWS::FSx::FileSystem")
    arn = ["arn:aws:fsx:us-east-2:111122223333:file-system/", {"Ref": file_system_id}]
    update = {"Action": "fsx:UpdateFileSystem", "Effect": "Allow", "Resource": {"Fn::Join": ["", arn]}}
    statements = one(template, "AWS::IAM::ManagedPolicy")["PolicyDocument"]["Statement"]
    assert update in statements
    wide = [statement for statement in statements if statement["Resource"] == "*"]
    assert [statement["Action"] for statement in wide] == ["fsx:DescribeFileSystems"]


def test_without_root_squash_there_is_no_function(plain):
    plain.resource_count_is("AWS::Lambda::Function", 0)


def test_the_file_system_waits_for_the_rules_that_fsx_looks_at(template):
    (system,) = template.find_resources("AWS::FSx::FileSystem").values()
    rules = {
        *template.find_resources("AWS::EC2::SecurityGroupIngress"),
        *template.find_resources("AWS::EC2::SecurityGroupEgress"),
    }
    assert rules
    assert rules <= set(system["DependsOn"])


# plugging into other CDK code


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
def test_clients_that_are_granted_to_mount_reach_the_servers_and_are_reached(synth, over_efa):
    def fill(stack):
        made, nodes = in_vpc(stack, efa=True)
        made.grant_mount(nodes, over_efa=over_efa)

    template = synth(fill)
    expected = {("tcp", 988, 988), ("tcp", 1018, 1023)} | ({("-1", None, None)} if over_efa else set())
    assert ports_of_nodes(template, "Ingress", "SourceSecurityGroupId") == expected
    assert ports_of_nodes(template, "Egress", "DestinationSecurityGroupId") == expected
    (file_system,) = template.find_resources("AWS::FSx::FileSystem").values()
    assert any("Nodes" in name for name in file_system["DependsOn"])


def test_the_rules_of_a_grant_have_the_same_ids_at_each_synth(synth):
    def fill(stack):
        made, nodes = in_vpc(stack)
        made.grant_mount(nodes)
        made.grant_mount(ec2.CfnSecurityGroup(stack, "More", group_description="x").attr_group_id)
        made.grant_mount("sg-0123456789abcdef0")

    first, second = (set(synth(fill).find_resources("AWS::EC2::SecurityGroupIngress")) for _ in range(2))
    assert first == second


def test_efa_is_not_granted_on_a_file_system_without_it():
    made, nodes = in_vpc(cdk.Stack(cdk.App(), "stack"))
    with pytest.raises(InvalidArgument, match="Set efa: true"):
        made.grant_mount(nodes, over_efa=True)


def test_it_is_connectable_on_the_ports_of_lustre(synth):
    def fill(stack):
        made, nodes = in_vpc(stack)
        made.connections.allow_default_port_from(nodes)

    assert ("tcp", 988, 1023) in ports_of_nodes(synth(fill), "Ingress", "SourceSecurityGroupId")


def test_an_existing_file_system_takes_links_and_clients(synth):
    def fill(stack):
        existing = TrainingFileSystem.from_file_system_attributes(
            stack, "Lustre", file_system_id="fs-1", mount_name="abcd", security_group="sg-1"
        )
        S3Links(
            stack, "Links", settings=[ARCHIVE], file_system=existing, buckets={"theirs": s3.Bucket(stack, "Bucket")}
        )
        existing.grant_mount("sg-2")
        cdk.CfnOutput(stack, "Name", value=existing.dns_name)

    template = synth(fill)
    template.has_resource_properties("AWS::FSx::DataRepositoryAssociation", {"FileSystemId": "fs-1"})
    template.resource_count_is("AWS::EC2::SecurityGroupIngress", 4)
    (output,) = template.find_outputs("*").values()
    assert output["Value"] == "fs-1.fsx.us-east-2.amazonaws.com"


def test_metrics_are_of_the_file_system(synth):
    def fill(stack):
        made, _ = in_vpc(stack)
        metric = made.metric_free_data_storage_capacity()
        cloudwatch.Alarm(stack, "Alarm", metric=metric, threshold=1, evaluation_periods=1)

    template = synth(fill)
    (file_system,) = template.find_resources("AWS::FSx::FileSystem")
    dimension = {"Name": "FileSystemId", "Value": {"Ref": file_system}}
    expected = {"Namespace": "AWS/FSx", "MetricName": "FreeDataStorageCapacity", "Dimensions": [dimension]}
    template.has_resource_properties("AWS::CloudWatch::Alarm", expected)


@pytest.mark.parametrize(
    ("name", "context"),
    [("theirs", ["arn:aws:s3:::theirs", "arn:aws:s3:::theirs/*"]), (None, "arn:aws:s3:::*")],
)
def test_the_key_of_an_l2_bucket_serves_the_links_of_that_bucket(synth, name, context):
    def fill(stack):
        made, _ = in_vpc(stack)
        key = kms.Key(stack, "BucketKey")
        bucket = s3.Bucket(stack, "Bucket", encryption_key=key)
        if name:
            bucket = s3.Bucket.from_bucket_attributes(stack, "Theirs", bucket_name=name, encryption_key=key)
        S3Links(stack, "Links", settings=[ARCHIVE], file_system=made, buckets={"theirs": bucket})

    keys = synth(fill).find_resources("AWS::KMS::Key").values()
    statements = [each for key in keys for each in key["Properties"]["KeyPolicy"]["Statement"] if "FSx" in str(each)]
    assert [each["Condition"]["StringLike"]["kms:EncryptionContext:aws:s3:arn"] for each in statements] == [context]
