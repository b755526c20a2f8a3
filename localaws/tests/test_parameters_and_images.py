"""SSM parameters, ECR repositories and the CDK's metadata in stacks."""

from typing import Any

import pytest

from handler_parts import own_tags
from localaws import local_aws
from localaws.resources import client
from stack_parts import REGION, Stacks


@pytest.fixture
def stacks() -> Any:
    with local_aws():
        yield Stacks()


def parameter(**properties: Any) -> dict[str, Any]:
    return {"P": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v", **properties}}}


def described(name: str) -> dict[str, Any]:
    ssm = client("ssm", REGION)
    found: dict[str, Any] = ssm.describe_parameters(Filters=[{"Key": "Name", "Values": [name]}])["Parameters"][0]
    tags = ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId=name)["TagList"]
    return {
        **found,
        "Value": ssm.get_parameter(Name=name)["Parameter"]["Value"],
        "Tags": own_tags(tags),
    }


def test_parameter_without_a_name_gets_one(stacks: Stacks) -> None:
    stacks.create(parameter())
    assert stacks.ids()["P"].startswith("CFN-P-")


@pytest.mark.parametrize("properties", [{"AllowedPattern": "x"}, {"Name": "/taken"}])
def test_parameter_that_ssm_refuses_fails(stacks: Stacks, properties: dict[str, str]) -> None:
    client("ssm", REGION).put_parameter(Name="/taken", Value="theirs", Type="String")
    assert stacks.create(parameter(**properties)) == "ROLLBACK_COMPLETE"
    assert described("/taken")["Value"] == "theirs"


def test_stack_with_a_parameter_deleted_by_hand_is_deleted(stacks: Stacks) -> None:
    stacks.create(parameter(Name="/a"))
    client("ssm", REGION).delete_parameter(Name="/a")
    assert stacks.delete() == "DELETE_COMPLETE"


def repository(**properties: Any) -> dict[str, Any]:
    return {"R": {"Type": "AWS::ECR::Repository", "Properties": properties}}


def test_repository_with_a_bad_policy_leaves_nothing_behind(stacks: Stacks) -> None:
    assert stacks.create(repository(LifecyclePolicy={"LifecyclePolicyText": "x" * 100})) == "ROLLBACK_COMPLETE"
    assert client("ecr", REGION).describe_repositories()["repositories"] == []


def test_metadata_of_the_cdk_creates_nothing(stacks: Stacks) -> None:
    metadata = {"M": {"Type": "AWS::CDK::Metadata", "Properties": {"Analytics": "v2:deflate64:x"}}}
    assert stacks.create(metadata) == "CREATE_COMPLETE"
    assert stacks.delete() == "DELETE_COMPLETE"


def tags(ssm: Any, name: str) -> dict[str, str]:
    found = ssm.list_tags_for_resource(ResourceType="Document", ResourceId=name)["TagList"]
    return {each["Key"]: each["Value"] for each in found}
