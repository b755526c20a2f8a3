"""AWS PCS for moto: the actions on clusters, compute node groups and queues.

Resources become ACTIVE at once unless moto's state manager has other transitions for the models pcs::cluster,
pcs::compute-node-group and pcs::queue.
"""

import base64
import copy
import datetime
import functools
import secrets
from typing import Any, cast

from moto.core.responses import ActionResult, EmptyResult

from localaws.services import pcs_checks as checks
from localaws.services import pcs_rules as rules
from localaws.services.pcs_store import TYPES, Item, Kind, PcsBackend
from localaws.services.service import TagActions, add_service

DEFAULTS: dict[str, Any] = {
    "scaleDownIdleTimeInSeconds": 600,
    "accounting": {"mode": "NONE", "defaultPurgeTimeInDays": -1},
    "slurmRest": {"mode": "NONE"},
}
_ADDRESSING = {"clusterIdentifier", "computeNodeGroupIdentifier", "computeNodeGroupName", "clientToken", "tags"}


class PcsResponse(TagActions):
    """The actions of the PCS API."""

    def __init__(self) -> None:
        super().__init__(service_name="pcs")

    @property
    def pcs(self) -> PcsBackend:
        """The state of the caller's account and Region."""
        return cast("PcsBackend", activate()[self.current_account][self.region])

    # clusters

    def create_cluster(self) -> ActionResult:
        """Validate the request and create the cluster with its controller's network interface and its secret."""
        pcs, request, configuration = self.pcs, self.params, self._configuration()
        name, version = request["clusterName"], request["scheduler"]["version"]
        pcs.check_name_and_quota("cluster", name, rules.MAX_CLUSTERS)
        for other in pcs.all("cluster"):
            if other.status == "CREATING":
                message = f"Cluster {other['name']} is still being created; only one may be at a time."
                raise rules.quota(message, TYPES["cluster"], other["id"])
        rules.check_new_version(version, datetime.datetime.now(datetime.UTC).date())
        rules.refuse_empty_lists(configuration)
        rules.check_cluster_configuration(configuration, version)
        subnet = checks.check_cluster_network(pcs.references, request["networking"])
        description = {
            "name": name,
            "scheduler": request["scheduler"],
            "size": request["size"],
            "networking": {"networkType": "IPV4", **request["networking"]},
            "slurmConfiguration": _merged(DEFAULTS, configuration),
        }
        cluster = pcs.store("cluster", description, request.get("tags"))
        self._make_controller(cluster, subnet)
        return ActionResult({"cluster": cluster.view()})

    def get_cluster(self) -> ActionResult:
        """One cluster, by id or name."""
        return ActionResult({"cluster": self._cluster().view()})

    def list_clusters(self) -> ActionResult:
        """All clusters of the Region."""
        return self.page("clusters", [cluster.view() for cluster in self.pcs.all("cluster")])

    def update_cluster(self) -> ActionResult:
        """Change the Slurm version or configuration. Everything in the cluster must be ACTIVE."""
        cluster = self._cluster()
        children = self.pcs.all("compute-node-group", cluster) + self.pcs.all("queue", cluster)
        self.pcs.require_active(cluster, *children)
        scheduler = {**cluster["scheduler"], **(self.params.get("scheduler") or {})}
        rules.check_upgrade(cluster["scheduler"]["version"], scheduler["version"])
        configuration = _merged(cluster["slurmConfiguration"], self._configuration())
        rules.check_cluster_configuration(configuration, scheduler["version"])
        cluster.change({**cluster.description, "scheduler": scheduler, "slurmConfiguration": configuration})
        self._describe_controller(cluster)
        return ActionResult({"cluster": cluster.view()})

    def delete_cluster(self) -> ActionResult:
        """Delete a cluster that has neither queues nor compute node groups."""
        cluster = self._cluster()
        for child in self.pcs.all("queue", cluster) + self.pcs.all("compute-node-group", cluster):
            message = f"Cluster {cluster['name']} still has the {child.kind.replace('-', ' ')} {child['name']}."
            raise rules.conflict(message, TYPES["cluster"], cluster["id"])
        self.pcs.references.delete_network_interface(cluster.owned["interface"])
        self.pcs.references.delete_secret(cluster.owned["secret"])
        self.pcs.remove(cluster)
        return EmptyResult()

    # compute node groups

    def create_compute_node_group(self) -> ActionResult:
        """Validate the request and create the group."""
        cluster, name = self._cluster(active=True), self.params["computeNodeGroupName"]
        self.pcs.check_name_and_quota("compute-node-group", name, rules.MAX_NODE_GROUPS, cluster)
        rules.refuse_empty_lists(self._configuration())
        defaults = {"launchTemplateMode": "CUSTOM", "purchaseOption": "ONDEMAND"}
        group = {**defaults, **self._changes(), "name": name, "clusterId": cluster["id"]}
        self._check_group(cluster, group, self.pcs.all("compute-node-group", cluster))
        item = self.pcs.store("compute-node-group", group, self.params.get("tags"))
        return ActionResult({"computeNodeGroup": item.view()})

    def get_compute_node_group(self) -> ActionResult:
        """One compute node group, by id or name."""
        return ActionResult({"computeNodeGroup": self._child("compute-node-group", self._cluster()).view()})

    def list_compute_node_groups(self) -> ActionResult:
        """The compute node groups of a cluster."""
        groups = self.pcs.all("compute-node-group", self._cluster())
        return self.page("computeNodeGroups", [group.view() for group in groups])

    def update_compute_node_group(self) -> ActionResult:
        """Update the members in the request. "", [] and empty stages remove a value; -1 removes the idle time."""
        cluster = self._cluster(active=True)
        group = self._child("compute-node-group", cluster)
        self.pcs.require_active(group)
        changes = self._changes()
        configuration = _merged(group.description.get("slurmConfiguration", {}), self._configuration())
        if configuration.get("scaleDownIdleTimeInSeconds") == -1:
            del configuration["scaleDownIdleTimeInSeconds"]
        new = {**group.description, **changes, "slurmConfiguration": configuration}
        if new["purchaseOption"] != "SPOT" and "spotOptions" not in changes:
            new.pop("spotOptions", None)
        if new["launchTemplateMode"] == "MANAGED" and "customLaunchTemplate" not in changes:
            new.pop("customLaunchTemplate", None)
        if not new.get("nodeLifecycleActions", {}).get("stages"):
            new.pop("nodeLifecycleActions", None)
        new = {name: value for name, value in new.items() if value not in ("", [], {})}
        others = [other for other in self.pcs.all("compute-node-group", cluster) if other is not group]
        self._check_group(cluster, new, others)
        group.change(new)
        return ActionResult({"computeNodeGroup": group.view()})

    def delete_compute_node_group(self) -> ActionResult:
        """Delete a compute node group that no queue uses."""
        cluster = self._cluster()
        group = self._child("compute-node-group", cluster)
        for queue in self.pcs.all("queue", cluster):
            if group["id"] in _group_ids(queue.description):
                message = f"Compute node group {group['name']} is used by queue {queue['name']}."
                raise rules.conflict(message, TYPES["compute-node-group"], group["id"])
        self.pcs.remove(group)
        return EmptyResult()

    # queues

    def create_queue(self) -> ActionResult:
        """Validate the request and create the queue."""
        cluster, name = self._cluster(active=True), self.params["queueName"]
        self.pcs.check_name_and_quota("queue", name, rules.MAX_QUEUES, cluster)
        rules.refuse_empty_lists(self._configuration())
        queue = {
            "name": name,
            "clusterId": cluster["id"],
            "computeNodeGroupConfigurations": self.params.get("computeNodeGroupConfigurations") or [],
            "slurmConfiguration": self._configuration(),
        }
        self._check_queue(cluster, queue)
        return ActionResult({"queue": self.pcs.store("queue", queue, self.params.get("tags")).view()})

    def get_queue(self) -> ActionResult:
        """One queue, by id or name."""
        return ActionResult({"queue": self._child("queue", self._cluster()).view()})

    def list_queues(self) -> ActionResult:
        """The queues of a cluster."""
        return self.page("queues", [queue.view() for queue in self.pcs.all("queue", self._cluster())])

    def update_queue(self) -> ActionResult:
        """Change the compute node groups or the settings of a queue."""
        cluster = self._cluster(active=True)
        queue = self._child("queue", cluster)
        self.pcs.require_active(queue)
        new = {**queue.description, "slurmConfiguration": _merged(queue["slurmConfiguration"], self._configuration())}
        if "computeNodeGroupConfigurations" in self.params:
            new["computeNodeGroupConfigurations"] = self.params["computeNodeGroupConfigurations"]
        self._check_queue(cluster, new)
        queue.change(new)
        return ActionResult({"queue": queue.view()})

    def delete_queue(self) -> ActionResult:
        """Delete a queue."""
        self.pcs.remove(self._child("queue", self._cluster()))
        return EmptyResult()

    # tags

    def requested_tags(self) -> dict[str, str]:
        """The tags of the requested resource."""
        arn = self.params["resourceArn"]
        if arn not in self.pcs.tags:
            raise rules.missing("resource", arn)
        return self.pcs.tags[arn]

    # helpers

    def _cluster(self, *, active: bool = False) -> Item:
        cluster = self.pcs.find("cluster", self.params["clusterIdentifier"])
        if active:
            self.pcs.require_active(cluster)
        return cluster

    def _child(self, kind: Kind, cluster: Item) -> Item:
        member = "queueIdentifier" if kind == "queue" else "computeNodeGroupIdentifier"
        return self.pcs.find(kind, self.params[member], cluster)

    def _configuration(self) -> dict[str, Any]:
        return self.params.get("slurmConfiguration") or {}

    def _changes(self) -> dict[str, Any]:
        return {name: copy.deepcopy(value) for name, value in self.params.items() if name not in _ADDRESSING}

    def _check_group(self, cluster: Item, group: dict[str, Any], others: list[Item]) -> None:
        if not group["instanceConfigs"] or not all(config.get("instanceType") for config in group["instanceConfigs"]):
            raise rules.invalid("instanceConfigs", "at least one instance type is needed.")
        maxima = [other["scalingConfiguration"]["maxInstanceCount"] for other in others]
        rules.check_scaling(group["scalingConfiguration"], cluster["size"], maxima, cluster["id"])
        rules.check_group_configuration(group.get("slurmConfiguration") or {}, cluster["scheduler"]["version"])
        references = self.pcs.references
        vpc_id = references.subnet(cluster["networking"]["subnetIds"][0]).vpc_id
        checks.check_group_network(references, group, vpc_id)
        checks.check_profile(references, group["iamInstanceProfileArn"])
        checks.check_launch(references, group)

    def _check_queue(self, cluster: Item, queue: dict[str, Any]) -> None:
        known = {group["id"] for group in self.pcs.all("compute-node-group", cluster)}
        for group_id in _group_ids(queue):
            if group_id not in known:
                raise rules.missing(TYPES["compute-node-group"], group_id)
        settings = queue["slurmConfiguration"].get("slurmCustomSettings")
        version = cluster["scheduler"]["version"]
        rules.check_settings("queue", "slurmConfiguration.slurmCustomSettings", settings, version)

    def _make_controller(self, cluster: Item, subnet: Any) -> None:
        """Create the controller's network interface in the customer's subnet, and the secret of Slurm's daemons."""
        references, groups = self.pcs.references, cluster["networking"].get("securityGroupIds") or []
        interface = references.network_interface(subnet, groups, f"AWS PCS controller of {cluster['id']}")
        key = base64.b64encode(secrets.token_bytes(48)).decode()
        secret = references.new_secret(f"pcs!slurm-secret-{cluster['id']}", key)
        cluster.owned = {
            "interface": interface.id,
            "address": interface.private_ip_address,
            "secret": secret["ARN"],
        }
        auth_key = {"secretArn": secret["ARN"], "secretVersion": secret["VersionId"]}
        cluster.description["slurmConfiguration"]["authKey"] = auth_key
        self._describe_controller(cluster)

    def _describe_controller(self, cluster: Item) -> None:
        configuration = cluster["slurmConfiguration"]
        daemons = {"SLURMCTLD": "6817"}
        if configuration["accounting"]["mode"] == "STANDARD":
            daemons["SLURMDBD"] = "6819"
        if configuration["slurmRest"]["mode"] == "STANDARD":
            daemons["SLURMRESTD"] = "6820"
        address = cluster.owned["address"]
        cluster.description["endpoints"] = [
            {"type": daemon, "privateIpAddress": address, "port": port} for daemon, port in daemons.items()
        ]


@functools.cache
def activate() -> Any:
    """Add PCS to moto. Returns the backends by account and Region."""
    return add_service("pcs", PcsBackend, PcsResponse, ("/",))


def _merged(old: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Merge blocks by member and replace lists. An empty list removes the member."""
    new = {**old}
    for name, value in changes.items():
        new[name] = {**old.get(name, {}), **value} if isinstance(value, dict) else value
    return {name: copy.deepcopy(value) for name, value in new.items() if value != []}


def _group_ids(queue: dict[str, Any]) -> list[str]:
    return [config.get("computeNodeGroupId", "") for config in queue["computeNodeGroupConfigurations"]]
