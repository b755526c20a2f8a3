"""IAM: roles, inline and managed policies, instance profiles."""

import functools

from localaws.handlers.common import json_text
from localaws.resources import Context, HandlerError, Properties
from localaws.rows.handler import register
from localaws.rows.row import Entries, Row, Setting

MAX_POLICY_VERSIONS = 5  # IAM User Guide, "IAM and AWS STS quotas"

_iam = functools.partial(Row, service="iam", tag="TagRole", untag="UntagRole")


def _check_policy(_: Context, __: Properties, new: Properties) -> None:
    if not new.get("Roles"):
        raise HandlerError("At least one of [Groups,Roles,Users] must be non-empty.")


def _set_version(context: Context, old: Properties, new: Properties) -> None:
    """A changed document becomes the default version; the oldest version makes room. A deletion deletes all others."""
    if not old:
        return
    iam, arn = context.client("iam"), new["ref"]
    versions = iam.list_policy_versions(PolicyArn=arn)["Versions"]
    numbers = (version["VersionId"] for version in versions if not version["IsDefaultVersion"])
    others = sorted(numbers, key=lambda number: int(number.removeprefix("v")))
    room = MAX_POLICY_VERSIONS - 2 if "PolicyDocument" in new else 0
    for number in others[: max(0, len(others) - room)]:
        iam.delete_policy_version(PolicyArn=arn, VersionId=number)
    if document := new.get("PolicyDocument"):
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=json_text(document), SetAsDefault=True)


register(
    _iam(
        type="AWS::IAM::Role",
        name=("RoleName", 64),
        whole=True,
        resets={"Description": "", "MaxSessionDuration": 3600},
        settings=(
            Setting(
                "AssumeRolePolicyDocument",
                put="UpdateAssumeRolePolicy",
                renames={"AssumeRolePolicyDocument": "PolicyDocument"},
                at_creation=False,
            ),
            Setting(
                "PermissionsBoundary",
                put="PutRolePermissionsBoundary",
                remove="DeleteRolePermissionsBoundary",
                at_creation=False,
            ),
        ),
        entries=(
            Entries("ManagedPolicyArns", add="AttachRolePolicy", remove="DetachRolePolicy", member="PolicyArn"),
            Entries("Policies", add="PutRolePolicy", remove="DeleteRolePolicy"),
        ),
        must_exist={"PermissionsBoundary": "policy"},
    ),
    _iam(
        type="AWS::IAM::Policy",
        read=None,
        properties="PolicyDocument PolicyName Roles",
        name=("Id", 128),
        create=None,
        delete=None,
        ref="{Id}",
        entries=(Entries("Roles", add="PutRolePolicy", remove="DeleteRolePolicy", member="RoleName"),),
        must_exist={"Roles": "role"},
        check=_check_policy,
    ),
    _iam(
        type="AWS::IAM::ManagedPolicy",
        name=("ManagedPolicyName", 128),
        create="CreatePolicy",
        read="GetPolicy",
        delete="DeletePolicy",
        ref="{Arn}",
        renames={"ManagedPolicyName": "PolicyName"},
        entries=(Entries("Roles", add="AttachRolePolicy", remove="DetachRolePolicy", member="RoleName"),),
        attributes={"PermissionsBoundaryUsageCount": "PermissionsBoundaryUsageCount|0"},
        by_hand="PolicyDocument",
        hook=_set_version,
        hook_on_delete=True,
    ),
    _iam(
        type="AWS::IAM::InstanceProfile",
        name=("InstanceProfileName", 128),
        entries=(
            Entries("Roles", add="AddRoleToInstanceProfile", remove="RemoveRoleFromInstanceProfile", member="RoleName"),
        ),
        must_exist={"Roles": "role"},
    ),
)
