"""Validation of PCS requests: versions, settings, sizes and launch templates.

Source: AWS PCS User Guide and API Reference (September-October 2026).
"""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from localaws.records import records
from localaws.services.launch_templates import is_mime_multipart, refused_tag_key
from localaws.services.service import Refusal

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
_CLUSTER_LISTS = {
    "cluster": "slurmCustomSettings",
    "slurmdbd": "slurmdbdCustomSettings",
    "cgroup": "cgroupCustomSettings",
}
SINCE: dict[str, dict[str, str]] = _PCS["since"]["settings"]
"""First version of Slurm with which PCS takes a setting, by level and name."""
VALUES_SINCE: dict[str, dict[str, str]] = _PCS["since"]["values"]
"""First version of Slurm with which PCS takes a value of a cluster's setting."""
ENFORCEABLE = frozenset({"associations", "limits", "qos", "safe", "nosteps", "nojobs"})

# Market types of a launch template that match a purchase option; None is a template without one.
MARKETS: dict[str, tuple[str | None, ...]] = {
    "ONDEMAND": (None, "on-demand"),
    "SPOT": (None, "spot"),
    "CAPACITY_BLOCK": ("capacity-block",),
    "INTERRUPTIBLE_CAPACITY_RESERVATION": ("interruptible-capacity-reservation",),
}


def invalid(field: str, message: str) -> Refusal:
    """A ValidationException about one field."""
    listed = [{"name": field, "message": message}]
    return Refusal("ValidationException", f"{field}: {message}", reason="fieldValidationFailed", fieldList=listed)


def quota(message: str, kind: str, resource_id: str) -> Refusal:
    """A ServiceQuotaExceededException."""
    members = {"serviceCode": "pcs", "resourceType": kind, "resourceId": resource_id}
    return Refusal("ServiceQuotaExceededException", message, **members)


def conflict(message: str, kind: str, resource_id: str) -> Refusal:
    """A ConflictException."""
    return Refusal("ConflictException", message, resourceType=kind, resourceId=resource_id)


def missing(kind: str, identifier: str) -> Refusal:
    """A ResourceNotFoundException."""
    message = f"{kind} {identifier} was not found."
    return Refusal("ResourceNotFoundException", message, resourceId=identifier, resourceType=kind)


def check_new_version(version: str, today: datetime.date) -> None:
    """A new cluster has a version in the API's list that has not reached its end of life."""
    if version not in SLURM_VERSIONS:
        raise invalid("scheduler.version", f"Slurm {version} is not supported. Supported: {', '.join(SLURM_VERSIONS)}.")
    if today > SLURM_VERSIONS[version]:
        raise invalid("scheduler.version", f"Slurm {version} reached its end of life on {SLURM_VERSIONS[version]}.")


def check_upgrade(current: str, target: str) -> None:
    """A cluster can only upgrade, along the listed paths."""
    if target != current and target not in UPGRADES[current]:
        reachable = ", ".join(UPGRADES[current]) or "none"
        raise invalid(
            "scheduler.version", f"a cluster at Slurm {current} cannot move to {target}. Reachable: {reachable}."
        )


def check_cluster_configuration(configuration: Parameters, version: str) -> None:
    """Accounting, REST and the custom settings of a cluster."""
    if configuration.get("accounting", {}).get("defaultPurgeTimeInDays") == 0:
        raise invalid(
            "slurmConfiguration.accounting.defaultPurgeTimeInDays", "0 is not valid; -1 keeps records for ever."
        )
    if configuration.get("slurmRest", {}).get("mode") == "STANDARD" and version < "25.05":
        raise invalid("slurmConfiguration.slurmRest", f"the Slurm REST API needs Slurm 25.05 or later, not {version}.")
    for level, name in _CLUSTER_LISTS.items():
        check_settings(level, f"slurmConfiguration.{name}", configuration.get(name), version)


def check_group_configuration(configuration: Parameters, version: str) -> None:
    """The custom settings, gres records and idle time of a compute node group."""
    if "scaleDownIdleTimeInSeconds" in configuration and version < "25.11":
        raise invalid("slurmConfiguration.scaleDownIdleTimeInSeconds", f"needs Slurm 25.11 or later, not {version}.")
    settings = configuration.get("slurmCustomSettings")
    check_settings("compute node group", "slurmConfiguration.slurmCustomSettings", settings, version)
    records = configuration.get("gresCustomSettings")
    for record in records or ():
        for key in record:
            _check_name("gres", "slurmConfiguration.gresCustomSettings", key, version)
        _check_record(record)
    if sum(record.get("Name") == "gpu" or "AutoDetect" in record for record in records or ()) > 1:
        raise invalid("slurmConfiguration.gresCustomSettings", "at most one record may be of GPUs.")
    gres = next((setting["parameterValue"] for setting in settings or () if setting["parameterName"] == "Gres"), None)
    if gres:
        _check_gres(gres, records or [])


