"""AWS::EKS::Addon, AccessEntry, PodIdentityAssociation and Capability."""

from typing import Any

from ultracluster.localaws.handlers.common import retag, undo_on_failure
from ultracluster.localaws.handlers.eks import wait_until_active
from ultracluster.localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    handler,
    lower_first,
    tag_map,
)


@handler
class Addon(Handler):
    """An add-on. Ref gives `<cluster>|<add-on>`."""

    type = "AWS::EKS::Addon"
    supported_properties = frozenset(
        {
            *("AddonName", "AddonVersion", "ClusterName", "ConfigurationValues", "NamespaceConfig"),
            *("PodIdentityAssociations", "PreserveOnDelete", "ResolveConflicts", "ServiceAccountRoleArn", "Tags"),
        }
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the add-on with the associations of its service accounts."""
        eks, place = context.client("eks"), _addon(properties)
        eks.create_addon(**_api_parameters(properties, {"PreserveOnDelete", "Tags"}), tags=_tags(context, properties))
        with undo_on_failure(lambda: eks.delete_addon(**place)):
            return self._resource(context, properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update version, values and roles."""
        # without AddonVersion, UpdateAddon does not change the version
        if "ServiceAccountRoleArn" in old and "ServiceAccountRoleArn" not in new:
            raise HandlerError(f"{self.type} {physical_id} must keep its ServiceAccountRoleArn")
        parameters = _api_parameters(new, {"NamespaceConfig", "PreserveOnDelete", "Tags"})
        if "PodIdentityAssociations" in old:
            parameters.setdefault("podIdentityAssociations", [])
        if "ConfigurationValues" in old:
            parameters.setdefault("configurationValues", "{}")
        context.client("eks").update_addon(**parameters)
        made = self._resource(context, new)
        retag(context.client("eks"), made.attributes["Arn"], old, new)
        return made

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the add-on."""
        preserve = properties.get("PreserveOnDelete", False)
        context.client("eks").delete_addon(**_addon(properties), preserve=preserve)

    def _resource(self, context: Context, properties: Properties) -> Resource:
        eks, place = context.client("eks"), _addon(properties)
        physical_id = "|".join(place.values())
        found = wait_until_active(f"{self.type} {physical_id}", lambda: eks.describe_addon(**place)["addon"])
        return Resource(physical_id, {"Arn": found["addonArn"]})


@handler
class AccessEntry(Handler):
    """A principal that may use a cluster's API. Ref gives `<principal>|<cluster>`."""

    type = "AWS::EKS::AccessEntry"
    supported_properties = frozenset(
        {"AccessPolicies", "ClusterName", "KubernetesGroups", "PrincipalArn", "Tags", "Type", "Username"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the entry and associate its policies."""
        eks, place = context.client("eks"), _entry(properties)
        eks.create_access_entry(
            **_api_parameters(properties, {"AccessPolicies", "Tags"}), tags=_tags(context, properties)
        )
        with undo_on_failure(lambda: eks.delete_access_entry(**place)):
            self._set_policies(context, {}, properties)
        return self._resource(context, properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Change groups, name and policies."""
        eks, place = context.client("eks"), _entry(new)
        if "Username" in old and "Username" not in new:
            raise HandlerError(f"{self.type} {physical_id} must keep its Username")
        names = ("KubernetesGroups", "Username")
        if any(old.get(name) != new.get(name) for name in names):
            user = {"username": new["Username"]} if "Username" in new else {}
            eks.update_access_entry(**place, kubernetesGroups=new.get("KubernetesGroups", []), **user)
        self._set_policies(context, old, new)
        made = self._resource(context, new)
        retag(context.client("eks"), made.attributes["AccessEntryArn"], old, new)
        return made

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the entry."""
        context.client("eks").delete_access_entry(**_entry(properties))

    def _set_policies(self, context: Context, old: Properties, new: Properties) -> None:
        eks, place = context.client("eks"), _entry(new)
        wanted = [policy["PolicyArn"] for policy in new.get("AccessPolicies") or ()]
        for policy in new.get("AccessPolicies") or ():
            eks.associate_access_policy(**place, **lower_first(policy))
        for policy in old.get("AccessPolicies") or ():
            if policy["PolicyArn"] not in wanted:
                eks.disassociate_access_policy(**place, policyArn=policy["PolicyArn"])

    def _resource(self, context: Context, properties: Properties) -> Resource:
        place = _entry(properties)
        found = context.client("eks").describe_access_entry(**place)["accessEntry"]
        physical_id = f"{place['principalArn']}|{place['clusterName']}"
        return Resource(physical_id, {"AccessEntryArn": found["accessEntryArn"]})


@handler
class PodIdentityAssociation(Handler):
    """A role for a service account. Ref gives the ARN."""

    type = "AWS::EKS::PodIdentityAssociation"
    supported_properties = frozenset(
        {
            *("ClusterName", "DisableSessionTags", "Namespace", "Policy", "RoleArn", "ServiceAccount", "Tags"),
            "TargetRoleArn",
        }
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the association."""
        parameters = {**_api_parameters(properties, {"Tags"}), "tags": _tags(context, properties)}
        return self._resource(context.client("eks").create_pod_identity_association(**parameters))

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update roles, session tags and policy. Removed properties are cleared."""
        parameters = {"disableSessionTags": False, **_api_parameters(new, {"Namespace", "ServiceAccount", "Tags"})}
        gone = {name: "" for key, name in (("Policy", "policy"), ("TargetRoleArn", "targetRoleArn")) if key in old}
        number = _association(physical_id)
        answer = context.client("eks").update_pod_identity_association(associationId=number, **{**gone, **parameters})
        made = self._resource(answer)
        retag(context.client("eks"), physical_id, old, new)
        return made

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the association."""
        place = {"clusterName": properties["ClusterName"], "associationId": _association(physical_id)}
        context.client("eks").delete_pod_identity_association(**place)

    def _resource(self, answer: dict[str, Any]) -> Resource:
        found = answer["association"]
        names = {"AssociationArn": "associationArn", "AssociationId": "associationId", "ExternalId": "externalId"}
        return Resource(found["associationArn"], {key: found.get(name, "") for key, name in names.items()})


@handler
class Capability(Handler):
    """A capability that EKS runs for a cluster. Ref gives the ARN."""

    type = "AWS::EKS::Capability"
    supported_properties = frozenset(
        {"CapabilityName", "ClusterName", "Configuration", "DeletePropagationPolicy", "RoleArn", "Tags", "Type"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the capability."""
        eks, place = context.client("eks"), _capability(properties)
        eks.create_capability(**_api_parameters(properties, {"Tags"}), tags=_tags(context, properties))
        with undo_on_failure(lambda: eks.delete_capability(**place)):
            return self._resource(context, properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Change the role or the configuration."""
        if "Configuration" in old and "Configuration" not in new:
            raise HandlerError(f"{self.type} {physical_id} must keep its Configuration")
        context.client("eks").update_capability(**_api_parameters(new, {"Tags", "Type"}))
        made = self._resource(context, new)
        retag(context.client("eks"), physical_id, old, new)
        return made

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the capability."""
        context.client("eks").delete_capability(**_capability(properties))

    def _resource(self, context: Context, properties: Properties) -> Resource:
        eks, place = context.client("eks"), _capability(properties)
        name = f"{self.type} {place['capabilityName']}"
        found = wait_until_active(name, lambda: eks.describe_capability(**place)["capability"])
        dates = {"CreatedAt": found["createdAt"].isoformat(), "ModifiedAt": found["modifiedAt"].isoformat()}
        attributes = {"Arn": found["arn"], "Status": found["status"], "Version": found["version"]}
        return Resource(found["arn"], {**attributes, **dates})


def _api_parameters(properties: Properties, without: set[str]) -> dict[str, Any]:
    """The properties as API parameters, except those in `without`."""
    kept: dict[str, Any] = lower_first({name: properties[name] for name in properties.keys() - without})
    return kept


def _tags(context: Context, properties: Properties) -> dict[str, str]:
    return {**tag_map(properties.get("Tags")), **context.tags}


def _addon(properties: Properties) -> dict[str, str]:
    return {"clusterName": properties["ClusterName"], "addonName": properties["AddonName"]}


def _entry(properties: Properties) -> dict[str, str]:
    return {"clusterName": properties["ClusterName"], "principalArn": properties["PrincipalArn"]}


def _capability(properties: Properties) -> dict[str, str]:
    return {"clusterName": properties["ClusterName"], "capabilityName": properties["CapabilityName"]}


def _association(arn: str) -> str:
    return arn.rpartition("/")[2]
