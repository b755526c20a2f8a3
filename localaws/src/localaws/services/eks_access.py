"""Access entries of the embedded EKS, and their access policies."""

import re
import secrets
from typing import Any

from localaws.services.eks_clusters import CLUSTER
from localaws.services.eks_store import invalid, refused
from localaws.services.store import Call, Item, Kind, Rule, Store

CLUSTER_ADMIN = "AmazonEKSClusterAdminPolicy"
PRINCIPAL = re.compile(r"arn:[a-z-]+:iam::(?P<account>\d{12}):(?P<kind>role|user)/(?P<name>[\w+=,.@/-]+)")
NODE_TYPES = ("EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX", "HYPERPOD_LINUX")
TYPES = ("STANDARD", "EC2", *NODE_TYPES)


def _describe(call: Call) -> None:
    """The default Kubernetes user name of a principal."""
    if call.item is None and (parts := PRINCIPAL.fullmatch(call.request["principalArn"])):
        last = parts["name"].rpartition("/")[2]
        session = f"arn:aws:sts::{parts['account']}:assumed-role/{last}/{{{{SessionName}}}}"
        call.new.setdefault("username", parts[0] if parts["kind"] == "user" else session)
        call.new["path"] = _path(parts)


def _path(parts: re.Match[str]) -> str:
    return f"{parts['kind']}/{parts['account']}/{parts['name'].rpartition('/')[2]}/{secrets.token_hex(16)}"


def _has_policy(call: Call, entry: Item) -> bool:
    policy = call.request.get("associatedPolicyArn")
    return policy is None or policy in policies_of(entry)


ENTRY = Kind(
    noun="AccessEntry",
    address="principalArn",
    arn="access-entry/{clusterName}/{path}",
    parent=CLUSTER,
    active="Create List",
    defaults={"type": "STANDARD", "kubernetesGroups": []},
    describe=_describe,
    listed=_has_policy,
    missing="No access entry {id} found in cluster {parent}.",
    taken="The specified access entry resource is already in use on this cluster.",
)


def add_entry(store: Store, cluster: Item, principal: str, **members: Any) -> Item:
    """The entry that a service creates for a principal."""
    parts = PRINCIPAL.fullmatch(principal)
    assert parts is not None  # noqa: S101 - the service made the principal or checked it
    return store.add(ENTRY, principal, {"path": _path(parts), **members}, cluster)


def policies_of(entry: Item) -> dict[str, dict[str, Any]]:
    """The policies of an access entry, by ARN."""
    found: dict[str, dict[str, Any]] = entry.owned.setdefault("policies", {})
    return found


def is_cluster_admin(entry: Item | None) -> bool:
    """Whether the entry has AmazonEKSClusterAdminPolicy for the whole cluster."""
    return entry is not None and any(
        arn.endswith(f"/{CLUSTER_ADMIN}") and told["accessScope"]["type"] == "cluster"
        for arn, told in policies_of(entry).items()
    )


# refusals


def _mode(call: Call) -> None:
    if call.within["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        words = "must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation"
        raise refused(f"The cluster's authentication mode {words}.")


def _principal(call: Call) -> None:
    request, kind = call.request, call.new["type"]
    parts = PRINCIPAL.fullmatch(request["principalArn"])
    if parts is None:
        words = "is invalid: it names neither an IAM role nor a user"
        raise invalid(f"The specified principalArn {request['principalArn']} {words}.")
    if kind not in TYPES:
        raise invalid(f"The specified type {kind} is invalid; there are {', '.join(TYPES)}.")
    if kind != "STANDARD" and parts["kind"] != "role":
        raise invalid(f"An access entry of type {kind} needs an IAM role.")
    if kind in NODE_TYPES and (request.get("kubernetesGroups") or request.get("username")):
        raise invalid(f"An access entry of type {kind} takes neither kubernetesGroups nor username.")


def _changeable(call: Call) -> None:
    if call.target["type"] != "STANDARD":
        raise refused(f"An access entry of type {call.target['type']} cannot be changed.")


def _groups(call: Call) -> None:
    for group in call.request.get("kubernetesGroups") or ():
        if group.startswith("system:"):
            raise invalid(f"The kubernetes group name {group} is invalid, it cannot start with system:.")


def _scope(call: Call) -> None:
    scope, kind = call.request["accessScope"], call.target["type"]
    if kind not in ("STANDARD", "EC2"):
        raise invalid(f"An access entry of type {kind} takes no access policies.")
    if (scope.get("type") == "namespace") != bool(scope.get("namespaces")):
        raise invalid("accessScope needs namespaces with type namespace, and only then.")


RULES = (
    Rule("CreateAccessEntry ListAccessEntries", _mode, "User Guide, grant access with EKS access entries"),
    Rule("CreateAccessEntry", _principal, "User Guide, create access entries"),
    Rule("UpdateAccessEntry", _changeable, "User Guide, update access entries"),
    Rule("CreateAccessEntry UpdateAccessEntry", _groups, "API Reference, CreateAccessEntry"),
    Rule("AssociateAccessPolicy", _scope, "API Reference, AssociateAccessPolicy, AccessScope"),
)
