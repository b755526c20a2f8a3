"""AWS PCS for moto: clusters, compute node groups and queues.

Resources become ACTIVE at once unless moto's state manager has other transitions for the models pcs::cluster,
pcs::compute-node-group and pcs::queue.
"""

import base64
import functools
import secrets
import string
from typing import Any

from localaws.services import pcs_rules as rules
from localaws.services.actions import Actions, add_service
from localaws.services.store import Call, Kind


def _new_id(_: Call) -> str:
    return "pcs_" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(10))


# hooks: what the descriptions add to the requests


def _make_controller(call: Call) -> None:
    """Create the controller's network interface in the customer's subnet, and the secret of Slurm's daemons."""
    cluster, networking = call.target, call.target["networking"]
    subnet, groups = call.references.subnet(networking["subnetIds"][0]), networking.get("securityGroupIds") or []
    interface = call.references.network_interface(subnet, groups, f"AWS PCS controller of {cluster.id}")
    key = base64.b64encode(secrets.token_bytes(48)).decode()
    secret = call.references.new_secret(f"pcs!slurm-secret-{cluster.id}", key)
    cluster.owned = {"interface": interface, "secret": secret["ARN"], rules.QOS: {"normal"}}
    auth_key = {"secretArn": secret["ARN"], "secretVersion": secret["VersionId"]}
    cluster["slurmConfiguration"]["authKey"] = auth_key
    _describe_controller(call)


def _describe_controller(call: Call) -> None:
    cluster, configuration = call.target, call.target["slurmConfiguration"]
    daemons = {"SLURMCTLD": "6817"}
    if configuration["accounting"]["mode"] == "STANDARD":
        daemons["SLURMDBD"] = "6819"
    if configuration["slurmRest"]["mode"] == "STANDARD":
        daemons["SLURMRESTD"] = "6820"
    address = cluster.owned["interface"].private_ip_address
    cluster.description["endpoints"] = [
        {"type": daemon, "privateIpAddress": address, "port": port} for daemon, port in daemons.items()
    ]


def _delete_controller(call: Call) -> None:
    call.references.delete_network_interface(call.target.owned["interface"].id)
    call.references.delete_secret(call.target.owned["secret"])


def _settings(call: Call) -> None:
    """An empty list removes settings."""
    found = call.new.get("slurmConfiguration", {})
    call.new["slurmConfiguration"] = {name: value for name, value in found.items() if value != []}


def _group_members(call: Call) -> None:
    """Of an update, "", [] and empty stages remove a value; -1 removes the idle time."""
    _settings(call)
    if call.item is None:
        return
    new = call.new
    if new["slurmConfiguration"].get("scaleDownIdleTimeInSeconds") == -1:
        del new["slurmConfiguration"]["scaleDownIdleTimeInSeconds"]
    if new["purchaseOption"] != "SPOT" and "spotOptions" not in call.request:
        new.pop("spotOptions", None)
    if new["launchTemplateMode"] == "MANAGED" and "customLaunchTemplate" not in call.request:
        new.pop("customLaunchTemplate", None)
    if not new.get("nodeLifecycleActions", {}).get("stages"):
        new.pop("nodeLifecycleActions", None)
    call.new = {name: value for name, value in new.items() if value not in ("", [], {})}


def _kind(noun: str, word: str, **more: Any) -> Kind:
    return Kind(
        noun=noun,
        word=word,
        id="id",
        new_id=_new_id,
        by_name=True,
        name="name",
        missing="{type} {id} was not found.",
        active_itself="Update",
        **more,
    )


CLUSTER = _kind(
    "Cluster",
    "cluster",
    address="clusterIdentifier",
    arn="cluster/{id}",
    quota=rules.MAX_CLUSTERS,
    defaults={
        "networking": {"networkType": "IPV4"},
        "slurmConfiguration": {
            "scaleDownIdleTimeInSeconds": 600,
            "accounting": {"mode": "NONE", "defaultPurgeTimeInDays": -1},
            "slurmRest": {"mode": "NONE"},
        },
    },
    merged="scheduler slurmConfiguration",
    describe=_settings,
    made=_make_controller,
    changed=_describe_controller,
    removed=_delete_controller,
)
GROUP = _kind(
    "ComputeNodeGroup",
    "compute node group",
    address="computeNodeGroupIdentifier",
    arn="cluster/{clusterId}/computenodegroup/{id}",
    parent=CLUSTER,
    quota=rules.MAX_NODE_GROUPS,
    active="Create Update",
    defaults={"launchTemplateMode": "CUSTOM", "purchaseOption": "ONDEMAND"},
    merged="slurmConfiguration",
    describe=_group_members,
)
QUEUE = _kind(
    "Queue",
    "queue",
    address="queueIdentifier",
    arn="cluster/{clusterId}/queue/{id}",
    parent=CLUSTER,
    quota=rules.MAX_QUEUES,
    active="Create Update",
    defaults={"computeNodeGroupConfigurations": [], "slurmConfiguration": {}},
    merged="slurmConfiguration",
    describe=_settings,
)


class PcsActions(Actions):
    """The actions of the PCS API."""

    service = "pcs"
    kinds = (CLUSTER, GROUP, QUEUE)
    rules = rules.RULES
    no_such_arn = "resource {arn} was not found."


@functools.cache
def activate() -> Any:
    """Add PCS to moto. Returns the stores by account and Region."""
    return add_service("PCS", PcsActions, "/")
