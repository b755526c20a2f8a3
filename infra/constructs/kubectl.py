"""What puts Helm releases and Kubernetes objects into a private cluster: CDK's kubectl provider, and what it serves."""

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

from aws_cdk import CfnResource, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.catalog.eks import KUBERNETES_VERSIONS, NEWEST_TESTED
from infra.catalog.software import release_source
from infra.constructs.acknowledgements import acknowledge
from infra.constructs.eks import EksCluster, administrator
from infra.kubernetes.parts import Objects, Release

TIMEOUT = "13m"
"""How long Helm waits for a release. Its function lives 15 minutes; one that is cut off leaves the release pending."""

HELM_RELEASE = "Custom::AWSCDK-EKS-HelmChart"
KUBERNETES_OBJECTS = "Custom::AWSCDK-EKS-KubernetesResource"

ACCEPTED = {
    "AwsSolutions-IAM4": "CDK's provider takes AWS's policies for functions in a VPC and for reading registries.",
    "AwsSolutions-IAM5": "The provider calls every version of its own function.",
    "AwsSolutions-L1": "CDK chooses the runtime that its provider was tested with.",
    "NIST.800.53.R5-IAMNoInlinePolicy": "The provider is CDK's own; its policies come and go with its roles.",
    "NIST.800.53.R5-LambdaDLQ": "CloudFormation calls it, waits for the answer and fails the deployment when none "
    "comes; a dead letter would have no reader.",
    "NIST.800.53.R5-LambdaConcurrency": "CloudFormation calls it, once for each change. Reserving concurrency would "
    "take it from the account's other functions, and fails in accounts whose limit is 10.",
}


class KubectlProvider(Construct):
    """Functions in the cluster's own subnets with Helm and a kubectl of the cluster's version.

    They administer the cluster by an access entry of their role; nothing else has that role.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: EksCluster,
        kubernetes_version: str,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        security_group: ec2.ISecurityGroup,
    ) -> None:
        super().__init__(scope, id)
        self.cluster_name = cluster.cluster_name
        imported = eks.Cluster.from_cluster_attributes(self, "Cluster", cluster_name=self.cluster_name, vpc=vpc)
        self._provider = eks.KubectlProvider(
            self,
            "Provider",
            cluster=imported,
            kubectl_layer=kubectl_layer(self, "Kubectl", kubernetes_version),
            private_subnets=list(subnets),
            security_groups=[security_group],
        )
        self.service_token = self._provider.service_token
        acknowledge(self._provider, ACCEPTED)
        role_arn = cast("Any", self._provider.role).role_arn
        self.ready = administrator(self, "Access", cluster=cluster, role_arn=role_arn)


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
