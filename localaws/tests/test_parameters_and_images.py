"""SSM parameters, ECR repositories and the CDK's metadata in stacks."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import own_tags
from localaws import local_aws
from localaws.resources import client
from stack_parts import REGION, Stacks

LIFECYCLE = {
    "rules": [
        {
            "rulePriority": 1,
            "selection": {
                "tagStatus": "untagged",
                "countType": "sinceImagePushed",
                "countUnit": "days",
                "countNumber": 9,
            },
            "action": {"type": "expire"},
        }
    ]
}
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Sid": "a", "Effect": "Allow", "Principal": "*", "Action": "ecr:BatchGetImage"}],
}


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


def test_parameter_is_read_back_changed_and_deleted(stacks: Stacks) -> None:
    given = {"Name": "/a/b", "Description": "d", "AllowedPattern": "v.*", "Tier": "Standard", "DataType": "text"}
    attributes = {"Arn": {"Value": {"Fn::GetAtt": ["P", "Arn"]}}, "Value": {"Value": {"Fn::GetAtt": ["P", "Value"]}}}
    stacks.create(parameter(**given, Tags={"a": "1", "b": "2"}), Outputs=attributes)
    found = described("/a/b")
    assert {key: found[key] for key in given} == given
    assert (found["Value"], found["Tags"]) == ("v", {"a": "1", "b": "2"})
    assert stacks.outputs() == {"Arn": f"arn:aws:ssm:{REGION}:123456789012:parameter/a/b", "Value": "v"}
    stacks.update(parameter(Name="/a/b", Value="other", Tags={"b": "3"}), Outputs=attributes)
    found = described("/a/b")
    assert (found["Value"], found["Tags"]) == ("other", {"b": "3"})
    assert not found.get("Description")
    assert not found.get("AllowedPattern")
    stacks.delete()
    with pytest.raises(ClientError, match="ParameterNotFound"):
        client("ssm", REGION).get_parameter(Name="/a/b")


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


def test_repository_is_read_back_changed_and_deleted(stacks: Stacks) -> None:
    given = {
        "ImageTagMutability": "IMMUTABLE",
        "ImageScanningConfiguration": {"ScanOnPush": True},
        "LifecyclePolicy": {"LifecyclePolicyText": json.dumps(LIFECYCLE)},
        "RepositoryPolicyText": POLICY,
        "Tags": [{"Key": "a", "Value": "1"}],
    }
    outputs = {"Uri": {"Value": {"Fn::GetAtt": ["R", "RepositoryUri"]}}}
    assert stacks.create(repository(**given), Outputs=outputs) == "CREATE_COMPLETE"
    ecr, name = client("ecr", REGION), stacks.ids()["R"]
    found = ecr.describe_repositories(repositoryNames=[name])["repositories"][0]
    assert (found["imageTagMutability"], found["imageScanningConfiguration"]) == ("IMMUTABLE", {"scanOnPush": True})
    assert json.loads(ecr.get_lifecycle_policy(repositoryName=name)["lifecyclePolicyText"]) == LIFECYCLE
    assert json.loads(ecr.get_repository_policy(repositoryName=name)["policyText"]) == POLICY
    assert stacks.outputs()["Uri"] == found["repositoryUri"]
    assert stacks.update(repository()) == "UPDATE_COMPLETE"
    found = ecr.describe_repositories(repositoryNames=[name])["repositories"][0]
    assert (found["imageTagMutability"], found["imageScanningConfiguration"]) == ("MUTABLE", {"scanOnPush": False})
    assert own_tags(ecr.list_tags_for_resource(resourceArn=found["repositoryArn"])["tags"]) == {}
    with pytest.raises(ClientError, match="LifecyclePolicyNotFoundException"):
        ecr.get_lifecycle_policy(repositoryName=name)
    assert stacks.delete() == "DELETE_COMPLETE"
    assert ecr.describe_repositories()["repositories"] == []


def test_repository_with_a_bad_policy_leaves_nothing_behind(stacks: Stacks) -> None:
    assert stacks.create(repository(LifecyclePolicy={"LifecyclePolicyText": "x" * 100})) == "ROLLBACK_COMPLETE"
    assert client("ecr", REGION).describe_repositories()["repositories"] == []


def test_metadata_of_the_cdk_creates_nothing(stacks: Stacks) -> None:
    metadata = {"M": {"Type": "AWS::CDK::Metadata", "Properties": {"Analytics": "v2:deflate64:x"}}}
    assert stacks.create(metadata) == "CREATE_COMPLETE"
    assert stacks.delete() == "DELETE_COMPLETE"


CONTENT = {
    "schemaVersion": "2.2",
    "parameters": {"node": {"type": "String", "allowedPattern": "^[a-z0-9-]+$"}},
    "mainSteps": [{"action": "aws:runShellScript", "name": "run", "inputs": {"runCommand": ["drain {{ node }}"]}}],
}


def document(content: Any = CONTENT, **properties: Any) -> dict[str, Any]:
    given = {"DocumentType": "Command", "Content": content, "UpdateMethod": "NewVersion", **properties}
    return {"D": {"Type": "AWS::SSM::Document", "Properties": given}}


def tags(ssm: Any, name: str) -> dict[str, str]:
    found = ssm.list_tags_for_resource(ResourceType="Document", ResourceId=name)["TagList"]
    return {each["Key"]: each["Value"] for each in found}


def test_a_changed_document_gets_a_version_that_becomes_the_default(stacks: Any) -> None:
    stacks.create(document(Tags=[{"Key": "old", "Value": "a"}]))
    ssm = client("ssm", REGION)
    [name] = [
        each["Name"]
        for each in ssm.list_documents(Filters=[{"Key": "Owner", "Values": ["Self"]}])["DocumentIdentifiers"]
    ]
    assert json.loads(ssm.get_document(Name=name)["Content"]) == CONTENT
    assert tags(ssm, name)["old"] == "a"
    changed = {**CONTENT, "description": "new"}
    stacks.update(document(changed, Tags=[{"Key": "new", "Value": "b"}]))
    assert tags(ssm, name)["new"] == "b"
    assert "old" not in tags(ssm, name)
    assert json.loads(ssm.get_document(Name=name)["Content"]) == changed
    assert ssm.describe_document(Name=name)["Document"]["DefaultVersion"] == "2"


def test_a_document_that_uses_an_undeclared_parameter_is_refused(stacks: Any) -> None:
    content = {**CONTENT, "parameters": {}}
    stacks.create(document(content))
    assert "parameters node are not defined" in stacks.event_reason("D", "CREATE_FAILED")
