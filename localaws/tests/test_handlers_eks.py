"""AWS::EKS::* created from template properties and read back through boto3."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.moto_api import state_manager

from eks_parts import (
    ADMIN,
    POD_ACTIONS,
    REGION,
    VERSION,
    VIEW,
    Account,
    clear,
    make_account,
    make_role,
    make_subnet,
    make_template,
)
from handler_parts import Stack, own_tags, tags
from localaws import schemas
from localaws.properties import replacement
from localaws.resources import HandlerError
from localaws.services import activate

CLUSTER, GROUP, ADDON, ENTRY, IDENTITY, CAPABILITY = (
    f"AWS::EKS::{name}"
    for name in ("Cluster", "Nodegroup", "Addon", "AccessEntry", "PodIdentityAssociation", "Capability")
)
ROLE = "arn:aws:iam::111122223333:role/Platform"


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    activate()
    with mock_aws():
        account = make_account()
        make_role(account.iam, "capability", "capabilities.eks.amazonaws.com", *POD_ACTIONS)
        yield account


@pytest.fixture
def stack(account: Account) -> Iterator[Stack]:
    yield Stack(REGION)
    clear()


def cluster(account: Account, **changes: Any) -> dict[str, Any]:
    vpc = {"SubnetIds": account.subnets, **changes.pop("ResourcesVpcConfig", {})}
    access = {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False}
    full = {"Name": "train", "Version": VERSION, "RoleArn": account.cluster_role, "AccessConfig": access}
    return {**full, "ResourcesVpcConfig": vpc, **changes}


def group(account: Account, template: str, **changes: Any) -> dict[str, Any]:
    return {
        "ClusterName": "train",
        "NodegroupName": "gpu",
        "NodeRole": account.node_role,
        "Subnets": account.subnets[:1],
        "AmiType": "AL2023_x86_64_NVIDIA",
        "LaunchTemplate": {"Id": template, "Version": "1"},
        **changes,
    }


def described(account: Account) -> dict[str, Any]:
    return dict(account.eks.describe_cluster(name="train")["cluster"])


def logs(*types: str) -> dict[str, Any]:
    return {"ClusterLogging": {"EnabledTypes": [{"Type": name} for name in types]}}


def test_a_cluster_is_created_updated_and_deleted(account: Account, stack: Stack) -> None:
    scoring = {"Type": "MostAllocated", "Resources": [{"Name": "nvidia.com/gpu", "Weight": 10}]}
    private = {"EndpointPublicAccess": False, "EndpointPrivateAccess": True, "SecurityGroupIds": [account.group]}
    old = cluster(
        account,
        ControlPlaneScalingConfig={"Tier": "tier-xl"},
        KubeSchedulerConfig={"NodeResourcesFit": {"ScoringStrategy": scoring}},
        KubernetesNetworkConfig={"ServiceIpv4Cidr": "172.20.0.0/16"},
        Logging=logs("api", "audit"),
        ResourcesVpcConfig=private,
        Tags=tags(team="a", old="1"),
        UpgradePolicy={"SupportType": "STANDARD"},
        ZonalShiftConfig={"Enabled": True},
    )
    made = stack.create(CLUSTER, **old)
    found = described(account)
    assert made.physical_id == "train"
    told = made.attributes
    assert told["Arn"] == found["arn"]
    assert told["CertificateAuthorityData"] == found["certificateAuthority"]["data"]
    assert told["ClusterSecurityGroupId"] == found["resourcesVpcConfig"]["clusterSecurityGroupId"]
    assert told["OpenIdConnectIssuerUrl"] == found["identity"]["oidc"]["issuer"]
    assert found["tags"]["aws:cloudformation:stack-name"] == "Train"
    strategy = found["kubeSchedulerConfig"]["nodeResourcesFit"]["scoringStrategy"]
    assert strategy == {"type": "MostAllocated", "resources": [{"name": "nvidia.com/gpu", "weight": 10}]}
    assert found["logging"]["clusterLogging"][0] == {"types": ["api", "audit"], "enabled": True}

    scoring = {"Type": "LeastAllocated"}
    third = make_subnet(account.ec2, account.vpc, "10.0.8.0/24", f"{REGION}c")
    new = cluster(
        account,
        DeletionProtection=True,
        KubeSchedulerConfig={"NodeResourcesFit": {"ScoringStrategy": scoring}},
        KubernetesNetworkConfig={"ServiceIpv4Cidr": "172.20.0.0/16"},
        ResourcesVpcConfig={"SubnetIds": [*account.subnets, third]},
        Tags=tags(team="b"),
        Version="1.36",
    )
    stack.update(CLUSTER, "train", old, new)
    found = described(account)
    assert (found["version"], found["deletionProtection"]) == ("1.36", True)
    assert found["kubeSchedulerConfig"]["nodeResourcesFit"]["scoringStrategy"]["type"] == "LeastAllocated"
    assert found["controlPlaneScalingConfig"] == {"tier": "standard"}
    assert found["upgradePolicy"] == {"supportType": "EXTENDED"}
    assert found["zonalShiftConfig"] == {"enabled": False}
    assert [setup["enabled"] for setup in found["logging"]["clusterLogging"]] == [False]
    vpc = found["resourcesVpcConfig"]
    assert (vpc["endpointPublicAccess"], vpc["endpointPrivateAccess"]) == (True, False)
    assert (vpc["subnetIds"], vpc["securityGroupIds"]) == ([*account.subnets, third], [])
    assert (found["tags"]["team"], "old" in found["tags"]) == ("b", False)

    with pytest.raises(ClientError, match="InvalidRequestException"):
        stack.delete(CLUSTER, "train", **new)
    stack.update(CLUSTER, "train", new, {**new, "DeletionProtection": False})
    stack.delete(CLUSTER, "train", **new)
    assert account.eks.list_clusters()["clusters"] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RoleArn", "arn:aws:iam::123456789012:role/other"),
        ("EncryptionConfig", [{"Resources": ["secrets"], "Provider": {"KeyArn": "arn"}}]),
        ("KubernetesNetworkConfig", {"ServiceIpv4Cidr": "172.20.0.0/16"}),
    ],
)
def test_create_only_properties_replace_a_cluster(account: Account, name: str, value: Any) -> None:
    assert replacement(CLUSTER, cluster(account), cluster(account, **{name: value}), REGION) == "True"


def test_a_clusters_secrets_are_encrypted_with_a_key_that_exists(account: Account, stack: Stack) -> None:
    key = stack.client("kms").create_key()["KeyMetadata"]["Arn"]
    encryption = [{"Resources": ["secrets"], "Provider": {"KeyArn": key}}]
    made = stack.create(CLUSTER, **cluster(account, EncryptionConfig=encryption))
    assert made.attributes["EncryptionConfigKeyArn"] == key


def test_a_handler_waits_until_its_cluster_is_active(account: Account, stack: Stack) -> None:
    state_manager.set_transition("eks::cluster", {"progression": "manual", "times": 3})
    try:
        stack.create(CLUSTER, **cluster(account))
    finally:
        state_manager.unset_transition("eks::cluster")
    assert described(account)["status"] == "ACTIVE"


def test_unsupported_property_fails_by_name(account: Account, stack: Stack) -> None:
    remote = {"RemoteNodeNetworks": [{"Cidrs": ["10.80.0.0/16"]}]}
    with pytest.raises(HandlerError, match="does not support RemoteNetworkConfig"):
        stack.create(CLUSTER, **cluster(account, RemoteNetworkConfig=remote))
    with pytest.raises(HandlerError, match="Tier: 'tier-3xl' is not one of"):
        stack.create(CLUSTER, **cluster(account, ControlPlaneScalingConfig={"Tier": "tier-3xl"}))


def test_a_node_group_is_created_updated_and_deleted(account: Account, stack: Stack) -> None:
    stack.create(CLUSTER, **cluster(account))
    template = make_template(account)
    override = {"NodeMonitoringCondition": "AcceleratedHardwareReady", "NodeUnhealthyReason": "NvidiaXID64Error"}
    override |= {"MinRepairWaitTimeMins": 5, "RepairAction": "Replace"}
    repair = {"Enabled": True, "MaxUnhealthyNodeThresholdPercentage": 20, "NodeRepairConfigOverrides": [override]}
    old = group(
        account,
        template,
        ForceUpdateEnabled=True,
        Labels={"Team/Name": "A", "gone": "1"},
        NodeRepairConfig=repair,
        ScalingConfig={"MinSize": 0, "MaxSize": 8, "DesiredSize": 4},
        Tags={"team": "a"},
        Taints=[{"Key": "nvidia.com/gpu", "Value": "true", "Effect": "NO_SCHEDULE"}],
        UpdateConfig={"MaxUnavailable": 2, "UpdateStrategy": "MINIMAL"},
    )
    made = stack.create(GROUP, **old)
    place = {"clusterName": "train", "nodegroupName": "gpu"}
    found = account.eks.describe_nodegroup(**place)["nodegroup"]
    assert made.physical_id == made.attributes["Id"] == "train/gpu"
    assert made.attributes["Arn"] == found["nodegroupArn"]
    assert found["labels"] == {"Team/Name": "A", "gone": "1"}
    assert found["updateConfig"] == {"maxUnavailable": 2, "updateStrategy": "MINIMAL"}
    assert found["nodeRepairConfig"]["nodeRepairConfigOverrides"][0]["nodeUnhealthyReason"] == "NvidiaXID64Error"

    account.ec2.create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="1", LaunchTemplateData={"InstanceType": "p5en.48xlarge"}
    )
    new = group(
        account,
        template,
        Labels={"Team/Name": "B"},
        ScalingConfig={"MinSize": 1, "MaxSize": 8, "DesiredSize": 8},
        Tags={"team": "b"},
        Taints=[{"Key": "other", "Effect": "NO_EXECUTE"}],
    )
    stack.update(GROUP, "train/gpu", old, new)
    newest = {**new, "LaunchTemplate": {"Id": template, "Version": "2"}}
    with pytest.raises(HandlerError, match="cannot be combined with other updates"):
        stack.update(GROUP, "train/gpu", old, newest)
    assert account.eks.describe_nodegroup(**place)["nodegroup"]["launchTemplate"]["version"] == "1"
    stack.update(GROUP, "train/gpu", new, newest)
    found = account.eks.describe_nodegroup(**place)["nodegroup"]
    assert (found["labels"], found["tags"]["team"]) == ({"Team/Name": "B"}, "b")
    assert found["scalingConfig"] == {"minSize": 1, "maxSize": 8, "desiredSize": 8}
    assert found["taints"] == [{"key": "other", "effect": "NO_EXECUTE"}]
    assert found["launchTemplate"]["version"] == "2"
    assert found["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "DEFAULT"}
    assert found["nodeRepairConfig"] == {"enabled": False}
    less = {key: value for key, value in newest.items() if key != "ScalingConfig"}
    stack.update(GROUP, "train/gpu", newest, less)
    assert account.eks.describe_nodegroup(**place)["nodegroup"]["scalingConfig"]["desiredSize"] == 8

    stack.delete(GROUP, "train/gpu")
    assert account.eks.list_nodegroups(clusterName="train")["nodegroups"] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("AmiType", "AL2023_ARM_64_NVIDIA"), ("CapacityType", "SPOT"), ("Subnets", ["subnet-0"]), ("NodeRole", "other")],
)
def test_create_only_properties_replace_a_node_group(account: Account, name: str, value: Any) -> None:
    assert replacement(GROUP, group(account, "lt-0"), group(account, "lt-0", **{name: value}), REGION) == "True"


def test_a_node_group_keeps_its_launch_template(account: Account, stack: Stack) -> None:
    stack.create(CLUSTER, **cluster(account))
    old = group(account, make_template(account))
    stack.create(GROUP, **old)
    without = {key: value for key, value in old.items() if key != "LaunchTemplate"}
    with pytest.raises(HandlerError, match="must keep its LaunchTemplate"):
        stack.update(GROUP, "train/gpu", old, without)
    with pytest.raises(ClientError, match="cannot change to"):
        stack.update(GROUP, "train/gpu", old, group(account, make_template(account)))


def test_refusals_of_the_service_reach_the_stack(account: Account, stack: Stack) -> None:
    with pytest.raises(ClientError, match="No cluster found for name: train"):
        stack.create(GROUP, **group(account, make_template(account)))
    stack.create(CLUSTER, **cluster(account))
    template = make_template(account, NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": account.subnets[0]}])
    with pytest.raises(ClientError, match="subnet in its network interfaces"):
        stack.create(GROUP, **group(account, template))


def test_an_add_on_is_created_updated_and_deleted(account: Account, stack: Stack) -> None:
    stack.create(CLUSTER, **cluster(account))
    uses = [{"ServiceAccount": "fsx-csi-controller-sa", "RoleArn": account.pod_role}]
    values = json.dumps({"node": {"tolerateAllTaints": True}})
    named = {"ClusterName": "train", "AddonName": "aws-fsx-csi-driver", "AddonVersion": "v1.9.0-eksbuild.1"}
    old = {**named, "ConfigurationValues": values, "PodIdentityAssociations": uses, "Tags": tags(team="a")}
    made = stack.create(ADDON, **old, ResolveConflicts="OVERWRITE", PreserveOnDelete=True)
    place = {"clusterName": "train", "addonName": "aws-fsx-csi-driver"}
    found = account.eks.describe_addon(**place)["addon"]
    assert (made.physical_id, made.attributes["Arn"]) == ("train|aws-fsx-csi-driver", found["addonArn"])
    assert (found["configurationValues"], len(found["podIdentityAssociations"])) == (values, 1)
    new = {**named, "AddonVersion": "v1.10.0-eksbuild.1", "Tags": tags(team="b")}
    stack.update(ADDON, made.physical_id, old, new)
    found = account.eks.describe_addon(**place)["addon"]
    assert (found["addonVersion"], found["configurationValues"]) == ("v1.10.0-eksbuild.1", "{}")
    assert found["tags"]["team"] == "b"
    assert account.eks.list_pod_identity_associations(clusterName="train")["associations"] == []
    unversioned = {"ClusterName": "train", "AddonName": "aws-fsx-csi-driver"}
    stack.update(ADDON, made.physical_id, new, unversioned)
    assert account.eks.describe_addon(**place)["addon"]["addonVersion"] == "v1.10.0-eksbuild.1"
    stack.delete(ADDON, made.physical_id, **unversioned)
    assert account.eks.list_addons(clusterName="train")["addons"] == []


def test_an_access_entry_is_created_updated_and_deleted(account: Account, stack: Stack) -> None:
    stack.create(CLUSTER, **cluster(account))
    named = {"ClusterName": "train", "PrincipalArn": ROLE}
    everything, team = {"Type": "cluster"}, {"Type": "namespace", "Namespaces": ["team"]}
    policies = [{"PolicyArn": ADMIN, "AccessScope": everything}, {"PolicyArn": VIEW, "AccessScope": everything}]
    old = {**named, "AccessPolicies": policies, "KubernetesGroups": ["a"], "Tags": tags(team="a")}
    made = stack.create(ENTRY, **old)
    assert made.physical_id == f"{ROLE}|train"
    new = {**named, "AccessPolicies": [{"PolicyArn": VIEW, "AccessScope": team}]}
    stack.update(ENTRY, made.physical_id, old, new)
    place = {"clusterName": "train", "principalArn": ROLE}
    (policy,) = account.eks.list_associated_access_policies(**place)["associatedAccessPolicies"]
    assert (policy["policyArn"], policy["accessScope"]["namespaces"]) == (VIEW, ["team"])
    assert account.eks.describe_access_entry(**place)["accessEntry"]["kubernetesGroups"] == []
    stack.delete(ENTRY, made.physical_id, **new)
    assert account.eks.list_access_entries(clusterName="train")["accessEntries"] == []


def test_an_entry_with_an_unknown_policy_leaves_nothing_behind(account: Account, stack: Stack) -> None:
    stack.create(CLUSTER, **cluster(account))
    wrong = [{"PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess", "AccessScope": {"Type": "cluster"}}]
    with pytest.raises(ClientError, match="not an access policy"):
        stack.create(ENTRY, ClusterName="train", PrincipalArn=ROLE, AccessPolicies=wrong)
    assert account.eks.list_access_entries(clusterName="train")["accessEntries"] == []


def test_a_pod_identity_association_is_created_updated_and_deleted(account: Account, stack: Stack) -> None:
    stack.create(CLUSTER, **cluster(account))
    named = {"ClusterName": "train", "Namespace": "team", "ServiceAccount": "reader", "RoleArn": account.pod_role}
    policy = json.dumps({"Version": "2012-10-17", "Statement": []})
    old = {**named, "Policy": policy, "DisableSessionTags": True, "Tags": tags(team="a")}
    made = stack.create(IDENTITY, **old)
    assert made.physical_id == made.attributes["AssociationArn"]
    stack.update(IDENTITY, made.physical_id, old, named)
    place = {"clusterName": "train", "associationId": made.attributes["AssociationId"]}
    found = account.eks.describe_pod_identity_association(**place)["association"]
    assert ("policy" in found, found["disableSessionTags"]) == (False, False)
    listed = [{"Key": key, "Value": value} for key, value in found["tags"].items()]
    assert own_tags(listed) == {}
    stack.delete(IDENTITY, made.physical_id, **named)
    assert account.eks.list_pod_identity_associations(clusterName="train")["associations"] == []


def test_a_capability_is_created_updated_and_deleted(account: Account, stack: Stack) -> None:
    stack.create(CLUSTER, **cluster(account))
    named = {"ClusterName": "train", "CapabilityName": "ack", "Type": "ACK", "DeletePropagationPolicy": "RETAIN"}
    old = {**named, "RoleArn": "arn:aws:iam::123456789012:role/capability"}
    made = stack.create(CAPABILITY, **old)
    new = {**old, "Configuration": {"Ack": {"DisabledServices": ["ec2"]}}}
    stack.update(CAPABILITY, made.physical_id, old, new)
    found = account.eks.describe_capability(clusterName="train", capabilityName="ack")["capability"]
    assert found["configuration"]["ack"]["disabledServices"] == ["ec2"]
    stack.delete(CAPABILITY, made.physical_id, **new)
    assert account.eks.list_capabilities(clusterName="train")["capabilities"] == []


@pytest.mark.parametrize("type_name", [CLUSTER, GROUP, ADDON, ENTRY, IDENTITY, CAPABILITY])
def test_tags_of_the_stack_reach_every_type(type_name: str) -> None:
    assert schemas.tag_property(type_name, REGION) == "Tags"
