"""Custom resources of the CDK's own constructs, whose functions are written for Node.js."""

from typing import Any

import boto3
import pytest

from localaws import local_aws
from localaws.resources import client
from stack_parts import REGION, Stacks

FUNCTION = {
    "Type": "AWS::Lambda::Function",
    "Properties": {
        "Runtime": "nodejs22.x",
        "Handler": "index.handler",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Code": {"ZipFile": "exports.handler = async () => {}"},
    },
}
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
PROVIDER = {"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}, "Function": FUNCTION}
TOKEN = {"Fn::GetAtt": ["Function", "Arn"]}
IAM = {"Capabilities": ["CAPABILITY_IAM"]}


@pytest.fixture
def real() -> Any:
    with local_aws():
        yield Stacks()


def test_the_default_security_group_loses_its_rules_and_gets_them_back(real: Stacks) -> None:
    ec2 = client("ec2", REGION)
    vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}, "DeletionPolicy": "Retain"}
    group = {"Fn::GetAtt": ["Vpc", "DefaultSecurityGroup"]}
    restricted = {
        "Type": "Custom::VpcRestrictDefaultSG",
        "Properties": {"ServiceToken": TOKEN, "DefaultSecurityGroupId": group, "Account": {"Ref": "AWS::AccountId"}},
    }
    assert real.create({**PROVIDER, "Vpc": vpc, "Restricted": restricted}, **IAM) == "CREATE_COMPLETE"
    (made,) = ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.0.0.0/16"]}])["Vpcs"]
    here = [{"Name": "vpc-id", "Values": [made["VpcId"]]}]
    (default,) = ec2.describe_security_groups(Filters=here)["SecurityGroups"]
    assert (default["IpPermissions"], default["IpPermissionsEgress"]) == ([], [])
    assert real.delete() == "DELETE_COMPLETE"
    (default,) = ec2.describe_security_groups(Filters=here)["SecurityGroups"]
    assert [len(default[name]) for name in ("IpPermissions", "IpPermissionsEgress")] == [1, 1]


@pytest.mark.parametrize(("tags", "status"), [(["true"], "DELETE_COMPLETE"), ([], "DELETE_FAILED")])
def test_a_bucket_is_emptied_before_it_is_deleted_if_it_has_the_tag(real: Stacks, tags: list[str], status: str) -> None:
    s3 = client("s3", REGION)
    bucket = {
        "Type": "AWS::S3::Bucket",
        "Properties": {
            "BucketName": "results-of-a-test",
            "VersioningConfiguration": {"Status": "Enabled"},
            "Tags": [{"Key": "aws-cdk:auto-delete-objects", "Value": value} for value in tags],
        },
    }
    emptied = {
        "Type": "Custom::S3AutoDeleteObjects",
        "Properties": {"ServiceToken": TOKEN, "BucketName": {"Ref": "Bucket"}},
        "DependsOn": ["Bucket"],
    }
    assert real.create({**PROVIDER, "Bucket": bucket, "Emptied": emptied}, **IAM) == "CREATE_COMPLETE"
    # every further request is logged into the bucket itself, also while it is emptied
    logged = {"TargetBucket": "results-of-a-test", "TargetPrefix": "log/"}
    s3.put_bucket_logging(Bucket="results-of-a-test", BucketLoggingStatus={"LoggingEnabled": logged})
    for body in (b"one", b"two"):
        s3.put_object(Bucket="results-of-a-test", Key="result", Body=body)
    s3.delete_object(Bucket="results-of-a-test", Key="result")
    assert real.delete() == status


def test_a_log_group_gets_its_retention_and_goes_if_it_is_to_go(real: Stacks) -> None:
    logs = client("logs", REGION)

    def retention(**more: Any) -> dict[str, Any]:
        properties = {"ServiceToken": TOKEN, "LogGroupName": "/aws/lambda/worker", **more}
        return {**PROVIDER, "Retention": {"Type": "Custom::LogRetention", "Properties": properties}}

    assert real.create(retention(RetentionInDays=7), **IAM) == "CREATE_COMPLETE"
    (group,) = logs.describe_log_groups()["logGroups"]
    assert (group["logGroupName"], group["retentionInDays"]) == ("/aws/lambda/worker", 7)
    assert real.update(retention(RemovalPolicy="destroy"), **IAM) == "UPDATE_COMPLETE"
    assert "retentionInDays" not in logs.describe_log_groups()["logGroups"][0]
    assert real.delete() == "DELETE_COMPLETE"
    assert logs.describe_log_groups()["logGroups"] == []


def test_a_provider_without_its_function_fails_the_resource(real: Stacks) -> None:
    token = f"arn:aws:lambda:{REGION}:123456789012:function:gone"
    properties = {"ServiceToken": token, "LogGroupName": "a"}
    resources = {"Retention": {"Type": "Custom::LogRetention", "Properties": properties}}
    assert real.create(resources) == "ROLLBACK_COMPLETE"
    assert "function:gone does not exist" in real.event_reason("Retention", "CREATE_FAILED")


@pytest.mark.parametrize("name", ["alias/aws/sqs", "alias/aws/sns", "alias/aws/fsx"])
def test_aws_managed_keys_exist(name: str) -> None:
    with local_aws():
        kms: Any = boto3.client("kms", REGION)
        key = kms.describe_key(KeyId=name)["KeyMetadata"]
        assert (key["KeyManager"], key["Enabled"]) == ("AWS", True)
        assert kms.describe_key(KeyId=f"arn:aws:kms:{REGION}:123456789012:{name}")["KeyMetadata"]["Arn"] == key["Arn"]
        with pytest.raises(kms.exceptions.NotFoundException):
            kms.describe_key(KeyId=f"{name}s")
