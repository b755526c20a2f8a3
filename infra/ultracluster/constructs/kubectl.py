"""What puts Helm releases and Kubernetes objects into a private cluster: CDK's kubectl provider, and what it serves."""

import json
from collections.abc import Sequence
from importlib import import_module
from typing import cast

from aws_cdk import CfnElement, CfnResource, Fn, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct, IConstruct

from ultracluster.catalog.eks import KUBERNETES_VERSIONS, NEWEST_TESTED
from ultracluster.catalog.software import release_source
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.eks import EksCluster, administrator
from ultracluster.constructs.functions import CALLED_BY_CLOUDFORMATION
from ultracluster.constructs.keys import EncryptionKey, log_group
from ultracluster.constructs.places import SecurityGroup, Subnet, Vpc
from ultracluster.constructs.roles import grant, service_role
from ultracluster.kubernetes.parts import Objects, Release

TIMEOUT = "6m"
"""How long Helm waits for a release, and again for undoing it. A function that is cut off after 15 minutes leaves the
release pending, and none can be made over it."""

HELM_RELEASE = "Custom::AWSCDK-EKS-HelmChart"
KUBERNETES_OBJECTS = "Custom::AWSCDK-EKS-KubernetesResource"

IN_A_VPC = (
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
)
"""What Lambda needs to put a function into a VPC (Lambda Developer Guide, "Giving functions access to a VPC", 2026)."""

FROM_REGISTRIES = (
    "ecr:GetAuthorizationToken",
    "ecr:BatchCheckLayerAvailability",
    "ecr:GetDownloadUrlForLayer",
    "ecr:BatchGetImage",
    "ecr-public:GetAuthorizationToken",
    "sts:GetServiceBearerToken",
)
"""What Helm needs to pull charts from ECR, private and public (ECR User Guides, "Private" and "Public", 2026)."""

LOGS = ("logs:CreateLogStream", "logs:PutLogEvents")

ANY_RESOURCE = {
    "AwsSolutions-IAM5[Resource::*]": "Interfaces of a function and registry tokens have no resource to name."
}

ACCEPTED = {
    **CALLED_BY_CLOUDFORMATION,
    "AwsSolutions-L1": "CDK gives its function the runtime that it was tested with.",
    "NIST.800.53.R5-IAMNoInlinePolicy": "CDK's framework gives its function this policy, and both go together.",
}

FRAMEWORK_POLICIES = ("AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole")


class KubectlProvider(Construct):
    """A function in the cluster's own subnets with Helm and a kubectl of the cluster's version, and CDK's framework.

    It administers the cluster by an access entry of its role; nothing else has that role. The logs of both are
    encrypted with `key` and retained.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: EksCluster,
        kubernetes_version: str,
        vpc: Vpc,
        subnets: Sequence[Subnet],
        security_group: SecurityGroup,
        key: EncryptionKey,
    ) -> None:
        super().__init__(scope, id)
        self.cluster_name = cluster.cluster_name
        role = service_role(self, "Role", service="lambda.amazonaws.com", description="Helm and kubectl of a cluster")
        logs = log_group(self, "Logs", name="/aws/lambda/kubectl", key=key)
        policy = grant(
            self,
            "Policy",
            roles=[role],
            statements=[
                {"Action": [*IN_A_VPC, *FROM_REGISTRIES], "Resource": "*"},
                {"Action": "eks:DescribeCluster", "Resource": cluster.cluster_arn},
                {"Action": list(LOGS), "Resource": logs.log_group_arn},
            ],
            accepted=ANY_RESOURCE,
        )
        imported = eks.Cluster.from_cluster_attributes(
            self, "Cluster", cluster_name=self.cluster_name, vpc=_vpc(self, "Vpc", vpc)
        )
        provider = eks.KubectlProvider(
            self,
            "Provider",
            cluster=imported,
            kubectl_layer=kubectl_layer(self, "Kubectl", kubernetes_version),
            private_subnets=[_subnet(self, f"Subnet{i}", subnet) for i, subnet in enumerate(subnets)],
            security_groups=[_group(self, "Members", security_group)],
            # CDK would give a role of its own, or one that it can change, more than this takes
            role=iam.Role.from_role_arn(self, "HandlerRole", role.attr_arn, mutable=False),
        )
        # the condition is for a policy that an imported role does not get
        self.node.try_remove_child("HasEcrPublic")
        self.service_token = provider.service_token
        handler, framework = _at(provider, "Handler"), _at(provider, "Provider", "framework-onEvent")
        for function in (handler, framework):
            _log_to(function, logs.log_group_name)
        # Lambda puts a function into a VPC with the rights of its role
        handler.node.add_dependency(policy)
        _framework_outside(framework)
        self._acknowledge(provider)
        self.ready = administrator(self, "Access", cluster=cluster, role_arn=role.attr_arn)

    def _acknowledge(self, provider: eks.KubectlProvider) -> None:
        """What is left is CDK's framework, which calls the function with Helm in it."""
        reason = "CDK's framework has AWS's policies for a function in a VPC, and calls every version of one function."
        arn = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/{}]"
        handler = Stack.of(self).get_logical_id(cast("CfnElement", _at(provider, "Handler", "Resource")))
        findings = [
            *(arn.format(name) for name in FRAMEWORK_POLICIES),
            f"AwsSolutions-IAM5[Resource::<{handler}.Arn>:*]",
        ]
        acknowledge(provider, {**dict.fromkeys(findings, reason), **ACCEPTED})


