"""`ultracluster leftovers`: what destroyed environments left in the embedded AWS, listed and deleted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from localaws import accounts, local_aws
from tests.deployment.in_process import client, create, failures, in_order, prepare
from tests.deployment.leftovers import found
from tests.deployment.test_in_process_thrown_away import destroy, fill
from tests.synthesis import FILES, templates
from ultracluster.cli import app, remains
from ultracluster.cli import leftovers as command
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(remains, "POLL_SECONDS", 0)
    with local_aws(accounts.DEFAULT):
        yield


def run(*words: object, typed: str = "") -> Any:
    return CliRunner().invoke(app, ["leftovers", *map(str, words)], input=typed)


def deploy(name: str, *parts: str) -> Environment:
    environment, made = load(FILES[name]), templates(name)
    prepare(environment, made)
    for part in in_order(parts or made):
        assert create(environment, part, made[part]) == "CREATE_COMPLETE", failures(environment, part)
    return environment


def test_nothing_is_left_where_nothing_was(tmp_path: Path):
    done = run(FILES["dev"])
    assert (done.exit_code, done.stdout) == (0, "Nothing is left of dev in account 123456789012, Region us-east-2\n")
    assert json.loads(run(FILES["dev"], "--json").stdout) == {
        "environment": "dev",
        "account": "123456789012",
        "region": "us-east-2",
        "leftovers": [],
        "unread_keys": 0,
        "failed": [],
    }


@pytest.mark.parametrize("name", ["dev", "staging"])
def test_all_that_a_destroyed_environment_left_is_listed_and_deleted(name):
    environment = load(FILES[name])
    prepare(environment, templates(name))

    def every(service: str) -> Any:
        return client(environment, service)

    before = found(every)
    deploy(name)
    fill(environment)
    refused = run(FILES[name])
    assert refused.exit_code == 1
    assert f"{environment.name} still has stacks: " in refused.stderr
    destroy(environment)
    left = found(every) - before
    assert left
    listed = json.loads(run(FILES[name], "--json").stdout)["leftovers"]
    ids = {each["id"] for each in listed}
    assert {row for row in left if not {row[1], row[1].rpartition("/")[2]} & ids} == set()
    assert all(each["deletable"] for each in listed), listed
    wrong = run(FILES[name], "--delete", typed="prod\n")
    assert (wrong.exit_code, found(every)) == (1, before | left)
    assert "nothing was deleted" in wrong.stderr
    done = run(FILES[name], "--delete", typed=f"{environment.name}\n")
    assert done.exit_code == 0, done.output
    # EKS makes the log group of a deleted cluster once again, without tags
    again = {row for row in left if row[0] == "log group" and row[1].startswith("/aws/eks/")}
    assert found(every) == before | again
    shown = "has no tag" if again else f"Nothing is left of {environment.name} in account 123456789012"
    assert shown in done.stdout


def test_another_environment_and_what_has_its_name_alone_stay():
    deploy("p5.4xlarge", "network")
    environment = deploy("dev", "network", "storage")
    s3, logs = client(environment, "s3"), client(environment, "logs")
    place = {"LocationConstraint": "us-east-2"}
    s3.create_bucket(Bucket="dev-storage-of-somebody", CreateBucketConfiguration=place)
    logs.create_log_group(logGroupName="/aws/lambda/x/dev-storage-0")
    cloudformation = client(environment, "cloudformation")
    for part in ("storage", "network"):
        cloudformation.delete_stack(StackName=f"dev-{part}")
    others = [vpc["VpcId"] for vpc in client(environment, "ec2").describe_vpcs()["Vpcs"] if "p5-4xlarge" in str(vpc)]
    done = run(FILES["dev"], "--delete", "--yes", "dev", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["leftovers"] == []
    names = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"] if "cdk-" not in bucket["Name"]]
    assert names == ["dev-storage-of-somebody"]
    assert "/aws/lambda/x/dev-storage-0" in {group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]}
    assert set(others) <= {vpc["VpcId"] for vpc in client(environment, "ec2").describe_vpcs()["Vpcs"]}
    assert others


def test_what_the_file_names_as_existing_is_no_leftover(tmp_path):
    environment = load(FILES["dev"])
    s3 = client(environment, "s3")
    for name in ("dev-archive", "dev-forgotten"):
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "us-east-2"})
        s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": [{"Key": "ultracluster:environment", "Value": "dev"}]})
    data = environment.model_dump(mode="json", exclude_unset=True)
    file = tmp_path / "dev.yaml"
    file.write_text(json.dumps(data | {"storage": {"buckets": {"archive": {"existing": "dev-archive"}}}}))
    listed = json.loads(run(file, "--json").stdout)["leftovers"]
    assert [each["id"] for each in listed if each["kind"] == "bucket"] == ["dev-forgotten"]


def test_backups_of_efs_outlive_their_file_system_and_are_listed():
    """Those of another environment are not, and an account without the vault has none."""
    efs = client(load(FILES["dev"]), "efs")
    assert json.loads(run(FILES["dev"], "--json").stdout)["leftovers"] == []
    ids = {}
    for name in ("dev", "prod"):
        tags = [{"Key": "ultracluster:environment", "Value": name}]
        ids[name] = efs.create_file_system(CreationToken=name, Tags=tags)["FileSystemId"]
        efs.put_backup_policy(FileSystemId=ids[name], BackupPolicy={"Status": "ENABLED"})
        efs.delete_file_system(FileSystemId=ids[name])
    done = run(FILES["dev"], "--delete", "--yes", "dev", "--json")
    assert done.exit_code == 0, done.output
    (listed,) = json.loads(done.stdout)["leftovers"]
    assert (listed["kind"], listed["id"], listed["deletable"]) == ("backups of EFS", ids["dev"], False)
    assert listed["details"].startswith("1 recovery point, the last until 20")


def test_further_kinds_with_the_tag_are_listed_and_left_to_people():
    environment = load(FILES["dev"])
    tags = [{"Key": "ultracluster:environment", "Value": "dev"}]
    topic = client(environment, "sns").create_topic(Name="by-hand", Tags=tags)["TopicArn"]
    (listed,) = json.loads(run(FILES["dev"], "--json").stdout)["leftovers"]
    assert (listed["kind"], listed["id"], listed["deletable"]) == ("other, sns", topic, False)


@pytest.mark.parametrize("operation", ["describe_key", "list_resource_tags"])
def test_keys_that_the_caller_may_not_read_are_counted(monkeypatch, operation):
    environment = load(FILES["dev"])
    kms = client(environment, "kms")
    tags = [{"TagKey": "ultracluster:environment", "TagValue": "dev"}]
    theirs, ours = (kms.create_key(Tags=each)["KeyMetadata"]["KeyId"] for each in ([], tags))
    allowed, made = getattr(kms, operation), command._client

    def asked(*, KeyId: str) -> Any:  # noqa: N803 - boto3's name
        if KeyId == theirs:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, operation)
        return allowed(KeyId=KeyId)

    monkeypatch.setattr(kms, operation, asked)
    monkeypatch.setattr(command, "_client", lambda place, service: kms if service == "kms" else made(place, service))
    listed = json.loads(run(FILES["dev"], "--json").stdout)
    assert ([each["id"] for each in listed["leftovers"]], listed["unread_keys"]) == ([ours], 1)
    done = run(FILES["dev"])
    assert done.exit_code == 0, done.output
    assert "1 KMS key is not considered: your credentials may not describe it" in done.stdout


def test_a_tagged_key_that_the_caller_may_not_describe_is_left_to_people(monkeypatch):
    environment = load(FILES["dev"])
    kms, made = client(environment, "kms"), command._client
    tags = [{"TagKey": "ultracluster:environment", "TagValue": "dev"}]
    arn = kms.create_key(Tags=tags)["KeyMetadata"]["Arn"]
    refusal = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeKey")
    monkeypatch.setattr(kms, "describe_key", Mock(side_effect=refusal))
    monkeypatch.setattr(command, "_client", lambda place, service: kms if service == "kms" else made(place, service))
    (listed,) = json.loads(run(FILES["dev"], "--json").stdout)["leftovers"]
    assert (listed["id"], listed["deletable"]) == (arn, False)


def test_other_errors_of_kms_end_the_list(monkeypatch):
    environment = load(FILES["dev"])
    kms, made = client(environment, "kms"), command._client
    kms.create_key()
    error = ClientError({"Error": {"Code": "KMSInternalException", "Message": "no"}}, "DescribeKey")
    monkeypatch.setattr(kms, "describe_key", Mock(side_effect=error))
    monkeypatch.setattr(command, "_client", lambda place, service: kms if service == "kms" else made(place, service))
    done = run(FILES["dev"])
    assert (done.exit_code, "KMSInternalException" in done.stderr) == (1, True)


def test_credentials_of_another_account_are_refused():
    done = run(FILES["p5.48xlarge"])
    assert done.exit_code == 1
    assert done.stderr.startswith("your credentials are for account 123456789012; p5 is in 111122223333")


def test_yes_is_for_delete():
    assert run(FILES["dev"], "--yes", "dev").exit_code == 2
