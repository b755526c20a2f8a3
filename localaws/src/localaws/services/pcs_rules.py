"""What PCS refuses: versions, settings, sizes, networks and launch templates.

Source: AWS PCS User Guide and API Reference (September-October 2026).
"""

import base64
import datetime
from collections.abc import Mapping
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from localaws import clock
from localaws.records import records
from localaws.services import pcs_conflicts
from localaws.services.hardware import unlike, unsupported
from localaws.services.launch_templates import is_mime_multipart, refused_tag_key
from localaws.services.references import References
from localaws.services.service import Refusal, invalid
from localaws.services.store import Call, Rule

Parameters = Mapping[str, Any]

_PCS = records("pcs")
MAX_CLUSTERS: int = _PCS["quotas"]["clusters"]
"""Clusters of one account and Region."""
MAX_NODES: dict[str, int] = _PCS["sizes"]["nodes"]
MAX_NODE_GROUPS: int = _PCS["quotas"]["node_groups_per_cluster"]
MAX_QUEUES: int = _PCS["quotas"]["queues_per_cluster"]
SLURM_VERSIONS = {version: datetime.date.fromisoformat(end) for version, end in _PCS["versions"]["end_of_life"].items()}
UPGRADES: dict[str, list[str]] = _PCS["updates"]["targets"]
SETTINGS = {level: frozenset(block["names"]) for level, block in _PCS["settings"].items()}
SINCE: dict[str, dict[str, str]] = _PCS["since"]["settings"]
"""First version of Slurm with which PCS takes a setting, by level and name."""
VALUES_SINCE: dict[str, dict[str, str]] = _PCS["since"]["values"]
"""First version of Slurm with which PCS takes a value of a cluster's setting."""
ENFORCEABLE = frozenset({"associations", "limits", "qos", "safe", "nosteps", "nojobs"})
MARKETS: dict[str, tuple[str | None, ...]] = {
    "ONDEMAND": (None, "on-demand"),
    "SPOT": (None, "spot"),
    "CAPACITY_BLOCK": ("capacity-block",),
    "INTERRUPTIBLE_CAPACITY_RESERVATION": ("interruptible-capacity-reservation",),
}
"""Market types of a launch template that match a purchase option; None is a template without one."""
QOS = "qos"
"""What a cluster owns under this name: the QOS of its accounting."""
_QOS_SETTINGS = ("QOS", "AllowQos", "DenyQos")
_CUSTOM, _GRES = "slurmConfiguration.slurmCustomSettings", "slurmConfiguration.gresCustomSettings"


def _conflict(call: Call, message: str) -> Refusal:
    return call.store.refusal(call.kind, "ConflictException", message, call.target.id)


def _version(call: Call) -> str:
    return str((call.parent or call.new)["scheduler"]["version"])


def _settings(call: Call) -> Parameters:
    return call.new.get("slurmConfiguration") or {}


# clusters


def one_creation_at_a_time(call: Call) -> None:
    """Only one cluster is created at a time."""
    for other in call.others:
        if other.status == "CREATING":
            message = f"Cluster {other['name']} is still being created; only one may be at a time."
            raise call.store.refusal(call.kind, "ServiceQuotaExceededException", message, other.id)


def check_new_version(version: str, today: datetime.date) -> None:
    """A new cluster has a version in the API's list that has not reached its end of life."""
    if version not in SLURM_VERSIONS:
        raise invalid("scheduler.version", f"Slurm {version} is not supported. Supported: {', '.join(SLURM_VERSIONS)}.")
    if today > SLURM_VERSIONS[version]:
        raise invalid("scheduler.version", f"Slurm {version} reached its end of life on {SLURM_VERSIONS[version]}.")


def upgrade(call: Call) -> None:
    """Everything in the cluster is ACTIVE, and the version moves along the listed paths."""
    call.store.require_active(*call.children)
    old, new = call.old["scheduler"]["version"], _version(call)
    if new != old and new not in UPGRADES[old]:
        reachable = ", ".join(UPGRADES[old]) or "none"
        raise invalid("scheduler.version", f"a cluster at Slurm {old} cannot move to {new}. Reachable: {reachable}.")


