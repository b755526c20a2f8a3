"""Helm releases and Kubernetes objects, and the provider that deploys them."""

import json
import re

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from tests.constructs.test_eks import Deployed, imported, settings
from ultracluster.catalog.eks import KUBERNETES_VERSIONS, NEWEST_TESTED
from ultracluster.catalog.software import charts
from ultracluster.constructs.kubectl import HelmRelease, KubectlProvider, KubernetesObjects, UnknownChart
from ultracluster.errors import MissingExtra

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pretrain"}}


class Served(Deployed):
    """A cluster with a provider."""

    def __init__(self, version="1.35"):
        super().__init__(settings(kubernetes_version=version))
        self.provider = KubectlProvider(
            self,
            "Kubectl",
            cluster=self.cluster,
            vpc=ec2.Vpc.from_vpc_attributes(self, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-2a"]),
            subnets=[
                ec2.Subnet.from_subnet_attributes(self, "Private", subnet_id="subnet-9", availability_zone="us-east-2a")
            ],
            security_group=ec2.SecurityGroup.from_security_group_id(self, "Members", "sg-9"),
            key=kms.Key(self, "LogKey"),
        )

    def release(self, name, mirror=None, **changes):
        values = {"replicas": 2}
        HelmRelease(self, name, provider=self.provider, chart=name, values=values, mirror=mirror, **changes)
        return self.only("Custom::AWSCDK-EKS-HelmChart")


def test_the_function_with_helm_is_in_private_subnets_with_the_cluster_s_security_group():
    functions = Template.from_stack(Served()).find_resources("AWS::Lambda::Function").values()
    (vpc,) = (found["Properties"]["VpcConfig"] for found in functions if found["Properties"].get("Layers"))
    assert (vpc["SubnetIds"], vpc["SecurityGroupIds"]) == (["subnet-9"], ["sg-9"])


def test_the_provider_framework_is_outside_the_vpc():
    """It answers CloudFormation through a bucket that the S3 endpoint's policy does not allow, and calls Lambda."""
    functions = Template.from_stack(Served()).find_resources("AWS::Lambda::Function").values()
    (framework,) = (found["Properties"] for found in functions if not found["Properties"].get("Layers"))
    assert "VpcConfig" not in framework


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_kubectl_has_the_kubernetes_version_of_the_cluster(version):
    layers = Template.from_stack(Served(version)).find_resources("AWS::Lambda::LayerVersion").values()
    descriptions = [layer["Properties"].get("Description", "") for layer in layers]
    assert [text for text in descriptions if f"kubectl {version}." in text], descriptions


def test_a_version_newer_than_the_catalogue_gets_the_newest_kubectl():
    layers = Template.from_stack(Served("1.99")).find_resources("AWS::Lambda::LayerVersion").values()
    assert [layer for layer in layers if f"kubectl {NEWEST_TESTED}." in layer["Properties"].get("Description", "")]


def test_the_provider_s_role_administers_the_cluster():
    entry = Served().only("AWS::EKS::AccessEntry")
    assert "KubectlRole" in json.dumps(entry["PrincipalArn"])


def test_a_release_from_a_repository_names_chart_and_version():
    release = Served().release("gpu-operator")
    assert release["Chart"] == "gpu-operator"
    assert release["Repository"].startswith("https://")
    assert (release["Version"], release["Namespace"]) == (charts["gpu-operator"].version, "gpu-operator")
    assert json.loads(release["Values"]) == {"replicas": 2}


def test_a_release_from_a_registry_has_the_chart_in_its_url():
    release = Served().release("kueue")
    assert release["Repository"].startswith("oci://")
    assert release["Repository"].endswith("/kueue")
    assert release["Version"] == charts["kueue"].version


def test_a_mirror_replaces_every_repository():
    release = Served().release("gpu-operator", mirror="oci://mirror.example/charts")
    assert release["Repository"] == "oci://mirror.example/charts/gpu-operator"
    assert release["Version"] == charts["gpu-operator"].version


def test_helm_times_out_before_its_function():
    release = Served().release("kueue")
    assert release["Wait"] is True
    assert int(release["Timeout"].removesuffix("m")) < 15


def test_a_release_on_accelerated_nodes_is_not_waited_for():
    assert not {"Wait", "Atomic", "Timeout"} & Served().release("gpu-operator", wait=False).keys()


def test_objects_overwrite_existing_ones():
    stack = Served()
    KubernetesObjects(stack, "Objects", provider=stack.provider, objects=[NAMESPACE])
    found = stack.only("Custom::AWSCDK-EKS-KubernetesResource")
    assert json.loads(found["Manifest"]) == [NAMESPACE]
    assert found["Overwrite"] is True


@pytest.mark.parametrize(("retained", "policy"), [(True, "Retain"), (False, None)])
def test_retained_objects_have_the_deletion_policy_retain(retained, policy):
    stack = Served()
    KubernetesObjects(stack, "Objects", provider=stack.provider, objects=[NAMESPACE], retained=retained)
    (found,) = Template.from_stack(stack).find_resources("Custom::AWSCDK-EKS-KubernetesResource").values()
    assert found.get("DeletionPolicy") == policy


def test_both_functions_log_to_one_encrypted_and_retained_group():
    template = Template.from_stack(Served())
    groups = template.find_resources("AWS::Logs::LogGroup").items()
    (logs,) = ((name, group) for name, group in groups if "kubectl" in str(group["Properties"]["LogGroupName"]))
    assert logs[1]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert "KmsKeyId" in logs[1]["Properties"]
    for function in template.find_resources("AWS::Lambda::Function").values():
        assert function["Properties"]["LoggingConfig"]["LogGroup"] == {"Ref": logs[0]}


def test_the_provider_s_role_may_only_log_pull_charts_and_describe_its_cluster():
    policies = Template.from_stack(Served()).find_resources("AWS::IAM::ManagedPolicy").values()
    (policy,) = policies
    actions = [
        action for statement in policy["Properties"]["PolicyDocument"]["Statement"] for action in _list(statement)
    ]
    assert {action.partition(":")[0] for action in actions} == {"ec2", "ecr", "ecr-public", "sts", "eks", "logs"}
    assert not [action for action in actions if "*" in action]


def _list(statement):
    return statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]


