"""Managed node groups of the embedded EKS. No instance is launched; launch settings are checked and recorded."""

import uuid
from typing import Any, NamedTuple

from localaws.services import eks_network as network
from localaws.services import eks_rules as rules
from localaws.services.eks_access import ENTRY, add_entry
from localaws.services.eks_clusters import CLUSTER
from localaws.services.eks_store import IMAGE_RELEASES, invalid, refused
from localaws.services.launch_templates import refused_tag_key
from localaws.services.references import References
from localaws.services.store import Call, Item, Kind, Rule
from localaws.services.trust import allows_service

DEFAULT_SCALING = {"minSize": 1, "maxSize": 2, "desiredSize": 2}
DEFAULT_AMI_TYPE = "AL2023_x86_64_STANDARD"
DEFAULT_DISK_GIB = 20
NODE_GROUPS = ["system:nodes"]
NODE_USER = "system:node:{{EC2PrivateDNSName}}"


class Launch(NamedTuple):
    """A version of a launch template."""

    template: Any
    version: str
    data: dict[str, Any]

    @property
    def shown(self) -> dict[str, str]:
        """The launch template as DescribeNodegroup returns it."""
        return {"id": self.template.id, "name": self.template.name, "version": self.version}


def _describe(call: Call) -> None:
    """What a description adds to the request. Members without a value are left out."""
    request, launch, number = call.request, _launch(call), str(uuid.uuid4())
    data = launch.data if launch else {}
    ami_type = "CUSTOM" if data.get("ImageId") else request.get("amiType") or DEFAULT_AMI_TYPE
    changes = {
        "path": number,
        "version": call.within["version"],
        "amiType": ami_type,
        "releaseVersion": _release(call.within, launch, request, ami_type),
        "updateConfig": update_settings(request.get("updateConfig")),
        "instanceTypes": None if data.get("InstanceType") else rules.instance_types(data, request),
        "launchTemplate": launch.shown if launch else None,
        "diskSize": None if launch else request.get("diskSize") or DEFAULT_DISK_GIB,
        "resources": {"autoScalingGroups": [{"name": f"eks-{request['nodegroupName']}-{number}"}]},
    }
    call.new = {name: value for name, value in {**call.new, **changes}.items() if value is not None}


def _create_access_entry(call: Call) -> None:
    """Create the access entry of the nodes' role, unless the cluster uses only the aws-auth ConfigMap."""
    role, cluster = call.request["nodeRole"], call.within
    if cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP" or call.store.find(ENTRY, role, cluster):
        return
    entry = {"clusterName": cluster.id, "type": "EC2_LINUX", "username": NODE_USER, "kubernetesGroups": NODE_GROUPS}
    add_entry(call.store, cluster, role, **entry).owned["of_nodegroups"] = True


def _delete_access_entry(call: Call) -> None:
    """Delete the access entry of the role with the last group of that role."""
    role = call.target["nodeRole"]
    entry = call.store.find(ENTRY, role, call.parent)
    shared = any(other["nodeRole"] == role for other in call.others)
    if entry and entry.owned.get("of_nodegroups") and not shared:
        call.store.remove(entry)


NODEGROUP = Kind(
    noun="Nodegroup",
    address="nodegroupName",
    arn="nodegroup/{clusterName}/{nodegroupName}/{path}",
    parent=CLUSTER,
    active="Create Upgrade",
    active_itself="Change Upgrade Delete",
    defaults={"capacityType": "ON_DEMAND", "scalingConfig": DEFAULT_SCALING},
    describe=_describe,
    made=_create_access_entry,
    removed=_delete_access_entry,
    missing="No node group {id} found in cluster {parent}.",
    taken="NodeGroup already exists with name {id} and cluster name {parent}",
    busy="Nodegroup {name} is {status}, not ACTIVE.",
)


