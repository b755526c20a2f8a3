"""The AMP managed scraper: roles, network rules, configuration, logs."""

import json

import pytest
import yaml
from aws_cdk import aws_ec2 as ec2

from tests.constructs.conftest import US_EAST_2
from tests.synthesis import templates
from ultracluster.constructs.eks_cluster import EksCluster
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.constructs.scraper import ClusterScraper, port_ranges

CONFIGURATION = yaml.safe_dump({"scrape_configs": [{"job_name": "node", "kubernetes_sd_configs": [{"role": "node"}]}]})
ACCOUNT, REGION = US_EAST_2.account, US_EAST_2.region


def imported(stack):
    return EksCluster.from_cluster_attributes(
        stack,
        "Cluster",
        cluster_name="train-1",
        kubernetes_version="1.35",
        cluster_endpoint="https://a.eks.amazonaws.com",
        cluster_certificate_authority_data="Y2E=",
        cluster_security_group_id="sg-eks",
    )


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        ClusterScraper(
            stack,
            "Scraper",
            cluster=imported(stack),
            workspace=MetricsWorkspace.from_workspace_id(stack, "Metrics", "ws-1"),
            vpc=ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-2b"]),
            subnets=["subnet-1", "subnet-2"],
            nodes="sg-nodes",
            configuration=CONFIGURATION,
            ports=[9100, 9400, 8081, 8080],
            key=DataKey(stack, "Key", description="Logs"),
        )

    return synth(fill)


def only(template, kind):
    ((logical_id, resource),) = template.find_resources(kind).items()
    return logical_id, resource["Properties"]


def roles(template):
    found = template.find_resources("AWS::IAM::Role")
    return {resource["Properties"]["Description"]: (name, resource["Properties"]) for name, resource in found.items()}


def test_source_and_destination_are_those_that_the_service_takes(template):
    _, scraper = only(template, "AWS::APS::Scraper")
    source = scraper["Source"]["EksConfiguration"]
    assert source["ClusterArn"] == f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/train-1"
    assert source["SubnetIds"] == ["subnet-1", "subnet-2"]
    workspace = f"arn:aws:aps:{REGION}:{ACCOUNT}:workspace/ws-1"
    assert scraper["Destination"] == {"AmpConfiguration": {"WorkspaceArn": workspace}}


def test_the_configuration_is_base64(template):
    _, scraper = only(template, "AWS::APS::Scraper")
    text = scraper["ScrapeConfiguration"]["ConfigurationBlob"]["Fn::Base64"]
    assert text == CONFIGURATION


def test_an_encrypted_workspace_is_reached_through_two_roles(template):
    scrapers = f"arn:aws:aps:{REGION}:{ACCOUNT}:scraper/*"
    source_id, source = roles(template)["AMP scraper of a cluster"]
    target_id, target = roles(template)["Metrics of an AMP scraper"]
    _, scraper = only(template, "AWS::APS::Scraper")
    assert scraper["RoleConfiguration"] == {
        "SourceRoleArn": {"Fn::GetAtt": [source_id, "Arn"]},
        "TargetRoleArn": {"Fn::GetAtt": [target_id, "Arn"]},
    }
    (trusted,) = source["AssumeRolePolicyDocument"]["Statement"]
    assert trusted["Principal"] == {"Service": "scraper.aps.amazonaws.com"}
    assert trusted["Condition"] == {
        "ArnLike": {"aws:SourceArn": scrapers},
        "StringEquals": {"aws:SourceAccount": ACCOUNT},
    }
    (trusted,) = target["AssumeRolePolicyDocument"]["Statement"]
    assert trusted["Principal"] == {"AWS": {"Fn::GetAtt": [source_id, "Arn"]}}
    assert trusted["Condition"] == {"StringLike": {"sts:ExternalId": scrapers}}
    _, policy = only(template, "AWS::IAM::ManagedPolicy")
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "aps:RemoteWrite"
    assert policy["Roles"] == [{"Ref": target_id}]


def test_the_scraper_reaches_the_api_server_and_exporters_only(template):
    group, _ = only(template, "AWS::EC2::SecurityGroup")
    scraper = {"Fn::GetAtt": [group, "GroupId"]}
    expected = {(443, 443), (8080, 8081), (9100, 9100), (9400, 9400)}
    for kind, target, source in (
        ("Ingress", ("GroupId", "sg-nodes"), ("SourceSecurityGroupId", scraper)),
        ("Egress", ("DestinationSecurityGroupId", "sg-nodes"), ("GroupId", scraper)),
    ):
        rules = [found["Properties"] for found in template.find_resources(f"AWS::EC2::SecurityGroup{kind}").values()]
        assert {(rule["FromPort"], rule["ToPort"]) for rule in rules} == expected
        for rule in rules:
            assert rule[target[0]] == target[1]
            assert rule[source[0]] == source[1]
            assert rule["IpProtocol"] == "tcp"


def test_the_scraper_is_created_after_its_rules_and_its_policy(template):
    (resource,) = template.find_resources("AWS::APS::Scraper").values()
    needed = {
        name
        for kind in ("EC2::SecurityGroupIngress", "EC2::SecurityGroupEgress", "IAM::ManagedPolicy")
        for name in template.find_resources(f"AWS::{kind}")
    }
    assert needed <= set(resource["DependsOn"])


def test_what_the_scraper_logs_is_kept(template):
    _, scraper = only(template, "AWS::APS::Scraper")
    logging = scraper["ScraperLoggingConfiguration"]
    assert {each["Type"] for each in logging["ScraperComponents"]} == {"SERVICE_DISCOVERY", "COLLECTOR", "EXPORTER"}
    name = json.dumps(only(template, "AWS::Logs::LogGroup")[1]["LogGroupName"])
    assert "/aws/vendedlogs/prometheus-scraper/" in name


@pytest.mark.parametrize(
    ("ports", "ranges"),
    [([], []), ([9100], [(9100, 9100)]), ([8081, 8080, 8080, 9100], [(8080, 8081), (9100, 9100)])],
)
def test_adjacent_ports_are_one_rule(ports, ranges):
    assert port_ranges(ports) == ranges


@pytest.mark.parametrize("name", ["staging", "eks-volcano"])
def test_roles_are_created_while_eks_creates_the_cluster(name):
    """A role is ready for use about 20 seconds after its creation: two of them would delay the scraper."""
    types = {
        part: [resource["Type"] for resource in found["Resources"].values()] for part, found in templates(name).items()
    }
    assert "AWS::IAM::Role" not in types["collection"]
    assert types["observability"].count("AWS::IAM::Role") == 2
