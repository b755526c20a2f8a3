"""A stack with an EKS cluster and the functions of the CDK's kubectl provider."""

import io
import json
import zipfile
from typing import Any

import boto3

from eks_parts import ADMIN, REGION, VERSION

BUCKET = "cdk-assets"
SUBNETS = [{"Ref": "SubnetA"}, {"Ref": "SubnetB"}]
GROUP = {"Fn::GetAtt": ["Access", "GroupId"]}


def resource(kind: str, *depends: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}" if "::" in kind else kind, "DependsOn": list(depends), "Properties": properties}


def custom(kind: str, *depends: str, **properties: Any) -> dict[str, Any]:
    place = {"ServiceToken": {"Fn::GetAtt": ["Provider", "Arn"]}, "ClusterName": {"Ref": "Cluster"}}
    found = resource("", "Entry", "Admitted", *depends, **{**place, **properties})
    return {**found, "Type": f"Custom::AWSCDK-EKS-{kind}"}


def chart(*depends: str, **changes: Any) -> dict[str, Any]:
    full = {
        "Release": "kueue",
        "Chart": "kueue",
        "Repository": "oci://registry.k8s.io/kueue/charts/kueue",
        "Version": "0.19.2",
        "Namespace": "kueue-system",
        "CreateNamespace": True,
        "Wait": True,
        "Timeout": "600s",
        "Values": json.dumps({"replicas": 2}),
        **changes,
    }
    return custom("HelmChart", *depends, **{name: value for name, value in full.items() if value is not None})


def manifest(*depends: str, objects: Any, **changes: Any) -> dict[str, Any]:
    return custom("KubernetesResource", *depends, Manifest=json.dumps(objects), **changes)


def kueue(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def platform(**more: Any) -> dict[str, Any]:
    """The resources: network, cluster, kubectl provider with its function, and `more`."""
    network = {"SubnetIds": SUBNETS, "SecurityGroupIds": [GROUP]}
    return {
        "Vpc": resource("EC2::VPC", CidrBlock="10.0.0.0/16"),
        "SubnetA": _subnet("a", "10.0.0.0/24"),
        "SubnetB": _subnet("b", "10.0.1.0/24"),
        "Access": resource("EC2::SecurityGroup", GroupDescription="kubectl", VpcId={"Ref": "Vpc"}),
        "Admitted": resource(
            "EC2::SecurityGroupIngress",
            GroupId={"Fn::GetAtt": ["Cluster", "ClusterSecurityGroupId"]},
            IpProtocol="tcp",
            FromPort=443,
            ToPort=443,
            SourceSecurityGroupId=GROUP,
        ),
        "ClusterRole": role("eks.amazonaws.com"),
        "FunctionRole": role("lambda.amazonaws.com"),
        "Cluster": resource(
            "EKS::Cluster",
            Name="train",
            Version=VERSION,
            RoleArn={"Fn::GetAtt": ["ClusterRole", "Arn"]},
            AccessConfig={"AuthenticationMode": "API"},
            ResourcesVpcConfig={
                "SubnetIds": SUBNETS,
                "EndpointPublicAccess": False,
                "EndpointPrivateAccess": True,
            },
        ),
        "Entry": resource(
            "EKS::AccessEntry",
            ClusterName={"Ref": "Cluster"},
            PrincipalArn={"Fn::GetAtt": ["FunctionRole", "Arn"]},
            AccessPolicies=[{"PolicyArn": ADMIN, "AccessScope": {"Type": "cluster"}}],
        ),
        "Layer": resource("Lambda::LayerVersion", Content={"S3Bucket": BUCKET, "S3Key": "code.zip"}),
        "Kubectl": function("python3.13", Layers=[{"Ref": "Layer"}], VpcConfig=network),
        "Provider": function(
            "nodejs24.x",
            Environment={"Variables": {"USER_ON_EVENT_FUNCTION_ARN": {"Fn::GetAtt": ["Kubectl", "Arn"]}}},
            VpcConfig=network,
        ),
        **more,
    }


def role(service: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return resource("IAM::Role", AssumeRolePolicyDocument={"Version": "2012-10-17", "Statement": [statement]})


def function(runtime: str, **properties: Any) -> dict[str, Any]:
    return resource(
        "Lambda::Function",
        Code={"S3Bucket": BUCKET, "S3Key": "code.zip"},
        Handler=properties.pop("Handler", "index.handler"),
        Role={"Fn::GetAtt": ["FunctionRole", "Arn"]},
        Runtime=runtime,
        Timeout=900,
        **properties,
    )


def put_asset(name: str = "code.zip", client: Any = None, **files: str) -> None:
    """Put an archive into the asset bucket; `__` in the name of a file stands for a slash, `_` for a dot."""
    s3 = client or boto3.client("s3", REGION)
    if BUCKET not in [found["Name"] for found in s3.list_buckets()["Buckets"]]:
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file, text in (files or {"index_py": ""}).items():
            archive.writestr(file.replace("__", "/").replace("_", "."), text)
    s3.put_object(Bucket=BUCKET, Key=name, Body=packed.getvalue())


def _subnet(zone: str, cidr: str) -> dict[str, Any]:
    return resource("EC2::Subnet", VpcId={"Ref": "Vpc"}, CidrBlock=cidr, AvailabilityZone=f"{REGION}{zone}")
