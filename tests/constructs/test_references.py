"""Constructs accept L1, L2, imported and looked-up resources, and name the expected interface for a wrong object."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3

from ultracluster.config.buckets import Bucket
from ultracluster.config.network import CreateNetwork, Network
from ultracluster.constructs import references
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.eks_roles import EksNodeRole
from ultracluster.constructs.karpenter import Karpenter
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.links import S3Links
from ultracluster.constructs.log_groups import LogGroup
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.pcs_role import PcsNodeRole
from ultracluster.constructs.references import WrongReference
from ultracluster.errors import UltraclusterError

KEY_ARN = "arn:aws:kms:us-east-2:111122223333:key/1"
ROLE_ARN = "arn:aws:iam::111122223333:role/Jobs"


@pytest.fixture(scope="module")
def stack():
    return cdk.Stack(cdk.App(), "stack", env=cdk.Environment(account="111122223333", region="us-east-2"))


def vpcs(stack):
    return {
        "L1": ec2.CfnVPC(stack, "L1Vpc", cidr_block="10.0.0.0/16"),
        "L2": ec2.Vpc(stack, "L2Vpc"),
        "imported": ec2.Vpc.from_vpc_attributes(stack, "ImportedVpc", vpc_id="vpc-1", availability_zones=["a"]),
        "looked up": ec2.Vpc.from_lookup(stack, "LookedUpVpc", vpc_id="vpc-0123456789abcdef0"),
        "id": "vpc-0123456789abcdef0",
    }


def subnets(stack):
    vpc = ec2.CfnVPC(stack, "SubnetVpc", cidr_block="10.0.0.0/16")
    looked_up = ec2.Vpc.from_lookup(stack, "SubnetLookup", vpc_id="vpc-0123456789abcdef0")
    return {
        "L1": ec2.CfnSubnet(stack, "L1Subnet", vpc_id=vpc.ref, cidr_block="10.0.0.0/24"),
        "L2": ec2.Subnet(stack, "L2Subnet", vpc_id=vpc.ref, cidr_block="10.0.1.0/24", availability_zone="a"),
        "imported": ec2.Subnet.from_subnet_id(stack, "ImportedSubnet", "subnet-1"),
        "looked up": looked_up.private_subnets[0],
        "id": "subnet-0123456789abcdef0",
    }


def security_groups(stack):
    vpc = ec2.Vpc.from_vpc_attributes(stack, "GroupVpc", vpc_id="vpc-1", availability_zones=["a"])
    return {
        "L1": ec2.CfnSecurityGroup(stack, "L1Group", group_description="x"),
        "L2": ec2.SecurityGroup(stack, "L2Group", vpc=vpc),
        "imported": ec2.SecurityGroup.from_security_group_id(stack, "ImportedGroup", "sg-1"),
        "looked up": ec2.SecurityGroup.from_lookup_by_id(stack, "LookedUpGroup", "sg-0123456789abcdef0"),
        "id": "sg-0123456789abcdef0",
    }


def keys(stack):
    return {
        "L1": kms.CfnKey(stack, "L1Key"),
        "L2": kms.Key(stack, "L2Key"),
        "imported": kms.Key.from_key_arn(stack, "ImportedKey", KEY_ARN),
        "ours": DataKey(stack, "OurKey", description="x"),
    }


def roles(stack):
    service = iam.ServicePrincipal("ec2.amazonaws.com")
    return {
        "L1": iam.CfnRole(stack, "L1Role", assume_role_policy_document={}),
        "L2": iam.Role(stack, "L2Role", assumed_by=service),
        "imported": iam.Role.from_role_arn(stack, "ImportedRole", ROLE_ARN),
        "of PCS nodes": PcsNodeRole(stack, "PcsNodes"),
        "of EKS nodes": EksNodeRole(stack, "EksNodes"),
        "ARN": ROLE_ARN,
    }


def log_groups(stack):
    key = DataKey(stack, "LogKey", description="x")
    return {
        "L1": logs.CfnLogGroup(stack, "L1Logs"),
        "L2": logs.LogGroup(stack, "L2Logs"),
        "imported": logs.LogGroup.from_log_group_name(stack, "ImportedLogs", "logs"),
        "ours": LogGroup(stack, "OurLogs", name="logs", pattern="logs", key=key),
    }


def buckets(stack):
    return {
        "L1": s3.CfnBucket(stack, "L1Bucket"),
        "L2": s3.Bucket(stack, "L2Bucket"),
        "imported": s3.Bucket.from_bucket_name(stack, "ImportedBucket", "theirs"),
        "ours": TrainingBucket(stack, "OurBucket", settings=Bucket(existing="theirs")),
    }


READERS = {
    references.vpc_id: vpcs,
    references.subnet_id: subnets,
    references.security_group_id: security_groups,
    references.key_arn: keys,
    references.role_arn: roles,
    references.log_group_name: log_groups,
    lambda bucket: references.bucket_reference(bucket).bucket_name: buckets,
}


@pytest.mark.parametrize(("read", "make"), READERS.items(), ids=[make.__name__ for make in READERS.values()])
def test_every_kind_of_resource_is_accepted(stack, read, make):
    read_values = {kind: read(resource) for kind, resource in make(stack).items()}
    assert all(isinstance(value, str) and value for value in read_values.values()), read_values


@pytest.mark.parametrize(
    ("read", "interface"),
    [
        (references.vpc_id, "aws_ec2.IVPCRef"),
        (references.subnet_id, "aws_ec2.ISubnetRef"),
        (references.security_group_id, "aws_ec2.ISecurityGroupRef"),
        (references.key_arn, "aws_kms.IKeyRef"),
        (references.role_arn, "aws_iam.IRoleRef"),
        (references.instance_profile_arn, "aws_iam.IInstanceProfileRef"),
        (references.log_group_name, "aws_logs.ILogGroupRef"),
        (references.bucket_reference, "aws_s3.IBucketRef"),
    ],
)
@pytest.mark.parametrize("wrong", ["queue", "list", "nothing"])
def test_the_error_for_a_wrong_object_names_the_expected_interface(stack, read, interface, wrong):
    queue = stack.node.try_find_child("Queue") or cdk.aws_sqs.CfnQueue(stack, "Queue")
    value = {"queue": queue, "list": [queue], "nothing": None}[wrong]
    with pytest.raises(WrongReference, match=rf"Pass an aws_cdk\.interfaces\.{interface}") as refused:
        read(value)
    assert type(value).__name__ in str(refused.value)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (references.vpc_id, "my-vpc"),
        (references.vpc_id, "subnet-0123456789abcdef0"),
        (references.subnet_id, "vpc-0123456789abcdef0"),
        (references.security_group_id, "default"),
        (references.role_arn, "Jobs"),
    ],
)
def test_text_that_is_not_an_id_is_refused(read, text):
    with pytest.raises(WrongReference, match=text):
        read(text)


def aliases(stack):
    key = kms.Key(stack, "AliasedKey")
    return {
        "L1": kms.CfnAlias(stack, "L1Alias", alias_name="alias/x", target_key_id="1"),
        "L2": kms.Alias(stack, "Alias", alias_name="alias/mine", target_key=key),
        "imported": kms.Alias.from_alias_name(stack, "ImportedAlias", "alias/theirs"),
        "of a key": key.add_alias("alias/also"),
    }


def test_a_kms_alias_is_refused(stack):
    for alias in aliases(stack).values():
        with pytest.raises(WrongReference, match="KMS alias"):
            references.key_arn(alias)


READERS_OF_IDS = {
    references.vpc_id: "Vpc",
    references.subnet_id: "Subnet",
    references.security_group_id: "Group",
    references.role_arn: "Role",
}


@pytest.mark.parametrize(("read", "name"), READERS_OF_IDS.items(), ids=READERS_OF_IDS.values())
def test_a_token_is_accepted_in_place_of_an_id(stack, read, name):
    token = cdk.Fn.import_value(name)
    assert stack.resolve(read(token)) == {"Fn::ImportValue": name}


def test_every_wrong_reference_is_an_error_of_the_package():
    assert issubclass(WrongReference, UltraclusterError)
    assert issubclass(WrongReference, TypeError)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda stack: ClusterNetwork(stack, "a", settings=CreateNetwork(), zone="us-east-2b"), "ultracluster.Network"),
        (lambda stack: MetricsWorkspace(stack, "b", settings={}, key=DataKey(stack, "bk", description="x")), "Observa"),
        (lambda stack: S3Links(stack, "c", settings=(), file_system="fs-1", buckets={}), "LustreFileSystem"),
        (lambda stack: Karpenter(stack, "d", cluster="staging"), "KubernetesCluster"),
        (
            lambda stack: ClusterNetwork(stack, "e", settings=Network(create=CreateNetwork()), existing_buckets="mine"),
            "existing_buckets is of type str. Pass a list",
        ),
    ],
)
def test_a_wrong_argument_is_told_which_class_of_the_package_is_expected(stack, make, told):
    with pytest.raises(WrongReference, match=told):
        make(stack)
