"""Access entries, add-ons, pod identity associations and capabilities of EKS as boto3 sees them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from eks_parts import (
    ADMIN,
    POD_ACTIONS,
    VIEW,
    Account,
    clear,
    cluster_request,
    make_account,
    make_role,
    refused,
)
from localaws.services import activate
from localaws.services.kubernetes import contents

INVALID, WRONG, BUSY, GONE = (
    *("InvalidParameterException", "InvalidRequestException", "ResourceInUseException"),
    "ResourceNotFoundException",
)
TRAIN = {"clusterName": "train"}
ROLE = "arn:aws:iam::111122223333:role/teams/Platform"
ENTRY = {**TRAIN, "principalArn": ROLE}
CLUSTER_WIDE = {"type": "cluster"}
ACCOUNT = {**TRAIN, "namespace": "team", "serviceAccount": "reader"}


@pytest.fixture(scope="module")
def one_account() -> Iterator[Account]:
    activate()
    with mock_aws():
        account = make_account()
        make_role(account.iam, "half", "pods.eks.amazonaws.com")
        make_role(account.iam, "capability", "capabilities.eks.amazonaws.com", *POD_ACTIONS)
        yield account


@pytest.fixture
def account(one_account: Account) -> Iterator[Account]:
    one_account.eks.create_cluster(**cluster_request(one_account))
    yield one_account
    clear()


def role(name: str) -> str:
    return f"arn:aws:iam::123456789012:role/{name}"


def test_an_entry_is_created_updated_and_deleted(account: Account) -> None:
    eks = account.eks
    eks.create_access_entry(**ENTRY, kubernetesGroups=["platform"], tags={"a": "b"})
    found = eks.describe_access_entry(**ENTRY)["accessEntry"]
    assert (found["type"], found["kubernetesGroups"], found["tags"]) == ("STANDARD", ["platform"], {"a": "b"})
    assert found["username"] == "arn:aws:sts::111122223333:assumed-role/Platform/{{SessionName}}"
    assert ":access-entry/train/role/111122223333/Platform/" in found["accessEntryArn"]
    eks.update_access_entry(**ENTRY, kubernetesGroups=["others"], username="platform")
    found = eks.describe_access_entry(**ENTRY)["accessEntry"]
    assert (found["kubernetesGroups"], found["username"]) == (["others"], "platform")
    assert eks.list_access_entries(**TRAIN)["accessEntries"] == [ROLE]
    eks.delete_access_entry(**ENTRY)
    refused(GONE, ROLE, eks.describe_access_entry, **ENTRY)


def test_policies_are_associated_scoped_and_disassociated(account: Account) -> None:
    eks = account.eks
    eks.create_access_entry(**ENTRY)
    eks.associate_access_policy(**ENTRY, policyArn=ADMIN, accessScope=CLUSTER_WIDE)
    eks.associate_access_policy(**ENTRY, policyArn=VIEW, accessScope=CLUSTER_WIDE)
    team = {"type": "namespace", "namespaces": ["team"]}
    eks.associate_access_policy(**ENTRY, policyArn=VIEW, accessScope=team)
    found = eks.list_associated_access_policies(**ENTRY)["associatedAccessPolicies"]
    assert {it["policyArn"]: it["accessScope"] for it in found} == {ADMIN: {**CLUSTER_WIDE}, VIEW: team}
    assert eks.list_access_entries(**TRAIN, associatedPolicyArn=VIEW)["accessEntries"] == [ROLE]
    eks.disassociate_access_policy(**ENTRY, policyArn=VIEW)
    refused(GONE, "not associated", eks.disassociate_access_policy, **ENTRY, policyArn=VIEW)
    assert eks.list_access_entries(**TRAIN, associatedPolicyArn=VIEW)["accessEntries"] == []
    assert ADMIN in [policy["arn"] for policy in eks.list_access_policies()["accessPolicies"]]


def test_only_access_policies_of_aws_are_accepted(account: Account) -> None:
    account.eks.create_access_entry(**ENTRY)
    call = account.eks.associate_access_policy
    unknown = ADMIN.replace("ClusterAdmin", "Everything")
    refused(GONE, "not an access policy", call, **ENTRY, policyArn=unknown, accessScope=CLUSTER_WIDE)
    of_iam = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
    refused(GONE, "not an access policy", call, **ENTRY, policyArn=of_iam, accessScope=CLUSTER_WIDE)
    refused(INVALID, "needs namespaces", call, **ENTRY, policyArn=VIEW, accessScope={"type": "namespace"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"principalArn": "arn:aws:sts::111122223333:assumed-role/a/b"}, "neither an IAM role nor a user"),
        ({"principalArn": "Platform"}, "neither an IAM role nor a user"),
        ({"type": "GPU_LINUX"}, "GPU_LINUX is invalid"),
        ({"type": "EC2", "principalArn": "arn:aws:iam::111122223333:user/me"}, "needs an IAM role"),
        ({"type": "EC2_LINUX", "kubernetesGroups": ["a"]}, "neither kubernetesGroups nor username"),
        ({"kubernetesGroups": ["system:masters"]}, "cannot start with system:"),
    ],
)
def test_entries_that_eks_refuses(account: Account, changes: dict[str, Any], words: str) -> None:
    refused(INVALID, words, account.eks.create_access_entry, **{**ENTRY, **changes})


def test_node_entries_refuse_policies_and_duplicates_are_refused(account: Account) -> None:
    account.eks.create_access_entry(**ENTRY, type="EC2_LINUX")
    refused(BUSY, "already in use", account.eks.create_access_entry, **ENTRY)
    call = account.eks.associate_access_policy
    refused(INVALID, "takes no access policies", call, **ENTRY, policyArn=VIEW, accessScope=CLUSTER_WIDE)


def test_a_cluster_with_config_map_authentication_has_no_entries(account: Account) -> None:
    mode = {"authenticationMode": "CONFIG_MAP"}
    account.eks.create_cluster(**cluster_request(account, name="old", accessConfig=mode))
    words = r"must be set to one of \[API, API_AND_CONFIG_MAP\]"
    refused(WRONG, words, account.eks.create_access_entry, clusterName="old", principalArn=ROLE)


def test_an_add_on_creates_its_pod_identity_associations(account: Account) -> None:
    eks, place = account.eks, {**TRAIN, "addonName": "aws-fsx-csi-driver"}
    account_of = {"serviceAccount": "fsx-csi-controller-sa", "roleArn": account.pod_role}
    values = json.dumps({"node": {"tolerateAllTaints": True}})
    asked = {"addonVersion": "v1.9.0-eksbuild.1", "configurationValues": values}
    eks.create_addon(**place, **asked, podIdentityAssociations=[account_of], resolveConflicts="OVERWRITE")
    found = eks.describe_addon(**place)["addon"]
    assert found.items() >= {**asked, "status": "ACTIVE"}.items()
    (association,) = eks.list_pod_identity_associations(**TRAIN)["associations"]
    assert found["podIdentityAssociations"] == [association["associationArn"]]
    assert (association["namespace"], association["ownerArn"]) == ("kube-system", found["addonArn"])
    eks.update_addon(**place, podIdentityAssociations=[])
    assert eks.list_pod_identity_associations(**TRAIN)["associations"] == []
    assert eks.describe_addon(**place)["addon"]["configurationValues"] == values
    eks.delete_addon(**place)
    assert eks.list_addons(**TRAIN)["addons"] == []


def test_an_add_on_creates_its_namespaces(account: Account) -> None:
    account.eks.create_addon(**TRAIN, addonName="aws-mountpoint-s3-csi-driver")
    account.eks.create_addon(**TRAIN, addonName="cert-manager", namespaceConfig={"namespace": "certificates"})
    found = contents(account.eks.describe_cluster(name="train")["cluster"]["arn"])
    assert found
    assert {"mount-s3", "certificates"} <= set(found["namespaces"])
    assert "cert-manager" not in found["namespaces"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"addonName": "slurm"}, "slurm specified is not supported"),
        ({"addonVersion": "1.9.0"}, "version specified is not supported"),
        ({"configurationValues": "replicas: 2"}, "not in valid JSON format"),
        ({"configurationValues": "[]"}, "not in valid JSON format"),
        ({"serviceAccountRoleArn": role("nobody")}, "does not exist"),
        ({"podIdentityAssociations": [{"serviceAccount": "a", "roleArn": role("nobody")}]}, "does not exist"),
        ({"podIdentityAssociations": [{"serviceAccount": "a", "roleArn": role("half")}]}, "sts:TagSession"),
        ({"podIdentityAssociations": [{"serviceAccount": "a", "roleArn": role("node")}]}, "sts:TagSession"),
    ],
)
def test_add_ons_that_eks_refuses(account: Account, changes: dict[str, Any], words: str) -> None:
    asked = {**TRAIN, "addonName": "coredns", **changes}
    refused(INVALID, words, account.eks.create_addon, **asked)
    assert account.eks.list_addons(**TRAIN)["addons"] == []
    assert account.eks.list_pod_identity_associations(**TRAIN)["associations"] == []


def test_a_second_add_on_of_a_name_is_refused(account: Account) -> None:
    account.eks.create_addon(**TRAIN, addonName="coredns")
    refused(BUSY, "already exists", account.eks.create_addon, **TRAIN, addonName="coredns")


def test_an_association_is_created_updated_and_deleted(account: Account) -> None:
    eks = account.eks
    made = eks.create_pod_identity_association(**ACCOUNT, roleArn=account.pod_role)["association"]
    place = {**TRAIN, "associationId": made["associationId"]}
    assert made["associationArn"].endswith(f":podidentityassociation/train/{made['associationId']}")
    refused(BUSY, "already exists", eks.create_pod_identity_association, **ACCOUNT, roleArn=account.pod_role)
    policy = json.dumps({"Version": "2012-10-17", "Statement": []})
    words = "disableSessionTags must be true"
    refused(INVALID, words, eks.update_pod_identity_association, **place, policy=policy)
    eks.update_pod_identity_association(**place, policy=policy, disableSessionTags=True)
    found = eks.describe_pod_identity_association(**place)["association"]
    assert (found["policy"], found["disableSessionTags"]) == (policy, True)
    assert eks.list_pod_identity_associations(**TRAIN, namespace="other")["associations"] == []
    eks.delete_pod_identity_association(**place)
    refused(GONE, made["associationId"], eks.describe_pod_identity_association, **place)


@pytest.mark.parametrize("name", ["nobody", "node", "half"])
def test_the_role_of_pods_must_allow_both_actions(account: Account, name: str) -> None:
    refused(INVALID, name, account.eks.create_pod_identity_association, **ACCOUNT, roleArn=role(name))


def test_a_capability_is_created_updated_and_deleted(account: Account) -> None:
    eks, place = account.eks, {**TRAIN, "capabilityName": "kro"}
    asked = {"type": "KRO", "roleArn": role("capability"), "deletePropagationPolicy": "RETAIN"}
    made = eks.create_capability(**place, **asked)["capability"]
    assert made == eks.describe_capability(**place)["capability"]
    assert made.items() >= {**asked, "status": "ACTIVE"}.items()
    again = {**TRAIN, "capabilityName": "another"}
    refused(BUSY, "has the KRO capability kro", eks.create_capability, **again, **asked)
    eks.delete_capability(**place)
    assert eks.list_capabilities(**TRAIN)["capabilities"] == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"roleArn": role("pod")}, "does not let capabilities.eks.amazonaws.com"),
        ({"roleArn": role("nobody")}, "does not exist"),
        ({"configuration": {"ack": {"enableCrossNamespace": True}}}, "must hold nothing"),
        ({"type": "ARGOCD"}, "must hold argoCd"),
    ],
)
def test_capabilities_that_eks_refuses(account: Account, changes: dict[str, Any], words: str) -> None:
    asked = {"type": "KRO", "roleArn": role("capability"), "deletePropagationPolicy": "RETAIN", **changes}
    refused(INVALID, words, account.eks.create_capability, **TRAIN, capabilityName="kro", **asked)
