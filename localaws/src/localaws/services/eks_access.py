"""Access entries of the embedded EKS, and their access policies."""

import datetime
import re
import secrets
from typing import Any

from moto.core.responses import ActionResult, EmptyResult

from localaws.services.eks_actions import EksActions
from localaws.services.eks_store import Cluster, Item, in_use, invalid, missing, refused
from localaws.services.kubernetes import ACCESS_POLICIES

CLUSTER_ADMIN = "AmazonEKSClusterAdminPolicy"
PRINCIPAL = re.compile(r"arn:[a-z-]+:iam::(?P<account>\d{12}):(?P<kind>role|user)/(?P<name>[\w+=,.@/-]+)")
NODE_TYPES = ("EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX", "HYPERPOD_LINUX")
TYPES = ("STANDARD", "EC2", *NODE_TYPES)


class AccessActions(EksActions):
    """The actions on access entries and their policies."""

    def create_access_entry(self) -> ActionResult:
        """Validate the request and create the entry."""
        cluster, request = self._cluster_with_access_entries(), self.params
        principal, kind = request["principalArn"], request.get("type") or "STANDARD"
        parts = PRINCIPAL.fullmatch(principal)
        if parts is None:
            raise invalid(
                f"The specified principalArn {principal} is invalid: it names neither an IAM role nor a user."
            )
        if kind not in TYPES:
            raise invalid(f"The specified type {kind} is invalid; there are {', '.join(TYPES)}.")
        if kind != "STANDARD" and parts["kind"] != "role":
            raise invalid(f"An access entry of type {kind} needs an IAM role.")
        if kind in NODE_TYPES and (request.get("kubernetesGroups") or request.get("username")):
            raise invalid(f"An access entry of type {kind} takes neither kubernetesGroups nor username.")
        if self.eks.find("access-entry", cluster, principal):
            raise in_use("The specified access entry resource is already in use on this cluster.")
        _check_groups(request)
        path = f"access-entry/{cluster['name']}/{parts['kind']}/{parts['account']}/{parts['name'].rpartition('/')[2]}"
        entry = {
            "clusterName": cluster["name"],
            "principalArn": principal,
            "accessEntryArn": self.eks.arn("eks", f"{path}/{secrets.token_hex(16)}"),
            "type": kind,
            "username": request.get("username") or _user_name(parts),
            "kubernetesGroups": request.get("kubernetesGroups") or [],
        }
        item = self.eks.store(Item("access-entry", entry), request.get("tags"))
        return ActionResult({"accessEntry": self.eks.view(item)})

    def describe_access_entry(self) -> ActionResult:
        """One access entry."""
        return ActionResult({"accessEntry": self.eks.view(self.child("access-entry", "principalArn"))})

    def list_access_entries(self) -> ActionResult:
        """The principals with an access entry, or those with the access policy in the request."""
        policy = self.params.get("associatedPolicyArn")
        entries = self.eks.all("access-entry", self._cluster_with_access_entries())
        found = [entry["principalArn"] for entry in entries if policy is None or policy in policies_of(entry)]
        return self.page("accessEntries", found)

    def update_access_entry(self) -> ActionResult:
        """Change the groups or the user name of an entry."""
        entry = self.child("access-entry", "principalArn")
        if entry["type"] != "STANDARD":
            raise refused(f"An access entry of type {entry['type']} cannot be changed.")
        _check_groups(self.params)
        entry.change(self.given_parameters("kubernetesGroups", "username"))
        return ActionResult({"accessEntry": self.eks.view(entry)})

    def delete_access_entry(self) -> ActionResult:
        """Delete an access entry."""
        self.eks.remove([self.child("access-entry", "principalArn")])
        return EmptyResult()

    def associate_access_policy(self) -> ActionResult:
        """Associate an access policy, or change its scope."""
        entry, request = self.child("access-entry", "principalArn"), self.params
        policy, scope = request["policyArn"], request["accessScope"]
        if policy not in self._policies().values():
            raise missing(f"The policyArn {policy} is not an access policy of EKS.")
        if entry["type"] not in ("STANDARD", "EC2"):
            raise invalid(f"An access entry of type {entry['type']} takes no access policies.")
        if (scope.get("type") == "namespace") != bool(scope.get("namespaces")):
            raise invalid("accessScope needs namespaces with type namespace, and only then.")
        now = datetime.datetime.now(datetime.UTC)
        known = policies_of(entry).get(policy, {"associatedAt": now})
        told = {**known, "policyArn": policy, "accessScope": scope, "modifiedAt": now}
        entry.description["policies"] = {**policies_of(entry), policy: told}
        names = {"clusterName": entry["clusterName"], "principalArn": entry["principalArn"]}
        return ActionResult({**names, "associatedAccessPolicy": told})

    def disassociate_access_policy(self) -> ActionResult:
        """Disassociate an access policy."""
        entry, policy = self.child("access-entry", "principalArn"), self.params["policyArn"]
        if policy not in policies_of(entry):
            raise missing(f"The policy {policy} is not associated with {entry['principalArn']}.")
        entry.description["policies"] = {arn: told for arn, told in policies_of(entry).items() if arn != policy}
        return EmptyResult()

    def list_associated_access_policies(self) -> ActionResult:
        """The policies of an entry."""
        entry = self.child("access-entry", "principalArn")
        page = self.page("associatedAccessPolicies", list(policies_of(entry).values()))
        names = {"clusterName": entry["clusterName"], "principalArn": entry["principalArn"]}
        return ActionResult({**names, **page.result})

    def list_access_policies(self) -> ActionResult:
        """AWS's access policies."""
        return self.page("accessPolicies", [{"name": name, "arn": arn} for name, arn in self._policies().items()])

    def _cluster_with_access_entries(self) -> Cluster:
        """The cluster, if its authentication mode has access entries."""
        cluster = self.active_cluster()
        if cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
            words = "must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation"
            raise refused(f"The cluster's authentication mode {words}.")
        return cluster

    def _policies(self) -> dict[str, str]:
        return {name: f"arn:{self.partition}:eks::aws:cluster-access-policy/{name}" for name in ACCESS_POLICIES}


def policies_of(entry: Item) -> dict[str, dict[str, Any]]:
    """The policies of an access entry, by ARN."""
    found: dict[str, dict[str, Any]] = entry.description.get("policies", {})
    return found


def is_cluster_admin(entry: Item | None) -> bool:
    """Whether the entry has AmazonEKSClusterAdminPolicy for the whole cluster."""
    return entry is not None and any(
        arn.endswith(f"/{CLUSTER_ADMIN}") and told["accessScope"]["type"] == "cluster"
        for arn, told in policies_of(entry).items()
    )


def _user_name(principal: re.Match[str]) -> str:
    """The default Kubernetes user name of a principal."""
    if principal["kind"] == "user":
        return principal[0]
    role = principal["name"].rpartition("/")[2]
    return f"arn:aws:sts::{principal['account']}:assumed-role/{role}/{{{{SessionName}}}}"


def _check_groups(request: dict[str, Any]) -> None:
    for group in request.get("kubernetesGroups") or ():
        if group.startswith("system:"):
            raise invalid(f"The kubernetes group name {group} is invalid, it cannot start with system:.")