def settings_after(call: Call) -> dict[str, Any]:
    """The members that UpdateNodegroupConfig changes."""
    request, group = call.request, call.old
    settings = ("updateConfig", "nodeRepairConfig", "warmPoolConfig")
    changes: dict[str, Any] = {name: request[name] for name in settings if name in request}
    changes["scalingConfig"] = {**group["scalingConfig"], **(request.get("scalingConfig") or {})}
    changes["labels"] = _merged_labels(group.get("labels", {}), request.get("labels") or {})
    changes["taints"] = _merged_taints(group.get("taints", []), request.get("taints") or {})
    rules.check_request(changes)
    if "updateConfig" in changes:
        changes["updateConfig"] = update_settings(changes["updateConfig"])
    return changes


def release_after(call: Call) -> dict[str, Any]:
    """The members that UpdateNodegroupVersion changes: launch template version, or release of the EKS images."""
    group, request, launch = call.old, call.request, _next_launch(call)
    _same_version(call)
    ami_type = group["amiType"]
    if bool(launch and launch.data.get("ImageId")) != (ami_type == "CUSTOM"):
        raise invalid("A node group cannot change between an image of EKS and a custom one.")
    release = _release(call.within, launch, request, ami_type)
    asked: dict[str, Any] = {name: request[name] for name in ("version", "releaseVersion") if name in request}
    # a release alone is held against the group's version, not the cluster's (eksctl issue 7976)
    alone = "releaseVersion" in asked and "version" not in asked
    changes = {"version": group["version"] if alone else call.within["version"], "releaseVersion": release}
    asked |= {"amiType": ami_type, "instanceTypes": group.get("instanceTypes")}
    _check_launch(call, launch, {**group, **changes}, asked)
    if release and ami_type.startswith("AL2023"):
        rules.check_newer(group["releaseVersion"], release)
    return {**changes, "launchTemplate": launch.shown if launch else None}


# refusals


def _node_role(call: Call) -> None:
    role = call.references.role(call.request["nodeRole"])
    if role is None or not allows_service(role, "ec2.amazonaws.com"):
        raise invalid(f"Role {call.request['nodeRole']} does not exist or does not trust ec2.amazonaws.com.")


def _subnets(call: Call) -> None:
    vpc_id = call.within["resourcesVpcConfig"]["vpcId"]
    if not call.request["subnets"]:
        raise invalid("A node group needs at least one subnet.")
    for subnet_id in call.request["subnets"]:
        if network.subnet_of(call.references, subnet_id).vpc_id != vpc_id:
            raise invalid(f"The subnet {subnet_id} is not in VPC {vpc_id} of the cluster.")


def _same_version(call: Call) -> None:
    if (asked := call.request.get("version")) not in (None, call.within["version"]):
        raise invalid(f"Version {asked} must equal that of the cluster, {call.within['version']}.")


def _check_launch(call: Call, launch: Launch | None, group: dict[str, Any], asked: dict[str, Any]) -> None:
    """Check what `group` launches. `asked` are the request's parameters besides the launch template."""
    data, ami_type = launch.data if launch else {}, group["amiType"]
    rules.check_template(data, {**asked, "capacityType": group["capacityType"]}, given=launch is not None)
    if ami_type != "CUSTOM" and group.get("releaseVersion"):
        rules.check_release(group["releaseVersion"], group["version"], ami_type)
    # EKS tags the instances with this key
    if problem := refused_tag_key(data, [f"kubernetes.io/cluster/{call.within.id}"]):
        raise refused(problem)
    types = rules.instance_types(data, group)
    rules.check_architecture(types, ami_type)
    interfaces = data.get("NetworkInterfaces") or ()
    ids = [*(data.get("SecurityGroupIds") or ()), *(it for found in interfaces for it in found.get("Groups") or ())]
    network.check_security_groups(call.references, ids, call.within["resourcesVpcConfig"]["vpcId"])
    if wanted := rules.reservation_id(data):
        _check_reservation(call.references, wanted, types, group)


