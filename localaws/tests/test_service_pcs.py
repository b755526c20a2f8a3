"""PCS as boto3 sees it: what is made is read back, and what AWS refuses is refused."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.backends import get_backend
from moto.moto_api import state_manager

from localaws.services import activate, pcs_rules
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

GPUS = {"Name": "gpu", "Type": "h100", "File": "/dev/nvidia[0-7]", "Count": "8"}
RESERVATION = "cr-0123456789abcdef0"
BLOCK = {"InstanceMarketOptions": {"MarketType": "capacity-block"}, "InstanceType": "p5.48xlarge"}
TARGET = {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": RESERVATION}}}


@pytest.fixture(scope="module")
def one_account() -> Iterator[Account]:
    activate()
    with mock_aws():
        yield make_account()


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


def test_tags_change(account: Account, cluster: str) -> None:
    arn = account.pcs.get_cluster(clusterIdentifier=cluster)["cluster"]["arn"]
    account.pcs.tag_resource(resourceArn=arn, tags={"a": "1", "b": "2"})
    account.pcs.untag_resource(resourceArn=arn, tagKeys=["a"])
    assert account.pcs.list_tags_for_resource(resourceArn=arn)["tags"] == {"b": "2"}
    refused("ResourceNotFoundException", "gone", account.pcs.tag_resource, resourceArn=arn[:-10] + "gone", tags={})


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"clusterName": "pcs_x"}, "ValidationException", "clusterName.*regular expression"),
        ({"clusterName": "1train"}, "ValidationException", "clusterName.*regular expression"),
        ({"clusterName": "x" * 41}, "ValidationException", "clusterName.*less than or equal to 40"),
        ({"size": "HUGE"}, "ValidationException", r"size.*enum value set: \[SMALL, MEDIUM, LARGE\]"),
        ({"scheduler": {"type": "SLURM", "version": "19.05"}}, "ValidationException", "19.05 is not supported"),
        ({"scheduler": {"type": "SLURM", "version": "24.11"}}, "ValidationException", "end of life on 2026-05-31"),
        (
            {"networking": {"subnetIds": ["subnet-0123456789"]}},
            "ValidationException",
            "subnet-0123456789 does not exist",
        ),
        ({"networking": {}}, "ValidationException", "exactly one subnet"),
    ],
)
def test_a_malformed_cluster_is_refused(account: Account, change: dict[str, Any], code: str, text: str) -> None:
    refused(code, text, account.pcs.create_cluster, **cluster_request(account, **change))


@pytest.mark.parametrize(
    ("configuration", "text"),
    [
        ({"slurmCustomSettings": []}, "slurmCustomSettings: the list is empty"),
        ({"cgroupCustomSettings": []}, "cgroupCustomSettings: the list is empty"),
        ({"slurmCustomSettings": [setting("TopologyPlugin", "topology/tree")]}, "TopologyPlugin is not a custom"),
        ({"slurmdbdCustomSettings": [setting("Prolog", "/x")]}, "Prolog is not a custom setting.*slurmdbd"),
        ({"cgroupCustomSettings": [setting("Prolog", "/x")]}, "Prolog is not a custom setting.*cgroup"),
        ({"slurmCustomSettings": [setting("MinJobAge", "4")]}, "MinJobAge must be at least 5"),
        ({"slurmCustomSettings": [setting("AccountingStorageEnforce", "limits,wckeys")]}, "does not allow wckeys"),
        ({"accounting": {"mode": "STANDARD", "defaultPurgeTimeInDays": 0}}, "0 is not valid"),
        ({"accounting": {"mode": "SOME"}}, "enum value set"),
    ],
)
def test_cluster_settings_off_the_list_are_refused(account: Account, configuration: dict[str, Any], text: str) -> None:
    request = cluster_request(account, slurmConfiguration=configuration)
    refused("ValidationException", text, account.pcs.create_cluster, **request)


def test_settings_that_need_a_newer_version_are_refused(account: Account) -> None:
    sockets = {"slurmCustomSettings": [setting("SelectTypeParameters", "CR_Socket_Memory")]}
    old = cluster_request(account, scheduler={"type": "SLURM", "version": "25.05"}, slurmConfiguration=sockets)
    refused("ValidationException", "CR_Socket_Memory needs Slurm 25.11", account.pcs.create_cluster, **old)
    for name, value in (("MetricsType", "metrics/openmetrics"), ("HealthCheckNodeState", "REBOOT_ONLY")):
        wanted = {"slurmCustomSettings": [setting(name, value)]}
        old = cluster_request(account, scheduler={"type": "SLURM", "version": "25.05"}, slurmConfiguration=wanted)
        refused("ValidationException", f"{name}.* needs Slurm 2[56]", account.pcs.create_cluster, **old)
    cache = {"slurmCustomSettings": [setting("SchedulerParameters", "enable_job_state_cache")]}
    new = cluster_request(account, scheduler={"type": "SLURM", "version": "26.05"}, slurmConfiguration=cache)
    refused("ValidationException", "removed in Slurm 26.05", account.pcs.create_cluster, **new)


def test_a_cluster_has_one_subnet_and_groups_of_its_vpc(account: Account) -> None:
    other = account.ec2.create_subnet(VpcId=account.vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    two = cluster_request(account, networking={"subnetIds": [account.subnet, other]})
    refused("ValidationException", "exactly one subnet", account.pcs.create_cluster, **two)
    vpc = account.ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    group = account.ec2.create_security_group(GroupName="far", Description="far", VpcId=vpc)["GroupId"]
    for group_id, text in ((group, f"is not in VPC {account.vpc}"), ("sg-0123456789", "does not exist")):
        networking = {"subnetIds": [account.subnet], "securityGroupIds": [group_id]}
        request = cluster_request(account, networking=networking)
        refused("ValidationException", text, account.pcs.create_cluster, **request)


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


def test_a_cluster_is_updated_in_place(account: Account, cluster: str) -> None:
    account.pcs.update_cluster(
        clusterIdentifier=cluster,
        scheduler={"version": "26.05"},
        slurmConfiguration={"accounting": {"mode": "STANDARD"}, "slurmCustomSettings": [setting("Prolog", "/p")]},
    )
    found = account.pcs.get_cluster(clusterIdentifier=cluster)["cluster"]
    assert (found["scheduler"]["version"], found["status"]) == ("26.05", "ACTIVE")
    assert found["slurmConfiguration"]["accounting"] == {"mode": "STANDARD", "defaultPurgeTimeInDays": -1}
    assert found["slurmConfiguration"]["slurmCustomSettings"] == [setting("Prolog", "/p")]
    assert [end["type"] for end in found["endpoints"]] == ["SLURMCTLD", "SLURMDBD"]
    account.pcs.update_cluster(clusterIdentifier=cluster, slurmConfiguration={"slurmCustomSettings": []})
    cleared = account.pcs.get_cluster(clusterIdentifier=cluster)["cluster"]["slurmConfiguration"]
    assert "slurmCustomSettings" not in cleared


def test_slurm_can_only_be_upgraded(account: Account, cluster: str) -> None:
    for version in ("25.05", "27.05"):
        text = f"cannot move to {version}. Reachable: 26.05"
        refused(
            "ValidationException",
            text,
            account.pcs.update_cluster,
            clusterIdentifier=cluster,
            scheduler={"version": version},
        )


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


def test_a_compute_node_group_is_read_back_and_updated(account: Account, cluster: str) -> None:
    script = {"name": "mount", "scriptSource": {"scriptLocation": "s3://bucket/mount.sh"}, "arguments": ["/fsx"]}
    request = group_request(
        account,
        amiId="ami-0abc",
        purchaseOption="SPOT",
        spotOptions={"allocationStrategy": "lowest-price"},
        nodeLifecycleActions={"stages": {"nodeReady": [script]}, "scriptCachingPolicy": "CACHE_ONCE"},
        slurmConfiguration={
            "scaleDownIdleTimeInSeconds": 60,
            "slurmCustomSettings": [setting("Weight", "5"), setting("Gres", "gpu:8")],
            "gresCustomSettings": [{"Name": "gpu", "Count": "8", "AutoDetect": "nvml"}],
        },
        tags={"a": "b"},
    )
    made = account.pcs.create_compute_node_group(**request)["computeNodeGroup"]
    named = {"clusterIdentifier": cluster, "computeNodeGroupIdentifier": "gpu"}
    found = account.pcs.get_compute_node_group(**named)["computeNodeGroup"]
    assert made == found
    for name in request.keys() - {"clusterIdentifier", "computeNodeGroupName", "tags"}:
        assert found[name] == request[name], name
    assert found["arn"].endswith(f":cluster/{cluster}/computenodegroup/{found['id']}")
    account.pcs.update_compute_node_group(
        **named,
        amiId="",
        purchaseOption="ONDEMAND",
        nodeLifecycleActions={"stages": {}},
        scalingConfiguration={"minInstanceCount": 2, "maxInstanceCount": 32},
        slurmConfiguration={"scaleDownIdleTimeInSeconds": -1, "gresCustomSettings": [], "slurmCustomSettings": []},
    )
    found = account.pcs.get_compute_node_group(**named)["computeNodeGroup"]
    assert found["scalingConfiguration"] == {"minInstanceCount": 2, "maxInstanceCount": 32}
    assert found["purchaseOption"] == "ONDEMAND"
    assert not found.keys() & {"amiId", "spotOptions", "nodeLifecycleActions", "slurmConfiguration"}


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


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"computeNodeGroupName": "pcs_a"}, "computeNodeGroupName.*regular expression"),
        ({"computeNodeGroupName": "x" * 26}, "less than or equal to 25"),
        ({"purchaseOption": "FREE"}, "enum value set"),
        (
            {"scalingConfiguration": {"minInstanceCount": 9, "maxInstanceCount": 8}},
            "9 is greater than maxInstanceCount 8",
        ),
        ({"subnetIds": []}, "at least one subnet"),
        ({"subnetIds": ["subnet-0123456789"]}, "subnet-0123456789 does not exist"),
        ({"instanceConfigs": []}, "at least one instance type"),
        ({"customLaunchTemplate": None}, "CUSTOM, the default, needs a launch template"),
        ({"customLaunchTemplate": {"id": "lt-0", "version": "1"}}, "launch template lt-0 does not exist"),
        (
            {"iamInstanceProfileArn": "arn:aws:iam::123456789012:instance-profile/no"},
            "instance-profile/no does not exist",
        ),
        ({"securityGroupIds": ["sg-0123456789"]}, "sg-0123456789 does not exist"),
        ({"launchTemplateMode": "MANAGED"}, "MANAGED needs amiId and securityGroupIds"),
        ({"spotOptions": {"allocationStrategy": "lowest-price"}}, "only for purchaseOption SPOT"),
        ({"slurmConfiguration": {"slurmCustomSettings": []}}, "the list is empty"),
        ({"slurmConfiguration": {"gresCustomSettings": []}}, "the list is empty"),
        ({"slurmConfiguration": {"slurmCustomSettings": [setting("Prolog", "x")]}}, "Prolog is not a custom setting"),
        ({"slurmConfiguration": {"gresCustomSettings": [{"Nmae": "gpu"}]}}, "Nmae is not a custom setting"),
        ({"slurmConfiguration": {"gresCustomSettings": [{"AutoDetect": "nvml"}, GPUS]}}, "at most one record"),
        ({"slurmConfiguration": {"gresCustomSettings": [{"Type": "h100"}]}}, "needs Name or an active AutoDetect"),
        ({"slurmConfiguration": {"gresCustomSettings": [{"Name": "gpu"}]}}, "needs File or MultipleFiles"),
        (
            {"slurmConfiguration": {"slurmCustomSettings": [setting("Gres", "gpu:8")]}},
            "Gres gpu:8 has no matching gres record",
        ),
        (
            {
                "slurmConfiguration": {
                    "slurmCustomSettings": [setting("Gres", "gpu:8,efa:4")],
                    "gresCustomSettings": [GPUS],
                }
            },
            "Gres efa:4 has no matching gres record",
        ),
        (
            {
                "slurmConfiguration": {
                    "slurmCustomSettings": [setting("Gres", "gpu:h100:8")],
                    "gresCustomSettings": [{**GPUS, "Type": "h100", "Count": "4"}],
                }
            },
            "Gres gpu:h100:8 has no matching gres record",
        ),
    ],
)
def test_a_wrong_compute_node_group_is_refused(
    account: Account, cluster: str, change: dict[str, Any], text: str
) -> None:
    create = account.pcs.create_compute_node_group
    refused("ValidationException", text, create, **group_request(account, **change))
    assert account.pcs.list_compute_node_groups(clusterIdentifier=cluster)["computeNodeGroups"] == []


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


def test_idle_time_and_sockets_need_25_11(account: Account) -> None:
    account.pcs.create_cluster(**cluster_request(account, scheduler={"type": "SLURM", "version": "25.05"}))
    for configuration, text in (
        ({"scaleDownIdleTimeInSeconds": 60}, "needs Slurm 25.11"),
        ({"slurmCustomSettings": [setting("Sockets", "2")]}, "Sockets needs Slurm 25.11"),
        ({"gresCustomSettings": [{"AutoDetect": "nvml"}]}, "AutoDetect needs Slurm 25.11"),
    ):
        request = group_request(account, slurmConfiguration=configuration)
        refused("ValidationException", text, account.pcs.create_compute_node_group, **request)


def test_a_queue_is_read_back_updated_and_deleted(account: Account, cluster: str) -> None:
    group = account.pcs.create_compute_node_group(**group_request(account))["computeNodeGroup"]["id"]
    uses, settings = [{"computeNodeGroupId": group}], {"slurmCustomSettings": [setting("Default", "YES")]}
    made = account.pcs.create_queue(
        clusterIdentifier="train", queueName="all", computeNodeGroupConfigurations=uses, slurmConfiguration=settings
    )["queue"]
    assert made["arn"].endswith(f":cluster/{cluster}/queue/{made['id']}")
    named = {"clusterIdentifier": cluster, "queueIdentifier": "all"}
    found = account.pcs.get_queue(**named)["queue"]
    assert (found["computeNodeGroupConfigurations"], found["slurmConfiguration"]) == (uses, settings)
    account.pcs.update_queue(**named, computeNodeGroupConfigurations=[], slurmConfiguration={"slurmCustomSettings": []})
    found = account.pcs.get_queue(**named)["queue"]
    assert found["computeNodeGroupConfigurations"] == []
    assert not found.get("slurmConfiguration")
    account.pcs.delete_queue(**named)
    refused("ResourceNotFoundException", "AWS::PCS::Queue all", account.pcs.get_queue, **named)


def test_wrong_queues_are_refused(account: Account, cluster: str) -> None:
    create = account.pcs.create_queue
    unknown = [{"computeNodeGroupId": "pcs_none"}]
    named = {"clusterIdentifier": cluster, "queueName": "all"}
    refused(
        "ResourceNotFoundException", "pcs_none was not found", create, **named, computeNodeGroupConfigurations=unknown
    )
    refused("ResourceNotFoundException", "AWS::PCS::Cluster other", create, clusterIdentifier="other", queueName="all")
    refused("ValidationException", "queueName", create, clusterIdentifier=cluster, queueName="a b")
    for settings, text in (
        ([setting("MaxNodes", "4")], "MaxNodes is not a custom setting"),
        ([setting("Exclusive", "USER")], "Exclusive needs Slurm 26.05"),
        ([], "the list is empty"),
    ):
        refused("ValidationException", text, create, **named, slurmConfiguration={"slurmCustomSettings": settings})


def test_every_end_of_life_has_an_upgrade_path_and_dates_in_order() -> None:
    assert list(pcs_rules.SLURM_VERSIONS) == list(pcs_rules.UPGRADES)
    assert list(pcs_rules.SLURM_VERSIONS.values()) == sorted(pcs_rules.SLURM_VERSIONS.values())
    pcs_rules.check_new_version("25.05", datetime.date(2026, 11, 30))
    with pytest.raises(pcs_rules.Refusal, match="end of life"):
        pcs_rules.check_new_version("25.05", datetime.date(2026, 12, 1))
