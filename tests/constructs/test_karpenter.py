"""What Karpenter may do in AWS, and its interruption queue."""

import json
import re

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

from tests.constructs.nag import open_findings
from tests.constructs.test_eks import imported, settings
from tests.kubernetes.environments import eks_environment
from tests.synthesis import flags
from ultracluster.constructs.eks_cluster import EksCluster
from ultracluster.constructs.karpenter import EVENTS, Karpenter
from ultracluster.constructs.roles import managed_policy
from ultracluster.kubernetes.deployed import DeployedResources, KarpenterResources
from ultracluster.kubernetes.karpenter import KARPENTER_ACCOUNT, karpenter_release

CHANGES = re.compile(r"(ec2|iam|eks|sqs):(?!Describe|Get|List|Receive)")


def cluster(stack):
    return EksCluster(
        stack,
        "Cluster",
        name="staging",
        settings=settings(),
        subnets=[ec2.Subnet.from_subnet_id(stack, f"Subnet{i}", f"subnet-{i}") for i in (1, 2)],
        security_group=ec2.SecurityGroup.from_security_group_id(stack, "Access", "sg-1"),
        key=kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:us-east-2:111122223333:key/1"),
    )


class KarpenterStack(cdk.Stack):
    """Karpenter, and its cluster in another stack."""

    def __init__(self, app):
        env = cdk.Environment(account="111122223333", region="us-east-2")
        super().__init__(app, "all", env=env)
        self.karpenter = Karpenter(self, "Karpenter", cluster=cluster(cdk.Stack(app, "control-plane", env=env)))


@pytest.fixture(scope="module")
def stack():
    return KarpenterStack(cdk.App(context=flags(), analytics_reporting=False))


@pytest.fixture(scope="module")
def template(stack):
    return Template.from_stack(stack).to_json()["Resources"]


def of(template, kind):
    return {name: found["Properties"] for name, found in template.items() if found["Type"] == kind}


