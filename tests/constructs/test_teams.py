"""Roles of teams on EKS, and access of pods to the role of their node."""

import json

import pytest

from tests.synthesis import FILES, resources, templates
from ultracluster.config.loader import load

EKS = [name for name, file in FILES.items() if load(file).control_plane.type == "eks"]
TEAMS = ("pretrain", "research")


def role_of(team):
    (role,) = [
        key
        for key, found in resources("staging", "AWS::IAM::Role").items()
        if found["Properties"].get("Description") == f"Pods of team {team}"
    ]
    return key_and_role(role)


def key_and_role(key):
    return key.split("/")[1], resources("staging", "AWS::IAM::Role")[key]["Properties"]


def statements(team):
    name, _ = role_of(team)
    (policy,) = [
        found["Properties"]["PolicyDocument"]["Statement"]
        for found in resources("staging", "AWS::IAM::ManagedPolicy").values()
        if {"Ref": name} in found["Properties"].get("Roles", [])
    ]
    return policy


@pytest.mark.parametrize("team", TEAMS)
def test_only_pods_of_the_team_in_this_cluster_may_assume_its_role(team):
    _, role = role_of(team)
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    tags = trust["Condition"]["StringEquals"]
    assert tags.pop("aws:RequestTag/kubernetes-namespace") == team
    assert tags.pop("aws:RequestTag/kubernetes-service-account") == "default"
    (cluster,) = resources("staging", "AWS::EKS::Cluster")
    exported = tags.pop("aws:RequestTag/eks-cluster-arn")["Fn::ImportValue"]
    outputs = templates("staging")["control-plane"]["Outputs"].values()
    (arn,) = [found["Value"] for found in outputs if found.get("Export", {}).get("Name") == exported]
    assert arn == {"Fn::GetAtt": [cluster.split("/")[1], "Arn"]}
    assert not tags


@pytest.mark.parametrize("team", TEAMS)
def test_the_team_s_service_account_has_the_team_s_role(team):
    name, _ = role_of(team)
    (association,) = [
        found["Properties"]
        for found in resources("staging", "AWS::EKS::PodIdentityAssociation").values()
        if found["Properties"]["Namespace"] == team
    ]
    assert association["RoleArn"] == {"Fn::GetAtt": [name, "Arn"]}
    assert association["ServiceAccount"] == "default"
    # session tags are what the trust policy asks for
    assert "DisableSessionTags" not in association


@pytest.mark.parametrize("team", TEAMS)
def test_a_team_writes_only_below_its_prefix(team):
    writing = [found for found in statements(team) if "s3:PutObject" in found["Action"]]
    (written,) = writing
    assert len(written["Resource"]) == 2
    for arn in written["Resource"]:
        assert json.dumps(arn).endswith(f'/teams/{team}/*"]]}}')


def test_the_driver_of_buckets_has_no_role_and_no_pod_shares_one():
    """Mountpoint mounts with the role of the pod (authenticationSource: pod)."""
    addons = [
        found["Properties"]
        for found in resources("staging", "AWS::EKS::Addon").values()
        if found["Properties"]["AddonName"] == "aws-mountpoint-s3-csi-driver"
    ]
    assert addons
    assert not any("PodIdentityAssociations" in addon for addon in addons)


@pytest.mark.parametrize("name", EKS)
def test_no_pod_reaches_the_role_of_its_node(name):
    for key, template in resources(name, "AWS::EC2::LaunchTemplate").items():
        options = template["Properties"]["LaunchTemplateData"]["MetadataOptions"]
        assert (options["HttpTokens"], options["HttpPutResponseHopLimit"]) == ("required", 1), key


@pytest.mark.parametrize("name", EKS)
def test_no_node_that_karpenter_launches_gives_pods_its_role(name):
    classes = [
        item
        for found in resources(name, "Custom::AWSCDK-EKS-KubernetesResource").values()
        for item in manifest(found)
        if item["kind"] == "EC2NodeClass"
    ]
    assert bool(classes) == (name in ("eks-volcano", "eks-karpenter"))
    for item in classes:
        options = item["spec"]["metadataOptions"]
        assert (options["httpTokens"], options["httpPutResponseHopLimit"]) == ("required", 1)


def manifest(found):
    """Objects of a custom resource; values that are known only at deployment are left out."""
    text = found["Properties"]["Manifest"]
    if isinstance(text, dict):
        text = "".join(part if isinstance(part, str) else "token" for part in text["Fn::Join"][1])
    return json.loads(text)
