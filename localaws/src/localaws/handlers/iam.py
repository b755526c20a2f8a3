"""AWS::IAM::Role, Policy, ManagedPolicy and InstanceProfile."""

from typing import Any

from localaws.handlers.common import as_list, json_text, tag_changes, undo_on_failure
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    handler,
    pick,
    require,
    require_role,
)

MAX_POLICY_VERSIONS = 5  # IAM User Guide, "IAM and AWS STS quotas"


def require_policy(context: Context, arn: str) -> dict[str, Any]:
    """The managed policy of this ARN; HandlerError when it does not exist."""
    iam = context.client("iam")
    found: dict[str, Any] = require(lambda: iam.get_policy(PolicyArn=arn), f"policy {arn} does not exist")["Policy"]
    return found


@handler
class Role(Handler):
    """AWS::IAM::Role with its inline policies and attachments."""

    type = "AWS::IAM::Role"
    supported_properties = frozenset(
        {"RoleName", "Path", "AssumeRolePolicyDocument", "Description", "MaxSessionDuration", "PermissionsBoundary"}
        | {"ManagedPolicyArns", "Policies", "Tags"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the role, then attach its managed policies and put its inline policies."""
        iam, name = context.client("iam"), properties.get("RoleName") or context.physical_name(64)
        if boundary := properties.get("PermissionsBoundary"):
            require_policy(context, boundary)
        iam.create_role(
            RoleName=name,
            AssumeRolePolicyDocument=json_text(properties["AssumeRolePolicyDocument"]),
            **pick(properties, "Path", "Description", "MaxSessionDuration", "PermissionsBoundary", "Tags"),
        )
        with undo_on_failure(lambda: self.delete(context, name, properties)):
            self._set_policies(context, name, {}, properties)
        return self._resource(context, name)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update everything except name and path."""
        iam = context.client("iam")
        trust = json_text(new["AssumeRolePolicyDocument"])
        iam.update_assume_role_policy(RoleName=physical_id, PolicyDocument=trust)
        duration = new.get("MaxSessionDuration", 3600)
        iam.update_role(RoleName=physical_id, Description=new.get("Description", ""), MaxSessionDuration=duration)
        if boundary := new.get("PermissionsBoundary"):
            require_policy(context, boundary)
            iam.put_role_permissions_boundary(RoleName=physical_id, PermissionsBoundary=boundary)
        elif "PermissionsBoundary" in old:
            iam.delete_role_permissions_boundary(RoleName=physical_id)
        self._set_policies(context, physical_id, old, new)
        added, removed = tag_changes(old, new)
        iam.untag_role(RoleName=physical_id, TagKeys=removed)
        iam.tag_role(RoleName=physical_id, Tags=as_list(added))
        return self._resource(context, physical_id)

    def _set_policies(self, context: Context, name: str, old: Properties, new: Properties) -> None:
        iam = context.client("iam")
        before, after = old.get("ManagedPolicyArns", []), new.get("ManagedPolicyArns", [])
        for arn in after:
            if arn not in before:
                iam.attach_role_policy(RoleName=name, PolicyArn=arn)
        for arn in before:
            if arn not in after:
                iam.detach_role_policy(RoleName=name, PolicyArn=arn)
        written = {policy["PolicyName"]: json_text(policy["PolicyDocument"]) for policy in new.get("Policies", ())}
        for policy, document in written.items():
            iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=document)
        for policy in old.get("Policies", ()):
            if policy["PolicyName"] not in written:
                iam.delete_role_policy(RoleName=name, PolicyName=policy["PolicyName"])

    def _resource(self, context: Context, name: str) -> Resource:
        return Resource(name, pick(require_role(context, name), "Arn", "RoleId"))

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the role. Policies that others attached prevent that, as in IAM."""
        iam = context.client("iam")
        attached = iam.list_attached_role_policies(RoleName=physical_id)["AttachedPolicies"]
        for policy in attached:
            if policy["PolicyArn"] in properties.get("ManagedPolicyArns", ()):
                iam.detach_role_policy(RoleName=physical_id, PolicyArn=policy["PolicyArn"])
        own = {policy["PolicyName"] for policy in properties.get("Policies", ())}
        for name in iam.list_role_policies(RoleName=physical_id)["PolicyNames"]:
            if name in own:
                iam.delete_role_policy(RoleName=physical_id, PolicyName=name)
        iam.delete_role(RoleName=physical_id)


@handler
class Policy(Handler):
    """AWS::IAM::Policy: one inline policy in each of its roles."""

    type = "AWS::IAM::Policy"
    supported_properties = frozenset({"PolicyName", "PolicyDocument", "Roles"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Put the policy into every role."""
        self._write(context, properties)
        name = context.physical_name(128)
        return Resource(name, {"Id": name})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Put the policy again, and remove it from roles that left the list."""
        self._write(context, new)
        kept = new.get("Roles", []) if old["PolicyName"] == new["PolicyName"] else []
        self._remove(context, old["PolicyName"], [role for role in old.get("Roles", ()) if role not in kept])
        return Resource(physical_id, {"Id": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Remove the policy from every role."""
        self._remove(context, properties["PolicyName"], properties.get("Roles", []))

    def _write(self, context: Context, properties: Properties) -> None:
        if not properties.get("Roles"):
            raise HandlerError("At least one of [Groups,Roles,Users] must be non-empty.")
        for role in properties["Roles"]:
            require_role(context, role)
        for role in properties["Roles"]:
            context.client("iam").put_role_policy(
                RoleName=role,
                PolicyName=properties["PolicyName"],
                PolicyDocument=json_text(properties["PolicyDocument"]),
            )

    def _remove(self, context: Context, name: str, roles: list[str]) -> None:
        iam = context.client("iam")
        for role in roles:
            if name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
                iam.delete_role_policy(RoleName=role, PolicyName=name)


@handler
class ManagedPolicy(Handler):
    """AWS::IAM::ManagedPolicy. A changed document becomes the default version."""

    type = "AWS::IAM::ManagedPolicy"
    supported_properties = frozenset({"ManagedPolicyName", "Path", "Description", "PolicyDocument", "Roles"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the policy and attach it."""
        arn = context.client("iam").create_policy(
            PolicyName=properties.get("ManagedPolicyName") or context.physical_name(128),
            PolicyDocument=json_text(properties["PolicyDocument"]),
            **pick(properties, "Path", "Description"),
        )["Policy"]["Arn"]
        with undo_on_failure(lambda: self.delete(context, arn, properties)):
            self._attach(context, arn, {}, properties)
        return self._resource(context, arn)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Create a version and change the attachments."""
        iam = context.client("iam")
        if old["PolicyDocument"] != new["PolicyDocument"]:
            others = self._other_versions(context, physical_id)
            for version in others[: max(0, len(others) + 2 - MAX_POLICY_VERSIONS)]:
                iam.delete_policy_version(PolicyArn=physical_id, VersionId=version)
            document = json_text(new["PolicyDocument"])
            iam.create_policy_version(PolicyArn=physical_id, PolicyDocument=document, SetAsDefault=True)
        self._attach(context, physical_id, old, new)
        return self._resource(context, physical_id)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the policy with its versions. Attachments that others made prevent that, as in IAM."""
        iam = context.client("iam")
        entities = iam.list_entities_for_policy(PolicyArn=physical_id)["PolicyRoles"]
        for role in entities:
            if role["RoleName"] in properties.get("Roles", ()):
                iam.detach_role_policy(RoleName=role["RoleName"], PolicyArn=physical_id)
        for version in self._other_versions(context, physical_id):
            iam.delete_policy_version(PolicyArn=physical_id, VersionId=version)
        iam.delete_policy(PolicyArn=physical_id)

    def _other_versions(self, context: Context, arn: str) -> list[str]:
        """Versions except the default one, oldest first."""
        versions = context.client("iam").list_policy_versions(PolicyArn=arn)["Versions"]
        numbers = [version["VersionId"] for version in versions if not version["IsDefaultVersion"]]
        return sorted(numbers, key=lambda number: int(number.removeprefix("v")))

    def _attach(self, context: Context, arn: str, old: Properties, new: Properties) -> None:
        iam = context.client("iam")
        before, after = old.get("Roles", []), new.get("Roles", [])
        for role in after:
            if role not in before:
                iam.attach_role_policy(RoleName=role, PolicyArn=arn)
        for role in before:
            if role not in after:
                iam.detach_role_policy(RoleName=role, PolicyArn=arn)

    def _resource(self, context: Context, arn: str) -> Resource:
        policy = require_policy(context, arn)
        attributes = pick(policy, "PolicyId", "AttachmentCount", "DefaultVersionId", "IsAttachable")
        dates = {name: policy[name].isoformat() for name in ("CreateDate", "UpdateDate")}
        boundaries = {"PermissionsBoundaryUsageCount": policy.get("PermissionsBoundaryUsageCount", 0)}
        return Resource(arn, {"PolicyArn": arn, **attributes, **dates, **boundaries})


@handler
class InstanceProfile(Handler):
    """AWS::IAM::InstanceProfile with one role."""

    type = "AWS::IAM::InstanceProfile"
    supported_properties = frozenset({"InstanceProfileName", "Path", "Roles"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the profile and add its role."""
        iam, name = context.client("iam"), properties.get("InstanceProfileName") or context.physical_name(128)
        role = self._role(context, properties)
        made = iam.create_instance_profile(InstanceProfileName=name, **pick(properties, "Path"))["InstanceProfile"]
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        return Resource(name, {"Arn": made["Arn"]})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Replace the role."""
        iam, role = context.client("iam"), self._role(context, new)
        self._remove_roles(context, physical_id)
        iam.add_role_to_instance_profile(InstanceProfileName=physical_id, RoleName=role)
        found = iam.get_instance_profile(InstanceProfileName=physical_id)["InstanceProfile"]
        return Resource(physical_id, {"Arn": found["Arn"]})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Remove the role and delete the profile."""
        self._remove_roles(context, physical_id)
        context.client("iam").delete_instance_profile(InstanceProfileName=physical_id)

    def _role(self, context: Context, properties: Properties) -> str:
        require_role(context, properties["Roles"][0])
        return str(properties["Roles"][0])

    def _remove_roles(self, context: Context, name: str) -> None:
        iam = context.client("iam")
        for role in iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