@pytest.fixture(scope="module")
def statements(template):
    """Statements of the controller's role."""
    [association] = of(template, "AWS::EKS::PodIdentityAssociation").values()
    role = association["RoleArn"]["Fn::GetAtt"][0]
    policies = of(template, "AWS::IAM::ManagedPolicy").values()
    found = [
        statement
        for policy in policies
        if {"Ref": role} in policy["Roles"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    assert found
    return found


def listed(value):
    return value if isinstance(value, list) else [value]


def everything(statements):
    return {action for statement in statements for action in listed(statement["Action"])}


def test_the_controller_s_role_is_associated_with_the_service_account_of_its_release(template):
    [association] = of(template, "AWS::EKS::PodIdentityAssociation").values()
    deployed = DeployedResources("test-1", karpenter=KarpenterResources("queue", "role", "s", ("s",), "g", "g"))
    release = karpenter_release(eks_environment(karpenter=True), deployed)
    assert association["Namespace"] == release.chart.namespace
    assert association["ServiceAccount"] == release.values["serviceAccount"]["name"] == KARPENTER_ACCOUNT


def test_the_role_of_the_nodes_has_an_access_entry(stack, template):
    [entry] = of(template, "AWS::EKS::AccessEntry").values()
    role = entry["PrincipalArn"]["Fn::GetAtt"][0]
    assert entry["Type"] == "EC2_LINUX"
    assert stack.resolve(stack.karpenter.node_role_name) == {"Ref": role}


def test_the_queue_is_encrypted_keeps_messages_five_minutes_and_requires_tls(stack, template):
    [(name, queue)] = of(template, "AWS::SQS::Queue").items()
    assert (queue["SqsManagedSseEnabled"], queue["MessageRetentionPeriod"]) == (True, 300)
    assert stack.resolve(stack.karpenter.interruption_queue_name) == {"Fn::GetAtt": [name, "QueueName"]}
    [policy] = of(template, "AWS::SQS::QueuePolicy").values()
    [denied] = [entry for entry in policy["PolicyDocument"]["Statement"] if entry["Effect"] == "Deny"]
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert (denied["Principal"], denied["Action"]) == ("*", "sqs:*")


def test_only_the_interruption_rule_may_send_messages(template):
    [policy] = of(template, "AWS::SQS::QueuePolicy").values()
    [(rule, found)] = of(template, "AWS::Events::Rule").items()
    [allowed] = [entry for entry in policy["PolicyDocument"]["Statement"] if entry["Effect"] == "Allow"]
    assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": [rule, "Arn"]}}}
    assert found["EventPattern"] == EVENTS
    [target] = found["Targets"]
    assert target["Arn"] == allowed["Resource"]


def test_the_event_pattern_has_every_event_of_karpenter_s_reference():
    assert len(EVENTS["detail-type"]) == 5
    assert "EC2 Spot Instance Interruption Warning" in EVENTS["detail-type"]


def test_changes_are_limited_to_resources_with_the_cluster_s_tag(statements):
    """Except for what it launches with, the role that it passes, and the messages that it has read."""
    bound = [entry for entry in statements if any(CHANGES.match(action) for action in listed(entry["Action"]))]
    cluster = [entry for entry in bound if "eks:eks-cluster-name" in json.dumps(entry.get("Condition", {}))]
    others = [entry for entry in bound if entry not in cluster]
    assert everything(others) == {
        "ec2:RunInstances",
        "ec2:CreateFleet",
        "iam:PassRole",
        "sqs:DeleteMessage",
        "sqs:GetQueueUrl",
        "sqs:ReceiveMessage",
    }
    [launching] = [entry for entry in others if "ec2:RunInstances" in entry["Action"]]
    assert not re.search(r"(instance|fleet|launch-template|volume|network-interface)/\*", json.dumps(launching))


def test_only_instances_and_launch_templates_of_the_cluster_can_be_deleted(statements):
    [ending] = [entry for entry in statements if "ec2:TerminateInstances" in entry["Action"]]
    assert ending["Condition"]["StringLike"] == {"aws:ResourceTag/karpenter.sh/nodepool": "*"}
    assert list(ending["Condition"]["StringEquals"]) == ["aws:ResourceTag/eks:eks-cluster-name"]


def test_only_the_role_of_the_nodes_can_be_passed_and_only_to_ec2(stack, statements):
    [passed] = [entry for entry in statements if "iam:PassRole" in everything([entry])]
    assert listed(passed["Resource"])[0]["Fn::GetAtt"][0] == stack.resolve(stack.karpenter.node_role_name)["Ref"]
    assert passed["Condition"]["StringEquals"]["iam:PassedToService"][0] == "ec2.amazonaws.com"


def test_no_action_is_a_wildcard(statements):
    assert not [action for action in everything(statements) if "*" in action]


def test_scanners_find_nothing_unacknowledged():
    assert [found for found in open_findings(KarpenterStack) if found.construct.startswith("all/")] == []


def test_scanners_would_find_open_queues_and_wide_policies():
    def build(app):
        stack = KarpenterStack(app)
        sqs.CfnQueue(stack, "Open")
        managed_policy(stack, "Wide", roles=[], statements=[{"Action": "ec2:RunInstances", "Resource": "*"}])

    found = {(finding.rule, finding.construct) for finding in open_findings(build)}
    assert {("AwsSolutions-SQS3", "all/Open"), ("AwsSolutions-IAM5[Resource::*]", "all/Wide")} <= found


def test_karpenter_can_launch_nodes_of_an_imported_cluster():
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(account="111122223333", region="us-east-2"))
    Karpenter(stack, "Karpenter", cluster=imported(stack))
    resources = Template.from_stack(stack).to_json()["Resources"]
    names = [of(resources, f"AWS::EKS::{kind}") for kind in ("AccessEntry", "PodIdentityAssociation")]
    assert [found["ClusterName"] for each in names for found in each.values()] == ["theirs", "theirs"]
    conditions = json.dumps(of(resources, "AWS::IAM::ManagedPolicy"))
    assert '"aws:RequestTag/eks:eks-cluster-name": "theirs"' in conditions
