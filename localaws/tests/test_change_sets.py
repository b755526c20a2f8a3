"""Change sets and the rest of CloudFormation's API, as the CDK CLI uses them."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.resources import client
from stack_parts import REGION, Fake, Stacks, queue, topic

NO_CHANGES = "The submitted information didn't contain changes."  # the CDK CLI looks for these words


def propose(stacks: Stacks, resources: dict[str, Any], kind: str = "UPDATE", **options: Any) -> dict[str, Any]:
    sections = {key: options.pop(key) for key in list(options) if key in ("Outputs", "Parameters")}
    body = json.dumps({"Resources": resources, **sections})
    made = stacks.api.create_change_set(
        StackName="stack", ChangeSetName="set", ChangeSetType=kind, TemplateBody=body, **options
    )
    found: dict[str, Any] = stacks.api.describe_change_set(ChangeSetName=made["Id"])
    return found


def changes(found: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    """(action, replacement) by logical id."""
    told = [change["ResourceChange"] for change in found["Changes"]]
    return {change["LogicalResourceId"]: (change["Action"], change.get("Replacement")) for change in told}


def execute(stacks: Stacks, **options: Any) -> str:
    stacks.api.execute_change_set(StackName="stack", ChangeSetName="set", **options)
    return stacks.status()


def test_creation_is_planned_then_executed(stacks: Stacks) -> None:
    found = propose(stacks, {"A": topic(), "B": queue(KmsMasterKeyId={"Ref": "A"})}, "CREATE")
    assert (found["Status"], found["ExecutionStatus"]) == ("CREATE_COMPLETE", "AVAILABLE")
    assert changes(found) == {"A": ("Add", None), "B": ("Add", None)}
    assert (stacks.status(), Fake.calls) == ("REVIEW_IN_PROGRESS", [])
    assert execute(stacks) == "CREATE_COMPLETE"


def test_plan_lists_replacements_and_their_dependents(stacks: Stacks) -> None:
    def resources(name: str, display: str) -> dict[str, Any]:
        return {
            "A": topic(TopicName=name),
            "B": queue(QueueName={"Ref": "A"}),
            "C": topic(DisplayName=display),
            "D": queue(VisibilityTimeout={"Fn::GetAtt": ["C", "Version"]}),
            "E": topic(DisplayName="same"),
        }

    stacks.create({**resources("one", "one"), "F": topic()})
    found = propose(stacks, {**resources("two", "two"), "G": topic()})
    assert changes(found) == {
        "A": ("Modify", "True"),
        "B": ("Modify", "Conditional"),
        "C": ("Modify", "False"),
        "D": ("Modify", "False"),
        "F": ("Remove", None),
        "G": ("Add", None),
    }
    detail = found["Changes"][0]["ResourceChange"]["Details"][0]
    assert detail["Target"] == {"Attribute": "Properties", "Name": "TopicName", "RequiresRecreation": "Always"}
    assert Fake.calls.count("create A") == 1


def test_no_change_has_the_message_of_aws(stacks: Stacks) -> None:
    stacks.create({"A": topic()})
    found = propose(stacks, {"A": topic()})
    assert (found["Status"], found["ExecutionStatus"], found["Changes"]) == ("FAILED", "UNAVAILABLE", [])
    assert found["StatusReason"].startswith(NO_CHANGES)
    with pytest.raises(ClientError, match="InvalidChangeSetStatus"):
        execute(stacks)
    with pytest.raises(ClientError, match=r"No updates are to be performed\."):
        stacks.update({"A": topic()})


@pytest.mark.parametrize(
    "options",
    [{"Outputs": {"New": {"Value": "x"}}}, {"Tags": [{"Key": "a", "Value": "b"}]}],
    ids=["outputs", "tags"],
)
def test_outputs_and_tags_are_changes_too(stacks: Stacks, options: dict[str, Any]) -> None:
    stacks.create({"A": topic(DisplayName="x")})
    assert propose(stacks, {"A": topic(DisplayName="x")}, **options)["Status"] == "CREATE_COMPLETE"
    assert execute(stacks) == "UPDATE_COMPLETE"


def test_metadata_and_policies_change_in_place_without_the_handler(stacks: Stacks) -> None:
    stacks.create({"A": topic()})
    kept = {**topic(), "DeletionPolicy": "Retain", "Metadata": {"path": "a"}}
    assert changes(propose(stacks, {"A": kept})) == {"A": ("Modify", "False")}
    assert execute(stacks) == "UPDATE_COMPLETE"
    assert Fake.calls == ["create A"]
    stacks.delete()
    assert len(Fake.there) == 1


def test_change_set_names_belong_to_their_stack(stacks: Stacks) -> None:
    for name in ("one", "two"):
        body = json.dumps({"Resources": {name: topic()}})
        stacks.api.create_change_set(StackName=name, ChangeSetName="set", ChangeSetType="CREATE", TemplateBody=body)
    stacks.api.execute_change_set(StackName="two", ChangeSetName="set")
    assert Fake.calls == ["create two"]
    assert stacks.status("one") == "REVIEW_IN_PROGRESS"


def test_deleting_a_missing_change_set_is_no_error(stacks: Stacks) -> None:
    propose(stacks, {"A": topic()}, "CREATE")
    for _ in range(2):
        stacks.api.delete_change_set(StackName="stack", ChangeSetName="set")
    with pytest.raises(ClientError, match="ChangeSetNotFound"):
        stacks.api.describe_change_set(StackName="stack", ChangeSetName="set")


def test_execution_deletes_all_change_sets_of_the_stack(stacks: Stacks) -> None:
    propose(stacks, {"A": topic()}, "CREATE")
    execute(stacks)
    assert stacks.api.list_change_sets(StackName="stack")["Summaries"] == []


def test_failing_change_set_can_stay_for_repair(stacks: Stacks) -> None:
    propose(stacks, {"A": topic(), "B": {**topic(DisplayName="refused"), "DependsOn": "A"}}, "CREATE")
    assert execute(stacks, DisableRollback=True) == "CREATE_FAILED"
    assert stacks.stack()["DisableRollback"]


def test_previous_parameters_are_kept_and_ssm_values_are_read_again(stacks: Stacks) -> None:
    ssm = client("ssm", REGION)
    ssm.put_parameter(Name="/image", Value="one", Type="String")
    parameters = {
        "Image": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/image"},
        "Own": {"Type": "String"},
    }
    template = {
        "Parameters": parameters,
        "Resources": {"A": topic(DisplayName={"Fn::Sub": "${Image}-${Own}"})},
    }
    body = json.dumps(template)
    stacks.api.create_stack(
        StackName="stack", TemplateBody=body, Parameters=[{"ParameterKey": "Own", "ParameterValue": "x"}]
    )
    shown = {
        row["ParameterKey"]: (row["ParameterValue"], row.get("ResolvedValue")) for row in stacks.stack()["Parameters"]
    }
    assert shown == {"Image": ("/image", "one"), "Own": ("x", None)}
    ssm.put_parameter(Name="/image", Value="two", Type="String", Overwrite=True)
    previous = [{"ParameterKey": name, "UsePreviousValue": True} for name in parameters]
    stacks.api.update_stack(StackName="stack", UsePreviousTemplate=True, Parameters=previous)
    assert Fake.there[stacks.ids()["A"]] == {"DisplayName": "two-x"}


def test_missing_ssm_parameter_is_refused(stacks: Stacks) -> None:
    body = {"Parameters": {"P": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/no"}}}
    with pytest.raises(ClientError, match=r"Unable to fetch parameters \[/no\] from parameter store"):
        stacks.create({"A": topic()}, **body)


@pytest.mark.parametrize(
    "url",
    [
        "https://templates.s3.us-east-2.amazonaws.com/dir/a%20template.json",
        "https://s3.us-east-2.amazonaws.com/templates/dir/a%20template.json",
        "http://localhost:1234/templates/dir/a%20template.json",
    ],
)
def test_template_comes_from_a_bucket(stacks: Stacks, url: str) -> None:
    s3 = client("s3", REGION)
    s3.create_bucket(Bucket="templates", CreateBucketConfiguration={"LocationConstraint": REGION})
    body = json.dumps({"Resources": {"A": topic()}})
    s3.put_object(Bucket="templates", Key="dir/a template.json", Body=body)
    stacks.api.create_stack(StackName="stack", TemplateURL=url)
    assert json.loads(json.dumps(stacks.api.get_template(StackName="stack")["TemplateBody"])) == json.loads(body)


@pytest.mark.parametrize(
    ("capabilities", "allowed"),
    [([], False), (["CAPABILITY_IAM"], False), (["CAPABILITY_NAMED_IAM"], True)],
)
def test_named_iam_resources_need_a_capability(stacks: Stacks, capabilities: list[str], allowed: bool) -> None:
    trust = {
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]
    }
    role = {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "own", "AssumeRolePolicyDocument": trust}}
    if allowed:
        assert stacks.create({"R": role}, Capabilities=capabilities) == "CREATE_COMPLETE"
    else:
        with pytest.raises(ClientError, match=r"Requires capabilities : \[CAPABILITY_NAMED_IAM\]"):
            stacks.create({"R": role}, Capabilities=capabilities)


def test_role_of_the_deployment_must_exist(stacks: Stacks) -> None:
    with pytest.raises(ClientError, match="role/nobody is invalid or cannot be assumed"):
        stacks.create({"A": topic()}, RoleARN="arn:aws:iam::123456789012:role/nobody")


def test_options_that_would_be_ignored_are_refused(stacks: Stacks) -> None:
    with pytest.raises(ClientError, match="does not support StackPolicyBody, TimeoutInMinutes"):
        stacks.create({"A": topic()}, TimeoutInMinutes=5, StackPolicyBody="{}")


def test_resources_are_listed_and_found_by_physical_id(stacks: Stacks) -> None:
    stacks.create({"A": topic()})
    physical_id = stacks.ids()["A"]
    rows = stacks.api.describe_stack_resources(PhysicalResourceId=physical_id)["StackResources"]
    assert [(row["StackName"], row["LogicalResourceId"], row["ResourceStatus"]) for row in rows] == [
        ("stack", "A", "CREATE_COMPLETE")
    ]
    detail = stacks.api.describe_stack_resource(StackName="stack", LogicalResourceId="A")["StackResourceDetail"]
    assert detail["PhysicalResourceId"] == physical_id


def test_deleted_stack_is_found_by_id_only(stacks: Stacks) -> None:
    stacks.create({"A": topic()})
    stack_id = stacks.stack()["StackId"]
    stacks.delete()
    assert stacks.status(stack_id) == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="Stack with id stack does not exist"):
        stacks.stack()
    summaries = stacks.api.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    assert [summary["StackId"] for summary in summaries] == [stack_id]


def test_template_summary_has_parameters_and_capabilities(stacks: Stacks) -> None:
    body = {"Parameters": {"P": {"Type": "String", "Default": "d"}}, "Resources": {"R": {"Type": "AWS::IAM::Role"}}}
    for call in (stacks.api.get_template_summary, stacks.api.validate_template):
        told = call(TemplateBody=json.dumps(body))
        assert told["Capabilities"] == ["CAPABILITY_IAM"]
        assert [(row["ParameterKey"], row["DefaultValue"]) for row in told["Parameters"]] == [("P", "d")]


def test_hidden_parameters_stay_hidden(stacks: Stacks) -> None:
    stacks.create({"A": topic()}, Parameters={"P": {"Type": "String", "Default": "secret", "NoEcho": True}})
    assert stacks.stack()["Parameters"][0]["ParameterValue"] == "****"


def test_operation_events_can_be_only_the_failures(stacks: Stacks) -> None:
    stacks.create({"A": topic(DisplayName="refused")})
    told = stacks.api.describe_events(StackName="stack", Filters={"FailedEvents": True})["OperationEvents"]
    assert [(event["LogicalResourceId"], event["ResourceStatusReason"]) for event in told] == [("A", "A is refused")]
