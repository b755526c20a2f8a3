"""Base of the EKS actions: the caller's backend, look-ups, and responses of updates."""

import datetime
import uuid
from typing import Any, cast

from moto.backends import get_backend
from moto.core.responses import ActionResult

from localaws.services.eks_store import Cluster, EksBackend, Item, Kind, in_use, missing
from localaws.services.service import Refusal, TagActions


class EksActions(TagActions):
    """A request to EKS."""

    invalid = "InvalidParameterException"

    def __init__(self) -> None:
        super().__init__(service_name="eks")

    @property
    def eks(self) -> EksBackend:
        """The state of the caller's account and Region."""
        return cast("EksBackend", get_backend("eks")[self.current_account][self.region])

    def requested_cluster(self) -> Cluster:
        """The cluster that the request names."""
        return self.eks.cluster(self.params.get("clusterName") or self.params["name"])

    def active_cluster(self) -> Cluster:
        """The cluster that the request names; Refusal unless it is ACTIVE."""
        cluster = self.requested_cluster()
        if (status := cluster.status) != "ACTIVE":
            raise in_use(f"Cluster {cluster['name']} is {status}, not ACTIVE.")
        return cluster

    def child(self, kind: Kind, member: str) -> Item:
        """The resource of a cluster that the request names."""
        return self.eks.get(kind, self.requested_cluster(), self.params[member])

    def given_parameters(self, *names: str) -> dict[str, Any]:
        """The named parameters that the request contains."""
        return {name: self.params[name] for name in names if self.params.get(name) is not None}

    def update_response(self, kind: str, **params: Any) -> ActionResult:
        """The response of an update action. DescribeUpdate returns the same update, always successful."""
        update_id = str(uuid.uuid4())
        self.eks.updates[update_id] = {
            "id": update_id,
            "status": "Successful",
            "type": kind,
            "params": [{"type": name, "value": str(value)} for name, value in params.items()],
            "createdAt": datetime.datetime.now(datetime.UTC),
            "errors": [],
        }
        return ActionResult({"update": self.eks.updates[update_id]})

    def describe_update(self) -> ActionResult:
        """One update."""
        self.requested_cluster()
        if self.params["updateId"] not in self.eks.updates:
            raise missing(f"No update found for ID: {self.params['updateId']}.")
        return ActionResult({"update": self.eks.updates[self.params["updateId"]]})

    def requested_tags(self) -> dict[str, str]:
        """The tags of the requested resource."""
        arn = self.params["resourceArn"]
        if arn not in self.eks.tags:
            raise Refusal("NotFoundException", f"No resource {arn} was found.")
        return self.eks.tags[arn]
