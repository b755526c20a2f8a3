"""Properties against the registry's schemas."""

from typing import Any

import pytest

from localaws import schemas
from localaws.properties import replacement

REGION = "us-east-2"


@pytest.mark.parametrize(
    ("type_name", "properties", "problem"),
    [
        ("AWS::S3::Bucket", {"Colour": 1}, "#: extraneous key [Colour] is not permitted"),
        (
            "AWS::S3::Bucket",
            {"VersioningConfiguration": {"Status": "On"}},
            "#/VersioningConfiguration/Status: 'On' is not",
        ),
        ("AWS::PCS::Cluster", {"Networking": {}, "Scheduler": {}}, "#: required key [Size] not found"),
        ("AWS::PCS::Cluster", {"Arn": "x"}, "#: extraneous key [Arn] is read-only"),
        ("AWS::SSM::Parameter", {"Type": "String", "Value": "v", "Tags": {"a\x00": "b"}}, "extraneous key [a\x00]"),
        (
            "AWS::IAM::Role",
            {"AssumeRolePolicyDocument": {}, "MaxSessionDuration": "x"},
            "#/MaxSessionDuration: 'x' is not",
        ),
    ],
)
def test_invalid_properties_are_refused_in_cloudformations_words(
    type_name: str, properties: dict[str, Any], problem: str
) -> None:
    assert any(problem in said for said in schemas.problems(type_name, properties, REGION))


def test_each_problem_is_reported_once() -> None:
    said = schemas.problems("AWS::PCS::Cluster", {}, REGION)
    assert said == [f"#: required key [{name}] not found" for name in ("Networking", "Scheduler", "Size")]


@pytest.mark.parametrize(
    ("type_name", "given", "coerced"),
    [
        ("AWS::EC2::VPC", {"EnableDnsSupport": "true"}, {"EnableDnsSupport": True}),
        ("AWS::EC2::VPC", {"EnableDnsSupport": "yes"}, {"EnableDnsSupport": "yes"}),
        ("AWS::SSM::Parameter", {"Value": 5}, {"Value": "5"}),
        ("AWS::SSM::Parameter", {"Value": True}, {"Value": "true"}),
        ("AWS::IAM::Role", {"MaxSessionDuration": "3600"}, {"MaxSessionDuration": 3600}),
        (
            "AWS::EC2::LaunchTemplate",
            {"LaunchTemplateData": {"NetworkInterfaces": [{"NetworkCardIndex": "1"}]}},
            {"LaunchTemplateData": {"NetworkInterfaces": [{"NetworkCardIndex": 1}]}},
        ),
        (
            "Custom::Thing",
            {"Count": 1, "On": False, "Deep": [{"a": 2}]},
            {"Count": "1", "On": "false", "Deep": [{"a": "2"}]},
        ),
    ],
)
def test_scalars_are_converted_to_the_schemas_type(
    type_name: str, given: dict[str, Any], coerced: dict[str, Any]
) -> None:
    assert schemas.coerce(type_name, given, REGION) == coerced


def test_custom_types_share_one_registered_type() -> None:
    assert schemas.is_registered("Custom::Whatever", REGION)
    assert not schemas.is_registered("AWS::SNS::Topik", REGION)


def test_type_is_known_only_in_its_regions() -> None:
    assert schemas.is_registered("AWS::PCS::Cluster", REGION)
    assert not schemas.is_registered("AWS::PCS::Cluster", "us-west-1")


@pytest.mark.parametrize(
    ("pointer", "values"),
    [("/properties/A/B", [1]), ("/properties/L/*/B", [2, 3]), ("/properties/A/C", []), ("/properties/X", [])],
)
def test_pointers_reach_values(pointer: str, values: list[int]) -> None:
    assert schemas.values_at({"A": {"B": 1}, "L": [{"B": 2}, {"B": 3}]}, pointer) == values


@pytest.mark.parametrize(
    ("type_name", "old", "new", "kind"),
    [
        ("AWS::PCS::Cluster", {"Size": "SMALL"}, {"Size": "LARGE"}, "True"),
        ("AWS::S3::Bucket", {}, {"VersioningConfiguration": {"Status": "Enabled"}}, "False"),
        ("AWS::S3::Bucket", {}, {"BucketName": "own"}, "True"),
        (
            "AWS::ECR::Repository",
            {"EncryptionConfiguration": {"EncryptionType": "KMS"}},
            {"EncryptionConfiguration": {"EncryptionType": "AES256"}},
            "True",
        ),
    ],
)
def test_create_only_properties_cause_a_replacement(type_name: str, old: Any, new: Any, kind: str) -> None:
    import localaws.handlers  # noqa: F401

    assert replacement(type_name, old, new, REGION) == kind


@pytest.mark.parametrize(
    ("type_name", "name"),
    [
        ("AWS::S3::Bucket", "Tags"),
        ("AWS::FSx::FileSystem", "Tags"),
        ("AWS::EC2::Route", None),
        ("AWS::IAM::Policy", None),
    ],
)
def test_tag_property_of_a_type(type_name: str, name: str | None) -> None:
    assert schemas.tag_property(type_name, REGION) == name


@pytest.mark.parametrize(
    ("type_name", "is_list"), [("AWS::S3::Bucket", True), ("AWS::SSM::Parameter", False), ("AWS::PCS::Cluster", False)]
)
def test_tags_are_a_list_or_a_map(type_name: str, is_list: bool) -> None:
    assert schemas.is_list(type_name, "Tags", REGION) is is_list
