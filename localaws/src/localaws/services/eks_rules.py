"""Validation of managed node groups: their parameters and the data of their launch templates.

Source: EKS API reference, CreateNodegroup and its types; EKS User Guide, "Customize managed nodes with launch
templates", "Create a managed node group with Capacity Blocks for ML", "Automatically repair nodes" (2026).
"""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from localaws.services.eks_store import invalid
from localaws.services.hardware import unsupported
from localaws.services.launch_templates import is_mime_multipart

Parameters = Mapping[str, Any]

RESERVED_LABELS = ("kubernetes.io/", "k8s.io/", "eks.amazonaws.com/")
OVERRIDE = ("nodeMonitoringCondition", "nodeUnhealthyReason", "minRepairWaitTimeMins", "repairAction")
# Members of a node group that a launch template replaces.
INSTEAD = ("diskSize", "remoteAccess")
OF_EKS_IMAGES = ("amiType", "version", "releaseVersion")


def check_request(group: Parameters) -> None:
    """Rules for the parameters alone: sizes, updates, repair, labels and taints."""
    scaling, update, repair = (group.get(name) or {} for name in ("scalingConfig", "updateConfig", "nodeRepairConfig"))
    if scaling and scaling.keys() < {"minSize", "maxSize", "desiredSize"}:
        raise invalid("scalingConfig needs minSize, maxSize and desiredSize, or none of them.")
    least, wanted, most = (scaling.get(name, 0) for name in ("minSize", "desiredSize", "maxSize"))
    if least > most:
        raise invalid(f"Minimum capacity {least} can't be greater than maximum size {most}.")
    if wanted < least:
        raise invalid(f"Minimum capacity {least} can't be greater than desired size {wanted}.")
    if wanted > most:
        raise invalid(f"desired capacity {wanted} can't be greater than max size {most}.")
    if update and len(update.keys() & {"maxUnavailable", "maxUnavailablePercentage"}) != 1:
        raise invalid("updateConfig needs one of maxUnavailable and maxUnavailablePercentage.")
    for name in ("maxUnhealthyNodeThreshold", "maxParallelNodesRepaired"):
        if {f"{name}Count", f"{name}Percentage"} <= repair.keys():
            raise invalid(f"nodeRepairConfig can have only one of {name}Count and {name}Percentage.")
    for number, override in enumerate(repair.get("nodeRepairConfigOverrides") or ()):
        if missing := [name for name in OVERRIDE if override.get(name) is None]:
            where = f"nodeRepairConfigOverrides[{number}]"
            raise invalid(f"{where} lacks {', '.join(missing)}; all four values must be specified.")
    for key in group.get("labels") or ():
        if any(prefix in key for prefix in RESERVED_LABELS):
            raise invalid(f"Label cannot contain reserved prefixes [{', '.join(RESERVED_LABELS)}]: {key}.")
    pairs = [(taint.get("key"), taint.get("effect")) for taint in group.get("taints") or ()]
    for key, effect in pairs:
        if not key or not effect:
            raise invalid("A taint needs a key and an effect.")
        if pairs.count((key, effect)) > 1:
            raise invalid(f"Duplicate taint {key} with effect {effect}.")


def check_template(data: Parameters, group: Parameters, *, given: bool) -> None:
    """Rules for the data of a launch template together with the parameters of its node group.

    `given` is whether the group has a launch template; without one, the data is empty.
    """
    if found := next(_forbidden(data), None):
        raise invalid(f"Launch template should not specify {found}.")
    for name in INSTEAD:
        if given and group.get(name):
            raise invalid(f"{name} must be specified within the launch template.")
    interfaces = data.get("NetworkInterfaces") or []
    if _groups(data) and any(interface.get("Groups") for interface in interfaces):
        raise invalid("Launch template has security groups on the instance and on network interfaces; one must go.")
    if data.get("InstanceType") and group.get("instanceTypes"):
        raise invalid("You cannot specify instance types in both launch template and request.")
    for name in instance_types(data, group):
        if name in INSTANCE_TYPES and (problem := unsupported(name, interfaces)):
            raise invalid(problem)
    _check_image(data, group)
    _check_market(data, group)


