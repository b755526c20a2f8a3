"""cdk-nag over the constructs of network, storage and observability."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from tests.constructs.nag import Finding, open_findings
from ultracluster.config.buckets import Bucket
from ultracluster.config.file_systems import Efs, OpenZfs
from ultracluster.config.lustre import Lustre, S3Link
from ultracluster.config.network import CreateNetwork, Network
from ultracluster.config.observability import Grafana, Observability
from ultracluster.constructs.alarms import Alarms, workspace_watches
from ultracluster.constructs.alerts import AlertTopic, RuleFiles
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.existing_lustre import LustreLookup
from ultracluster.constructs.grafana import GrafanaWorkspace
from ultracluster.constructs.grafana_content import GrafanaContent, GrafanaUsers
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.links import S3Links
from ultracluster.constructs.lustre import TrainingFileSystem
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.nfs import ElasticFileSystem, OpenZfsFileSystem
from ultracluster.constructs.throwaway import throw_away

LUSTRE = Lustre(
    capacity_gib=9600,
    throughput_mbps_per_tib=500,
    efa=True,
    root_squash="65534:65534",
    no_squash_nids=("10.0.0.5@tcp",),
    links=(S3Link(path="/datasets", bucket="datasets", import_events=("new",)),),
)


def build(app):
    """All of these constructs in one stack."""
    stack = cdk.Stack(app, "all", env=cdk.Environment(account="111122223333", region="us-east-2"))
    settings = Network(create=CreateNetwork(nat_gateways=2))
    network = ClusterNetwork(stack, "Network", settings=settings, zone="us-east-2b")
    key = DataKey(stack, "Key", description="Data")
    bucket = TrainingBucket(stack, "datasets", settings=Bucket(), key=key)
    file_system = TrainingFileSystem(
        stack,
        "Lustre",
        settings=LUSTRE,
        vpc=network.vpc,
        subnet=network.node_subnet,
        clients=network.cluster_security_group,
        efa_clients=network.efa_security_group,
        key=key,
    )
    servers = {"vpc": network.vpc, "subnet": network.node_subnet, "clients": network.cluster_security_group, "key": key}
    homes = OpenZfs(type="openzfs", capacity_gib=512, throughput_mbps=320)
    OpenZfsFileSystem(stack, "Home", settings=homes, **servers)
    ElasticFileSystem(stack, "Tools", settings=Efs(type="efs"), **servers)
    LustreLookup(stack, "Lookup", file_system_id="fs-0123456789abcdef0", key=key)
    S3Links(stack, "Links", settings=LUSTRE.links, file_system=file_system, buckets={"datasets": bucket})
    metrics = MetricsWorkspace(stack, "Metrics", settings=Observability(), key=key)
    topic = AlertTopic(stack, "Alerts", key=key, email=["oncall@example.com"])
    topic.grant_publish_alerts(metrics)
    RuleFiles(stack, "Rules", metrics=metrics, files={"meta": "groups: []"})
    watches = [*workspace_watches(metrics.workspace_id)]
    Alarms(stack, "Alarms", name="metrics", watches=watches, topics=[topic.topic_arn])
    Alarms(stack, "QuietAlarms", name="metrics", watches=watches)
    grafana = GrafanaWorkspace(stack, "Grafana", settings=Grafana(auth="identity_center"), metrics=metrics)
    GrafanaContent(
        stack,
        "Content",
        workspace=grafana,
        metrics=metrics,
        name="dev",
        dashboards={},
        sources=("dev-metrics", "dev-cloudwatch"),
        tag="environment:dev",
        owned=True,
        key=key,
    )
    GrafanaUsers(stack, "Users", workspace=grafana, admins=["9067642ac7-1234abcd-56ef-78ab-90cd-0123456789ab"], key=key)
    return stack


def add_faults(app):
    """The same stack with resources that break rules. Some of the rules are acknowledged by the constructs."""
    stack = build(app)
    s3.Bucket(stack, "Open")
    ec2.CfnVPC(stack, "Unwatched", cidr_block="10.1.0.0/16")
    wide = iam.PolicyStatement(actions=["fsx:DescribeFileSystems"], resources=["*"])
    iam.ManagedPolicy(stack, "Wide", statements=[wide])


@pytest.fixture(scope="module")
def faults():
    return open_findings(add_faults)


def test_the_constructs_have_no_open_finding():
    assert open_findings(build) == []


def build_thrown_away(app):
    """The same stack, whose deletion deletes everything, and an EKS cluster."""
    stack = build(app)
    key = DataKey(stack, "OtherKey", description="Secrets")
    eks.CfnCluster(
        stack,
        "Cluster",
        role_arn="arn:aws:iam::111122223333:role/eks",
        resources_vpc_config={"subnetIds": ["subnet-0123456789abcdef0"], "endpointPublicAccess": False},
    )
    throw_away(stack, key=key)
    return stack


def test_a_thrown_away_stack_has_no_open_finding_of_its_own():
    findings = open_findings(build_thrown_away)
    assert {finding.construct.split("/")[1] for finding in findings} <= {"Cluster"}


@pytest.mark.parametrize(
    "finding",
    [
        Finding("AwsSolutions-S10", "all/Open/Resource"),
        Finding("NIST.800.53.R5-S3BucketReplicationEnabled", "all/Open/Resource"),
        Finding("NIST.800.53.R5-VPCDefaultSecurityGroupClosed", "all/Unwatched"),
        Finding("AwsSolutions-VPC7", "all/Unwatched"),
        Finding("AwsSolutions-IAM5[Resource::*]", "all/Wide/Resource"),
    ],
)
def test_an_acknowledgment_covers_only_its_construct(faults, finding):
    assert finding in faults


def test_only_the_added_resources_have_findings(faults):
    assert {finding.construct.split("/")[1] for finding in faults} == {"Open", "Unwatched", "Wide"}
