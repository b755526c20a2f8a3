"""Access entries, add-ons, pod identity associations and capabilities of EKS as boto3 sees them."""

import json
from collections.abc import Iterator

import pytest

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
from localaws.services.kubernetes import contents

INVALID, WRONG, BUSY, GONE = (
    *("InvalidParameterException", "InvalidRequestException", "ResourceInUseException"),
    "ResourceNotFoundException",
)
TRAIN = {"clusterName": "train"}
ROLE = "arn:aws:iam::111122223333:role/teams/Platform"
ENTRY = {**TRAIN, "principalArn": ROLE}
CLUSTER_WIDE = {"type": "cluster"}


@pytest.fixture(scope="module")
def one_account(aws: None) -> Account:
    account = make_account()
    make_role(account.iam, "half", "pods.eks.amazonaws.com")
    make_role(account.iam, "capability", "capabilities.eks.amazonaws.com", *POD_ACTIONS)
    return account


@pytest.fixture
def account(one_account: Account) -> Iterator[Account]:
    one_account.eks.create_cluster(**cluster_request(one_account))
    yield one_account
    clear()


def role(name: str) -> str:
    return f"arn:aws:iam::123456789012:role/{name}"


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


def test_a_second_add_on_of_a_name_is_refused(account: Account) -> None:
    account.eks.create_addon(**TRAIN, addonName="coredns")
    refused(BUSY, "already exists", account.eks.create_addon, **TRAIN, addonName="coredns")
