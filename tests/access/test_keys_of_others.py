"""Keys that this app does not manage: the statements that constructs and docs ask of their owners are enough."""

import json
import re

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from tests.access.account import ACCOUNT, AWS_POLICIES, Role, aws_role
from tests.access.judge import ABSENT, Request, installed, judge
from tests.access.kubernetes_calls import SCALING_ROLE
from tests.access.shared_calls import KEY_USE, S3_ROLE
from tests.access.slurm_calls import PCS_ROLE
from tests.synthesis import ROOT
from ultracluster.config.storage import S3Link
from ultracluster.constructs.links import S3Links
from ultracluster.constructs.lustre import TrainingFileSystem

pytestmark = pytest.mark.skipif(not installed(), reason=ABSENT)

REGION = "us-east-2"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0123abcd"
OWNERS = {
    "Effect": "Allow",
    "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
    "Action": "kms:*",
    "Resource": "*",
}
"""KMS's default key policy, which lets IAM policies of the account decide."""


def verdicts(role: Role, actions, statements, **more) -> set[bool]:
    document = {"Version": "2012-10-17", "Statement": [OWNERS, *statements]}
    asked = [
        Request(role.arn, action, KEY, identity=role.policies, resource_policy=document, **more) for action in actions
    ]
    return {verdict.allowed for verdict in judge(asked)}


def test_the_returned_statement_lets_the_role_of_links_use_a_foreign_key():
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(account=ACCOUNT, region=REGION))
    bucket = s3.Bucket.from_bucket_attributes(
        stack, "Theirs", bucket_name="theirs", encryption_key=kms.Key.from_key_arn(stack, "Key", KEY)
    )
    system = TrainingFileSystem.from_file_system_attributes(
        stack, "Lustre", file_system_id="fs-1", mount_name="a", security_group="sg-0123456789abcdef0"
    )
    links = S3Links(
        stack, "Links", settings=[S3Link(path="/data", bucket="data")], file_system=system, buckets={"data": bucket}
    )
    text = json.dumps(stack.resolve([statement.to_statement_json() for statement in links.key_policy_statements]))
    for token, value in (("Partition", "aws"), ("AccountId", ACCOUNT), ("Region", REGION)):
        text = text.replace(f'{{"Ref": "AWS::{token}"}}', json.dumps(value))
    statements = [_joined(statement) for statement in json.loads(text)]
    role = aws_role(S3_ROLE, "AWSServiceRoleForFSxS3Access")
    through_s3 = {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}
    use = {"context": through_s3, "encryption_context": {"aws:s3:arn": "arn:aws:s3:::theirs"}}
    assert verdicts(role, KEY_USE, [], **use) == {False}
    assert verdicts(role, KEY_USE, statements, **use) == {True}
    other = {**use, "encryption_context": {"aws:s3:arn": "arn:aws:s3:::others"}}
    assert verdicts(role, KEY_USE, statements, **other) == {False}


@pytest.mark.parametrize(
    ("path", "policy"), [(PCS_ROLE, "AWSPCSServiceRolePolicy"), (SCALING_ROLE, "AutoScalingServiceRolePolicy")]
)
def test_the_statements_of_the_docs_let_the_roles_that_launch_nodes_use_a_key_for_volumes(path, policy):
    role = aws_role(path, policy)
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.split("## Default EBS key")[1].split("\n## ")[0]
    assert path in section
    (block,) = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    statements = json.loads(block.replace("ROLE_ARN", role.arn).replace("true", '"true"'))
    grant = {"context": {"kms:GrantIsForAWSResource": "true"}}
    assert "kms" not in json.dumps(AWS_POLICIES[policy])
    assert verdicts(role, KEY_USE, []) == verdicts(role, ["kms:CreateGrant"], [], **grant) == {False}
    assert verdicts(role, KEY_USE, statements) == verdicts(role, ["kms:CreateGrant"], statements, **grant) == {True}
    assert verdicts(role, ["kms:CreateGrant"], statements, context={"kms:GrantIsForAWSResource": "false"}) == {False}
    assert verdicts(role, ["kms:ScheduleKeyDeletion"], statements) == {False}


def _joined(value):
    """The value with each Fn::Join of text evaluated."""
    if isinstance(value, dict):
        if set(value) == {"Fn::Join"}:
            delimiter, parts = value["Fn::Join"]
            return delimiter.join(parts)
        return {key: _joined(inner) for key, inner in value.items()}
    return [_joined(inner) for inner in value] if isinstance(value, list) else value
