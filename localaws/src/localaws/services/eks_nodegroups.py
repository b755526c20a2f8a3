"""Managed node groups of the embedded EKS. No instance is launched; launch settings are checked and recorded."""

import secrets
import uuid
from typing import Any, NamedTuple

from moto.core.responses import ActionResult

from localaws.services import eks_network as network
from localaws.services import eks_rules as rules
from localaws.services.eks_actions import EksActions
from localaws.services.eks_store import IMAGE_RELEASES, Cluster, Item, in_use, invalid, refused
from localaws.services.launch_templates import refused_tag_key
from localaws.services.references import References
from localaws.services.trust import allows_service

DEFAULT_SCALING = {"minSize": 1, "maxSize": 2, "desiredSize": 2}
DEFAULT_AMI_TYPE = "AL2023_x86_64_STANDARD"
DEFAULT_DISK_GIB = 20
NODE_GROUPS = ["system:nodes"]
NODE_USER = "system:node:{{EC2PrivateDNSName}}"
_KEPT = ("labels", "taints", "nodeRepairConfig", "warmPoolConfig", "remoteAccess")


class Launch(NamedTuple):
    """A version of a launch template."""

    template: Any
    version: str
    data: dict[str, Any]

    @property
    def shown(self) -> dict[str, str]:
        """The launch template as DescribeNodegroup returns it."""
        return {"id": self.template.id, "name": self.template.name, "version": self.version}