def no_empty_lists(call: Call) -> None:
    """PCS refuses an empty list of custom settings when there are no settings to clear."""
    for name, value in (call.request.get("slurmConfiguration") or {}).items():
        if value == []:
            raise invalid(f"slurmConfiguration.{name}", "the list is empty; leave it out.")


def cluster_settings(call: Call) -> None:
    """Accounting, REST and the custom settings of a cluster."""
    settings, version = _settings(call), _version(call)
    if settings["accounting"].get("defaultPurgeTimeInDays") == 0:
        field = "slurmConfiguration.accounting.defaultPurgeTimeInDays"
        raise invalid(field, "0 is not valid; -1 keeps records for ever.")
    if settings["slurmRest"].get("mode") == "STANDARD" and version < "25.05":
        raise invalid("slurmConfiguration.slurmRest", f"the Slurm REST API needs Slurm 25.05 or later, not {version}.")
    for level, name in (("cluster", "slurm"), ("slurmdbd", "slurmdbd"), ("cgroup", "cgroup")):
        name = f"{name}CustomSettings"
        _check_settings(level, f"slurmConfiguration.{name}", settings.get(name), version)
    pcs_conflicts.check_cluster(_CUSTOM, settings.get("slurmCustomSettings"))


def cluster_network(call: Call) -> None:
    """The cluster has one subnet. It and the security groups exist in the same VPC."""
    networking = call.new["networking"]
    subnet_ids = networking.get("subnetIds") or []
    if len(subnet_ids) != 1:
        raise invalid("networking.subnetIds", f"exactly one subnet is supported, not {len(subnet_ids)}.")
    vpc_id = _subnet(call.references, "networking.subnetIds", subnet_ids[0]).vpc_id
    _check_security_groups(call, "networking.securityGroupIds", networking.get("securityGroupIds"), vpc_id)


def no_children(call: Call) -> None:
    """A cluster with queues or compute node groups cannot be deleted."""
    for child in sorted(call.children, key=lambda item: item.kind.noun != "Queue"):
        raise _conflict(call, f"Cluster {call.target['name']} still has the {child.kind.word} {child['name']}.")


# compute node groups


def group_size(call: Call) -> None:
    """Min <= max, and the maxima of all groups of a cluster fit its size."""
    configs, scaling = call.new["instanceConfigs"], call.new["scalingConfiguration"]
    if not configs or not all(config.get("instanceType") for config in configs):
        raise invalid("instanceConfigs", "at least one instance type is needed.")
    low, high, size = scaling["minInstanceCount"], scaling["maxInstanceCount"], call.within["size"]
    if low > high:
        raise invalid("scalingConfiguration", f"minInstanceCount {low} is greater than maxInstanceCount {high}.")
    total = high + sum(other["scalingConfiguration"]["maxInstanceCount"] for other in call.others)
    if total > MAX_NODES[size]:
        words = f"a {size} cluster manages {MAX_NODES[size]}."
        message = f"The compute node groups would hold up to {total} instances; {words}"
        raise call.store.refusal(call.within.kind, "ServiceQuotaExceededException", message, call.within.id)


def group_settings(call: Call) -> None:
    """The custom settings, gres records and idle time of a compute node group."""
    settings, version = _settings(call), _version(call)
    if "scaleDownIdleTimeInSeconds" in settings and version < "25.11":
        raise invalid("slurmConfiguration.scaleDownIdleTimeInSeconds", f"needs Slurm 25.11 or later, not {version}.")
    custom, found = settings.get("slurmCustomSettings"), settings.get("gresCustomSettings") or []
    _check_settings("compute node group", _CUSTOM, custom, version)
    pcs_conflicts.check_group(_CUSTOM, custom)
    for record in found:
        for key in record:
            _check_name("gres", _GRES, key, version)
        _check_record(record)
    if sum(record.get("Name") == "gpu" or "AutoDetect" in record for record in found) > 1:
        raise invalid(_GRES, "at most one record may be of GPUs.")
    gres = next((each["parameterValue"] for each in custom or () if each["parameterName"] == "Gres"), "")
    for entry in filter(None, gres.split(",")):
        _check_gres(entry, found)


