"""The EKS cluster, its access entries and add-ons."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match, Template

from ultracluster.catalog.eks import NEXT_UNTESTED
from ultracluster.catalog.software import addons
from ultracluster.config.eks import EksControlPlane
from ultracluster.constructs.eks import EksAddon, EksCluster, UnknownAddon, service_network
from ultracluster.constructs.roles import PODS, service_role

ADMIN = "arn:aws:iam::111122223333:role/Platform"


def settings(**changes):
    return EksControlPlane(**{"kubernetes_version": "1.35", **changes})


class Deployed(cdk.Stack):
    """A stack with one cluster."""

    def __init__(self, eks_settings=None, name="staging"):
        super().__init__(cdk.App(), "stack", env=cdk.Environment(region="us-east-2"))
        self.cluster = EksCluster(
            self,
            "Cluster",
            name=name,
            settings=eks_settings or settings(),
            vpc_cidr="10.0.0.0/16",
            subnets=[ec2.Subnet.from_subnet_id(self, f"Subnet{i}", f"subnet-{i}") for i in (1, 2)],
            security_group=ec2.SecurityGroup.from_security_group_id(self, "Access", "sg-1"),
            key=kms.Key.from_key_arn(self, "Key", "arn:aws:kms:us-east-2:111122223333:key/1"),
        )

    def network_addon(self):
        return EksAddon(self, "Cni", cluster=self.cluster, name="vpc-cni")

    def only(self, kind):
        (resource,) = Template.from_stack(self).find_resources(kind).values()
        return resource["Properties"]


def test_the_cluster_authenticates_by_access_entries_only():
    access = Deployed().only("AWS::EKS::Cluster")["AccessConfig"]
    assert access == {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False}


def test_the_endpoint_is_private_unless_the_settings_open_it():
    vpc = Deployed().only("AWS::EKS::Cluster")["ResourcesVpcConfig"]
    assert (vpc["EndpointPrivateAccess"], vpc["EndpointPublicAccess"]) == (True, False)
    assert "PublicAccessCidrs" not in vpc
    opened = settings(endpoint="public_and_private", allowed_cidrs=("8.8.8.0/24",))
    vpc = Deployed(opened).only("AWS::EKS::Cluster")["ResourcesVpcConfig"]
    assert (vpc["EndpointPrivateAccess"], vpc["EndpointPublicAccess"]) == (True, True)
    assert vpc["PublicAccessCidrs"] == ["8.8.8.0/24"]


def test_secrets_are_encrypted_with_our_key_and_deletion_protection_is_on():
    cluster = Deployed().only("AWS::EKS::Cluster")
    (encryption,) = cluster["EncryptionConfig"]
    assert encryption["Resources"] == ["secrets"]
    assert encryption["Provider"]["KeyArn"].endswith(":key/1")
    assert cluster["DeletionProtection"] is True


def test_every_log_of_the_control_plane_is_kept():
    kinds = Deployed().only("AWS::EKS::Cluster")["Logging"]["ClusterLogging"]["EnabledTypes"]
    assert {kind["Type"] for kind in kinds} == {"api", "audit", "authenticator", "controllerManager", "scheduler"}


def test_the_scheduler_fills_gpu_nodes_before_it_opens_others():
    scoring = Deployed().only("AWS::EKS::Cluster")["KubeSchedulerConfig"]["NodeResourcesFit"]["ScoringStrategy"]
    weights = {resource["Name"]: resource["Weight"] for resource in scoring["Resources"]}
    assert scoring["Type"] == "MostAllocated"
    assert max(weights, key=lambda name: weights[name]) == "nvidia.com/gpu"


@pytest.mark.parametrize("tier", ["standard", "tier-8xl"])
def test_the_tier_is_the_one_asked_for(tier):
    cluster = Deployed(settings(control_plane_tier=tier)).only("AWS::EKS::Cluster")
    assert cluster["ControlPlaneScalingConfig"] == {"Tier": tier}


def test_eks_does_not_upgrade_the_cluster_by_itself_at_the_end_of_standard_support():
    assert Deployed().only("AWS::EKS::Cluster")["UpgradePolicy"] == {"SupportType": "EXTENDED"}


@pytest.mark.parametrize(
    ("vpc", "services"),
    [("10.0.0.0/16", "172.20.0.0/16"), ("172.20.4.0/22", "10.100.0.0/16"), ("172.16.0.0/12", "10.100.0.0/16")],
)
def test_the_service_network_does_not_overlap_the_vpc(vpc, services):
    assert service_network(vpc) == services


def test_an_administrator_has_the_cluster_admin_policy_in_the_whole_cluster():
    stack = Deployed()
    stack.cluster.grant_admin(ADMIN)
    entry = stack.only("AWS::EKS::AccessEntry")
    assert entry["PrincipalArn"] == ADMIN
    (policy,) = entry["AccessPolicies"]
    assert policy["AccessScope"] == {"Type": "cluster"}
    assert json.dumps(policy["PolicyArn"]).count("cluster-access-policy/AmazonEKSClusterAdminPolicy") == 1


def test_an_access_entry_maps_a_role_to_kubernetes_groups_without_a_policy_of_aws():
    stack = Deployed()
    stack.cluster.grant_access(ADMIN, groups=["team:pretrain"])
    entry = stack.only("AWS::EKS::AccessEntry")
    assert entry["KubernetesGroups"] == ["team:pretrain"]
    assert "AccessPolicies" not in entry


def test_an_addon_has_its_version_configuration_and_pod_role():
    stack = Deployed()
    role = service_role(stack, "Role", service=PODS, description="pods")
    stack.cluster.add_addon("vpc-cni", configuration={"env": {"MINIMUM_IP_TARGET": "30"}}, pod_roles={"aws-node": role})
    addon = stack.only("AWS::EKS::Addon")
    assert (addon["AddonName"], addon["AddonVersion"]) == ("vpc-cni", addons["vpc-cni"].versions["1.35"])
    assert json.loads(addon["ConfigurationValues"]) == {"env": {"MINIMUM_IP_TARGET": "30"}}
    assert addon["PodIdentityAssociations"] == [
        {"ServiceAccount": "aws-node", "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]}}
    ]


def test_an_addon_without_a_version_is_eks_s_default():
    stack = Deployed(settings(kubernetes_version=NEXT_UNTESTED))
    stack.cluster.add_addon("coredns")
    assert stack.only("AWS::EKS::Addon").keys() == {"AddonName", "ClusterName", "ResolveConflicts"}


def test_pods_tag_the_sessions_of_their_roles():
    stack = Deployed()
    service_role(stack, "Role", service=PODS, description="pods")
    statement = {"Action": ["sts:AssumeRole", "sts:TagSession"], "Principal": {"Service": PODS}}
    Template.from_stack(stack).has_resource_properties(
        "AWS::IAM::Role", {"AssumeRolePolicyDocument": {"Statement": [Match.object_like(statement)]}}
    )


def test_an_unknown_addon_is_refused_by_name():
    with pytest.raises(UnknownAddon, match="no EKS add-on cni; it holds vpc-cni"):
        Deployed().cluster.add_addon("cni")


def test_the_log_group_is_created_encrypted_before_the_cluster():
    template = Template.from_stack(Deployed())
    (logs,) = template.find_resources("AWS::Logs::LogGroup").items()
    assert logs[1]["Properties"]["LogGroupName"] == "/aws/eks/staging/cluster"
    assert logs[1]["Properties"]["KmsKeyId"].endswith(":key/1")
    (cluster,) = template.find_resources("AWS::EKS::Cluster").values()
    assert logs[0] in cluster["DependsOn"]


def test_without_a_name_cluster_and_log_group_are_named_after_the_stack_with_a_suffix():
    stack = Deployed(name=None)
    name = stack.only("AWS::EKS::Cluster")["Name"]["Fn::Join"][1]
    assert name[0] == "stack-"
    assert "AWS::StackId" in json.dumps(name[1])
    group = stack.only("AWS::Logs::LogGroup")["LogGroupName"]["Fn::Join"][1]
    assert group == ["/aws/eks/stack-", name[1], "/cluster"]
