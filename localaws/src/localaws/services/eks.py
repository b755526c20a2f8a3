"""Amazon EKS for moto, in place of its own: clusters, node groups, add-ons, access entries, capabilities.

Resources become ACTIVE at once unless moto's state manager has other transitions for the models eks::cluster,
eks::nodegroup, eks::addon and eks::capability. No Kubernetes runs; the contents of a cluster are recorded
(`kubernetes.py`).
"""

import datetime
import functools
import uuid
from typing import Any, cast

from moto.core.responses import ActionResult, EmptyResult

from localaws.services import eks_access as access
from localaws.services import eks_addons as addons
from localaws.services import eks_clusters as clusters
from localaws.services import eks_logs as logs
from localaws.services import eks_network as network
from localaws.services import eks_nodegroups as nodegroups
from localaws.services.actions import Actions, add_service
from localaws.services.eks_store import Cluster, EksStore, missing
from localaws.services.kubernetes import ACCESS_POLICIES
from localaws.services.store import Call

UPDATES = {"UpdateAddon": "AddonUpdate", "UpdateCapability": "CapabilityUpdate"}


class EksActions(Actions):
    """The actions of the EKS API."""

    service = "eks"
    kinds = (clusters.CLUSTER, nodegroups.NODEGROUP, addons.ADDON, access.ENTRY, addons.POD, addons.CAPABILITY)
    rules = (*clusters.RULES, *nodegroups.RULES, *addons.RULES, *access.RULES)
    invalid = "InvalidParameterException"
    no_such_arn = "No resource {arn} was found."
    store: EksStore

    # updates

    def answer(self, call: Call, view: dict[str, Any]) -> ActionResult:
        """The response; updates of some kinds return an update in place of the resource."""
        kind = UPDATES.get(call.operation)
        return self.updated(kind) if kind else super().answer(call, view)

    def updated(self, kind: str, **params: Any) -> ActionResult:
        """The response of an update action. DescribeUpdate returns the same update, always successful."""
        update_id = str(uuid.uuid4())
        self.store.updates[update_id] = {
            "id": update_id,
            "status": "Successful",
            "type": kind,
            "params": [{"type": name, "value": str(value)} for name, value in params.items()],
            "createdAt": datetime.datetime.now(datetime.UTC),
            "errors": [],
        }
        return ActionResult({"update": self.store.updates[update_id]})

    def describe_update(self) -> ActionResult:
        """One update."""
        self.call("Describe", clusters.CLUSTER)
        if self.params["updateId"] not in self.store.updates:
            raise missing(f"No update found for ID: {self.params['updateId']}.")
        return ActionResult({"update": self.store.updates[self.params["updateId"]]})

    def update_cluster_config(self) -> ActionResult:
        """Apply one update to an ACTIVE cluster."""
        call = self.call("Change", clusters.CLUSTER)
        kind, changes = clusters.changes_of(call)
        call.new = {**call.old, **changes}
        self.check(call)
        cluster = cast("Cluster", call.target)
        cluster.change(changes)
        logs.write(call.references, cluster)
        if kind == "VpcConfigUpdate":
            network.connect(call.references, cluster)
        return self.updated(kind)

    def update_cluster_version(self) -> ActionResult:
        """Upgrade the cluster to the next minor version. All node groups must have the current one."""
        call, changes = self.call("Change", clusters.CLUSTER), {"version": self.params["version"]}
        call.new = {**call.old, **changes}
        self.check(call)
        call.target.change({**changes, "platformVersion": "eks.1"})
        return self.updated("VersionUpdate", Version=self.params["version"])

    def update_nodegroup_config(self) -> ActionResult:
        """Update sizes, labels, taints, and the settings for updates, repair and the warm pool."""
        call = self.call("Change", nodegroups.NODEGROUP)
        call.target.change(nodegroups.settings_after(call))
        return self.updated("ConfigUpdate")

    def update_nodegroup_version(self) -> ActionResult:
        """Change the launch template version or the release of the EKS images."""
        call = self.call("Upgrade", nodegroups.NODEGROUP)
        changes = nodegroups.release_after(call)
        call.target.change(changes)
        return self.updated("VersionUpdate", Version=changes["version"])

    # access policies

    def associate_access_policy(self) -> ActionResult:
        """Associate an access policy, or change its scope."""
        call, policy = self.call("Put", access.ENTRY), self.params["policyArn"]
        if policy not in self._access_policies().values():
            raise missing(f"The policyArn {policy} is not an access policy of EKS.")
        self.check(call)
        kept, now = access.policies_of(call.target), datetime.datetime.now(datetime.UTC)
        scope = {"policyArn": policy, "accessScope": self.params["accessScope"], "modifiedAt": now}
        kept[policy] = {"associatedAt": now, **kept.get(policy, {}), **scope}
        return self.answer(call, {"associatedAccessPolicy": kept[policy]})

    def disassociate_access_policy(self) -> ActionResult:
        """Disassociate an access policy."""
        entry, policy = self.call("Put", access.ENTRY).target, self.params["policyArn"]
        if access.policies_of(entry).pop(policy, None) is None:
            raise missing(f"The policy {policy} is not associated with {entry.id}.")
        return EmptyResult()

    def list_associated_access_policies(self) -> ActionResult:
        """The policies of an entry."""
        call = self.call("Describe", access.ENTRY)
        page = self.page("associatedAccessPolicies", list(access.policies_of(call.target).values()))
        return self.answer(call, page.result)

    def list_access_policies(self) -> ActionResult:
        """AWS's access policies."""
        found = [{"name": name, "arn": arn} for name, arn in self._access_policies().items()]
        return self.page("accessPolicies", found)

    def _access_policies(self) -> dict[str, str]:
        return {name: f"arn:{self.partition}:eks::aws:cluster-access-policy/{name}" for name in ACCESS_POLICIES}


@functools.cache
def activate() -> Any:
    """Add EKS to moto. Returns the stores by account and Region."""
    paths = ("/clusters", "/clusters/(?P<rest>.+)", "/tags/(?P<arn>.+)", "/access-policies")
    return add_service("EKS", EksActions, *paths, store=EksStore)