def group_network(call: Call) -> None:
    """Subnets and security groups of a compute node group exist in the cluster's VPC."""
    group, vpc_id = call.new, call.references.subnet(call.within["networking"]["subnetIds"][0]).vpc_id
    if not group.get("subnetIds"):
        raise invalid("subnetIds", "at least one subnet is needed.")
    for subnet_id in group["subnetIds"]:
        if _subnet(call.references, "subnetIds", subnet_id).vpc_id != vpc_id:
            raise invalid("subnetIds", f"{subnet_id} is not in the cluster's VPC {vpc_id}.")
    _check_security_groups(call, "securityGroupIds", group.get("securityGroupIds"), vpc_id)


def group_profile(call: Call) -> None:
    """The instance profile has a role under the path /aws-pcs/ or with a name that starts with AWSPCS."""
    field, arn = "iamInstanceProfileArn", call.new["iamInstanceProfileArn"]
    profile = call.references.instance_profile(arn)
    if profile is None:
        raise invalid(field, f"instance profile {arn} does not exist.")
    if not profile.roles:
        raise invalid(field, f"instance profile {arn} holds no role.")
    path, name = profile.roles[0].path, profile.roles[0].name
    if path != "/aws-pcs/" and not name.startswith("AWSPCS"):
        words = "needs the path /aws-pcs/ or a name that starts with AWSPCS"
        raise invalid(field, f"role {path}{name} of the instance profile {words}.")


def group_launch(call: Call) -> None:
    """CUSTOM needs an existing version of a launch template, MANAGED takes none."""
    group, field = call.new, "customLaunchTemplate"
    custom = group.get(field)
    if group["launchTemplateMode"] == "MANAGED":
        if custom or not group.get("amiId") or not group.get("securityGroupIds"):
            message = "MANAGED needs amiId and securityGroupIds, and no customLaunchTemplate."
            raise invalid("launchTemplateMode", message)
        _check_template({}, group)
        return
    if not custom:
        raise invalid(field, "launchTemplateMode CUSTOM, the default, needs a launch template.")
    template = call.references.launch_template(custom["id"])
    if template is None:
        raise invalid(field, f"launch template {custom['id']} does not exist.")
    number, latest = custom["version"], len(template.versions)
    if number not in ("$Latest", "$Default") and not (number.isdecimal() and 1 <= int(number) <= latest):
        raise invalid(field, f"launch template {custom['id']} has no version {number}; the latest is {latest}.")
    data = template.get_version(number).data
    _check_template(data, group)
    text = base64.b64decode(str(data.get("UserData") or ""))
    if text and not is_mime_multipart(text):  # PCS adds its own part
        raise invalid(field, "the user data of the launch template is not in MIME multi-part format.")
    if group["purchaseOption"] == "CAPACITY_BLOCK":
        target = data["CapacityReservationSpecification"]["CapacityReservationTarget"]
        _check_block(call.references, group, target["CapacityReservationId"])


def not_in_queues(call: Call) -> None:
    """A compute node group that a queue uses cannot be deleted."""
    for queue in call.store.items:
        if queue.kind.noun == "Queue" and call.target.id in _group_ids(queue.description):
            raise _conflict(call, f"Compute node group {call.target['name']} is used by queue {queue['name']}.")


# queues


def queue_groups(call: Call) -> None:
    """The compute node groups of a queue exist, and its settings are allowed."""
    known = {item.id for item in call.siblings if item.kind.noun == "ComputeNodeGroup"}
    for group_id in _group_ids(call.new):
        if group_id not in known:
            members = {"resourceId": group_id, "resourceType": "AWS::PCS::ComputeNodeGroup"}
            message = f"AWS::PCS::ComputeNodeGroup {group_id} was not found."
            raise Refusal("ResourceNotFoundException", message, **members)
    _check_settings("queue", _CUSTOM, _settings(call).get("slurmCustomSettings"), _version(call))


def queue_qos(call: Call) -> None:
    """Slurm's controller does not take a queue with a QOS that its accounting does not have."""
    custom = {
        each["parameterName"]: each["parameterValue"] for each in _settings(call).get("slurmCustomSettings") or ()
    }
    named = {word.strip().lower() for name in _QOS_SETTINGS for word in custom.get(name, "").split(",")}
    known = call.within.owned[QOS] if call.within["slurmConfiguration"]["accounting"]["mode"] == "STANDARD" else set()
    if unknown := sorted(named - {"", "all", *known}):
        message = f"{call.operation} failed. The Slurm custom settings of the cluster might be incompatible. "
        raise invalid(_CUSTOM, f"{message}Check the settings and try again: no QOS {', '.join(unknown)}.")


