"""The EKS cluster, its access entries and add-ons."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk.assertions import Template

from ultracluster.catalog.software import addons
from ultracluster.config.eks import EksControlPlane
from ultracluster.constructs.eks import EksAddon, UnknownAddon
from ultracluster.constructs.eks_cluster import EksCluster, service_network
from ultracluster.constructs.eks_roles import EksNodeRole
from ultracluster.constructs.references import WrongReference
from ultracluster.constructs.roles import PODS, service_role
from ultracluster.errors import InvalidArgument

ADMIN = "arn:aws:iam::111122223333:role/Platform"


def settings(**changes):
    return EksControlPlane(**{"kubernetes_version": "1.35", **changes})


class Deployed(cdk.Stack):
    """A stack with one cluster."""

    def __init__(self, eks_settings=None, name="staging", **options):
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
            **options,
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


def test_secrets_are_encrypted_with_our_key():
    cluster = Deployed().only("AWS::EKS::Cluster")
    (encryption,) = cluster["EncryptionConfig"]
    assert encryption["Resources"] == ["secrets"]
    assert encryption["Provider"]["KeyArn"].endswith(":key/1")


@pytest.mark.parametrize("protected", [True, False])
def test_deletion_protection_is_as_asked_and_off_by_default(protected):
    deployed = Deployed(deletion_protection=True) if protected else Deployed()
    assert deployed.only("AWS::EKS::Cluster")["DeletionProtection"] is protected


def test_every_control_plane_log_type_is_enabled():
    kinds = Deployed().only("AWS::EKS::Cluster")["Logging"]["ClusterLogging"]["EnabledTypes"]
    assert {kind["Type"] for kind in kinds} == {"api", "audit", "authenticator", "controllerManager", "scheduler"}


def test_the_kube_scheduler_fills_nodes_with_gpus_in_use_first():
    scoring = Deployed().only("AWS::EKS::Cluster")["KubeSchedulerConfig"]["NodeResourcesFit"]["ScoringStrategy"]
    weights = {resource["Name"]: resource["Weight"] for resource in scoring["Resources"]}
    assert scoring["Type"] == "MostAllocated"
    assert max(weights, key=lambda name: weights[name]) == "nvidia.com/gpu"


@pytest.mark.parametrize("tier", ["standard", "tier-8xl"])
def test_the_control_plane_has_the_tier_of_the_settings(tier):
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


def test_grant_admin_associates_the_cluster_admin_policy_with_cluster_scope():
    stack = Deployed()
    stack.cluster.grant_admin(ADMIN)
    entry = stack.only("AWS::EKS::AccessEntry")
    assert entry["PrincipalArn"] == ADMIN
    (policy,) = entry["AccessPolicies"]
    assert policy["AccessScope"] == {"Type": "cluster"}
    assert json.dumps(policy["PolicyArn"]).count("cluster-access-policy/AmazonEKSClusterAdminPolicy") == 1


def test_grant_access_maps_a_role_to_kubernetes_groups_without_an_access_policy():
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


def test_an_addon_without_a_pinned_version_is_left_to_eks():
    stack = Deployed(settings(kubernetes_version="1.99"))
    stack.cluster.add_addon("coredns")
    assert stack.only("AWS::EKS::Addon").keys() == {"AddonName", "ClusterName", "ResolveConflicts"}


def test_an_unknown_addon_is_refused_with_the_known_names():
    with pytest.raises(UnknownAddon, match=r"no EKS add-on cni\. Pass one of vpc-cni"):
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


@pytest.mark.parametrize("text", ["10.0.0.0/33", "my-vpc"])
def test_a_vpc_cidr_that_is_none_is_refused(text):
    with pytest.raises(InvalidArgument, match=r"vpc_cidr is .* Pass an IPv4 CIDR"):
        service_network(text)


def test_a_vpc_cidr_that_is_known_at_deployment_gets_the_first_service_network():
    assert service_network(cdk.Fn.import_value("Cidr")) == service_network(None) == "172.20.0.0/16"


def test_a_log_group_of_the_app_is_used_and_created_first():
    stack = cdk.Stack(cdk.App(), "stack")
    key = kms.Key(stack, "Key")
    group = logs.LogGroup(stack, "Logs", log_group_name="/aws/eks/mine/cluster")
    EksCluster(
        stack,
        "Cluster",
        name="mine",
        settings=settings(),
        subnets=["subnet-1", "subnet-2"],
        security_group="sg-1",
        key=key,
        log_group=group,
    )
    template = Template.from_stack(stack)
    (name,) = template.find_resources("AWS::Logs::LogGroup")
    (cluster,) = template.find_resources("AWS::EKS::Cluster").values()
    assert name in cluster["DependsOn"]


@pytest.mark.parametrize("wrong", ["logs", iam.ServicePrincipal("logs.amazonaws.com")])
def test_a_wrong_log_group_says_what_to_pass(wrong):
    stack = cdk.Stack(cdk.App(), "stack")
    key = kms.Key(stack, "Key")
    with pytest.raises(WrongReference, match=r"Pass an aws_cdk\.interfaces\.aws_logs\.ILogGroupRef"):
        EksCluster(
            stack,
            "Cluster",
            settings=settings(),
            subnets=["subnet-1", "subnet-2"],
            security_group="sg-1",
            key=key,
            log_group=wrong,
        )


# access entries


def roles(stack):
    return {
        "L1": iam.CfnRole(stack, "L1", assume_role_policy_document={}),
        "L2": iam.Role(stack, "L2", assumed_by=iam.AccountRootPrincipal()),
        "imported": iam.Role.from_role_arn(stack, "Imported", ADMIN),
        "of nodes": EksNodeRole(stack, "Nodes"),
        "token": cdk.Fn.import_value("AdminRole"),
        "ARN": ADMIN,
    }


@pytest.mark.parametrize("kind", ["L1", "L2", "imported", "of nodes", "token", "ARN"])
def test_every_kind_of_role_can_be_made_administrator(kind):
    stacks = [Deployed() for _ in range(2)]
    ids = set()
    for stack in stacks:
        role = roles(stack)[kind]
        stack.cluster.grant_admin(role)
        ((logical_id, entry),) = Template.from_stack(stack).find_resources("AWS::EKS::AccessEntry").items()
        expected = role if isinstance(role, str) else role.role_ref.role_arn
        assert entry["Properties"]["PrincipalArn"] == stack.resolve(expected)
        ids.add(logical_id)
    assert len(ids) == 1


def test_each_role_has_an_access_entry_of_its_own():
    stack = Deployed()
    every = roles(stack)
    del every["imported"]  # the same role as "ARN"
    for role in every.values():
        stack.cluster.grant_access(role, groups=["team:research"])
    Template.from_stack(stack).resource_count_is("AWS::EKS::AccessEntry", len(every))


@pytest.mark.parametrize("wrong", [None, "Platform", ["arn:aws:iam::111122223333:role/Platform"]])
def test_a_wrong_role_says_what_to_pass(wrong):
    with pytest.raises(WrongReference, match="Pass an "):
        Deployed().cluster.grant_admin(wrong)


# with other CDK constructs


def imported(stack):
    return EksCluster.from_cluster_attributes(
        stack,
        "Imported",
        cluster_name="theirs",
        kubernetes_version="1.35",
        cluster_endpoint="https://theirs.example",
        cluster_certificate_authority_data="Y2E=",
        cluster_security_group_id="sg-theirs",
    )


def test_an_imported_cluster_takes_access_entries_and_addons():
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(account="111122223333", region="us-east-2"))
    cluster = imported(stack)
    cluster.grant_admin(ADMIN)
    cluster.add_addon("coredns")
    template = Template.from_stack(stack)
    template.has_resource_properties("AWS::EKS::AccessEntry", {"ClusterName": "theirs", "PrincipalArn": ADMIN})
    template.has_resource_properties("AWS::EKS::Addon", {"ClusterName": "theirs", "AddonName": "coredns"})
    assert cluster.cluster_ref.cluster_name == "theirs"
    assert cluster.cluster_arn.endswith(":cluster/theirs")


@pytest.mark.parametrize("make", [imported, lambda stack: stack.cluster], ids=["imported", "created"])
def test_the_l2_view_has_the_attributes_of_the_cluster(make):
    stack = Deployed()
    cluster = make(stack)
    view = cluster.cluster
    assert (view.cluster_name, view.cluster_endpoint) == (cluster.cluster_name, cluster.cluster_endpoint)
    assert view.cluster_certificate_authority_data == cluster.cluster_certificate_authority_data
    assert stack.resolve(view.cluster_security_group_id) == stack.resolve(cluster.cluster_security_group_id)


def test_connections_open_port_443_of_the_api_server():
    stack = Deployed()
    bastion = ec2.SecurityGroup(
        stack, "Bastion", vpc=ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-1", availability_zones=["a"])
    )
    stack.cluster.connections.allow_default_port_from(bastion)
    bastion.connections.allow_to_default_port(imported(stack))
    rules = [
        found["Properties"]
        for found in Template.from_stack(stack).find_resources("AWS::EC2::SecurityGroupIngress").values()
    ]
    assert {(rule["FromPort"], rule["ToPort"]) for rule in rules} == {(443, 443)}
    groups = [rule["GroupId"] for rule in rules]
    assert stack.resolve(stack.cluster.cluster_security_group_id) in groups
    assert "sg-theirs" in groups


def test_metrics_have_the_cluster_as_dimension():
    metric = Deployed().cluster.metric_pending_pods()
    assert (metric.namespace, metric.metric_name, metric.statistic) == ("AWS/EKS", "scheduler_pending_pods", "Sum")
    assert list(metric.dimensions) == ["ClusterName"]
