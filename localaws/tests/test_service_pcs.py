"""PCS as boto3 sees it: what is made is read back, and what AWS refuses is refused."""

import datetime
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.backends import get_backend
from moto.moto_api import state_manager

from localaws.services import pcs_rules
from localaws.services.capacity import seed_reservation
from pcs_parts import (
    Account,
    cluster_request,
    group_request,
    make_account,
    make_profile,
    make_template,
    setting,
)

RESERVATION = "cr-0123456789abcdef0"
BLOCK = {"InstanceMarketOptions": {"MarketType": "capacity-block"}, "InstanceType": "p5.48xlarge"}
TARGET = {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": RESERVATION}}}


@pytest.fixture(scope="module")
def one_account(aws: None) -> Account:
    return make_account()


@pytest.fixture
def account(one_account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    ends = dict.fromkeys(["25.05", "25.11", "26.05"], datetime.date.max)
    monkeypatch.setattr(pcs_rules, "SLURM_VERSIONS", {"24.11": datetime.date(2026, 5, 31), **ends})
    yield one_account
    for service in ("pcs", "secretsmanager"):
        get_backend(service)["123456789012"]["us-east-1"].reset()
    get_backend("ec2")["123456789012"]["us-east-1"].enis.clear()


@pytest.fixture
def cluster(account: Account) -> str:
    return str(account.pcs.create_cluster(**cluster_request(account))["cluster"]["id"])


def refused(code: str, text: str, call: Any, **request: Any) -> dict[str, Any]:
    with pytest.raises(ClientError, match=text) as caught:
        call(**request)
    assert caught.value.response["Error"]["Code"] == code, caught.value
    return dict(caught.value.response)


def test_all_members_of_a_cluster_are_read_back(account: Account) -> None:
    configuration = {
        "accounting": {"mode": "STANDARD"},
        "slurmRest": {"mode": "STANDARD"},
        "slurmCustomSettings": [setting("Prolog", "/etc/prolog"), setting("SelectTypeParameters", "CR_CPU")],
        "cgroupCustomSettings": [setting("ConstrainDevices", "yes")],
        "slurmdbdCustomSettings": [setting("PurgeJobAfter", "12months")],
    }
    request = cluster_request(account, slurmConfiguration=configuration, tags={"team": "a"})
    made = account.pcs.create_cluster(**request)["cluster"]
    found = account.pcs.get_cluster(clusterIdentifier="train")["cluster"]
    assert made == found == account.pcs.get_cluster(clusterIdentifier=made["id"])["cluster"]
    assert found["arn"] == f"arn:aws:pcs:us-east-1:123456789012:cluster/{found['id']}"
    assert (found["status"], found["size"], found["scheduler"]["version"]) == ("ACTIVE", "SMALL", "25.11")
    assert found["networking"] == {"networkType": "IPV4", **request["networking"]}
    secret = found["slurmConfiguration"].pop("authKey")
    assert found["slurmConfiguration"] == {
        **configuration,
        "scaleDownIdleTimeInSeconds": 600,
        "accounting": {"mode": "STANDARD", "defaultPurgeTimeInDays": -1},
    }
    assert secret["secretArn"].startswith("arn:aws:secretsmanager:us-east-1:123456789012:secret:pcs!")
    assert {end["type"]: end["port"] for end in found["endpoints"]} == {
        "SLURMCTLD": "6817",
        "SLURMDBD": "6819",
        "SLURMRESTD": "6820",
    }
    assert [item["name"] for item in account.pcs.list_clusters()["clusters"]] == ["train"]
    assert account.pcs.list_tags_for_resource(resourceArn=found["arn"])["tags"] == {"team": "a"}


def test_the_controllers_interface_exists_until_the_cluster_is_deleted(account: Account, cluster: str) -> None:
    interfaces = account.ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert [item["SubnetId"] for item in interfaces] == [account.subnet]
    assert [group["GroupId"] for group in interfaces[0]["Groups"]] == [account.group]
    account.pcs.delete_cluster(clusterIdentifier=cluster)
    assert account.ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    refused("ResourceNotFoundException", cluster, account.pcs.get_cluster, clusterIdentifier=cluster)


def test_only_one_cluster_may_be_creating(account: Account) -> None:
    state_manager.set_transition("pcs::cluster", {"progression": "manual", "times": 3})
    try:
        assert account.pcs.create_cluster(**cluster_request(account))["cluster"]["status"] == "CREATING"
        second = cluster_request(account, clusterName="second")
        refused("ServiceQuotaExceededException", "still being created", account.pcs.create_cluster, **second)
        refused("ConflictException", "is CREATING", account.pcs.create_compute_node_group, **group_request(account))
        states = [account.pcs.get_cluster(clusterIdentifier="train")["cluster"]["status"] for _ in range(3)]
        assert states[-1] == "ACTIVE"
    finally:
        state_manager.unset_transition("pcs::cluster")
    account.pcs.create_cluster(**second)


def test_names_are_unique_and_five_clusters_is_the_limit(account: Account, cluster: str) -> None:
    refused("ConflictException", "already exists", account.pcs.create_cluster, **cluster_request(account))
    for number in range(4):
        account.pcs.create_cluster(**cluster_request(account, clusterName=f"more-{number}"))
    sixth = cluster_request(account, clusterName="sixth")
    answer = refused("ServiceQuotaExceededException", "5 is the limit", account.pcs.create_cluster, **sixth)
    assert answer["serviceCode"] == "pcs"


def test_a_cluster_with_groups_or_queues_is_not_deleted(account: Account, cluster: str) -> None:
    group = account.pcs.create_compute_node_group(**group_request(account))["computeNodeGroup"]
    uses = [{"computeNodeGroupId": group["id"]}]
    account.pcs.create_queue(clusterIdentifier=cluster, queueName="all", computeNodeGroupConfigurations=uses)
    delete_group = account.pcs.delete_compute_node_group
    refused(
        "ConflictException",
        "used by queue all",
        delete_group,
        clusterIdentifier=cluster,
        computeNodeGroupIdentifier="gpu",
    )
    refused("ConflictException", "has the queue all", account.pcs.delete_cluster, clusterIdentifier=cluster)
    account.pcs.delete_queue(clusterIdentifier=cluster, queueIdentifier="all")
    refused("ConflictException", "group gpu", account.pcs.delete_cluster, clusterIdentifier=cluster)
    delete_group(clusterIdentifier=cluster, computeNodeGroupIdentifier=group["id"])
    account.pcs.delete_cluster(clusterIdentifier=cluster)
    assert account.pcs.list_clusters()["clusters"] == []


def named_qos(name: str) -> dict[str, Any]:
    return {"slurmCustomSettings": [setting("AllowQos", name)]}


def test_a_queue_names_a_qos_that_a_login_node_has_added(account: Account) -> None:
    made = account.pcs.create_cluster(
        **cluster_request(account, slurmConfiguration={"accounting": {"mode": "STANDARD"}})
    )
    ids = {"clusterIdentifier": made["cluster"]["id"]}
    ssm = boto3.client("ssm", "us-east-1")
    core = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    profile = make_profile(account.iam, "login", "/aws-pcs/")
    size = {"minInstanceCount": 1, "maxInstanceCount": 1}
    login = account.pcs.create_compute_node_group(
        **group_request(account, iamInstanceProfileArn=profile, scalingConfiguration=size)
    )["computeNodeGroup"]["id"]
    account.pcs.create_queue(**ids, queueName="plain", slurmConfiguration=named_qos("normal"))
    text = "The Slurm custom settings of the cluster might be incompatible.*no QOS high"
    high = {**ids, "queueName": "high", "slurmConfiguration": named_qos("normal,high")}
    refused("ValidationException", text, account.pcs.create_queue, **high)
    step = {"runCommand": ["lists qos high || sacctmgr --immediate add qos high"]}
    steps = [{"action": "aws:runShellScript", "name": "run", "inputs": step}]
    content = json.dumps({"schemaVersion": "2.2", "mainSteps": steps})
    ssm.create_document(Name="add-high", DocumentType="Command", Content=content)
    targets = [{"Key": "tag:aws:pcs:compute-node-group-id", "Values": [login]}]
    first = ssm.create_association(Name="add-high", Targets=targets)["AssociationDescription"]
    assert first["Overview"]["Status"] == "Pending", "the role of the node may not run associations"
    refused("ValidationException", text, account.pcs.create_queue, **high)
    account.iam.attach_role_policy(RoleName="login", PolicyArn=core)
    again = ssm.update_association(AssociationId=first["AssociationId"], Targets=targets)["AssociationDescription"]
    assert (again["Overview"]["Status"], again["AssociationVersion"]) == ("Success", "2")
    account.pcs.create_queue(**high)


def test_a_cluster_without_accounting_has_no_qos(account: Account, cluster: str) -> None:
    queue = {"clusterIdentifier": cluster, "queueName": "all", "slurmConfiguration": named_qos("normal")}
    refused("ValidationException", "no QOS normal", account.pcs.create_queue, **queue)


def test_updates_wait_for_everything_in_the_cluster(account: Account, cluster: str) -> None:
    state_manager.set_transition("pcs::compute-node-group", {"progression": "manual", "times": 2})
    try:
        account.pcs.create_compute_node_group(**group_request(account))
        update = {"clusterIdentifier": cluster, "scheduler": {"version": "26.05"}}
        refused("ConflictException", "gpu is CREATING", account.pcs.update_cluster, **update)
    finally:
        state_manager.unset_transition("pcs::compute-node-group")
    account.pcs.update_cluster(**update)


def test_lists_come_in_pages(account: Account, cluster: str) -> None:
    for name in ("aaa", "bbb", "ccc"):
        account.pcs.create_queue(clusterIdentifier=cluster, queueName=name)
    pages = list(
        account.pcs.get_paginator("list_queues").paginate(clusterIdentifier=cluster, PaginationConfig={"PageSize": 2})
    )
    assert [[queue["name"] for queue in page["queues"]] for page in pages] == [["aaa", "bbb"], ["ccc"]]


def test_the_groups_of_a_cluster_fit_its_size(account: Account, cluster: str) -> None:
    def scaled(name: str, most: int) -> dict[str, Any]:
        scaling = {"minInstanceCount": 0, "maxInstanceCount": most}
        return group_request(account, computeNodeGroupName=name, scalingConfiguration=scaling)

    create = account.pcs.create_compute_node_group
    refused("ServiceQuotaExceededException", "33 instances; a SMALL cluster manages 32", create, **scaled("one", 33))
    create(**scaled("one", 20))
    refused("ServiceQuotaExceededException", "33 instances", create, **scaled("two", 13))
    create(**scaled("two", 12))
    update = {"clusterIdentifier": cluster, "computeNodeGroupIdentifier": "one"}
    more = {"minInstanceCount": 0, "maxInstanceCount": 21}
    refused(
        "ServiceQuotaExceededException",
        "33 instances",
        account.pcs.update_compute_node_group,
        **update,
        scalingConfiguration=more,
    )


def test_ten_groups_and_ten_queues_a_cluster(account: Account, cluster: str) -> None:
    one = {"minInstanceCount": 0, "maxInstanceCount": 1}
    for number in range(10):
        name = f"name-{number}"
        account.pcs.create_compute_node_group(
            **group_request(account, computeNodeGroupName=name, scalingConfiguration=one)
        )
        account.pcs.create_queue(clusterIdentifier=cluster, queueName=name)
    more = group_request(account, scalingConfiguration=one)
    refused("ServiceQuotaExceededException", "10 is the limit", account.pcs.create_compute_node_group, **more)
    refused(
        "ServiceQuotaExceededException",
        "10 is the limit",
        account.pcs.create_queue,
        clusterIdentifier=cluster,
        queueName="more",
    )
    taken = group_request(account, computeNodeGroupName="name-1", scalingConfiguration=one)
    refused("ConflictException", "named name-1 already exists", account.pcs.create_compute_node_group, **taken)


def test_the_node_role_needs_its_path_or_name(account: Account, cluster: str) -> None:
    create = account.pcs.create_compute_node_group
    plain = make_profile(account.iam, "plain")
    refused(
        "ValidationException",
        "/aws-pcs/ or a name that starts with AWSPCS",
        create,
        **group_request(account, iamInstanceProfileArn=plain),
    )
    empty = account.iam.create_instance_profile(InstanceProfileName="empty", Path="/aws-pcs/")["InstanceProfile"]["Arn"]
    refused("ValidationException", "holds no role", create, **group_request(account, iamInstanceProfileArn=empty))
    create(**group_request(account, iamInstanceProfileArn=make_profile(account.iam, "AWSPCS-node")))


@pytest.mark.parametrize(
    ("types", "words"),
    [
        (["c7i.48xlarge", "c7g.16xlarge"], "c7g.16xlarge has architecture arm64, c7i.48xlarge has x86_64"),
        (["c7i.48xlarge", "m7i.24xlarge"], "m7i.24xlarge has vCPUs 96"),
        (["g6e.12xlarge", "c7i.12xlarge"], "c7i.12xlarge has GPUs 0"),
        (["c7i.47xlarge"], "c7i.47xlarge does not exist"),
    ],
)
def test_instance_types_exist_and_are_alike(account: Account, cluster: str, types: list[str], words: str) -> None:
    template = {"id": make_template(account.ec2, account.group, NetworkInterfaces=None), "version": "1"}
    request = group_request(account, customLaunchTemplate=template)
    request["instanceConfigs"] = [{"instanceType": name} for name in types]
    refused("ValidationException", words, account.pcs.create_compute_node_group, **request)
    request["instanceConfigs"] = [{"instanceType": name} for name in ("c7i.48xlarge", "m7i.48xlarge")]
    account.pcs.create_compute_node_group(**request)


@pytest.mark.parametrize(
    ("name", "interface", "words"),
    [
        ("m7i.4xlarge", {"InterfaceType": "efa"}, "network card 0 of m7i.4xlarge does not support efa"),
        ("g6e.12xlarge", {"InterfaceType": "efa-only", "NetworkCardIndex": 1}, "g6e.12xlarge has no network card 1"),
        ("g6e.12xlarge", {"InterfaceType": "efa", "DeviceIndex": 1}, "takes 1 EFA interfaces, not 2"),
    ],
)
def test_the_type_has_the_interfaces_of_its_launch_template(
    account: Account, cluster: str, name: str, interface: dict[str, Any], words: str
) -> None:
    first = {"DeviceIndex": 0, "InterfaceType": "efa" if "takes" in words else "interface"}
    both = [{"Groups": [account.group], **each} for each in (first, interface)]
    template = {"id": make_template(account.ec2, account.group, NetworkInterfaces=both), "version": "1"}
    request = group_request(account, customLaunchTemplate=template, instanceConfigs=[{"instanceType": name}])
    refused("ValidationException", words, account.pcs.create_compute_node_group, **request)


def test_launch_template_and_its_version_must_exist_and_match(account: Account, cluster: str) -> None:
    create = account.pcs.create_compute_node_group

    def with_template(text: str, change: dict[str, Any] | None = None, **data: Any) -> None:
        template = {"id": make_template(account.ec2, account.group, **data), "version": "1"}
        refused(
            "ValidationException",
            text,
            create,
            **group_request(account, customLaunchTemplate=template, **(change or {})),
        )

    missing = {"id": account.template, "version": "2"}
    refused(
        "ValidationException",
        "no version 2; the latest is 1",
        create,
        **group_request(account, customLaunchTemplate=missing),
    )
    with_template("names an AMI", ImageId=None)
    metadata, tags = {"InstanceMetadataTags": "enabled"}, [{"Key": "cost center", "Value": "7"}]
    launched = [{"ResourceType": "instance", "Tags": tags}]
    with_template("'cost center' is not a valid tag key", MetadataOptions=metadata, TagSpecifications=launched)
    with_template("needs Groups", NetworkInterfaces=[{"DeviceIndex": 0}])
    with_template("group names are not supported", NetworkInterfaces=None, SecurityGroups=["nodes"])
    with_template("not in MIME multi-part", UserData="IyEvYmluL3NoCg==")
    with_template("defines network interfaces", {"securityGroupIds": [account.group]})


def test_purchase_option_and_market_type_agree(account: Account, cluster: str) -> None:
    create = account.pcs.create_compute_node_group

    def request(option: str, **data: Any) -> dict[str, Any]:
        template = {"id": make_template(account.ec2, account.group, **data), "version": "$Latest"}
        return group_request(
            account, computeNodeGroupName=f"a-{option[:5]}", purchaseOption=option, customLaunchTemplate=template
        )

    def market(kind: str) -> dict[str, Any]:
        return {"InstanceMarketOptions": {"MarketType": kind}}

    wrong = [
        ("ONDEMAND", market("spot"), "ONDEMAND needs MarketType none or on-demand.*not spot"),
        ("SPOT", market("capacity-block"), "SPOT needs MarketType none or spot"),
        ("CAPACITY_BLOCK", {}, "CAPACITY_BLOCK needs MarketType capacity-block in the launch template, not None"),
        ("CAPACITY_BLOCK", BLOCK, "needs a CapacityReservationId"),
        (
            "CAPACITY_BLOCK",
            {**BLOCK, **TARGET, "InstanceType": "p5en.48xlarge"},
            r"InstanceType \(p5en.48xlarge\) alone",
        ),
        ("INTERRUPTIBLE_CAPACITY_RESERVATION", {}, "needs MarketType interruptible-capacity-reservation"),
    ]
    for option, data, text in wrong:
        refused("ValidationException", text, create, **request(option, **data))
    create(**request("ONDEMAND", **TARGET))
    create(**request("SPOT", **market("spot")))


def test_a_capacity_block_must_have_the_groups_size_and_zone(account: Account, cluster: str) -> None:
    create = account.pcs.create_compute_node_group
    template = {"id": make_template(account.ec2, account.group, **BLOCK, **TARGET), "version": "1"}
    request = group_request(account, purchaseOption="CAPACITY_BLOCK", customLaunchTemplate=template)
    zone = account.ec2.describe_subnets(SubnetIds=[account.subnet])["Subnets"][0]["AvailabilityZone"]
    other = "us-east-1b" if zone != "us-east-1b" else "us-east-1c"
    refused("ValidationException", "does not exist or has ended", create, **request)
    seed_reservation(RESERVATION, "p5.48xlarge", other, 8)
    refused("ValidationException", f"is in {zone}, capacity block {RESERVATION} in {other}", create, **request)
    seed_reservation(RESERVATION, "p5.48xlarge", zone, 7)
    refused("ValidationException", "maxInstanceCount 8 is more than the 7", create, **request)
    seed_reservation(RESERVATION, "p5.48xlarge", zone, 8)
    create(**request)


def test_every_end_of_life_has_an_upgrade_path_and_dates_in_order() -> None:
    assert list(pcs_rules.SLURM_VERSIONS) == list(pcs_rules.UPGRADES)
    assert list(pcs_rules.SLURM_VERSIONS.values()) == sorted(pcs_rules.SLURM_VERSIONS.values())
    pcs_rules.check_new_version("25.05", datetime.date(2026, 11, 30))
    with pytest.raises(pcs_rules.Refusal, match="end of life"):
        pcs_rules.check_new_version("25.05", datetime.date(2026, 12, 1))
