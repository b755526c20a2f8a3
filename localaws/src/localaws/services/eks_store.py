"""The state of the embedded EKS in one account and Region, its figures and its errors."""

import datetime
from typing import Any

from localaws.records import enumeration, records
from localaws.services.kubernetes import Kubernetes
from localaws.services.service import Refusal
from localaws.services.store import Description, Item, Kind, Store

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


class Cluster(Item):
    """A cluster with the network resources that EKS created, and its Kubernetes contents."""

    def __init__(self, store: Store, kind: Kind, description: Description, parent: Item | None) -> None:
        super().__init__(store, kind, description, parent)
        self.security_group = ""
        self.interfaces: list[str] = []
        self.kubernetes = Kubernetes()


class EksStore(Store):
    """EKS in one account and Region."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.updates: dict[str, dict[str, Any]] = {}

    @property
    def clusters(self) -> dict[str, Cluster]:
        """The clusters by name."""
        return {item.id: item for item in self.items if isinstance(item, Cluster)}

    def cluster(self, name: str) -> Cluster:
        """The cluster of this name; Refusal when it does not exist."""
        if name not in self.clusters:
            raise missing(f"No cluster found for name: {name}.")
        return self.clusters[name]
