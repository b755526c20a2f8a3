"""Policies that the embedded AWS enforces: on functions of custom resources, and on what AWS does for a stack."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import ACCOUNT
from localaws import local_aws
from localaws.permissions import NotEvaluated
from localaws.resources import client
from localaws.services.calls import Asked, asked_of
from localaws.services.references import References
from stack_parts import REGION, Stacks

START = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter"
CODE = """
import boto3, cfnresponse
def handler(event, context):
    if event["RequestType"] != "Delete":
        CALL
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, physicalResourceId="one")
"""
PUT = 'boto3.client("ssm").put_parameter(Name="/made/a", Value="1", Type="String", Overwrite=True)'
IAM = {"Capabilities": ["CAPABILITY_IAM"]}
PODS = ["sts:AssumeRole", "sts:TagSession"]


@pytest.fixture
def stacks() -> Iterator[Stacks]:
    with local_aws():
        yield Stacks()


def trust(service: str, actions: Any = "sts:AssumeRole", **more: Any) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": service}, "Action": actions, **more}],
    }


def allow(action: Any, resource: Any = "*", effect: str = "Allow", **more: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": action, "Resource": resource, **more}


def function(call: str, *statements: dict[str, Any], **role: Any) -> dict[str, Any]:
    """A custom resource whose function makes a call, with a role that has these statements."""
    policies = (
        [{"PolicyName": "own", "PolicyDocument": {"Version": "2012-10-17", "Statement": list(statements)}}]
        if statements
        else []
    )
    code = {"ZipFile": CODE.replace("CALL", call)}
    return {
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {"AssumeRolePolicyDocument": trust("lambda.amazonaws.com"), "Policies": policies, **role},
        },
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Code": code,
                "FunctionName": "worker",
                "Handler": "index.handler",
                "Runtime": "python3.13",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            },
        },
        "Thing": {"Type": "Custom::Thing", "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}}},
    }


def reason(stacks: Stacks, resources: dict[str, Any]) -> str:
    """Why the custom resource of a new stack failed."""
    assert stacks.create(resources, **IAM) == "ROLLBACK_COMPLETE"
    return stacks.event_reason("Thing", "CREATE_FAILED")


# functions of custom resources


def test_a_function_may_do_what_its_role_allows(stacks: Stacks):
    assert stacks.create(function(PUT, allow("ssm:PutParameter", f"{START}/made/*")), **IAM) == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ([], "because no identity-based policy allows the ssm:PutParameter action"),
        ([allow("ssm:GetParameter")], "because no identity-based policy allows the ssm:PutParameter action"),
        ([allow("ssm:*", f"{START}/other")], "because no identity-based policy allows the ssm:PutParameter action"),
        ([allow("ssm:*"), allow("*", effect="Deny")], "with an explicit deny in an identity-based policy"),
    ],
    ids=["nothing", "action", "resource", "deny"],
)
def test_a_call_that_the_role_lacks_fails_the_resource(stacks: Stacks, statements: list[Any], words: str):
    said = reason(stacks, function(PUT, *statements))
    assert "AccessDeniedException" in said
    assert ":assumed-role/stack-Role-" in said
    assert f"/worker is not authorized to perform: ssm:PutParameter on resource: {START}/made/a {words}" in said
    assert client("ssm", REGION).describe_parameters()["Parameters"] == []


def test_a_boundary_limits_a_function(stacks: Stacks):
    iam, listing = client("iam", REGION), {"Version": "2012-10-17", "Statement": [allow("ssm:Get*")]}
    boundary = iam.create_policy(PolicyName="limit", PolicyDocument=json.dumps(listing))["Policy"]["Arn"]
    said = reason(stacks, function(PUT, allow("*"), PermissionsBoundary=boundary))
    assert "because no permissions boundary allows the ssm:PutParameter action" in said


def test_ec2_says_it_in_its_own_words(stacks: Stacks):
    said = reason(stacks, function('boto3.client("ec2").describe_vpcs()'))
    assert "UnauthorizedOperation" in said
    assert "You are not authorized to perform this operation. User: arn:aws:sts::" in said


def test_a_function_reads_objects_only_with_the_key_of_their_bucket(stacks: Stacks):
    key = client("kms", REGION).create_key()["KeyMetadata"]["Arn"]
    s3 = client("s3", REGION)
    s3.create_bucket(Bucket="data", CreateBucketConfiguration={"LocationConstraint": REGION})
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    s3.put_bucket_encryption(Bucket="data", ServerSideEncryptionConfiguration={"Rules": [rule]})
    s3.put_object(Bucket="data", Key="a", Body=b"1")
    call = 'boto3.client("s3").get_object(Bucket="data", Key="a")'
    read = allow("s3:GetObject", "arn:aws:s3:::data/*")
    said = reason(stacks, function(call, read))
    assert f"kms:Decrypt on resource: {key} because no identity-based policy allows the kms:Decrypt action" in said
    stacks.delete()
    assert stacks.create(function(call, read, allow("kms:Decrypt", key)), **IAM) == "CREATE_COMPLETE"
    deny = allow("s3:*", "arn:aws:s3:::data/*", effect="Deny", Principal="*")
    s3.put_bucket_policy(Bucket="data", Policy=json.dumps({"Statement": [deny]}))
    stacks.delete()
    said = reason(stacks, function(call, allow("*")))
    assert "s3:GetObject on resource: arn:aws:s3:::data/a with an explicit deny in a resource-based policy" in said


def test_conditions_that_are_not_evaluated_are_named(stacks: Stacks):
    tagged = allow("ssm:*", Condition={"StringEquals": {"aws:ResourceTag/team": "a"}})
    assert "does not evaluate the condition key aws:ResourceTag/team" in reason(stacks, function(PUT, tagged))


def test_a_function_needs_a_role_that_trusts_lambda(stacks: Stacks):
    parts = function(PUT, allow("*"), AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
    assert stacks.create(parts, **IAM) == "ROLLBACK_COMPLETE"
    words = "The role defined for the function cannot be assumed by Lambda."
    assert stacks.event_reason("Function", "CREATE_FAILED") == words


FS, GROUP = f"arn:aws:fsx:{REGION}:{ACCOUNT}:file-system/fs-1", f"arn:aws:ec2:{REGION}:{ACCOUNT}:security-group/sg-1"


@pytest.mark.parametrize(
    ("service", "operation", "parameters", "expected"),
    [
        ("fsx", "UpdateFileSystem", {"FileSystemId": "fs-1"}, [("fsx:UpdateFileSystem", FS)]),
        ("fsx", "DescribeFileSystems", {"FileSystemIds": ["fs-1"]}, [("fsx:DescribeFileSystems", "*")]),
        ("ec2", "RevokeSecurityGroupEgress", {"GroupId": "sg-1"}, [("ec2:RevokeSecurityGroupEgress", GROUP)]),
        ("ec2", "RunInstances", {"ImageId": "ami-1"}, [("ec2:RunInstances", f"arn:aws:ec2:{REGION}::image/ami-1")]),
        (
            "grafana",
            "UpdatePermissions",
            {"workspaceId": "g-1"},
            [("grafana:UpdatePermissions", f"arn:aws:grafana:{REGION}:{ACCOUNT}:/workspaces/g-1")],
        ),
        (
            "grafana",
            "CreateWorkspaceServiceAccount",
            {"workspaceId": "g-1", "name": "filler"},
            [("grafana:CreateWorkspaceServiceAccount", f"arn:aws:grafana:{REGION}:{ACCOUNT}:/workspaces/g-1")],
        ),
        ("ssm", "GetParameter", {"Name": "/a/b"}, [("ssm:GetParameter", f"{START}/a/b")]),
        ("s3", "ListObjectsV2", {"Bucket": "b"}, [("s3:ListBucket", "arn:aws:s3:::b")]),
        ("s3", "HeadObject", {"Bucket": "b", "Key": "k"}, [("s3:GetObject", "arn:aws:s3:::b/k")]),
        ("s3", "ListBuckets", {}, [("s3:ListAllMyBuckets", "*")]),
        (
            "s3",
            "DeleteObjects",
            {"Bucket": "b", "Delete": {"Objects": [{"Key": "k"}, {"Key": "l"}]}},
            [("s3:DeleteObject", "arn:aws:s3:::b/k"), ("s3:DeleteObject", "arn:aws:s3:::b/l")],
        ),
        (
            "lambda",
            "Invoke",
            {"FunctionName": "f"},
            [("lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:f")],
        ),
        ("sns", "Publish", {"TopicArn": "arn:aws:sns:r:1:t"}, [("sns:Publish", "arn:aws:sns:r:1:t")]),
        (
            "sqs",
            "SendMessage",
            {"QueueUrl": f"https://sqs.{REGION}.amazonaws.com/1/q"},
            [("sqs:SendMessage", f"arn:aws:sqs:{REGION}:{ACCOUNT}:q")],
        ),
        ("iam", "PassRole", {"RoleName": "r"}, [("iam:PassRole", None)]),
        ("monitoring", "DescribeAlarms", {}, [("cloudwatch:DescribeAlarms", None)]),
    ],
)
def test_actions_and_resources_of_calls(
    service: str, operation: str, parameters: dict[str, Any], expected: list[tuple[str, str | None]]
):
    found = asked_of(service, operation, parameters, References(ACCOUNT, REGION))
    assert found == [Asked(*each) for each in expected]


def test_unknown_actions_are_not_guessed():
    with pytest.raises(NotEvaluated, match="nowhere:Dance"):
        asked_of("nowhere", "Dance", {}, References(ACCOUNT, REGION))


# what AWS does for a stack


def encrypted(key_policy: list[dict[str, Any]] | None = None) -> tuple[str, str]:
    """A key with additional statements in its policy, and a bucket that it encrypts."""
    root = allow("kms:*", Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:root"})
    policy = json.dumps({"Version": "2012-10-17", "Statement": [root, *(key_policy or [])]})
    key = client("kms", REGION).create_key(Policy=policy)["KeyMetadata"]["Arn"]
    s3 = client("s3", REGION)
    s3.create_bucket(Bucket="data", CreateBucketConfiguration={"LocationConstraint": REGION})
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    rules = [{**rule, "BucketKeyEnabled": True}]
    s3.put_bucket_encryption(Bucket="data", ServerSideEncryptionConfiguration={"Rules": rules})
    return key, policy


def file_system() -> dict[str, Any]:
    ec2 = client("ec2", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="lustre", Description="lustre", VpcId=vpc)["GroupId"]
    itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[itself])
    lustre = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}
    network = {"SubnetIds": [subnet], "SecurityGroupIds": [group]}
    properties = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, **network}
    link = {"FileSystemId": {"Ref": "Home"}, "FileSystemPath": "/data", "DataRepositoryPath": "s3://data/raw/"}
    return {
        "Home": {"Type": "AWS::FSx::FileSystem", "Properties": {**properties, "LustreConfiguration": lustre}},
        "Thing": {"Type": "AWS::FSx::DataRepositoryAssociation", "Properties": link},
    }


OF_ROLES = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/*"
FOR_FSX = allow(
    ["kms:Decrypt", "kms:GenerateDataKey*"],
    Principal={"AWS": "*"},
    Condition={
        "StringEquals": {"kms:ViaService": f"s3.{REGION}.amazonaws.com", "kms:CallerAccount": ACCOUNT},
        "StringLike": {"kms:EncryptionContext:aws:s3:arn": "arn:aws:s3:::data*"},
        "ArnLike": {"aws:PrincipalArn": OF_ROLES},
    },
)


def test_an_association_needs_the_key_of_its_bucket(stacks: Stacks):
    key, _ = encrypted()
    said = reason(stacks, file_system())
    assert "is MISCONFIGURED" in said
    assert "Amazon FSx cannot access s3://data/raw. User: arn:aws:iam::" in said
    assert f"kms:Decrypt on resource: {key} because no identity-based policy allows the kms:Decrypt action" in said


def test_an_association_whose_key_allows_fsx_is_available(stacks: Stacks):
    encrypted([FOR_FSX])
    parts = file_system()
    assert stacks.create(parts) == "CREATE_COMPLETE"
    deny = allow("s3:PutObject", "*", effect="Deny", Principal="*")
    client("s3", REGION).put_bucket_policy(Bucket="data", Policy=json.dumps({"Statement": [deny]}))
    parts["Thing"]["Properties"]["ImportedFileChunkSize"] = 2048
    assert stacks.update(parts).startswith("UPDATE_ROLLBACK")
    assert "with an explicit deny in a resource-based policy" in stacks.event_reason("Thing", "UPDATE_FAILED")


def test_a_corrected_key_policy_makes_the_association_available(stacks: Stacks):
    key, policy = encrypted()
    fsx, parts = client("fsx", REGION), file_system()
    home = fsx.create_file_system(**parts["Home"]["Properties"])["FileSystem"]["FileSystemId"]
    fsx.create_data_repository_association(**{**parts["Thing"]["Properties"], "FileSystemId": home})
    (found,) = fsx.describe_data_repository_associations()["Associations"]
    assert found["Lifecycle"] == "MISCONFIGURED"
    corrected = {**json.loads(policy), "Statement": [*json.loads(policy)["Statement"], FOR_FSX]}
    client("kms", REGION).put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(corrected))
    fsx.update_data_repository_association(AssociationId=found["AssociationId"])
    (found,) = fsx.describe_data_repository_associations()["Associations"]
    assert (found["Lifecycle"], "FailureDetails" in found) == ("AVAILABLE", False)


@pytest.mark.parametrize(
    ("allowed", "status"),
    [("/train/*", "CREATE_COMPLETE"), ("/other/*", "ROLLBACK_COMPLETE"), ("", "ROLLBACK_COMPLETE")],
)
def test_a_log_group_needs_a_key_that_allows_cloudwatch_logs_for_it(stacks: Stacks, allowed: str, status: str):
    arns = {"kms:EncryptionContext:aws:logs:arn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{allowed}"}
    service = {"Service": f"logs.{REGION}.amazonaws.com"}
    key, _ = encrypted([allow("kms:*", Principal=service, Condition={"ArnLike": arns})] if allowed else [])
    group = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/train/a", "KmsKeyId": key}}
    assert stacks.create({"Thing": group}) == status
    if status == "ROLLBACK_COMPLETE":
        name = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/train/a"
        words = f"The specified KMS key does not exist or is not allowed to be used with Arn '{name}'"
        assert stacks.event_reason("Thing", "CREATE_FAILED").startswith(words)


def pods_association(condition: dict[str, Any], effect: str = "Allow") -> Any:
    """Create a cluster and an association whose role trusts EKS Pod Identity under a condition."""
    ec2, iam, eks = (client(service, REGION) for service in ("ec2", "iam", "eks"))
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    zones = zip("ab", ("10.0.0.0/24", "10.0.1.0/24"), strict=True)
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=REGION + zone)["Subnet"]["SubnetId"]
        for zone, cidr in zones
    ]
    documents = {
        "cluster": trust("eks.amazonaws.com"),
        "pod": trust("pods.eks.amazonaws.com", PODS, Condition=condition, Effect=effect),
    }
    if effect == "Deny":
        documents["pod"]["Statement"] += trust("pods.eks.amazonaws.com", PODS)["Statement"]
    arns = {
        name: iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(document))["Role"]["Arn"]
        for name, document in documents.items()
    }
    eks.create_cluster(name="train", roleArn=arns["cluster"], resourcesVpcConfig={"subnetIds": subnets})
    return eks.create_pod_identity_association(
        clusterName="train", namespace="team", serviceAccount="reader", roleArn=arns["pod"]
    )


@pytest.mark.parametrize(
    ("condition", "effect", "words"),
    [
        ({"StringEquals": {"aws:RequestTag/kubernetes-namespace": "team"}}, "Allow", None),
        ({"ArnLike": {"aws:SourceArn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/*"}}, "Allow", None),
        ({"StringLike": {"aws:RequestTag/kubernetes-pod-name": "x-*"}}, "Allow", None),
        (
            {"StringEquals": {"aws:RequestTag/kubernetes-namespace": "tema"}},
            "Allow",
            "team/reader would get no",
        ),
        ({"StringEquals": {"aws:SourceAccount": "444455556666"}}, "Allow", "because no resource-based policy allows"),
        ({"StringEquals": {"aws:RequestTag/eks-cluster-name": "train"}}, "Deny", "with an explicit deny"),
    ],
)
def test_a_role_of_pods_needs_a_trust_policy_that_fits_them(
    stacks: Stacks, condition: dict[str, Any], effect: str, words: str | None
):
    if words is None:
        assert pods_association(condition, effect)["association"]["associationId"]
        return
    with pytest.raises(ClientError, match=words):
        pods_association(condition, effect)
