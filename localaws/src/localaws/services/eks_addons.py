"""Add-ons, pod identity associations and capabilities of the embedded EKS."""

import json
import re
import secrets
import string
import uuid
from typing import Any

from moto.core.responses import ActionResult

from localaws.services.eks_actions import EksActions
from localaws.services.eks_store import Cluster, Item, in_use, invalid
from localaws.services.kubernetes import ADD_ONS
from localaws.services.trust import allows_service

POD_ACTIONS = ("sts:AssumeRole", "sts:TagSession")
ADD_ON_VERSION = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")
_IDENTITY = ("disableSessionTags", "targetRoleArn", "policy")


class AddonActions(EksActions):
    """The actions on add-ons, pod identity associations and capabilities."""

    # add-ons

    def create_addon(self) -> ActionResult:
        """Validate the request and create the add-on with the associations of its service accounts."""
        cluster, request = self.active_cluster(), self.params
        name = request["addonName"]
        if self.eks.find("addon", cluster, name):
            raise in_use(f"Addon already exists: {name}.")
        if name not in ADD_ONS:
            raise invalid(f"Addon {name} specified is not supported.")
        self._check_addon(request)
        namespace = (request.get("namespaceConfig") or {}).get("namespace") or ADD_ONS[name]["namespaces"][0]
        wanted = request.get("podIdentityAssociations") or []
        associations = self._new_associations(cluster, name, namespace, wanted)
        arn = self.eks.arn("eks", f"addon/{cluster['name']}/{name}/{uuid.uuid4()}")
        addon = {"addonName": name, "clusterName": cluster["name"], "addonArn": arn}
        kept = self.given_parameters("addonVersion", "serviceAccountRoleArn", "configurationValues", "namespaceConfig")
        item = Item("addon", {**addon, **kept, "owner": "aws", "publisher": "eks"})
        self.eks.store(item, request.get("tags"))
        self._own(item, associations)
        cluster.kubernetes.add_on(name, namespace)
        return ActionResult({"addon": self.eks.view(item)})

    def describe_addon(self) -> ActionResult:
        """One add-on."""
        return ActionResult({"addon": self.eks.view(self.child("addon", "addonName"))})

    def list_addons(self) -> ActionResult:
        """The names of a cluster's add-ons."""
        return self.page("addons", [item["addonName"] for item in self.eks.all("addon", self.requested_cluster())])

    def update_addon(self) -> ActionResult:
        """Update version, values or roles. An empty list removes the associations."""
        cluster, addon = self.active_cluster(), self.child("addon", "addonName")
        self._check_addon(self.params)
        wanted = self.params.get("podIdentityAssociations")
        if wanted is not None:
            self.eks.remove(self._owned(cluster, addon))
            name = addon["addonName"]
            asked = addon.description.get("namespaceConfig") or {"namespace": ADD_ONS[name]["namespaces"][0]}
            self._own(addon, self._new_associations(cluster, name, asked["namespace"], wanted))
        addon.change(self.given_parameters("addonVersion", "serviceAccountRoleArn", "configurationValues"))
        return self.update_response("AddonUpdate")

    def delete_addon(self) -> ActionResult:
        """Delete an add-on with its associations. `preserve` has no effect."""
        cluster, addon = self.active_cluster(), self.child("addon", "addonName")
        view = {**self.eks.view(addon), "status": "DELETING"}
        self.eks.remove([*self._owned(cluster, addon), addon])
        cluster.kubernetes.add_ons.discard(addon["addonName"])
        return ActionResult({"addon": view})

    def _check_addon(self, request: dict[str, Any]) -> None:
        version = request.get("addonVersion")
        if version and not ADD_ON_VERSION.fullmatch(version):
            raise invalid(f"Addon version specified is not supported: {version}.")
        if role := request.get("serviceAccountRoleArn"):
            self._role(role)
        if (values := request.get("configurationValues")) and not isinstance(_parsed(values), dict):
            raise invalid("ConfigurationValue is not in valid JSON format: an object is needed.")

    def _new_associations(
        self, cluster: Cluster, addon: str, namespace: str, wanted: list[dict[str, str]]
    ) -> list[dict[str, Any]]:
        """Create the associations of an add-on, all checked first."""
        made = [self._association(cluster, namespace, asked["serviceAccount"], asked) for asked in wanted]
        if len({it["serviceAccount"] for it in made}) < len(made):
            raise invalid(f"Addon {addon} has two pod identity associations for one service account.")
        return made

    def _own(self, addon: Item, associations: list[dict[str, Any]]) -> None:
        for association in associations:
            self.eks.store(Item("pod-identity", {**association, "ownerArn": addon.arn}), None)
        addon.description["podIdentityAssociations"] = [it["associationArn"] for it in associations]

    def _owned(self, cluster: Cluster, addon: Item) -> list[Item]:
        associations = self.eks.all("pod-identity", cluster)
        return [item for item in associations if item.description.get("ownerArn") == addon.arn]

    # pod identity associations

    def create_pod_identity_association(self) -> ActionResult:
        """Validate the request and create the association."""
        cluster, request = self.active_cluster(), self.params
        association = self._association(cluster, request["namespace"], request["serviceAccount"], request)
        item = self.eks.store(Item("pod-identity", association), request.get("tags"))
        return ActionResult({"association": self.eks.view(item)})

    def describe_pod_identity_association(self) -> ActionResult:
        """One association."""
        return ActionResult({"association": self.eks.view(self.child("pod-identity", "associationId"))})

    def list_pod_identity_associations(self) -> ActionResult:
        """The associations of a cluster, filtered by namespace and service account."""
        wanted = self.given_parameters("namespace", "serviceAccount")
        found = [
            self.eks.view(item)
            for item in self.eks.all("pod-identity", self.requested_cluster())
            if all(item[name] == value for name, value in wanted.items())
        ]
        return self.page("associations", found)

    def update_pod_identity_association(self) -> ActionResult:
        """Change the roles, the session tags or the policy."""
        item = self.child("pod-identity", "associationId")
        changes = self.given_parameters("roleArn", *_IDENTITY)
        self._check_identity({**item.description, **changes})
        item.change({**changes, **{name: None for name in ("targetRoleArn", "policy") if changes.get(name) == ""}})
        return ActionResult({"association": self.eks.view(item)})

    def delete_pod_identity_association(self) -> ActionResult:
        """Delete an association."""
        item = self.child("pod-identity", "associationId")
        view = self.eks.view(item)
        self.eks.remove([item])
        return ActionResult({"association": view})

    def _association(self, cluster: Cluster, namespace: str, account: str, asked: dict[str, Any]) -> dict[str, Any]:
        for item in self.eks.all("pod-identity", cluster):
            if (item["namespace"], item["serviceAccount"]) == (namespace, account):
                raise in_use(f"Association already exists: {item['associationId']}.")
        self._check_identity(asked)
        number = "a-" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(17))
        arn = self.eks.arn("eks", f"podidentityassociation/{cluster['name']}/{number}")
        identity = {"associationId": number, "associationArn": arn, "clusterName": cluster["name"]}
        settings = {name: asked[name] for name in _IDENTITY if asked.get(name) is not None}
        target = {"externalId": str(uuid.uuid4())} if asked.get("targetRoleArn") else {}
        place = {"namespace": namespace, "serviceAccount": account, "roleArn": asked["roleArn"]}
        return {"disableSessionTags": False, **identity, **place, **settings, **target}

    def _check_identity(self, asked: dict[str, Any]) -> None:
        role = self._role(asked["roleArn"])
        if not allows_service(role, "pods.eks.amazonaws.com", *POD_ACTIONS):
            words = f"does not let pods.eks.amazonaws.com do {' and '.join(POD_ACTIONS)}"
            raise invalid(f"Trust policy of role {asked['roleArn']} {words}.")
        if asked.get("policy"):
            if not isinstance(_parsed(asked["policy"]), dict):
                raise invalid("policy is not a JSON document.")
            if not asked.get("disableSessionTags"):
                raise invalid("When a policy is specified, disableSessionTags must be true.")

    # capabilities

    def create_capability(self) -> ActionResult:
        """Validate the request and create the capability."""
        cluster, request = self.active_cluster(), self.params
        name, kind = request["capabilityName"], request["type"]
        for other in self.eks.all("capability", cluster):
            if other["capabilityName"] == name or other["type"] == kind:
                raise in_use(f"Cluster {cluster['name']} has the {other['type']} capability {other['capabilityName']}.")
        configuration = request.get("configuration") or {}
        fitting = {"ACK": {"ack"}, "ARGOCD": {"argoCd"}, "KRO": set()}[kind]
        if configuration.keys() - fitting or (kind == "ARGOCD" and not configuration):
            raise invalid(f"configuration of a capability of type {kind} must hold {', '.join(fitting) or 'nothing'}.")
        self._check_capability_role(request["roleArn"])
        arn = self.eks.arn("eks", f"capability/{cluster['name']}/{kind.lower()}/{name}/{uuid.uuid4()}")
        capability = {"capabilityName": name, "clusterName": cluster["name"], "arn": arn, "version": "v1"}
        kept = self.given_parameters("type", "roleArn", "configuration", "deletePropagationPolicy")
        item = self.eks.store(Item("capability", {**capability, **kept}), request.get("tags"))
        return ActionResult({"capability": self.eks.view(item)})

    def describe_capability(self) -> ActionResult:
        """One capability."""
        return ActionResult({"capability": self.eks.view(self.child("capability", "capabilityName"))})

    def list_capabilities(self) -> ActionResult:
        """The capabilities of a cluster."""
        found = [self.eks.view(item) for item in self.eks.all("capability", self.requested_cluster())]
        return self.page("capabilities", found)

    def update_capability(self) -> ActionResult:
        """Update the role, or the settings of ACK."""
        item = self.child("capability", "capabilityName")
        changes = self.given_parameters("roleArn", "deletePropagationPolicy", "configuration")
        if (changes.get("configuration") or {}).get("argoCd"):
            raise invalid("The embedded AWS does not change the configuration of Argo CD.")
        if "roleArn" in changes:
            self._check_capability_role(changes["roleArn"])
        item.change(changes)
        return self.update_response("CapabilityUpdate")

    def delete_capability(self) -> ActionResult:
        """Delete a capability. Kubernetes objects that it created stay."""
        item = self.child("capability", "capabilityName")
        view = {**self.eks.view(item), "status": "DELETING"}
        self.eks.remove([item])
        return ActionResult({"capability": view})

    def _check_capability_role(self, arn: str) -> None:
        if not allows_service(self._role(arn), "capabilities.eks.amazonaws.com", *POD_ACTIONS):
            raise invalid(f"Role {arn} does not let capabilities.eks.amazonaws.com do {' and '.join(POD_ACTIONS)}.")

    def _role(self, arn: str) -> Any:
        role = self.eks.references.role(arn)
        if role is None:
            raise invalid(f"Role {arn} provided in the request does not exist.")
        return role


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