def _check_image(data: Parameters, group: Parameters) -> None:
    """The image is one of EKS's, chosen by the group, or a custom image in the launch template."""
    if data.get("ImageId"):
        if asked := [name for name in OF_EKS_IMAGES if group.get(name) not in (None, "CUSTOM")]:
            raise invalid(f"You cannot specify {', '.join(asked)} when the launch template has an image id.")
        if (group.get("warmPoolConfig") or {}).get("enabled"):
            raise invalid("Warm pools need an AMI of EKS, not a custom one.")
        return
    ami_type = str(group.get("amiType"))
    if ami_type == "CUSTOM":
        raise invalid("AMI type CUSTOM needs a launch template with an image id.")
    text = base64.b64decode(str(data.get("UserData") or ""))
    if text and not ami_type.startswith("BOTTLEROCKET") and not is_mime_multipart(text):
        raise invalid("User data was not in the MIME multipart format.")


def instance_types(data: Parameters, group: Parameters) -> list[str]:
    """The instance types that the group launches."""
    in_template = data.get("InstanceType")
    return [in_template] if in_template else list(group.get("instanceTypes") or ["t3.medium"])


def check_architecture(types: list[str], ami_type: str) -> None:
    """The instance types exist and have the image's architecture."""
    if ami_type == "CUSTOM":
        return
    architecture = "arm64" if "_ARM_64" in ami_type else "x86_64"
    for name in types:
        if name not in INSTANCE_TYPES:
            raise invalid(f"The following supplied instance types do not exist: [{name}].")
        if architecture not in INSTANCE_TYPES[name]["ProcessorInfo"]["SupportedArchitectures"]:
            raise invalid(f"[{name}] is not a valid instance type for requested amiType {ami_type}.")


def check_release(release: str, version: str, ami_type: str) -> None:
    """A release of AL2023 images is `<Kubernetes patch version>-<date>`, of the group's minor version."""
    wanted = rf"{re.escape(version)}\.\d+-\d{{8}}"
    if ami_type.startswith("AL2023") and not re.fullmatch(wanted, release):
        raise invalid(f"Requested release version {release} is not valid for kubernetes version {version}.")


def check_newer(old: str, new: str) -> None:
    """Releases of images go forward: 1.35.6-20260714 never follows 1.35.7-20260801."""
    if _release_date(new) < _release_date(old):
        raise invalid(f"Requested release version {new} is older than {old}; a node group cannot be rolled back.")


def _release_date(release: str) -> str:
    return release.rpartition("-")[2]


def _forbidden(data: Parameters) -> Iterator[str]:
    """Members that belong to the node group, not to its launch template."""
    for interface in data.get("NetworkInterfaces") or ():
        if interface.get("SubnetId"):
            yield f"a subnet in its network interfaces ({interface['SubnetId']})"
    if data.get("IamInstanceProfile"):
        yield "an instance profile: the noderole in your request will be used to construct one"
    if data.get("InstanceInitiatedShutdownBehavior"):
        yield "an instance initiated shutdown behavior"
    if str((data.get("HibernationOptions") or {}).get("Configured", "")).lower() == "true":
        yield "hibernation options"
    if _market(data) == "spot":
        yield "spot market options: capacityType SPOT asks for them"


def _check_market(data: Parameters, group: Parameters) -> None:
    """CAPACITY_BLOCK and the template's market type match; a template with a block also has the instance type."""
    is_block = group.get("capacityType") == "CAPACITY_BLOCK"
    if is_block != (_market(data) == "capacity-block"):
        message = f"capacityType {group.get('capacityType') or 'ON_DEMAND'} with MarketType {_market(data)}"
        raise invalid(f"{message}: CAPACITY_BLOCK and MarketType capacity-block need each other.")
    if is_block and not reservation_id(data):
        raise invalid("CAPACITY_BLOCK needs a CapacityReservationId as target in the launch template.")
    if is_block and not data.get("InstanceType"):
        raise invalid("CAPACITY_BLOCK needs the instance type in the launch template.")


def reservation_id(data: Parameters) -> str | None:
    """The capacity reservation that a launch template targets by id."""
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    found: str | None = target.get("CapacityReservationId")
    return found


def _groups(data: Parameters) -> list[str]:
    return [*(data.get("SecurityGroupIds") or ()), *(data.get("SecurityGroups") or ())]


def _market(data: Parameters) -> str | None:
    found: str | None = (data.get("InstanceMarketOptions") or {}).get("MarketType")
    return found
