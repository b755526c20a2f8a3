"""Templates as a whole: structure, parameters, conditions, rules, order."""

import json
from typing import Any

import pytest

from localaws import templates
from localaws.intrinsics import Scope, TemplateError

TOPIC = {"Type": "AWS::SNS::Topic"}


class Nowhere:
    """A region that nothing may be asked of."""


def scope(**parameters: Any) -> Scope:
    return Scope(parameters, {}, Nowhere())  # type: ignore[arg-type]


def no_ssm(name: str) -> str:
    raise AssertionError(name)


def test_yaml_short_forms_are_functions_and_dates_are_text() -> None:
    body = templates.parse(
        """
        Resources:
          A:
            Type: AWS::SNS::Topic
            Properties:
              TopicName: !Sub "${AWS::StackName}-a"
              DisplayName: !Join ["-", [!Ref B, !GetAtt B.Arn.Deep]]
              Version: 2012-10-17
              Enabled: true
        """
    )
    assert body["Resources"]["A"]["Properties"] == {
        "TopicName": {"Fn::Sub": "${AWS::StackName}-a"},
        "DisplayName": {"Fn::Join": ["-", [{"Ref": "B"}, {"Fn::GetAtt": ["B", "Arn.Deep"]}]]},
        "Version": "2012-10-17",
        "Enabled": True,
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"Resources": {}}, "At least one Resources member"),
        ({"Resources": {"A": TOPIC}, "Resourses": {}}, r"Invalid template property or properties \['Resourses'\]"),
        ({"Resources": {"A": {}}}, r"must contain a Type member \(A\)"),
        ({"Resources": {"A-1": TOPIC}}, "A-1 is non alphanumeric"),
        (
            {"Resources": {"A": {**TOPIC, "CreationPolicy": {}}}},
            r"Invalid template resource property \['CreationPolicy'\]",
        ),
        ({"Resources": {"A": {**TOPIC, "DeletionPolicy": "Keep"}}}, "DeletionPolicy Keep of A is not supported"),
        ({"Resources": {"A": TOPIC}, "Transform": "AWS::Serverless-2016-10-31"}, "No transform named AWS::Serverless"),
    ],
)
def test_wrong_structure_is_refused(body: dict[str, Any], words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        templates.parse(json.dumps(body))


@pytest.mark.parametrize("source", ["{", "a: [", "just text"])
def test_text_that_is_not_a_template_is_refused(source: str) -> None:
    with pytest.raises(TemplateError, match="Template format error"):
        templates.parse(source)


def test_parameters_have_given_default_list_and_ssm_values() -> None:
    body = {
        "Parameters": {
            "Given": {"Type": "String"},
            "Default": {"Type": "Number", "Default": 5},
            "List": {"Type": "List<AWS::EC2::Subnet::Id>", "Default": "a, b"},
            "Image": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": "/path"},
        }
    }
    values = templates.parameter_values(body, {"Given": "x"}, lambda name: f"value of {name}")
    assert values == {"Given": "x", "Default": "5", "List": ["a", "b"], "Image": "value of /path"}


@pytest.mark.parametrize(
    ("about", "given", "words"),
    [
        ({"Type": "String"}, {}, r"Parameters: \[P\] must have values"),
        ({"Type": "String"}, {"P": "x", "Q": "y"}, r"Parameters: \[Q\] do not exist"),
        ({"Type": "String", "AllowedValues": ["a", "b"]}, {"P": "c"}, "must be one of"),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, {"P": "a1"}, "must match pattern"),
        ({"Type": "String", "AllowedPattern": "a", "ConstraintDescription": "say a"}, {"P": "b"}, "constraint: say a"),
        ({"Type": "String", "MinLength": 3}, {"P": "ab"}, "must lie between 3 and any"),
        ({"Type": "Number", "MaxValue": 3}, {"P": "4"}, "must lie between any and 3"),
        ({"Type": "Number"}, {"P": "four"}, "must be a number"),
        ({"Type": "CommaDelimitedList", "AllowedValues": ["a"]}, {"P": "a,b"}, "must be one of"),
    ],
)
def test_wrong_parameters_are_refused(about: dict[str, Any], given: dict[str, str], words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        templates.parameter_values({"Parameters": {"P": about}}, given, no_ssm)


def test_conditions_may_use_each_other_in_any_order() -> None:
    body = {
        "Conditions": {
            "Both": {"Fn::And": [{"Condition": "One"}, {"Condition": "One"}]},
            "One": {"Fn::Equals": ["1", "1"]},
        }
    }
    assert templates.with_conditions(body, scope()).conditions == {"Both": True, "One": True}


def test_circular_conditions_are_refused() -> None:
    body = {"Conditions": {"A": {"Fn::Not": [{"Condition": "B"}]}, "B": {"Fn::Not": [{"Condition": "A"}]}}}
    with pytest.raises(TemplateError, match="Circular condition dependency"):
        templates.with_conditions(body, scope())


def test_rule_of_the_cdk_refuses_an_old_bootstrap() -> None:
    body = {
        "Rules": {
            "CheckBootstrapVersion": {
                "Assertions": [
                    {
                        "Assert": {"Fn::Not": [{"Fn::Contains": [["1", "2"], {"Ref": "BootstrapVersion"}]}]},
                        "AssertDescription": "bootstrap again",
                    }
                ]
            }
        }
    }
    templates.check_rules(body, scope(BootstrapVersion="30"))
    with pytest.raises(TemplateError, match="bootstrap again"):
        templates.check_rules(body, scope(BootstrapVersion="2"))


def order(resources: dict[str, Any], **conditions: bool) -> list[str]:
    return list(templates.declarations({"Resources": resources}, conditions))


def using(*names: str) -> dict[str, Any]:
    return {**TOPIC, "Properties": {"all": [{"Ref": name} for name in names]}}


def test_resources_follow_their_dependencies_and_the_template_order() -> None:
    assert order({"Z": using("B"), "B": TOPIC, "A": {**TOPIC, "DependsOn": ["Z"]}, "C": TOPIC}) == ["B", "C", "Z", "A"]


def test_order_does_not_depend_on_hashing() -> None:
    resources = {f"R{number}": using(*(f"R{other}" for other in range(number))) for number in range(20)}
    assert order(dict(reversed(resources.items()))) == list(resources)


def test_circular_dependency_is_refused_by_names() -> None:
    with pytest.raises(TemplateError, match=r"Circular dependency between resources: \[A, B\]"):
        order({"A": using("B"), "B": using("A"), "C": TOPIC})


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"A": using("Nope")}, r"dependencies \[Nope\] in the Resources block of the template \(used by A\)"),
        ({"A": {**TOPIC, "DependsOn": "Nope"}}, r"\['Nope'\] of resource A"),
        ({"A": using("B"), "B": {**TOPIC, "Condition": "No"}}, r"dependencies \[B\]"),
        ({"A": {**TOPIC, "Condition": "Perhaps"}}, "condition dependency Perhaps"),
    ],
)
def test_dangling_references_are_refused(resources: dict[str, Any], words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        order(resources, No=False)


def test_dangling_reference_of_an_output_is_refused() -> None:
    body = {"Resources": {"A": TOPIC}, "Outputs": {"Out": {"Value": {"Ref": "Nope"}}}}
    with pytest.raises(TemplateError, match=r"\[Nope\] in the Outputs block of the template \(used by Out\)"):
        templates.declarations(body, {})


def test_resource_with_a_false_condition_is_left_out() -> None:
    resources = {"A": {**TOPIC, "Condition": "No"}, "B": {**TOPIC, "DependsOn": "A"}}
    assert order(resources, No=False) == ["B"]


@pytest.mark.parametrize(
    ("about", "capability"),
    [
        ({"Type": "AWS::SNS::Topic"}, []),
        ({"Type": "AWS::IAM::Role"}, ["CAPABILITY_IAM"]),
        ({"Type": "AWS::IAM::Role", "Properties": {"RoleName": "r"}}, ["CAPABILITY_NAMED_IAM"]),
    ],
)
def test_iam_resources_need_a_capability(about: dict[str, Any], capability: list[str]) -> None:
    assert templates.required_capabilities({"Resources": {"A": about}}) == capability