_GROUPS = "CreateComputeNodeGroup UpdateComputeNodeGroup"
RULES = (
    Rule("CreateCluster", one_creation_at_a_time, "User Guide, service quotas"),
    Rule(
        "CreateCluster",
        lambda call: check_new_version(_version(call), clock.today()),
        "User Guide, Slurm versions",
    ),
    Rule("UpdateCluster", upgrade, "User Guide, Slurm versions"),
    Rule("CreateCluster CreateComputeNodeGroup CreateQueue", no_empty_lists, "API Reference, slurmCustomSettings"),
    Rule("CreateCluster UpdateCluster", cluster_settings, "User Guide, custom Slurm settings"),
    Rule("CreateCluster", cluster_network, "API Reference, NetworkingRequest"),
    Rule("DeleteCluster", no_children, "API Reference, DeleteCluster"),
    Rule(_GROUPS, group_size, "API Reference, CreateCluster and CreateComputeNodeGroup"),
    Rule(_GROUPS, group_settings, "User Guide, custom Slurm settings"),
    Rule(_GROUPS, group_network, "API Reference, CreateComputeNodeGroup"),
    Rule(_GROUPS, group_profile, "User Guide, IAM instance profiles"),
    Rule(_GROUPS, group_launch, "User Guide, launch templates and Capacity Blocks"),
    Rule("DeleteComputeNodeGroup", not_in_queues, "API Reference, DeleteComputeNodeGroup"),
    Rule("CreateQueue UpdateQueue", queue_groups, "API Reference, CreateQueue; User Guide, custom Slurm settings"),
    Rule("CreateQueue UpdateQueue", queue_qos, "User Guide, custom Slurm settings of queues, and troubleshooting them"),
)


# parts of the rules


def _group_ids(queue: Parameters) -> list[str]:
    return [config.get("computeNodeGroupId", "") for config in queue["computeNodeGroupConfigurations"]]


def _subnet(references: References, field: str, subnet_id: str) -> Any:
    subnet = references.subnet(subnet_id)
    if subnet is None:
        raise invalid(field, f"subnet {subnet_id} does not exist.")
    return subnet


def _check_security_groups(call: Call, field: str, ids: list[str] | None, vpc_id: str) -> None:
    for group_id in ids or ():
        group = call.references.security_group(group_id)
        if group is None:
            raise invalid(field, f"security group {group_id} does not exist.")
        if group.vpc_id != vpc_id:
            raise invalid(field, f"security group {group_id} is not in VPC {vpc_id}.")


def _check_settings(level: str, field: str, settings: list[dict[str, str]] | None, version: str) -> None:
    """Parameter names are on the allow-list of their level and version; some values are restricted."""
    for setting in settings or ():
        name, value = setting["parameterName"], setting["parameterValue"]
        _check_name(level, field, name, version)
        if level == "cluster":
            _check_cluster_value(field, name, value, version)


def _check_name(level: str, field: str, name: str, version: str) -> None:
    if name not in SETTINGS[level]:
        raise invalid(field, f"{name} is not a custom setting that PCS allows for a {level}.")
    if version < (since := SINCE.get(level, {}).get(name, "")):
        raise invalid(field, f"{name} needs Slurm {since} or later, not {version}.")


def _check_cluster_value(field: str, name: str, value: str, version: str) -> None:
    words = {word.strip() for word in value.split(",")}
    if name == "AccountingStorageEnforce" and (unknown := words - ENFORCEABLE):
        raise invalid(field, f"AccountingStorageEnforce does not allow {', '.join(sorted(unknown))}.")
    if name == "MinJobAge" and not (value.isdecimal() and int(value) >= 5):
        raise invalid(field, f"MinJobAge must be at least 5 seconds, not {value}.")
    if name == "SchedulerParameters" and "enable_job_state_cache" in words and version >= "26.05":
        raise invalid(field, "enable_job_state_cache was removed in Slurm 26.05.")
    for word in sorted(words & VALUES_SINCE.get(name, {}).keys()):
        if version < (since := VALUES_SINCE[name][word]):
            raise invalid(field, f"{name} {word} needs Slurm {since} or later, not {version}.")