def _check_reservation(references: References, wanted: str, types: list[str], group: dict[str, Any]) -> None:
    """Refusal unless the reservation is active and has the instance type and the zone of the subnets."""
    found = references.capacity_reservation(wanted)
    if found is None or found["State"] not in ("active", "scheduled"):
        raise invalid(f"Capacity reservation {wanted} does not exist or has ended.")
    if types != [found["InstanceType"]]:
        raise invalid(f"Capacity reservation {wanted} is for {found['InstanceType']}, not {', '.join(types)}.")
    for subnet_id in group["subnets"]:
        zone = references.subnet(subnet_id).availability_zone
        if zone != found["AvailabilityZone"]:
            message = f"The subnet {subnet_id} is in {zone}, capacity reservation {wanted} in "
            raise invalid(f"{message}{found['AvailabilityZone']}.")


RULES = (
    Rule("CreateNodegroup", lambda call: rules.check_request(call.request), "API Reference, CreateNodegroup"),
    Rule("CreateNodegroup", _node_role, "User Guide, node IAM role"),
    Rule("CreateNodegroup", _subnets, "API Reference, CreateNodegroup"),
    Rule("CreateNodegroup", _same_version, "API Reference, CreateNodegroup"),
    Rule(
        "CreateNodegroup",
        lambda call: _check_launch(call, _launch(call), call.new, call.request),
        "User Guide, customize managed nodes with launch templates; Capacity Blocks for ML",
    ),
)


def _launch(call: Call) -> Launch | None:
    spec = call.request.get("launchTemplate")
    return launch_of(call.references, spec) if spec else None


def _next_launch(call: Call) -> Launch | None:
    """The new launch template version of the group, or the present one. The template cannot change."""
    old, asked = call.old.get("launchTemplate"), call.request.get("launchTemplate")
    if asked is None:
        return launch_of(call.references, {"id": old["id"], "version": old["version"]}) if old else None
    if old is None:
        raise invalid("A node group that was created without a launch template cannot take one.")
    launch = launch_of(call.references, asked)
    if launch.template.id != old["id"]:
        message = f"The launch template of the node group is {old['id']}; it cannot change to {launch.template.id}."
        raise invalid(message)
    return launch


def launch_of(references: References, spec: dict[str, str]) -> Launch:
    """The launch template version that a request names; Refusal when it does not exist."""
    if ("id" in spec) == ("name" in spec):
        raise invalid("You must specify either the launch template ID or the launch template name, but not both.")
    named = spec.get("id") or spec["name"]
    found = references.launch_template(named) if "id" in spec else references.launch_template_named(named)
    if found is None:
        raise invalid(f"Launch template {named} does not exist.")
    number, latest = spec.get("version") or "$Default", len(found.versions)
    if number not in ("$Latest", "$Default") and not (number.isdecimal() and 1 <= int(number) <= latest):
        raise invalid(f"Launch template {named} has no version {number}; the latest is {latest}.")
    version = found.get_version(number)
    return Launch(found, str(version.number), version.data)


def _release(cluster: Item, launch: Launch | None, request: dict[str, Any], ami_type: str) -> str | None:
    """The release of the group's images: the custom image, the requested release or the newest known one."""
    if launch and launch.data.get("ImageId"):
        return str(launch.data["ImageId"])
    if request.get("releaseVersion"):
        return str(request["releaseVersion"])
    known = ami_type.startswith("AL2023")
    return IMAGE_RELEASES[cluster["version"]] if known else None


def update_settings(asked: dict[str, Any] | None) -> dict[str, Any]:
    """The settings for updates, one node at a time by default."""
    return {"updateStrategy": "DEFAULT", **(asked or {"maxUnavailable": 1})}


def _merged_labels(labels: dict[str, str], change: dict[str, Any]) -> dict[str, str]:
    removed = change.get("removeLabels") or ()
    kept = {key: value for key, value in labels.items() if key not in removed}
    return {**kept, **(change.get("addOrUpdateLabels") or {})}


def _merged_taints(taints: list[dict[str, str]], change: dict[str, Any]) -> list[dict[str, str]]:
    """The taints after a change. Key and effect identify a taint."""
    added = change.get("addOrUpdateTaints") or []
    gone = {(taint["key"], taint["effect"]) for taint in [*added, *(change.get("removeTaints") or ())]}
    return [*(taint for taint in taints if (taint["key"], taint["effect"]) not in gone), *added]