def check_settings(level: str, field: str, settings: list[dict[str, str]] | None, version: str) -> None:
    """Parameter names are on the allow-list of their level and version; some values are restricted."""
    for setting in settings or ():
        name, value = setting["parameterName"], setting["parameterValue"]
        _check_name(level, field, name, version)
        if level == "cluster":
            _check_cluster_value(field, name, value, version)


def refuse_empty_lists(configuration: Parameters) -> None:
    """PCS refuses an empty list of custom settings when there are no settings to clear."""
    for name, value in configuration.items():
        if value == []:
            raise invalid(f"slurmConfiguration.{name}", "the list is empty; leave it out.")


def check_scaling(scaling: Mapping[str, int], size: str, others: Iterable[int], cluster_id: str) -> None:
    """Min <= max, and the maxima of all groups of a cluster fit its size."""
    low, high = scaling["minInstanceCount"], scaling["maxInstanceCount"]
    if low > high:
        raise invalid("scalingConfiguration", f"minInstanceCount {low} is greater than maxInstanceCount {high}.")
    total = high + sum(others)
    if total > MAX_NODES[size]:
        message = (
            f"The compute node groups would hold up to {total} instances; a {size} cluster manages {MAX_NODES[size]}."
        )
        raise quota(message, "AWS::PCS::Cluster", cluster_id)


def check_template(template: Parameters, group: Parameters) -> None:
    """Rules for a custom launch template together with the node group's other parameters."""
    field = "customLaunchTemplate"
    interfaces = template.get("NetworkInterfaces", [])
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
    _check_market(template, group)


def check_user_data(text: bytes) -> None:
    """User data must be MIME multipart, because PCS adds its own part to it."""
    if text and not is_mime_multipart(text):
        raise invalid("customLaunchTemplate", "the user data of the launch template is not in MIME multi-part format.")


def check_role(name: str, path: str) -> None:
    """PCS accepts roles under the path /aws-pcs/ or with a name that starts with AWSPCS."""
    if path != "/aws-pcs/" and not name.startswith("AWSPCS"):
        message = (
            f"role {path}{name} of the instance profile needs the path /aws-pcs/ or a name that starts with AWSPCS."
        )
        raise invalid("iamInstanceProfileArn", message)


def _check_market(template: Parameters, group: Parameters) -> None:
    option = group.get("purchaseOption", "ONDEMAND")
    market = template.get("InstanceMarketOptions", {}).get("MarketType")
    if market not in MARKETS[option]:
        wanted = " or ".join(name or "none" for name in MARKETS[option])
        raise invalid("purchaseOption", f"{option} needs MarketType {wanted} in the launch template, not {market}.")
    if option in ("CAPACITY_BLOCK", "INTERRUPTIBLE_CAPACITY_RESERVATION"):
        target = template.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
        if not target.get("CapacityReservationId"):
            raise invalid("customLaunchTemplate", f"{option} needs a CapacityReservationId as the template's target.")
    types = [config.get("instanceType") for config in group["instanceConfigs"]]
    if option == "CAPACITY_BLOCK" and types != [template.get("InstanceType")]:
        found = template.get("InstanceType")
        raise invalid(
            "instanceConfigs", f"CAPACITY_BLOCK needs the template's InstanceType ({found}) alone, not {types}."
        )
    if group.get("spotOptions") and option != "SPOT":
        raise invalid("spotOptions", f"only for purchaseOption SPOT, not {option}.")


def _check_name(level: str, field: str, name: str, version: str) -> None:
    if name not in SETTINGS[level]:
        raise invalid(field, f"{name} is not a custom setting that PCS allows for a {level}.")
    since = SINCE.get(level, {}).get(name, "")
    if version < since:
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
        raise invalid("slurmConfiguration.gresCustomSettings", "a record needs Name or an active AutoDetect.")
    if record["Name"] == "gpu" and not {"File", "MultipleFiles"} & record.keys():
        raise invalid("slurmConfiguration.gresCustomSettings", "a record of Name gpu needs File or MultipleFiles.")


def _check_gres(gres: str, records: list[dict[str, str]]) -> None:
    """Every Gres entry `name[:type][:count]` has a record of that name, type and at least that count."""
    for entry in gres.split(","):
        name, *rest = entry.split(":")
        count = int(rest.pop()) if rest and rest[-1].isdecimal() else 1
        fitting = [record for record in records if record.get("Name", name) == name]
        if rest:
            fitting = [record for record in fitting if record.get("Type", rest[0]) == rest[0]]
        # A record without Count, or with AutoDetect, takes the number from the hardware.
        held = [int(record["Count"]) for record in fitting if "Count" in record]
        if not fitting or (len(held) == len(fitting) and sum(held) < count):
            raise invalid("slurmConfiguration.slurmCustomSettings", f"Gres {entry} has no matching gres record.")