def _check_record(record: dict[str, str]) -> None:
    """A record has a Name or an active AutoDetect, and a GPU record without it has device files."""
    if record.get("AutoDetect", "off") != "off":
        return
    if "Name" not in record:
        raise invalid(_GRES, "a record needs Name or an active AutoDetect.")
    if record["Name"] == "gpu" and not {"File", "MultipleFiles"} & record.keys():
        raise invalid(_GRES, "a record of Name gpu needs File or MultipleFiles.")


def _check_gres(entry: str, found: list[dict[str, str]]) -> None:
    """An entry `name[:type][:count]` of Gres has a record of that name, type and at least that count."""
    name, *rest = entry.split(":")
    count = int(rest.pop()) if rest and rest[-1].isdecimal() else 1
    fitting = [record for record in found if record.get("Name", name) == name]
    if rest:
        fitting = [record for record in fitting if record.get("Type", rest[0]) == rest[0]]
    # A record without Count, or with AutoDetect, takes the number from the hardware.
    held = [int(record["Count"]) for record in fitting if "Count" in record]
    if not fitting or (len(held) == len(fitting) and sum(held) < count):
        raise invalid(_CUSTOM, f"Gres {entry} has no matching gres record.")


def _check_template(template: Parameters, group: Parameters) -> None:
    """A launch template together with the node group's other parameters."""
    field, interfaces = "customLaunchTemplate", template.get("NetworkInterfaces", [])
    if not group.get("amiId") and not template.get("ImageId"):
        raise invalid(field, "neither amiId nor the launch template names an AMI.")
    if template.get("SecurityGroups"):
        raise invalid(field, "security group names are not supported; use security group ids.")
    if interfaces and group.get("securityGroupIds"):
        raise invalid("securityGroupIds", "the launch template defines network interfaces; set their groups there.")
    if any(not interface.get("Groups") for interface in interfaces):
        raise invalid(field, "every network interface of the launch template needs Groups.")
    if problem := refused_tag_key(template):
        raise invalid(field, problem)
    option, market = group["purchaseOption"], template.get("InstanceMarketOptions", {}).get("MarketType")
    if market not in MARKETS[option]:
        wanted = " or ".join(name or "none" for name in MARKETS[option])
        raise invalid("purchaseOption", f"{option} needs MarketType {wanted} in the launch template, not {market}.")
    target = template.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    if option.startswith(("CAPACITY", "INTERRUPTIBLE")) and not target.get("CapacityReservationId"):
        raise invalid(field, f"{option} needs a CapacityReservationId as the template's target.")
    types, found = [config.get("instanceType") for config in group["instanceConfigs"]], template.get("InstanceType")
    for name in types:
        if name not in INSTANCE_TYPES:
            raise invalid("instanceConfigs", f"instance type {name} does not exist.")
        if problem := unsupported(name, interfaces):
            raise invalid(field, problem)
    if problem := unlike(types):
        raise invalid("instanceConfigs", f"instance types of a group are alike: {problem}")
    if option == "CAPACITY_BLOCK" and types != [found]:
        message = f"CAPACITY_BLOCK needs the template's InstanceType ({found}) alone, not {types}."
        raise invalid("instanceConfigs", message)
    if group.get("spotOptions") and option != "SPOT":
        raise invalid("spotOptions", f"only for purchaseOption SPOT, not {option}.")


def _check_block(references: References, group: Parameters, reservation_id: str) -> None:
    """The Capacity Block is active, in the zone of the subnets, and large enough for the group's maximum."""
    block = references.capacity_reservation(reservation_id)
    if block is None or block["State"] not in ("active", "scheduled"):
        raise invalid("customLaunchTemplate", f"capacity block {reservation_id} does not exist or has ended.")
    for subnet_id in group["subnetIds"]:
        if (zone := references.subnet(subnet_id).availability_zone) != block["AvailabilityZone"]:
            message = f"{subnet_id} is in {zone}, capacity block {reservation_id} in {block['AvailabilityZone']}."
            raise invalid("subnetIds", message)
    most, held = group["scalingConfiguration"]["maxInstanceCount"], block["TotalInstanceCount"]
    if most > held:
        message = f"maxInstanceCount {most} is more than the {held} instances of capacity block {reservation_id}."
        raise invalid("scalingConfiguration", message)
