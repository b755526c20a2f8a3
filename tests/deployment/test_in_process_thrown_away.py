"""Environments with `retain: false`: what is left when their stacks are deleted, and what never is deleted."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws import accounts, local_aws
from tests.deployment.in_process import change, client, create, failures, in_order, prepare, update
from tests.deployment.leftovers import found
from tests.synthesis import FILES, synthesise
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load

THEIRS = "their-archive"


def environment_of(name: str, **changes: Any) -> Environment:
    return Environment.model_validate(load(FILES[name]).model_dump(mode="json", exclude_unset=True) | changes)


@pytest.fixture
def account() -> Iterator[None]:
    with local_aws(accounts.DEFAULT):
        yield


def deploy(environment: Environment, *parts: str) -> None:
    """Deploy all stacks, or some."""
    templates = synthesise(environment)
    prepare(environment, templates)
    for part in in_order(parts or templates):
        assert create(environment, part, templates[part]) == "CREATE_COMPLETE", failures(environment, part)


def fill(environment: Environment) -> list[str]:
    """Objects with versions, delete markers and an open upload, in all buckets but the CDK's. Returns their names."""
    s3 = client(environment, "s3")
    names = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"] if not bucket["Name"].startswith("cdk-")]
    for name in names:
        for key in ("a", "b", "a"):
            s3.put_object(Bucket=name, Key=key, Body=b"data")
        s3.delete_object(Bucket=name, Key="b")
        s3.create_multipart_upload(Bucket=name, Key="c")
    return names


def destroy(environment: Environment) -> None:
    """Delete all stacks, those first that no other imports from."""
    cloudformation = client(environment, "cloudformation")
    names = [stack["StackName"] for stack in cloudformation.describe_stacks()["Stacks"]]
    while names:
        deleted = [name for name in names if _deleted(environment, cloudformation, name)]
        assert deleted, names
        names = [name for name in names if name not in deleted]


def _deleted(environment: Environment, cloudformation: Any, name: str) -> bool:
    try:
        cloudformation.delete_stack(StackName=name)
    except ClientError:  # another stack imports from it
        return False
    try:
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError:
        return True
    part = name.removeprefix(f"{environment.name}-")
    assert stack["StackStatus"] != "DELETE_FAILED", failures(environment, part)
    return False


HOMES = {"type": "openzfs", "capacity_gib": 64, "throughput_mbps": 320}


@pytest.mark.parametrize("name", ["p5.4xlarge", "eks-volcano"])
def test_nothing_is_left_of_a_thrown_away_environment(account, name):
    storage = load(FILES[name]).model_dump(mode="json", exclude_unset=True)["storage"] | {"home": HOMES}
    environment = environment_of(name, retain=False, storage=storage)
    prepare(environment, synthesise(environment))

    def every(service: str) -> Any:
        return client(environment, service)

    before = found(every)
    deploy(environment)
    assert len(fill(environment)) >= 2
    destroy(environment)
    assert found(every) == before
    keys = every("kms").list_keys()["Keys"]
    described = [every("kms").describe_key(KeyId=key["KeyId"])["KeyMetadata"] for key in keys]
    own = [key for key in described if key["KeyManager"] == "CUSTOMER"]
    assert own
    assert {key["KeyState"] for key in own} == {"PendingDeletion"}


def test_what_the_file_names_as_existing_stays(account):
    environment = environment_of(
        "p5.4xlarge", retain=False, storage={"buckets": {"own": {}, "theirs": {"existing": THEIRS}}}
    )
    s3 = client(environment, "s3")
    s3.create_bucket(Bucket=THEIRS, CreateBucketConfiguration={"LocationConstraint": environment.region})
    deploy(environment)
    fill(environment)
    versions = s3.list_object_versions(Bucket=THEIRS)["Versions"]
    destroy(environment)
    assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"] if "cdk-" not in bucket["Name"]] == [THEIRS]
    assert s3.list_object_versions(Bucket=THEIRS)["Versions"] == versions


def test_a_deployment_with_retain_false_is_needed_before_a_retained_environment_is_thrown_away(account):
    retained = environment_of("p5.4xlarge", retain=True)
    deploy(retained, "network", "storage")
    fill(retained)
    thrown = environment_of("p5.4xlarge", retain=False)
    templates = synthesise(thrown)
    for part in ("network", "storage"):
        assert change(thrown, part, templates[part]) == "UPDATE_COMPLETE", failures(thrown, part)
    destroy(thrown)
    left = {kind for kind, name in found(lambda service: client(thrown, service))}
    assert not left


def test_back_to_retain_true_empties_and_deletes_nothing(account):
    storage = load(FILES["p5.4xlarge"]).model_dump(mode="json", exclude_unset=True)["storage"] | {"home": HOMES}
    thrown = environment_of("p5.4xlarge", retain=False, storage=storage)
    deploy(thrown)
    buckets = fill(thrown)
    systems = client(thrown, "fsx").describe_file_systems()["FileSystems"]
    retained = environment_of("p5.4xlarge", retain=True, storage=storage)
    update(retained)
    kept = client(retained, "fsx").describe_file_systems()["FileSystems"]
    assert {each["FileSystemId"] for each in kept} == {each["FileSystemId"] for each in systems}
    s3 = client(retained, "s3")
    for bucket in buckets:
        versions = s3.list_object_versions(Bucket=bucket)["Versions"]
        assert {version["Key"] for version in versions} >= {"a", "b"}
        s3.put_object(Bucket=bucket, Key="still-writable", Body=b"")
    destroy(retained)
    assert set(buckets) <= {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}


def test_a_cluster_keeps_its_logs_when_it_is_retained_again(account):
    thrown = environment_of("eks-volcano", retain=False)
    deploy(thrown, "network", "storage", "control-plane")
    retained = synthesise(environment_of("eks-volcano", retain=True))
    for part in ("network", "storage", "control-plane"):
        assert change(thrown, part, retained[part]) == "UPDATE_COMPLETE", failures(thrown, part)
    eks = client(thrown, "eks")
    (name,) = eks.list_clusters()["clusters"]
    enabled = [
        setup for setup in eks.describe_cluster(name=name)["cluster"]["logging"]["clusterLogging"] if setup["enabled"]
    ]
    assert enabled
