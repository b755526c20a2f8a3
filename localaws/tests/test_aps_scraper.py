"""Managed scrapers of Managed Prometheus: the API as boto3 sees it, and AWS::APS::Scraper."""

import base64
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError
from moto.backends import get_backend
from moto.ec2.models.subnets import Subnet

from eks_parts import ACCOUNT, REGION, cluster_request, make_account
from handler_parts import Stack
from localaws.resources import HandlerError

SCRAPER = "AWS::APS::Scraper"
LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/amp/scraper:*"
CONFIGURATION = {
    "global": {"scrape_interval": "30s", "external_labels": {"cluster": "train"}},
    "scrape_configs": [{"job_name": "node", "kubernetes_sd_configs": [{"role": "node"}]}],
}


class Place(NamedTuple):
    amp: Any
    eks: Any
    iam: Any
    ec2: Any
    account: Any
    cluster: str
    workspace: str
    encrypted: str
    source: str
    target: str


@pytest.fixture(scope="module")
def one_place(aws: None) -> Place:
    account = make_account()
    private = {"endpointPrivateAccess": True}
    cluster = account.eks.create_cluster(**cluster_request(account, resourcesVpcConfig=private))["cluster"]["arn"]
    boto3.client("logs", REGION).create_log_group(logGroupName="/amp/scraper")
    amp = boto3.client("amp", REGION)
    key = boto3.client("kms", REGION).create_key()["KeyMetadata"]["Arn"]
    source = role(account.iam, "source", {"Service": "scraper.aps.amazonaws.com"})
    target = role(account.iam, "target", {"AWS": source})
    places = [amp.create_workspace()["arn"], amp.create_workspace(kmsKeyArn=key)["arn"]]
    return Place(amp, account.eks, account.iam, account.ec2, account, cluster, *places, source, target)


@pytest.fixture
def place(one_place: Place) -> Iterator[Place]:
    yield one_place
    for scraper in one_place.amp.list_scrapers()["scrapers"]:
        one_place.amp.delete_scraper(scraperId=scraper["scraperId"])


def role(iam: Any, name: str, principal: dict[str, str]) -> str:
    document = {"Statement": [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}]}
    return str(iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(document))["Role"]["Arn"])


def blob(content: Any) -> dict[str, bytes]:
    return {"configurationBlob": yaml.safe_dump(content).encode()}


def request(place: Place, **changes: Any) -> dict[str, Any]:
    source = {"clusterArn": place.cluster, "subnetIds": place.account.subnets, **changes.pop("source", {})}
    full = {
        "source": {"eksConfiguration": source},
        "destination": {"ampConfiguration": {"workspaceArn": place.workspace}},
        "scrapeConfiguration": blob(CONFIGURATION),
        **changes,
    }
    return {name: value for name, value in full.items() if value is not None}


def roles(place: Place) -> dict[str, str]:
    return {"sourceRoleArn": place.source, "targetRoleArn": place.target}


def refused(code: str, text: str, call: Any, **parameters: Any) -> None:
    with pytest.raises(ClientError, match=text) as caught:
        call(**parameters)
    assert caught.value.response["Error"]["Code"] == code, caught.value


def entries(place: Place) -> list[str]:
    return [arn for arn in place.eks.list_access_entries(clusterName="train")["accessEntries"] if "Scraper" in arn]


def interfaces(place: Place) -> list[dict[str, Any]]:
    found = place.ec2.describe_network_interfaces()["NetworkInterfaces"]
    return [each for each in found if each["Description"].startswith("AMP scraper")]


def test_a_scraper_gets_a_role_an_access_entry_and_an_interface_in_each_subnet(place: Place) -> None:
    made = place.amp.create_scraper(**request(place, alias="train", tags={"a": "b"}))
    found = place.amp.describe_scraper(scraperId=made["scraperId"])["scraper"]
    assert (found["alias"], found["tags"], found["status"]) == ("train", {"a": "b"}, {"statusCode": "ACTIVE"})
    assert yaml.safe_load(found["scrapeConfiguration"]["configurationBlob"]) == CONFIGURATION
    assert (
        "role/aws-service-role/scraper.aps.amazonaws.com/AWSServiceRoleForAmazonPrometheusScraper_" in found["roleArn"]
    )
    assert entries(place) == [found["roleArn"]]
    assert [each["SubnetId"] for each in interfaces(place)] == place.account.subnets


def test_deleting_a_scraper_removes_what_it_created(place: Place) -> None:
    made = place.amp.create_scraper(**request(place))
    role_name = place.amp.describe_scraper(scraperId=made["scraperId"])["scraper"]["roleArn"].rpartition("/")[2]
    place.amp.delete_scraper(scraperId=made["scraperId"])
    assert not entries(place)
    assert not interfaces(place)
    refused("NoSuchEntity", role_name, place.iam.get_role, RoleName=role_name)
    refused("ResourceNotFoundException", "not found", place.amp.describe_scraper, scraperId=made["scraperId"])


def test_a_security_group_in_use_by_a_scraper_stays(place: Place) -> None:
    place.amp.create_scraper(**request(place, source={"securityGroupIds": [place.account.group]}))
    refused("DependencyViolation", "dependent", place.ec2.delete_security_group, GroupId=place.account.group)