def _log_to(function: IConstruct, log_group_name: str) -> None:
    """Has a function of the provider write to our group: CDK's own are not encrypted with a key of ours."""
    function.node.try_remove_child("LogGroup")
    resource = cast("lambda_.CfnFunction", function.node.find_child("Resource"))
    resource.add_property_override("LoggingConfig.LogGroup", log_group_name)


def _framework_outside(framework: IConstruct) -> None:
    """Takes CDK's framework out of the VPC. It waits for its role's policy, and not once more for the role."""
    policy = cast("CfnElement", _at(framework, "ServiceRole", "DefaultPolicy", "Resource"))
    resource = cast("CfnResource", framework.node.find_child("Resource"))
    # it answers CloudFormation through a bucket of AWS's, and calls Lambda: the VPC's endpoints lead to neither
    resource.add_property_deletion_override("VpcConfig")
    resource.add_override("DependsOn", [Stack.of(framework).get_logical_id(policy)])


def _at(construct: IConstruct, *path: str) -> IConstruct:
    for name in path:
        construct = construct.node.find_child(name)
    return construct


class HelmRelease(Construct):
    """A release of a chart at the version that the catalogue pins, from its own repository or from `mirror`.

    Where the release says so, Helm waits until what it installs runs, and undoes an upgrade that fails.
    """

    def __init__(
        self, scope: Construct, id: str, *, provider: KubectlProvider, release: Release, mirror: str | None
    ) -> None:
        super().__init__(scope, id)
        source = release_source(release.chart, mirror)
        self.resource = CfnResource(
            self,
            "Resource",
            type=HELM_RELEASE,
            properties={
                "ServiceToken": provider.service_token,
                "ClusterName": provider.cluster_name,
                "Release": release.name,
                "Chart": source.chart,
                "Repository": source.repository,
                "Version": source.version,
                "Namespace": release.chart.namespace,
                "CreateNamespace": True,
                **({"Wait": True, "Atomic": True, "Timeout": TIMEOUT} if release.waits else {}),
                "Values": json.dumps(release.values, sort_keys=True),
            },
        )


class KubernetesObjects(Construct):
    """Objects that are applied together, and deleted together unless they are retained."""

    def __init__(self, scope: Construct, id: str, *, provider: KubectlProvider, objects: Objects) -> None:
        super().__init__(scope, id)
        self.resource = CfnResource(
            self,
            "Resource",
            type=KUBERNETES_OBJECTS,
            properties={
                "ServiceToken": provider.service_token,
                "ClusterName": provider.cluster_name,
                "Manifest": json.dumps(list(objects.items), sort_keys=True),
                # what is there already is taken over: a retained namespace, or objects of an update that was undone
                "Overwrite": True,
            },
        )
        if objects.retained:
            self.resource.apply_removal_policy(RemovalPolicy.RETAIN)


def _vpc(scope: Construct, id: str, vpc: Vpc) -> ec2.IVpc:
    """The VPC as CDK's own constructs take it: they want a zone, and go by the subnets that they are told besides."""
    return ec2.Vpc.from_vpc_attributes(scope, id, vpc_id=vpc.vpc_id, availability_zones=[Fn.select(0, Fn.get_azs())])


def _subnet(scope: Construct, id: str, subnet: Subnet) -> ec2.ISubnet:
    imported = ec2.Subnet.from_subnet_id(scope, id, subnet.subnet_id)
    acknowledge(imported, {"Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId": "Nothing is routed here."})
    return imported


def _group(scope: Construct, id: str, group: SecurityGroup) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(scope, id, group.security_group_id, mutable=False)


def kubectl_layer(scope: Construct, id: str, kubernetes_version: str) -> lambda_.ILayerVersion:
    """CDK's layer with the kubectl of a Kubernetes version; of the newest known for one that is newer.

    kubectl serves clusters one minor version away (Kubernetes version skew policy). Raises ModuleNotFoundError without
    the packages of the extra `eks`.
    """
    known = kubernetes_version if kubernetes_version in KUBERNETES_VERSIONS else NEWEST_TESTED
    minor = known.partition(".")[2]
    module = import_module(f"aws_cdk.lambda_layer_kubectl_v{minor}")
    layer: lambda_.ILayerVersion = getattr(module, f"KubectlV{minor}Layer")(scope, id)
    return layer
