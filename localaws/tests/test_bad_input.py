"""Templates that CloudFormation refuses: its own words, with the logical id, and nothing of the stack remains."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws import local_aws
from localaws.resources import client

REGION = "us-west-2"
QUEUE: dict[str, Any] = {"Type": "AWS::SQS::Queue"}
OTHER = {"Other": QUEUE}  # a good resource beside the bad one


@pytest.fixture(scope="module")
def one_account() -> Iterator[Any]:
    with local_aws():
        yield client("cloudformation", REGION)


@pytest.fixture
def cloudformation(one_account: Any) -> Iterator[Any]:
    yield one_account
    for stack in one_account.describe_stacks()["Stacks"]:
        one_account.delete_stack(StackName=stack["StackId"])


def nothing_remains(cloudformation: Any) -> None:
    assert cloudformation.describe_stacks()["Stacks"] == []
    assert client("sqs", REGION).list_queues().get("QueueUrls", []) == []


def of(bad: dict[str, Any]) -> dict[str, Any]:
    return {"Resources": {**OTHER, "Bad": bad}}


def using(value: Any) -> dict[str, Any]:
    return of({**QUEUE, "Properties": {"QueueName": value}})


def with_more(**sections: Any) -> dict[str, Any]:
    return {"Resources": OTHER, **sections}


def many(count: int, about: dict[str, Any]) -> dict[str, Any]:
    return {f"N{number}": about for number in range(count)}


PARAMETER = {"Type": "String", "Default": "a"}
OUTPUT = {"Value": "a"}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "format version": (with_more(AWSTemplateFormatVersion="2012-10-17"), "unsupported value for AWSTemplateFormat"),
    "unknown type": (of({"Type": "AWS::SQS::Kueue"}), "Unrecognized resource types: [AWS::SQS::Kueue]"),
    "no handler": (of({"Type": "AWS::Neptune::DBCluster"}), "no handler for these resource types: [AWS::Neptune"),
    "no type": (of({"Properties": {}}), "every Resources object must contain a Type member (Bad)"),
    "not a resource": ({"Resources": {"Bad": "AWS::SQS::Queue"}}, "must contain a Type member (Bad)"),
    "no resources": ({"Resources": {}}, "At least one Resources member must be defined"),
    "unknown section": ({"Resources": OTHER, "Output": {}}, "Invalid template property or properties ['Output']"),
    "unknown attribute": (of({**QUEUE, "Property": {}}), "resource property ['Property'] of resource Bad"),
    "logical id": ({"Resources": {"a-b": QUEUE}}, "Resource name a-b is non alphanumeric"),
    "reference": (using({"Ref": "Nowhere"}), "Unresolved resource dependencies [Nowhere] in the Resources block"),
    "attribute of nothing": (using({"Fn::GetAtt": ["Nowhere", "Arn"]}), "dependencies [Nowhere]"),
    "variable": (using({"Fn::Sub": "${Nowhere}"}), "Unresolved resource dependencies [Nowhere]"),
    "dependency": (of({**QUEUE, "DependsOn": "Nowhere"}), "dependencies ['Nowhere'] of resource Bad"),
    "condition": (of({**QUEUE, "Condition": "Nowhere"}), "Unresolved condition dependency Nowhere"),
    "output": (with_more(Outputs={"O": {"Value": {"Ref": "Nowhere"}}}), "in the Outputs block of the template"),
    "circle": (
        {"Resources": {**OTHER, "A": {**QUEUE, "DependsOn": "B"}, "B": {**QUEUE, "DependsOn": "A"}}},
        "Circular dependency between resources: [A, B]",
    ),
    "circle of one": (of({**QUEUE, "DependsOn": "Bad"}), "Circular dependency between resources: [Bad]"),
    "function": (using({"Fn::Reverse": "abc"}), "Fn::Reverse"),
    "macro": (using({"Fn::Transform": {"Name": "Mine"}}), "Fn::Transform"),
    "transform": (with_more(Transform="AWS::Serverless-2016-10-31"), "No transform named AWS::Serverless"),
    "extension without its transform": (using({"Fn::ToJsonString": {}}), "Fn::ToJsonString"),
    "mapping": (using({"Fn::FindInMap": ["M", "a", "b"]}), "Unable to get mapping for M::a::b"),
    "cidr": (using({"Fn::Select": [0, {"Fn::Cidr": ["here", 2, 8]}]}), "Fn::Cidr"),
    "count of a cidr": (using({"Fn::Select": [0, {"Fn::Cidr": ["10.0.0.0/16", "x", 8]}]}), "Fn::Cidr"),
    "select": (using({"Fn::Select": ["x", ["a"]]}), "Fn::Select cannot select nonexistent value at index x"),
    "join": (using({"Fn::Join": "-"}), "Fn::Join"),
    "split": (using({"Fn::Split": [",", ["a"]]}), "Fn::Split"),
    "sub": (using({"Fn::Sub": ["${a}", "b"]}), "Fn::Sub"),
    "resources": ({"Resources": many(501, QUEUE)}, "Number of resources, 501, is greater than maximum allowed, 500"),
    "outputs": (with_more(Outputs=many(201, OUTPUT)), "Outputs count 201 is greater than max allowed 200"),
    "parameters": (with_more(Parameters=many(201, PARAMETER)), "Parameter count 201 is greater than max allowed 200"),
    "mappings": (with_more(Mappings=many(201, {"a": {"b": "c"}})), "Mappings count 201 is greater than max"),
    "attributes of a mapping": (with_more(Mappings={"M": many(201, {"b": "c"})}), "201 attributes of mapping M"),
    "description": (with_more(Description="a" * 1025), "'Description' length is greater than 1024"),
    "size": (with_more(Metadata={"a": "b" * 1_000_000}), "Template may not exceed 1000000 bytes in size"),
    "default of a parameter": (
        with_more(Parameters={"Big": {"Type": "String", "Default": "a" * 4097}}),
        "Parameter Big: the value has 4097 bytes; the maximum is 4096",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("by_change_set", [False, True])
def test_a_bad_template_is_refused_and_nothing_is_made(cloudformation: Any, case: str, by_change_set: bool) -> None:
    template, words = REFUSED[case]
    request = {"StackName": "bad", "TemplateBody": json.dumps(template)}
    change_set = partial(cloudformation.create_change_set, ChangeSetName="bad", ChangeSetType="CREATE")
    with pytest.raises(ClientError) as caught:
        (change_set if by_change_set else cloudformation.create_stack)(**request)
    error = caught.value.response["Error"]
    assert error["Code"] == "ValidationError"
    assert words in error["Message"]
    nothing_remains(cloudformation)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({**QUEUE, "Properties": {"Colour": "red"}}, "Colour"),
        ({**QUEUE, "Properties": {"DelaySeconds": "soon"}}, "DelaySeconds"),
        ({**QUEUE, "Properties": {"QueueName": {"Fn::GetAtt": ["Other", "Colour"]}}}, "attribute type Colour"),
        ({**QUEUE, "Properties": {"QueueName": {"Fn::ImportValue": "nowhere"}}}, "No export named nowhere found"),
    ],
)
def test_a_bad_property_fails_its_resource_and_the_stack_rolls_back(
    cloudformation: Any, bad: dict[str, Any], words: str
) -> None:
    stack = cloudformation.create_stack(StackName="bad", TemplateBody=json.dumps(of(bad)))["StackId"]
    (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    assert found["StackStatus"] == "ROLLBACK_COMPLETE"
    events = cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
    (failed,) = [event for event in events if event["ResourceStatus"] == "CREATE_FAILED"]
    assert (failed["LogicalResourceId"], words in failed["ResourceStatusReason"]) == ("Bad", True)
    cloudformation.delete_stack(StackName=stack)
    nothing_remains(cloudformation)


def test_a_parameter_s_value_is_at_most_4096_bytes(cloudformation: Any) -> None:
    template = {"Resources": OTHER, "Parameters": {"Big": {"Type": "String"}}}
    request = {"StackName": "bad", "TemplateBody": json.dumps(template)}
    with pytest.raises(ClientError, match="Parameter Big: the value has 4098 bytes; the maximum is 4096"):
        cloudformation.create_stack(**request, Parameters=[{"ParameterKey": "Big", "ParameterValue": "é" * 2049}])
    nothing_remains(cloudformation)
    cloudformation.create_stack(**request, Parameters=[{"ParameterKey": "Big", "ParameterValue": "é" * 2048}])
    cloudformation.delete_stack(StackName="bad")


def test_an_update_with_a_bad_template_changes_nothing(cloudformation: Any) -> None:
    cloudformation.create_stack(StackName="good", TemplateBody=json.dumps({"Resources": OTHER}))
    for template, words in REFUSED.values():
        with pytest.raises(ClientError) as caught:
            cloudformation.update_stack(StackName="good", TemplateBody=json.dumps(template))
        assert words in str(caught.value)
    (found,) = cloudformation.describe_stacks(StackName="good")["Stacks"]
    assert found["StackStatus"] == "CREATE_COMPLETE"
    cloudformation.delete_stack(StackName="good")
    nothing_remains(cloudformation)


@pytest.mark.parametrize("name", ["my_stack", "1st", "a" * 129])
def test_a_stack_name_that_cloudformation_refuses(cloudformation: Any, name: str) -> None:
    template = json.dumps({"Resources": OTHER})
    for create, more in (
        ("create_stack", {}),
        ("create_change_set", {"ChangeSetName": "a", "ChangeSetType": "CREATE"}),
    ):
        with pytest.raises(ClientError, match="at 'stackName' failed to satisfy constraint"):
            getattr(cloudformation, create)(StackName=name, TemplateBody=template, **more)
    nothing_remains(cloudformation)
