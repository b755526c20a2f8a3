"""The EKS cluster, who may enter it, and its add-ons."""

import json
from ipaddress import IPv4Network

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match, Template

from ultracluster.catalog.software import addons
from ultracluster.config.eks import Eks, Team
from ultracluster.constructs.eks import EksAddon, EksCluster, administrator, member, service_network
from ultracluster.constructs.roles import PODS, service_role
from ultracluster.kubernetes.addons import ClusterAddon

ADMIN = "arn:aws:iam::111122223333:role/Platform"


def settings(**changes):
    team = Team(name="pretrain", node_groups=("train",), gpus=16)
    return Eks(**{"type": "eks", "kubernetes_version": "1.35", "admins": (ADMIN,), "teams": (team,), **changes})


class Deployed(cdk.Stack):
    """A stack with one cluster."""

    def __init__(self, eks_settings=None, vpc_block="10.0.0.0/16"):
        super().__init__(cdk.App(), "stack", env=cdk.Environment(region="us-east-2"))
        self.cluster = EksCluster(
            self,
            "Cluster",
            name="staging",
            settings=eks_settings or settings(),
            vpc_block=IPv4Network(vpc_block),
            subnets=[ec2.Subnet.from_subnet_id(self, f"Subnet{i}", f"subnet-{i}") for i in (1, 2)],
            security_group=ec2.SecurityGroup.from_security_group_id(self, "Access", "sg-1"),
            key=kms.Key.from_key_arn(self, "Key", "arn:aws:kms:us-east-2:111122223333:key/1"),
        )

    def network_addon(self):
        addon = ClusterAddon(addons["vpc-cni"], {}, before_nodes=True)
        return EksAddon(self, "Cni", cluster=self.cluster, addon=addon, kubernetes_version="1.35")

    def only(self, kind):
        (resource,) = Template.from_stack(self).find_resources(kind).values()
        return resource["Properties"]


def test_only_access_entries_let_anybody_in():
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


def test_secrets_are_encrypted_with_our_key_and_deletion_is_protected():
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
def test_services_take_addresses_that_the_vpc_has_not(vpc, services):
    assert service_network(IPv4Network(vpc)) == services


def test_an_administrator_has_the_cluster_admin_policy_in_the_whole_cluster():
    stack = Deployed()
    administrator(stack, "Admin", cluster=stack.cluster, role_arn=ADMIN)
    entry = stack.only("AWS::EKS::AccessEntry")
    assert entry["PrincipalArn"] == ADMIN
    (policy,) = entry["AccessPolicies"]
    assert policy["AccessScope"] == {"Type": "cluster"}
    assert json.dumps(policy["PolicyArn"]).count("cluster-access-policy/AmazonEKSClusterAdminPolicy") == 1


def test_a_member_of_a_team_enters_as_its_group_and_with_no_policy_of_aws():
    stack = Deployed()
    member(stack, "Member", cluster=stack.cluster, role_arn=ADMIN, groups=["team:pretrain"])
    entry = stack.only("AWS::EKS::AccessEntry")
    assert entry["KubernetesGroups"] == ["team:pretrain"]
    assert "AccessPolicies" not in entry


def test_an_addon_has_its_version_configuration_and_pod_role():
    stack = Deployed()
    role = service_role(stack, "Role", service=PODS, description="pods")
    EksAddon(
        stack,
        "Addon",
        cluster=stack.cluster,
        addon=ClusterAddon(addons["vpc-cni"], {"env": {"MINIMUM_IP_TARGET": "30"}}, before_nodes=True),
        kubernetes_version="1.35",
        pod_roles={"aws-node": role.attr_arn},
    )
    addon = stack.only("AWS::EKS::Addon")
    assert (addon["AddonName"], addon["AddonVersion"]) == ("vpc-cni", addons["vpc-cni"].versions["1.35"])
    assert json.loads(addon["ConfigurationValues"]) == {"env": {"MINIMUM_IP_TARGET": "30"}}
    assert addon["PodIdentityAssociations"] == [
        {"ServiceAccount": "aws-node", "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]}}
    ]


def test_an_addon_without_a_version_is_eks_s_default():
    stack = Deployed()
    addon = ClusterAddon(addons["coredns"], {}, before_nodes=False)
    EksAddon(stack, "Addon", cluster=stack.cluster, addon=addon, kubernetes_version="1.99")
    assert stack.only("AWS::EKS::Addon").keys() == {"AddonName", "ClusterName", "ResolveConflicts"}


def test_pods_tag_the_sessions_of_their_roles():
    stack = Deployed()
    service_role(stack, "Role", service=PODS, description="pods")
    statement = {"Action": ["sts:AssumeRole", "sts:TagSession"], "Principal": {"Service": PODS}}
    Template.from_stack(stack).has_resource_properties(
        "AWS::IAM::Role", {"AssumeRolePolicyDocument": {"Statement": [Match.object_like(statement)]}}
    )
