"""The state of the embedded EKS in one account and Region: clusters and their resources."""

import copy
import datetime
from collections.abc import Iterable
from typing import Any, Literal

from moto.moto_api._internal.managed_state_model import ManagedState

from localaws.records import enumeration, records
from localaws.services.kubernetes import Kubernetes
from localaws.services.references import References
from localaws.services.service import Backend, Refusal

Kind = Literal["cluster", "nodegroup", "addon", "access-entry", "pod-identity", "capability"]

# Per kind: the identifying member, the member with the ARN, and the name in messages.
NAMES: dict[Kind, tuple[str, str, str]] = {
    "cluster": ("name", "arn", "cluster"),
    "nodegroup": ("nodegroupName", "nodegroupArn", "node group"),
    "addon": ("addonName", "addonArn", "add-on"),
    "access-entry": ("principalArn", "accessEntryArn", "access entry"),
    "pod-identity": ("associationId", "associationArn", "pod identity association"),
    "capability": ("capabilityName", "arn", "capability"),
}
_EKS = records("eks")
DEFAULT_VERSION: str = _EKS["default"]["version"]
END_OF_SUPPORT = {
    version: datetime.date.fromisoformat(extended)
    for version, (_, extended) in _EKS["versions"]["ends_of_support"].items()
}
"""Supported Kubernetes versions, each with the first day without extended support, in UTC."""
IMAGE_RELEASES: dict[str, str] = _EKS["images"]["releases"]
"""Release of the EKS-optimised images for new node groups, by Kubernetes version."""
LOG_TYPES = enumeration("eks", "LogType")
STATELESS: tuple[Kind, ...] = ("access-entry", "pod-identity")


def invalid(message: str) -> Refusal:
    """An InvalidParameterException."""
    return Refusal("InvalidParameterException", message)


def refused(message: str) -> Refusal:
    """An InvalidRequestException: the parameters are valid, but not in the present state."""
    return Refusal("InvalidRequestException", message)


def in_use(message: str) -> Refusal:
    """A ResourceInUseException."""
    return Refusal("ResourceInUseException", message)


def missing(message: str) -> Refusal:
    """A ResourceNotFoundException."""
    return Refusal("ResourceNotFoundException", message)


class Item(ManagedState):  # type: ignore[misc]  # moto is untyped
    """A cluster or one of its resources: the description that the API returns, and the state."""

    def __init__(self, kind: Kind, description: dict[str, Any]) -> None:
        super().__init__(f"eks::{kind}", [("CREATING", "ACTIVE"), ("UPDATING", "ACTIVE")])
        self.kind = kind
        self.description = description

    def __getitem__(self, name: str) -> Any:
        return self.description[name]

    @property
    def arn(self) -> str:
        """The ARN of the resource."""
        return str(self[NAMES[self.kind][1]])

    def change(self, changes: dict[str, Any]) -> None:
        """Set these members; None removes a member."""
        new = {**self.description, **changes, "modifiedAt": datetime.datetime.now(datetime.UTC)}
        self.description = {name: value for name, value in new.items() if value is not None}
        self.status = "UPDATING"


class Cluster(Item):
    """A cluster with the network resources that EKS created, and its Kubernetes contents."""

    def __init__(self, description: dict[str, Any], security_group: str) -> None:
        super().__init__("cluster", description)
        self.security_group = security_group
        self.interfaces: list[str] = []
        self.kubernetes = Kubernetes()


class EksBackend(Backend):
    """EKS in one account and Region."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.clusters: dict[str, Cluster] = {}
        self.children: list[Item] = []
        self.updates: dict[str, dict[str, Any]] = {}
        self.references = References(account_id, region_name, self.partition)

    def cluster(self, name: str) -> Cluster:
        """The cluster of this name; Refusal when it does not exist."""
        if name not in self.clusters:
            raise missing(f"No cluster found for name: {name}.")
        return self.clusters[name]

    def all(self, kind: Kind, cluster: Cluster) -> list[Item]:
        """All resources of a kind in a cluster."""
        return [item for item in self.children if item.kind == kind and item["clusterName"] == cluster["name"]]

    def find(self, kind: Kind, cluster: Cluster, identifier: str) -> Item | None:
        """The resource of this kind and name, or None."""
        member = NAMES[kind][0]
        return next((item for item in self.all(kind, cluster) if item[member] == identifier), None)

    def get(self, kind: Kind, cluster: Cluster, identifier: str) -> Item:
        """The resource of this kind and name; Refusal when it does not exist."""
        found = self.find(kind, cluster, identifier)
        if found is None:
            raise missing(f"No {NAMES[kind][2]} {identifier} found in cluster {cluster['name']}.")
        return found

    def store(self, item: Item, tags: dict[str, str] | None) -> Item:
        """Store a new resource with its tags."""
        item.description["createdAt"] = item.description["modifiedAt"] = datetime.datetime.now(datetime.UTC)
        self.tags[item.arn] = dict(tags or {})
        if isinstance(item, Cluster):
            self.clusters[item["name"]] = item
        else:
            self.children.append(item)
        return item

    def remove(self, items: Iterable[Item]) -> None:
        """Remove resources and their tags."""
        for item in items:
            del self.tags[item.arn]
            if isinstance(item, Cluster):
                del self.clusters[item["name"]]
            else:
                self.children.remove(item)

    def view(self, item: Item) -> dict[str, Any]:
        """The description of a resource. Each call advances its state."""
        item.advance()
        state = {} if item.kind in STATELESS else {"status": item.status}
        return {**copy.deepcopy(item.description), **state, "tags": dict(self.tags[item.arn])}