def test_the_source_must_be_reachable(place: Place) -> None:
    create, one = place.amp.create_scraper, place.account.subnets[:1]
    refused("ValidationException", "two Availability Zones", create, **request(place, source={"subnetIds": one}))
    elsewhere = {"subnetIds": [*one, "subnet-0123"]}
    refused("ValidationException", "subnet-0123 does not exist", create, **request(place, source=elsewhere))
    other = {"securityGroupIds": ["sg-0123"]}
    refused("ValidationException", "sg-0123 does not exist", create, **request(place, source=other))
    missing = {"clusterArn": place.cluster.replace("/train", "/none")}
    refused("ResourceNotFoundException", "was not found", create, **request(place, source=missing))
    backend = get_backend("eks")[ACCOUNT][REGION].clusters["train"].description["resourcesVpcConfig"]
    backend["endpointPrivateAccess"] = False
    try:
        refused("ValidationException", "private endpoint", create, **request(place))
    finally:
        backend["endpointPrivateAccess"] = True


def test_a_subnet_needs_a_free_address(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subnet, "available_ip_address_count", 0)
    refused("ValidationException", "no free address", place.amp.create_scraper, **request(place))


def test_an_encrypted_workspace_requires_roles(place: Place) -> None:
    destination = {"ampConfiguration": {"workspaceArn": place.encrypted}}
    create = place.amp.create_scraper
    refused("ValidationException", "requires a role configuration", create, **request(place, destination=destination))
    swapped = {"sourceRoleArn": place.target, "targetRoleArn": place.source}
    refused("ValidationException", "cannot assume", create, **request(place, roleConfiguration=swapped))
    alone = {"sourceRoleArn": place.source, "targetRoleArn": place.account.node_role}
    refused("ValidationException", "targetRoleArn", create, **request(place, roleConfiguration=alone))
    made = create(**request(place, destination=destination, roleConfiguration=roles(place)))
    found = place.amp.describe_scraper(scraperId=made["scraperId"])["scraper"]
    assert found["roleConfiguration"] == roles(place)
    assert "ScraperInternal_" in found["roleArn"]


def test_a_region_has_ten_scrapers(place: Place) -> None:
    for _ in range(10):
        place.amp.create_scraper(**request(place))
    refused("ServiceQuotaExceededException", "10 scrapers", place.amp.create_scraper, **request(place))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"global": {"scrape_interval": "15s"}}, "15s is shorter than 30"),
        ({"rule_files": ["a.yml"]}, "section rule_files"),
        ({"remote_write": []}, "section remote_write"),
        ({"scrape_configs": []}, "scrape_configs is empty"),
        ({"scrape_configs": [{"job_name": "a"}, {"job_name": "a"}]}, "not unique"),
        ({"scrape_configs": [{"job_name": "a", "scrape_interval": "1s"}]}, "1s is shorter"),
        ({"scrape_configs": [{"job_name": "a", "ec2_sd_configs": [{}]}]}, "option ec2_sd_configs"),
        ({"scrape_configs": [{"job_name": "a", "tls_config": {}}]}, "option tls_config"),
        ({"scrape_configs": [{"job_name": "a", "static_configs": [{"targets": ["host:80"]}]}]}, "host:80 is not an IP"),
        (
            {"scrape_configs": [{"job_name": "a", "authorization": {"credentials_file": "/token"}}]},
            "authorization must be Bearer",
        ),
        ({"scrape_configs": [{"job_name": "a", "kubernetes_sd_configs": [{"role": "queue"}]}]}, "role queue"),
        (
            {"scrape_configs": [{"job_name": "a", "kubernetes_sd_configs": [{"role": "pod", "api_server": "b"}]}]},
            "API server",
        ),
        ({"scrape_configs": [{"job_name": "a", "relabel_configs": [{"regex": "("}]}]}, "invalid regex"),
    ],
)
def test_configurations_that_the_service_refuses(place: Place, change: dict[str, Any], said: str) -> None:
    broken = request(place, scrapeConfiguration=blob({**CONFIGURATION, **change}))
    refused("ValidationException", said, place.amp.create_scraper, **broken)


@pytest.mark.parametrize(("content", "said"), [(b"a: [", "not YAML"), (b"text", "not a Prometheus")])
def test_other_files_are_refused(place: Place, content: bytes, said: str) -> None:
    broken = request(place, scrapeConfiguration={"configurationBlob": content})
    refused("ValidationException", said, place.amp.create_scraper, **broken)


def properties(place: Place, **changes: Any) -> dict[str, Any]:
    text = yaml.safe_dump(CONFIGURATION)
    return {
        "Alias": "train",
        "Source": {"EksConfiguration": {"ClusterArn": place.cluster, "SubnetIds": place.account.subnets}},
        "Destination": {"AmpConfiguration": {"WorkspaceArn": place.encrypted}},
        "RoleConfiguration": {"SourceRoleArn": place.source, "TargetRoleArn": place.target},
        "ScrapeConfiguration": {"ConfigurationBlob": base64.b64encode(text.encode()).decode()},
        **changes,
    }


def test_a_failed_creation_leaves_no_scraper(place: Place) -> None:
    logging = {
        "LoggingDestination": {"CloudWatchLogs": {"LogGroupArn": LOGS.replace("scraper", "none")}},
        "ScraperComponents": [{"Type": "COLLECTOR"}],
    }
    with pytest.raises(ClientError, match="not a log group"):
        Stack(REGION).create(SCRAPER, **properties(place, ScraperLoggingConfiguration=logging))
    assert not place.amp.list_scrapers()["scrapers"]


def test_the_configuration_of_a_template_is_base64(place: Place) -> None:
    with pytest.raises(HandlerError, match="not base64"):
        Stack(REGION).create(SCRAPER, **properties(place, ScrapeConfiguration={"ConfigurationBlob": "global: {}"}))