def test_an_unknown_chart_is_refused_with_the_known_names():
    with pytest.raises(UnknownChart, match=r"no chart kue\. Pass one of"):
        Served().release("kue")


def test_releases_and_objects_are_deployed_after_the_provider_s_access_entry():
    stack = Served()
    HelmRelease(stack, "Release", provider=stack.provider, chart="kueue", values={})
    KubernetesObjects(stack, "Objects", provider=stack.provider, objects=[NAMESPACE])
    template = Template.from_stack(stack)
    (entry,) = template.find_resources("AWS::EKS::AccessEntry")
    for kind in ("Custom::AWSCDK-EKS-HelmChart", "Custom::AWSCDK-EKS-KubernetesResource"):
        (found,) = template.find_resources(kind).values()
        assert entry in found["DependsOn"]


def test_without_the_kubectl_layers_the_error_names_the_install_command(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("ultracluster.constructs.kubectl.import_module", absent)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'ultracluster[eks]'")):
        Served()


def test_after_is_added_to_the_dependency_on_the_access_entry():
    stack = Served()
    addon = stack.cluster.add_addon("coredns")
    first = HelmRelease(stack, "First", provider=stack.provider, chart="kueue", values={}, after=[addon])
    KubernetesObjects(stack, "Second", provider=stack.provider, objects=[NAMESPACE], after=[first])
    resource = first.resource
    HelmRelease(stack, "Third", provider=stack.provider, chart="gpu-operator", values={}, after=[resource])
    template = Template.from_stack(stack)
    kinds = ("Custom::AWSCDK-EKS-HelmChart", "Custom::AWSCDK-EKS-KubernetesResource")
    found = {name: each["DependsOn"] for kind in kinds for name, each in template.find_resources(kind).items()}
    first_id, third_id, second_id = found
    (entry,), (coredns,) = (template.find_resources(f"AWS::EKS::{kind}") for kind in ("AccessEntry", "Addon"))
    assert set(found[first_id]) == {entry, coredns}
    # the first release waits for the access entry already
    assert found[second_id] == found[third_id] == [first_id]


def test_values_and_objects_may_hold_tokens():
    stack = Served()
    arn = stack.cluster.cluster_arn
    HelmRelease(stack, "Release", provider=stack.provider, chart="kueue", values={"cluster": arn})
    values = stack.only("Custom::AWSCDK-EKS-HelmChart")["Values"]
    assert values == {"Fn::Join": ["", ['{"cluster": "', stack.resolve(arn), '"}']]}


def test_an_imported_cluster_takes_a_provider_and_releases():
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(account="111122223333", region="us-east-2"))
    provider = KubectlProvider(
        stack,
        "Kubectl",
        cluster=imported(stack),
        vpc="vpc-1",
        subnets=["subnet-1"],
        security_group="sg-1",
        key=kms.Key(stack, "LogKey"),
    )
    HelmRelease(stack, "Release", provider=provider, chart="kueue", values={})
    template = Template.from_stack(stack)
    template.has_resource_properties("Custom::AWSCDK-EKS-HelmChart", {"ClusterName": "theirs"})
    template.has_resource_properties("AWS::EKS::AccessEntry", {"ClusterName": "theirs"})
