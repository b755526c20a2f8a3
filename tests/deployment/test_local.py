"""`ultracluster local`: the embedded AWS from the command line, in a folder of its own.

Each step starts from what the steps before it left running, so all of them are one test.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import boto3
import pytest

from localaws import server
from tests.deployment.conftest import changed
from tests.synthesis import FILES, templates

PROGRAM = str(Path(sys.executable).with_name("ultracluster"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("somewhere")
    yield folder
    server.stop(folder / ".localaws")


def local(folder, *arguments, **variables):
    command = [PROGRAM, "local", *arguments]
    # readline, which pytest imports, exports COLUMNS=80 to child processes
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, env={**kept, **variables})


def test_up_status_and_down(folder):
    nothing_runs_before_up(folder)
    up_refuses_a_bad_file_with_the_report(folder)
    up_starts_it_once_and_exports_account_and_region(folder)
    reservations_of_the_file_exist(folder)
    what_the_file_names_as_existing_is_made_once(folder)
    status_shows_resources_and_down_waits_for_stacks(folder)
    down_lists_retained_resources_and_stops(folder)


def nothing_runs_before_up(folder):
    assert local(folder, "status").returncode == 1
    down = local(folder, "down")
    assert (down.returncode, down.stdout) == (0, "The embedded AWS does not run\n")


def up_refuses_a_bad_file_with_the_report(folder):
    (folder / "bad.yaml").write_text(FILES["dev"].read_text().replace("us-east-2b", "us-east-2x"))
    refused = local(folder, "up", "bad.yaml")
    assert refused.returncode == 1
    assert "[zone-outside-region]" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert local(folder, "status").returncode == 1


def up_starts_it_once_and_exports_account_and_region(folder):
    for _ in range(2):
        started = local(folder, "up", str(FILES["p5.48xlarge"]))
        assert started.returncode == 0, started.stderr
    running = server.status(folder / ".localaws")
    assert running
    exports = (folder / ".localaws/env").read_text()
    assert f"export AWS_ENDPOINT_URL={running.url}\n" in exports
    assert "export AWS_REGION=us-east-1\n" in exports
    assert "111122223333" in exports


def reservations_of_the_file_exist(folder):
    started = local(folder, "up", str(FILES["prod"]))
    assert started.returncode == 0, started.stderr
    running = server.status(folder / ".localaws")
    ec2 = boto3.client("ec2", region_name="us-east-2", **running.connection("123456789012"))
    (block,) = ec2.describe_capacity_reservations()["CapacityReservations"]
    assert block["CapacityReservationId"] == "cr-0123456789abcdef0"
    assert (block["ReservationType"], block["TotalInstanceCount"]) == ("capacity-block", 16)
    groups = boto3.client("resource-groups", region_name="us-east-1", **running.connection("111122223333"))
    assert [group["GroupName"] for group in groups.list_groups()["GroupIdentifiers"]] == ["p5-fleet"]


def what_the_file_names_as_existing_is_made_once(folder):
    made, kept = (local(folder, "up", str(FILES["p5e.48xlarge"])) for _ in range(2))
    assert made.returncode == kept.returncode == 0, made.stderr
    named = ["VPC vpc-0123456789abcdef0", "bucket example-training-archive", "placement group research-cluster"]
    for each in named:
        assert f"Made the {each}, which the file names as existing\n" in made.stdout
        assert f"There is the {each}, which the file names as existing\n" in kept.stdout
    assert made.stdout.count("Made the") == kept.stdout.count("There is the") == 7
    running = server.status(folder / ".localaws")
    ec2 = boto3.client("ec2", region_name="us-east-2", **running.connection("111122223333"))
    subnets = ec2.describe_subnets(SubnetIds=["subnet-0123456789abcdef0"])["Subnets"]
    assert [(subnet["VpcId"], subnet["AvailabilityZone"]) for subnet in subnets] == [
        ("vpc-0123456789abcdef0", "us-east-2a")
    ]
    with pytest.raises(server.ServerError, match="banana"):
        running.create("ec2", "create_vpc", {"CidrBlock": "banana"}, account="111122223333", region="us-east-2")


def status_shows_resources_and_down_waits_for_stacks(folder):
    running = server.status(folder / ".localaws")
    connection = running.connection("123456789012")
    boto3.client("ssm", region_name="us-east-2", **connection).put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
    )
    cloudformation = boto3.client("cloudformation", region_name="us-east-2", **connection)
    cloudformation.create_stack(
        StackName="dev-network",
        TemplateBody=json.dumps(templates("dev")["network"]),
        Capabilities=["CAPABILITY_IAM"],
        Tags=[{"Key": "ultracluster:environment", "Value": "dev"}],
    )
    cloudformation.get_waiter("stack_create_complete").wait(StackName="dev-network", WaiterConfig={"Delay": 1})
    shown = json.loads(local(folder, "status", "--json").stdout)
    network = changed("dev", lambda data: None).network.create
    assert [row["details"] for row in shown if row["kind"] == "VPC"] == [network.cidr]
    assert sum(row["kind"] == "Subnet" for row in shown) == 5
    assert {(row["account"], row["region"]) for row in shown} == {("123456789012", "us-east-2")}
    text = local(folder, "status").stdout
    assert "Account 123456789012, us-east-2: dev\n" in re.sub(r" +\n", "\n", text)
    assert all(row["name"] in text for row in shown)
    narrow = local(folder, "status", COLUMNS="80").stdout
    assert max(map(len, narrow.splitlines()[:-2])) <= 80
    assert text.splitlines()[-1].startswith("Estimate for an account: 3 min (")
    assert "dev-network" in local(folder, "down").stdout
    assert server.status(folder / ".localaws")


def down_lists_retained_resources_and_stops(folder):
    running = server.status(folder / ".localaws")
    cloudformation = boto3.client("cloudformation", region_name="us-east-2", **running.connection("123456789012"))
    cloudformation.delete_stack(StackName="dev-network")
    cloudformation.get_waiter("stack_delete_complete").wait(StackName="dev-network", WaiterConfig={"Delay": 1})
    stopped = local(folder, "down")
    assert stopped.returncode == 0
    assert "Retained" in stopped.stdout
    assert "10.10.0.0/20" in stopped.stdout
    assert server.status(folder / ".localaws") is None


def test_down_with_force_stops_it_with_what_is_deployed(tmp_path):
    assert local(tmp_path, "up").returncode == 0
    running = server.status(tmp_path / ".localaws")
    template = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}})
    cloudformation = boto3.client("cloudformation", region_name="us-east-1", **running.connection("123456789012"))
    cloudformation.create_stack(StackName="queue", TemplateBody=template)
    kept = local(tmp_path, "down").stdout
    assert "because these stacks are deployed: queue" in kept
    assert "ultracluster local down --force" in kept
    assert local(tmp_path, "down", "--force").stdout == "The embedded AWS has stopped\n"
    assert server.status(tmp_path / ".localaws") is None


def test_what_is_retained_is_listed_also_while_another_environment_is_up(tmp_path):
    """Keys, log groups and bucket policies too; and a retained PCS cluster that has the name of the next one."""
    try:
        assert local(tmp_path, "up", str(FILES["dev"])).returncode == 0
        running = server.status(tmp_path / ".localaws")
        connection = running.connection("123456789012")
        boto3.client("ssm", region_name="us-east-2", **connection).put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
        )
        cloudformation = boto3.client("cloudformation", region_name="us-east-2", **connection)
        retained = {
            "Key": {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": {"Version": "2012-10-17", "Statement": []}}},
            "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/left"}},
            "Data": {"Type": "AWS::S3::Bucket"},
            "Policy": {
                "Type": "AWS::S3::BucketPolicy",
                "Properties": {
                    "Bucket": {"Ref": "Data"},
                    "PolicyDocument": {"Version": "2012-10-17", "Statement": []},
                },
            },
        }
        for resource in retained.values():
            resource["DeletionPolicy"] = "Retain"
        stays = {"Resources": {"Other": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "in-a-stack"}}}}
        for name, template in (("left", {"Resources": retained}), ("stays", stays)):
            cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template))
            cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
        cloudformation.delete_stack(StackName="left")
        cloudformation.get_waiter("stack_delete_complete").wait(StackName="left", WaiterConfig={"Delay": 1})
        kept = local(tmp_path, "down").stdout
        assert "because these stacks are deployed: stays" in kept
        assert "Beside them, in no stack" in kept
        shown = kept.partition("Beside them")[2]
        assert "Key" in shown
        assert "/left" in shown
        assert ", a bucket policy" in shown
        assert "in-a-stack" not in shown
        ec2 = boto3.client("ec2", region_name="us-east-2", **connection)
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
        boto3.client("pcs", region_name="us-east-2", **connection).create_cluster(
            clusterName="dev-control-plane",
            scheduler={"type": "SLURM", "version": "25.11"},
            size="SMALL",
            networking={"subnetIds": [subnet]},
            tags={"ultracluster:environment": "dev"},
        )
        again = local(tmp_path, "up", str(FILES["dev"])).stdout
        assert "The PCS cluster dev-control-plane, which an earlier deployment retained, has the name" in again
        assert "--delete" in again
    finally:
        server.stop(tmp_path / ".localaws")
