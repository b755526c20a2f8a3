"""Template functions, one by one."""

from dataclasses import replace
from typing import Any

import pytest

from localaws.intrinsics import (
    LANGUAGE_EXTENSIONS,
    PENDING,
    Scope,
    TemplateError,
    evaluate_condition,
    pending,
    references,
    resolve,
)
from localaws.resources import Resource


class Region:
    def exported(self, name: str) -> str:
        return f"export of {name}"

    def stack_output(self, stack: str, output: str, region: str | None) -> str:
        return f"{stack}.{output}@{region}"

    def ssm_parameter(self, name: str, version: str | None) -> str:
        return f"ssm {name} {version}"

    def zones(self, region: str) -> list[str]:
        return [f"{region}a", f"{region}b"]


SCOPE = Scope(
    parameters={"AWS::Region": "us-east-2", "AWS::AccountId": "1", "Size": "3", "Names": ["a", "b"]},
    mappings={"Map": {"us-east-2": {"Ami": "ami-1", "List": ["x", "y"]}}},
    lookup=Region(),
    conditions={"Yes": True, "No": False},
    resources={"Vpc": Resource("vpc-1", {"Arn": "arn:vpc", "Endpoint.Port": "80"}), "New": PENDING},
    transforms=frozenset({LANGUAGE_EXTENSIONS}),
)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"Ref": "Vpc"}, "vpc-1"),
        ({"Ref": "Names"}, ["a", "b"]),
        ({"Fn::GetAtt": ["Vpc", "Arn"]}, "arn:vpc"),
        ({"Fn::GetAtt": "Vpc.Arn"}, "arn:vpc"),
        ({"Fn::GetAtt": ["Vpc", "Endpoint.Port"]}, "80"),
        ({"Fn::Sub": "${Vpc}/${Vpc.Arn}/${AWS::Region}/${!Kept}/${Size}"}, "vpc-1/arn:vpc/us-east-2/${Kept}/3"),
        ({"Fn::Sub": ["${Own}-${Size}", {"Own": {"Ref": "Vpc"}}]}, "vpc-1-3"),
        ({"Fn::Join": ["-", ["a", 1, True, {"Ref": "Size"}]]}, "a-1-true-3"),
        ({"Fn::Join": [",", {"Ref": "Names"}]}, "a,b"),
        ({"Fn::Split": ["|", "a|b|"]}, ["a", "b", ""]),
        ({"Fn::Select": ["1", {"Fn::GetAZs": ""}]}, "us-east-2b"),
        ({"Fn::GetAZs": {"Ref": "AWS::Region"}}, ["us-east-2a", "us-east-2b"]),
        ({"Fn::Cidr": ["10.0.0.0/16", 3, "8"]}, ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]),
        ({"Fn::Cidr": ["2001:db8::/56", "2", "64"]}, ["2001:db8::/64", "2001:db8:0:1::/64"]),
        ({"Fn::If": ["Yes", {"Ref": "Vpc"}, {"Ref": "Nowhere"}]}, "vpc-1"),
        ({"Fn::FindInMap": ["Map", {"Ref": "AWS::Region"}, "Ami"]}, "ami-1"),
        ({"Fn::FindInMap": ["Map", "eu", "Ami", {"DefaultValue": "none"}]}, "none"),
        ({"Fn::Base64": "user data"}, "dXNlciBkYXRh"),
        ({"Fn::ImportValue": {"Fn::Sub": "${Size}-x"}}, "export of 3-x"),
        ({"Fn::GetStackOutput": {"StackName": "s", "OutputName": "o", "Region": "eu"}}, "s.o@eu"),
        ({"Fn::Length": {"Ref": "Names"}}, 2),
        ({"Fn::ToJsonString": {"a": [{"Ref": "Vpc"}]}}, '{"a":["vpc-1"]}'),
        ("{{resolve:ssm:/a/b:2}} and {{resolve:ssm:/c}}", "ssm /a/b 2 and ssm /c None"),
        ({"a": {"Ref": "AWS::NoValue"}, "b": [1, {"Ref": "AWS::NoValue"}]}, {"b": [1]}),
        ({"Fn::If": ["No", 1, {"Ref": "AWS::NoValue"}], "other": 2}, {"Fn::If": ["No", 1], "other": 2}),
        ({"Condition": {"StringEquals": {"a": "b"}}}, {"Condition": {"StringEquals": {"a": "b"}}}),
    ],
)
def test_functions(value: Any, result: Any) -> None:
    assert resolve(value, SCOPE) == result


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"Ref": "Nowhere"}, r"Unresolved resource dependencies \[Nowhere\]"),
        ({"Fn::GetAtt": ["Nowhere", "Arn"]}, "undefined resource Nowhere"),
        ({"Fn::GetAtt": ["Vpc", "Colour"]}, "resource Vpc does not support attribute type Colour"),
        ({"Fn::Sub": "${Names}"}, "variable Names in Fn::Sub expression does not resolve to a string"),
        ({"Fn::Select": [5, ["a"]]}, "nonexistent value at index 5"),
        ({"Fn::FindInMap": ["Map", "eu", "Ami"]}, "Unable to get mapping for Map::eu::Ami"),
        ({"Fn::If": ["Perhaps", 1, 2]}, "unresolved condition dependency Perhaps"),
        ({"Fn::Cidr": ["10.0.0.0/24", 2, "8"]}, "cannot cut 2 blocks"),
        ({"Fn::Transform": {"Name": "AWS::Include"}}, "Fn::Transform is not supported"),
        ({"Fn::Join": ["-", "text"]}, "list of strings"),
        ({"Fn::GetStackOutput": {"StackName": "s", "OutputName": "o", "RoleArn": "r"}}, "Fn::GetStackOutput takes"),
        ("{{resolve:secretsmanager:a:SecretString}}", "only {{resolve:ssm:...}} is"),
    ],
)
def test_misuse_is_refused_by_name(value: Any, words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        resolve(value, SCOPE)


def test_extensions_need_their_transform() -> None:
    with pytest.raises(TemplateError, match="Fn::Length needs the transform AWS::LanguageExtensions"):
        resolve({"Fn::Length": ["a"]}, replace(SCOPE, transforms=frozenset()))


@pytest.mark.parametrize(
    "value",
    [
        {"Ref": "New"},
        {"Fn::GetAtt": ["New", "Anything"]},
        {"Fn::Sub": "a ${New.Arn}"},
        {"Fn::Join": ["-", ["a", {"Ref": "New"}]]},
        {"Fn::Select": [0, {"Fn::Split": ["/", {"Ref": "New"}]}]},
        [{"deep": {"Ref": "New"}}],
    ],
)
def test_values_of_a_resource_to_be_created_are_pending(value: Any) -> None:
    assert pending(resolve(value, SCOPE))


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ({"Fn::Equals": [{"Ref": "Size"}, 3]}, True),
        ({"Fn::Not": [{"Condition": "Yes"}]}, False),
        ({"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]}, False),
        ({"Fn::Or": [{"Condition": "Yes"}, {"Condition": "No"}]}, True),
        ({"Fn::Contains": [["1", "2"], "2"]}, True),
        ({"Fn::EachMemberIn": [{"Ref": "Names"}, ["a"]]}, False),
        ({"Fn::EachMemberEquals": [["a", "a"], "a"]}, True),
    ],
)
def test_conditions(condition: Any, truth: bool) -> None:
    assert evaluate_condition(condition, SCOPE, SCOPE.conditions.__getitem__) is truth


def test_references_follow_only_the_selected_branch() -> None:
    value = {
        "a": {"Fn::If": ["No", {"Ref": "Skipped"}, {"Fn::GetAtt": ["Taken", "Arn"]}]},
        "b": {"Fn::Sub": ["${Here.Name}${Own}${!Not}", {"Own": {"Ref": "Deep"}}]},
    }
    assert set(references(value, SCOPE.conditions)) == {("Taken", "Arn"), ("Here", "Name"), ("Deep", None)}
