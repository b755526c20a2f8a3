"""Constructs of one stack that another stack of the app uses: references become exports, without a dependency cycle."""

import json
import re

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from tests.constructs.conftest import US_EAST_2
from tests.synthesis import FILES, templates
from ultracluster.config.buckets import Bucket
from ultracluster.config.eks import EksControlPlane
from ultracluster.config.loader import load
from ultracluster.config.lustre import Lustre
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.observability import Observability
from ultracluster.constructs.bucket_access import BucketAccess
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.eks_cluster import EksCluster
from ultracluster.constructs.eks_roles import EksNodeRole
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.log_groups import log_group
from ultracluster.constructs.lustre import TrainingFileSystem
from ultracluster.constructs.metrics import MetricsWorkspace

TRAIN = NodeGroup.model_validate(
    {"name": "train", "instance_type": "p5.48xlarge", "count": 2, "purchase": {"type": "on_demand"}}
)


class Owner(cdk.Stack):
    """The stack with the VPC, the key, the data and the cluster."""

    def __init__(self, app):
        super().__init__(app, "owner", env=US_EAST_2)
        self.vpc = ec2.Vpc(self, "Vpc", max_azs=2)
        self.group = ec2.SecurityGroup(self, "Cluster", vpc=self.vpc)
        self.key = DataKey(self, "Key", description="Data")
        self.bucket = TrainingBucket(self, "data", settings=Bucket(), key=self.key)
        self.file_system = TrainingFileSystem(
            self,
            "Lustre",
            settings=Lustre(capacity_gib=4800, throughput_mbps_per_tib=1000, efa=True),
            vpc=self.vpc,
            subnet=self.vpc.private_subnets[0],
            key=self.key,
        )
        self.metrics = MetricsWorkspace(self, "Metrics", settings=Observability(), key=self.key)
        self.cluster = EksCluster(
            self,
            "Eks",
            settings=EksControlPlane(kubernetes_version="1.35"),
            subnets=self.vpc.private_subnets,
            security_group=self.group,
            key=self.key,
        )


class User(cdk.Stack):
    """The stack with a role, a security group and nodes that use all of it."""

    def __init__(self, app, owner):
        super().__init__(app, "user", env=US_EAST_2)
        self.role = iam.Role(self, "Jobs", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        self.nodes = ec2.SecurityGroup(self, "Nodes", vpc=owner.vpc)
        owner.bucket.grant_read_write(self.role)
        BucketAccess(self, "Access", buckets=[owner.bucket], role=self.role)
        owner.metrics.grant_remote_write(self.role)
        owner.file_system.grant_mount(self.nodes, over_efa=True, scope=self)
        self.nodes.connections.allow_to_default_port(owner.cluster)
        owner.cluster.grant_admin(self.role, scope=self)
        owner.cluster.add_node_group(
            TRAIN,
            role=EksNodeRole(self, "NodeRole"),
            subnet=owner.vpc.private_subnets[0],
            security_groups=[self.nodes],
            scope=self,
        )
        log_group(self, "Logs", name="/jobs", key=owner.key)
        sns.Topic(self, "Topic", master_key=owner.key.key)
        cdk.CfnOutput(self, "Mount", value=f"{owner.file_system.dns_name}@tcp:/{owner.file_system.mount_name}")


@pytest.fixture(scope="module")
def stacks():
    app = cdk.App()
    owner = Owner(app)
    user = User(app, owner)
    app.synth()
    return owner, user


@pytest.fixture(scope="module")
def user(stacks):
    return Template.from_stack(stacks[1])


@pytest.fixture(scope="module")
def owner(stacks):
    return Template.from_stack(stacks[0])


def test_only_the_user_depends_on_the_owner(stacks):
    owner, user = stacks
    assert [stack.node.id for stack in user.dependencies] == ["owner"]
    assert [stack.node.id for stack in owner.dependencies] == []
    assert "Fn::ImportValue" not in json.dumps(Template.from_stack(owner).to_json())


def test_the_rules_for_mounting_are_in_the_stack_of_the_clients(owner, user):
    ports = {
        found["Properties"].get("FromPort") for found in user.find_resources("AWS::EC2::SecurityGroupIngress").values()
    }
    assert ports == {988, 1018, 443, None}
    (file_system,) = owner.find_resources("AWS::FSx::FileSystem").values()
    rules = {
        *owner.find_resources("AWS::EC2::SecurityGroupIngress"),
        *owner.find_resources("AWS::EC2::SecurityGroupEgress"),
    }
    assert rules <= set(file_system["DependsOn"])


def test_permissions_are_in_the_policies_of_the_user_s_role(user):
    policies = {**user.find_resources("AWS::IAM::Policy"), **user.find_resources("AWS::IAM::ManagedPolicy")}
    text = json.dumps(policies)
    assert all(action in text for action in ("s3:PutObject", "kms:GenerateDataKey", "aps:RemoteWrite"))
    assert "owner:ExportsOutput" in text


def test_the_node_group_imports_the_name_of_the_cluster(user):
    (group,) = user.find_resources("AWS::EKS::Nodegroup").values()
    (entry,) = user.find_resources("AWS::EKS::AccessEntry").values()
    assert group["Properties"]["ClusterName"] == entry["Properties"]["ClusterName"]
    assert "Fn::ImportValue" in group["Properties"]["ClusterName"]


def test_the_key_policy_allows_logs_of_both_stacks(owner):
    (key,) = owner.find_resources("AWS::KMS::Key").values()
    policy = json.dumps(key["Properties"]["KeyPolicy"])
    assert "log-group:/jobs/user-*" in policy
    assert "log-group:/aws/fsx/lustre/owner-*" in policy


@pytest.mark.parametrize("name", [name for name in FILES if load(FILES[name]).control_plane.type == "eks"])
def test_a_node_group_of_eks_waits_for_network_and_control_plane_only_and_nothing_waits_for_it(name):
    imports = {part: set(imported_parts(name, template)) for part, template in templates(name).items()}
    groups = {part for part in imports if part.startswith("compute-")}
    assert groups - {"compute-cpu"} == {f"compute-{group.name}" for group in load(FILES[name]).launched_groups}
    for part, producers in imports.items():
        assert not producers & groups, part
    assert all(imports[part] <= {"network", "control-plane"} for part in groups)


def imported_parts(name, template):
    """Parts whose exports a template imports."""
    for exported in re.findall(r'"Fn::ImportValue": "([^":]+):', json.dumps(template)):
        yield exported.removeprefix(f"{load(FILES[name]).name}-")