class NodegroupActions(EksActions):
    """The actions on managed node groups."""

    def create_nodegroup(self) -> ActionResult:
        """Validate the request, then create the group and the access entry of its role."""
        cluster, request, references = self.active_cluster(), self.params, self.eks.references
        name = request["nodegroupName"]
        if self.eks.find("nodegroup", cluster, name):
            raise in_use(f"NodeGroup already exists with name {name} and cluster name {cluster['name']}")
        rules.check_request(request)
        role = references.role(request["nodeRole"])
        if role is None or not allows_service(role, "ec2.amazonaws.com"):
            raise invalid(f"Role {request['nodeRole']} does not exist or does not trust ec2.amazonaws.com.")
        self._check_subnets(cluster, request["subnets"])
        launch = launch_of(references, request["launchTemplate"]) if request.get("launchTemplate") else None
        group = {**self._new_group(cluster, launch), "nodegroupName": name}
        self._check_version(cluster)
        self._check_launch(cluster, launch, group, request)
        path = f"nodegroup/{cluster['name']}/{name}/{uuid.uuid4()}"
        group["nodegroupArn"] = self.eks.arn("eks", path)
        group["resources"] = {"autoScalingGroups": [{"name": f"eks-{name}-{path[-36:]}"}]}
        item = self.eks.store(Item("nodegroup", group), request.get("tags"))
        self._create_access_entry(cluster, request["nodeRole"])
        return ActionResult({"nodegroup": self.eks.view(item)})

    def describe_nodegroup(self) -> ActionResult:
        """One node group."""
        return ActionResult({"nodegroup": self.eks.view(self.child("nodegroup", "nodegroupName"))})

    def list_nodegroups(self) -> ActionResult:
        """The names of a cluster's node groups."""
        groups = self.eks.all("nodegroup", self.requested_cluster())
        return self.page("nodegroups", [group["nodegroupName"] for group in groups])

    def update_nodegroup_config(self) -> ActionResult:
        """Update sizes, labels, taints, and the settings for updates, repair and the warm pool."""
        group = self._active_group()
        changes = self.given_parameters("updateConfig", "nodeRepairConfig", "warmPoolConfig")
        changes["scalingConfig"] = {
            **group["scalingConfig"],
            **self.given_parameters("scalingConfig").get("scalingConfig", {}),
        }
        changes["labels"] = _merged_labels(group.description.get("labels", {}), self.params.get("labels") or {})
        changes["taints"] = _merged_taints(group.description.get("taints", []), self.params.get("taints") or {})
        rules.check_request(changes)
        if "updateConfig" in changes:
            changes["updateConfig"] = _update(changes["updateConfig"])
        group.change(changes)
        return self.update_response("ConfigUpdate")

    def update_nodegroup_version(self) -> ActionResult:
        """Change the launch template version or the release of the EKS images."""
        cluster, group, request = self.active_cluster(), self._active_group(), self.params
        launch = self._next_launch(group)
        self._check_version(cluster)
        ami_type = group["amiType"]
        if bool(launch and launch.data.get("ImageId")) != (ami_type == "CUSTOM"):
            raise invalid("A node group cannot change between an image of EKS and a custom one.")
        release = _release(cluster, launch, request, ami_type)
        asked = {**self.given_parameters("version", "releaseVersion"), "amiType": ami_type}
        asked["instanceTypes"] = group.description.get("instanceTypes")
        # a release alone is held against the group's version, not the cluster's (eksctl issue 7976)
        version = group["version"] if "releaseVersion" in asked and "version" not in asked else cluster["version"]
        changed = {**group.description, "version": version, "releaseVersion": release}
        self._check_launch(cluster, launch, changed, asked)
        if release and ami_type.startswith("AL2023"):
            rules.check_newer(group["releaseVersion"], release)
        shown = launch.shown if launch else None
        group.change({"version": version, "releaseVersion": release, "launchTemplate": shown})
        return self.update_response("VersionUpdate", Version=version)

    def delete_nodegroup(self) -> ActionResult:
        """Delete a node group. The access entry of its role goes with the last group of that role."""
        cluster = self.requested_cluster()
        group = self._active_group()
        view = {**self.eks.view(group), "status": "DELETING"}
        self.eks.remove([group])
        entry = self.eks.find("access-entry", cluster, group["nodeRole"])
        shared = any(other["nodeRole"] == group["nodeRole"] for other in self.eks.all("nodegroup", cluster))
        if entry and entry.description.get("ofNodegroups") and not shared:
            self.eks.remove([entry])
        return ActionResult({"nodegroup": view})

    def _active_group(self) -> Item:
        group = self.child("nodegroup", "nodegroupName")
        if (status := group.status) != "ACTIVE":
            raise in_use(f"Nodegroup {group['nodegroupName']} is {status}, not ACTIVE.")
        return group

    def _new_group(self, cluster: Cluster, launch: Launch | None) -> dict[str, Any]:
        """The description of the new group without name and ARN."""
        request = self.params
        data = launch.data if launch else {}
        ami_type = "CUSTOM" if data.get("ImageId") else request.get("amiType") or DEFAULT_AMI_TYPE
        description = {
            **self.given_parameters(*_KEPT),
            "clusterName": cluster["name"],
            "version": cluster["version"],
            "releaseVersion": _release(cluster, launch, request, ami_type),
            "capacityType": request.get("capacityType") or "ON_DEMAND",
            "scalingConfig": request.get("scalingConfig") or DEFAULT_SCALING,
            "updateConfig": _update(request.get("updateConfig")),
            "instanceTypes": None if data.get("InstanceType") else rules.instance_types(data, request),
            "subnets": request["subnets"],
            "amiType": ami_type,
            "nodeRole": request["nodeRole"],
            "launchTemplate": launch.shown if launch else None,
            "diskSize": None if launch else request.get("diskSize") or DEFAULT_DISK_GIB,
        }
        return {name: value for name, value in description.items() if value is not None}

    def _check_subnets(self, cluster: Cluster, ids: list[str]) -> None:
        vpc_id = cluster["resourcesVpcConfig"]["vpcId"]
        if not ids:
            raise invalid("A node group needs at least one subnet.")
        for subnet_id in ids:
            if network.subnet_of(self.eks.references, subnet_id).vpc_id != vpc_id:
                raise invalid(f"The subnet {subnet_id} is not in VPC {vpc_id} of the cluster.")

    def _check_version(self, cluster: Cluster) -> None:
        if (asked := self.params.get("version")) not in (None, cluster["version"]):
            raise invalid(f"Version {asked} must equal that of the cluster, {cluster['version']}.")

    def _check_launch(
        self, cluster: Cluster, launch: Launch | None, group: dict[str, Any], asked: dict[str, Any]
    ) -> None:
        """Check what `group` launches. `asked` are the request's parameters besides the launch template."""
        data, ami_type = launch.data if launch else {}, group["amiType"]
        rules.check_template(data, {**asked, "capacityType": group["capacityType"]}, given=launch is not None)
        if ami_type != "CUSTOM" and group.get("releaseVersion"):
            rules.check_release(group["releaseVersion"], group["version"], ami_type)
        # EKS tags the instances with this key
        if problem := refused_tag_key(data, [f"kubernetes.io/cluster/{cluster['name']}"]):
            raise refused(problem)
        types = rules.instance_types(data, group)
        rules.check_architecture(types, ami_type)
        interfaces = data.get("NetworkInterfaces") or ()
        ids = [*(data.get("SecurityGroupIds") or ()), *(it for found in interfaces for it in found.get("Groups") or ())]
        network.check_security_groups(self.eks.references, ids, cluster["resourcesVpcConfig"]["vpcId"])
        if wanted := rules.reservation_id(data):
            self._check_reservation(wanted, types, group)

    def _check_reservation(self, wanted: str, types: list[str], group: dict[str, Any]) -> None:
        """Refusal unless the reservation is active and has the instance type and the zone of the subnets."""
        found = self.eks.references.capacity_reservation(wanted)
        if found is None or found["State"] not in ("active", "scheduled"):
            raise invalid(f"Capacity reservation {wanted} does not exist or has ended.")
        if types != [found["InstanceType"]]:
            raise invalid(f"Capacity reservation {wanted} is for {found['InstanceType']}, not {', '.join(types)}.")
        for subnet_id in group["subnets"]:
            zone = self.eks.references.subnet(subnet_id).availability_zone
            if zone != found["AvailabilityZone"]:
                message = f"The subnet {subnet_id} is in {zone}, capacity reservation {wanted} in "
                raise invalid(f"{message}{found['AvailabilityZone']}.")

    def _next_launch(self, group: Item) -> Launch | None:
        """The new launch template version of the group, or the present one. The template cannot change."""
        old, asked = group.description.get("launchTemplate"), self.params.get("launchTemplate")
        if asked is None:
            return launch_of(self.eks.references, {"id": old["id"], "version": old["version"]}) if old else None
        if old is None:
            raise invalid("A node group that was created without a launch template cannot take one.")
        launch = launch_of(self.eks.references, asked)
        if launch.template.id != old["id"]:
            message = f"The launch template of the node group is {old['id']}; it cannot change to {launch.template.id}."
            raise invalid(message)
        return launch

    def _create_access_entry(self, cluster: Cluster, role: str) -> None:
        """Create the access entry of the nodes' role, unless the cluster uses only the aws-auth ConfigMap."""
        if cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
            return
        if self.eks.find("access-entry", cluster, role):
            return
        path = f"access-entry/{cluster['name']}/role/{self.current_account}/{role.rpartition('/')[2]}"
        entry = {
            "clusterName": cluster["name"],
            "principalArn": role,
            "accessEntryArn": self.eks.arn("eks", f"{path}/{secrets.token_hex(16)}"),
            "type": "EC2_LINUX",
            "username": NODE_USER,
            "kubernetesGroups": NODE_GROUPS,
            "ofNodegroups": True,
        }
        self.eks.store(Item("access-entry", entry), None)


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


def _release(cluster: Cluster, launch: Launch | None, request: dict[str, Any], ami_type: str) -> str | None:
    """The release of the group's images: the custom image, the requested release or the newest known one."""
    if launch and launch.data.get("ImageId"):
        return str(launch.data["ImageId"])
    if request.get("releaseVersion"):
        return str(request["releaseVersion"])
    known = ami_type.startswith("AL2023")
    return IMAGE_RELEASES[cluster["version"]] if known else None


def _update(asked: dict[str, Any] | None) -> dict[str, Any]:
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
