"""Keys that this app does not manage: the statements that constructs and docs ask of their owners are enough."""

import json
import re

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from tests.access.account import ACCOUNT, AWS_POLICIES, Account, Role, aws_role
from tests.access.judge import ABSENT, Request, installed, judge
from tests.access.kubernetes_calls import SCALING_ROLE
from tests.access.shared_calls import KEY_USE, S3_ROLE
from tests.access.slurm_calls import PCS_ROLE
from tests.access.table import TRUSTS_THE_ACCOUNT
from tests.synthesis import ROOT
from ultracluster.config.buckets import Bucket
from ultracluster.config.lustre import S3Link
from ultracluster.constructs.bucket_access import BucketAccess
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.links import S3Links
from ultracluster.constructs.lustre import TrainingFileSystem
from ultracluster.constructs.pcs_role import PcsNodeRole

pytestmark = pytest.mark.skipif(not installed(), reason=ABSENT)

REGION = "us-east-2"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0123abcd"


def verdicts(role: Role, actions, statements, *, trusting=True, **more) -> set[bool]:
    document = {"Version": "2012-10-17", "Statement": [*(TRUSTS_THE_ACCOUNT["Statement"] * trusting), *statements]}
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
    statements = _resolved([stack.resolve(statement.to_statement_json()) for statement in links.key_policy_statements])
    role = aws_role(S3_ROLE, "AWSServiceRoleForFSxS3Access")
    through_s3 = {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}
    use = {"context": through_s3, "encryption_context": {"aws:s3:arn": "arn:aws:s3:::theirs"}}
    assert verdicts(role, KEY_USE, [], **use) == {False}
    assert verdicts(role, KEY_USE, statements, **use) == {True}
    other = {**use, "encryption_context": {"aws:s3:arn": "arn:aws:s3:::others"}}
    assert verdicts(role, KEY_USE, statements, **other) == {False}


def test_the_returned_statement_lets_jobs_use_the_key_of_an_existing_bucket():
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(account=ACCOUNT, region=REGION))
    key = kms.Key.from_key_arn(stack, "Key", KEY)
    bucket = TrainingBucket(stack, "Theirs", settings=Bucket(existing="theirs"), key=key)
    jobs = PcsNodeRole(stack, "Nodes")
    access = BucketAccess(stack, "Access", buckets=[bucket], role=jobs)
    statements = _resolved([stack.resolve(each.to_statement_json()) for each in access.key_policy_statements])
    role = Account("stack", REGION, {"part": Template.from_stack(stack).to_json()}).trusting("ec2.amazonaws.com")
    use, used = {"context": {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}}, ("kms:Decrypt", "kms:GenerateDataKey")
    assert verdicts(role, used, [], trusting=False, **use) == {False}
    assert verdicts(role, used, [], **use) == {True}
    assert verdicts(role, used, statements, trusting=False, **use) == {True}
    assert verdicts(role, used, statements, trusting=False) == {False}
    bystander = Role("bystander", f"arn:aws:iam::{ACCOUNT}:role/bystander", "", {}, ())
    assert verdicts(bystander, used, statements, trusting=False, **use) == {False}


def test_nodes_read_boot_scripts_in_a_bootstrap_bucket_with_a_customer_managed_key():
    """The key of `--bootstrap-customer-key` trusts the account through S3; docs say what another key needs."""
    node = Role("nodes", f"arn:aws:iam::{ACCOUNT}:role/aws-pcs/nodes", "", {}, ())
    use = {"context": {"kms:ViaService": f"s3.{REGION}.amazonaws.com", "kms:CallerAccount": ACCOUNT}}
    for statements in (_bootstrap_key_policy(), _statements_of_docs("## Key of the bootstrap bucket")):
        assert verdicts(node, ["kms:Decrypt"], statements, trusting=False, **use) == {True}
        stranger = {**use["context"], "kms:CallerAccount": "444455556666"}
        assert verdicts(node, ["kms:Decrypt"], statements, trusting=False, context=stranger) == {False}
        direct = {"kms:CallerAccount": ACCOUNT}
        assert verdicts(node, ["kms:Decrypt"], statements, trusting=False, context=direct) == {False}


@pytest.mark.parametrize(
    ("path", "policy"), [(PCS_ROLE, "AWSPCSServiceRolePolicy"), (SCALING_ROLE, "AutoScalingServiceRolePolicy")]
)
def test_the_statements_of_the_docs_let_the_roles_that_launch_nodes_use_a_key_for_volumes(path, policy):
    role = aws_role(path, policy)
    assert path in _section("## Default EBS key")
    statements = _statements_of_docs("## Default EBS key", {"ROLE_ARN": role.arn, "true": '"true"'})
    grant = {"context": {"kms:GrantIsForAWSResource": "true"}}
    assert "kms" not in json.dumps(AWS_POLICIES[policy])
    assert verdicts(role, KEY_USE, []) == verdicts(role, ["kms:CreateGrant"], [], **grant) == {False}
    assert verdicts(role, KEY_USE, statements) == verdicts(role, ["kms:CreateGrant"], statements, **grant) == {True}
    assert verdicts(role, ["kms:CreateGrant"], statements, context={"kms:GrantIsForAWSResource": "false"}) == {False}
    assert verdicts(role, ["kms:ScheduleKeyDeletion"], statements) == {False}


def _section(heading):
    return (ROOT / "docs" / "operations.md").read_text().split(heading)[1].split("\n## ")[0]


def _statements_of_docs(heading, values=None):
    (block,) = re.findall(r"```json\n(.*?)```", _section(heading), re.DOTALL)
    for word, value in ({"ACCOUNT": ACCOUNT, "REGION": REGION} | (values or {})).items():
        block = block.replace(word, value)
    found = json.loads(block)
    return found if isinstance(found, list) else [found]


def _bootstrap_key_policy():
    """The statements for other principals in the key policy of the CDK CLI's own bootstrap template."""
    folder = ROOT / "node_modules" / "aws-cdk" / "lib" / "api" / "bootstrap"
    text = re.sub(r"!(\w+)", "", (folder / "bootstrap-template.yaml").read_text())
    policy = yaml.safe_load(text)["Resources"]["FileAssetsBucketEncryptionKey"]["Properties"]["KeyPolicy"]
    statements = [each for each in policy["Statement"] if each["Principal"] == {"AWS": "*"}]
    return _resolved(json.loads(json.dumps(statements).replace("${AWS::Region}", REGION)))


def _resolved(value):
    text = json.dumps(value)
    for token, plain in (("Partition", "aws"), ("AccountId", ACCOUNT), ("Region", REGION)):
        text = text.replace(f'{{"Ref": "AWS::{token}"}}', json.dumps(plain))
    return _joined(json.loads(text))


def _joined(value):
    """The value with each Fn::Join of text evaluated."""
    if isinstance(value, dict):
        if set(value) == {"Fn::Join"}:
            delimiter, parts = value["Fn::Join"]
            return delimiter.join(parts)
        if set(value) == {"Fn::Sub"}:
            return value["Fn::Sub"]
        return {key: _joined(inner) for key, inner in value.items()}
    return [_joined(inner) for inner in value] if isinstance(value, list) else value
