"""The state of the embedded PCS in one account and Region: clusters, compute node groups and queues."""

import copy
import datetime
import secrets
import string
from typing import Any, Literal

from moto.moto_api._internal.managed_state_model import ManagedState

from localaws.services import pcs_rules as rules
from localaws.services.references import References
from localaws.services.service import Backend

Kind = Literal["cluster", "compute-node-group", "queue"]
TYPES: dict[Kind, str] = {
    "cluster": "AWS::PCS::Cluster",
    "compute-node-group": "AWS::PCS::ComputeNodeGroup",
    "queue": "AWS::PCS::Queue",
}


class Item(ManagedState):  # type: ignore[misc]  # moto is untyped
    """A cluster, compute node group or queue: the description that the API returns, and the state."""

    def __init__(self, kind: Kind, description: dict[str, Any], owned: dict[str, str] | None = None) -> None:
        super().__init__(f"pcs::{kind}", [("CREATING", "ACTIVE"), ("UPDATING", "ACTIVE")])
        self.kind = kind
        self.description = description
        self.owned = owned or {}  # ids of resources that PCS created in other services

    def __getitem__(self, name: str) -> Any:
        return self.description[name]

    def view(self) -> dict[str, Any]:
        """The description. Each call advances the state."""
        self.advance()
        return {**copy.deepcopy(self.description), "status": self.status}

    def change(self, description: dict[str, Any]) -> None:
        """Set a new description."""
        self.description = {**description, "modifiedAt": datetime.datetime.now(datetime.UTC)}
        self.status = "UPDATING"


class PcsBackend(Backend):
    """PCS in one account and Region."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.items: dict[str, Item] = {}
        self.references = References(account_id, region_name, self.partition)

    def all(self, kind: Kind, cluster: Item | None = None) -> list[Item]:
        """All resources of a kind, of one cluster if given."""
        found = [item for item in self.items.values() if item.kind == kind]
        return found if cluster is None else [item for item in found if item["clusterId"] == cluster["id"]]

    def find(self, kind: Kind, identifier: str, cluster: Item | None = None) -> Item:
        """The resource of this id or name; Refusal when it does not exist."""
        for item in self.all(kind, cluster):
            if identifier in (item["id"], item["name"]):
                return item
        raise rules.missing(TYPES[kind], identifier)

    def require_active(self, *items: Item) -> None:
        """Refusal unless all items are ACTIVE."""
        for item in items:
            if (status := item.status) != "ACTIVE":
                raise rules.conflict(f"{item['name']} is {status}, not ACTIVE.", TYPES[item.kind], item["id"])

    def check_name_and_quota(self, kind: Kind, name: str, limit: int, cluster: Item | None = None) -> None:
        """Refusal when the name is taken or the quota is reached."""
        there, word = self.all(kind, cluster), kind.replace("-", " ")
        for item in there:
            if item["name"] == name:
                raise rules.conflict(f"A {word} named {name} already exists.", TYPES[kind], item["id"])
        if len(there) >= limit:
            message = f"There are {len(there)} {word}s already; {limit} is the limit."
            raise rules.quota(message, TYPES[kind], name)

    def store(self, kind: Kind, description: dict[str, Any], tags: dict[str, str] | None) -> Item:
        """Store a new resource with a new id and ARN."""
        new_id = "pcs_" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(10))
        parent = f"cluster/{description['clusterId']}/" if kind != "cluster" else ""
        arn = self.arn("pcs", f"{parent}{kind.replace('-', '')}/{new_id}")
        now = datetime.datetime.now(datetime.UTC)
        identity = {"id": new_id, "arn": arn, "createdAt": now, "modifiedAt": now}
        self.items[new_id] = item = Item(kind, {**description, **identity})
        self.tags[arn] = dict(tags or {})
        return item

    def remove(self, item: Item) -> None:
        """Remove a resource and its tags."""
        del self.items[item["id"]]
        del self.tags[item["arn"]]
