"""AWS::EKS::Cluster and Nodegroup. The API checks references and limits; its errors become status reasons."""

import time
from collections.abc import Callable
from typing import Any

from localaws.handlers.common import retag, undo_on_failure
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    Untouched,
    changed,
    handler,
    lower_first,
    pick,
    tag_map,
)
from localaws.services.eks_store import LOG_TYPES

_WAIT_SECONDS = 60.0
# Values of a cluster when the template no longer sets the property.
_CLUSTER_DEFAULTS: dict[str, Any] = {
    "ControlPlaneScalingConfig": {"Tier": "standard"},
    "DeletionProtection": False,
    "Logging": {"ClusterLogging": {"EnabledTypes": []}},
    "UpgradePolicy": {"SupportType": "EXTENDED"},
    "ZonalShiftConfig": {"Enabled": False},
}
_COMPONENTS = ("KubeApiServerConfig", "KubeControllerManagerConfig", "KubeSchedulerConfig")
_AUTO_MODE = ("ComputeConfig", "KubernetesNetworkConfig", "StorageConfig")
# Members of ResourcesVpcConfig that form one update, with EKS's defaults.
_VPC_PARTS: tuple[dict[str, Any], ...] = (
    {"endpointPublicAccess": True, "endpointPrivateAccess": False, "publicAccessCidrs": ["0.0.0.0/0"]},
    {"subnetIds": None, "securityGroupIds": []},
    {"controlPlaneEgressMode": "AWS_MANAGED"},
)
_GROUP_DEFAULTS: dict[str, Any] = {
    "updateConfig": {"maxUnavailable": 1},
    "nodeRepairConfig": {"enabled": False},
    "warmPoolConfig": {"enabled": False},
}


def wait_until_active(type_name: str, get: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The description that `get` returns once it is ACTIVE. HandlerError when that fails or takes too long."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while (found := get())["status"] != "ACTIVE":
        if found["status"].endswith("_FAILED") or time.monotonic() > deadline:
            raise HandlerError(f"{type_name} is {found['status']}: {found.get('health', '')}")
    return found


@handler
class Cluster(Handler):
    """A cluster. Ref gives its name."""

    type = "AWS::EKS::Cluster"
    supported_properties = frozenset(
        {
            *("AccessConfig", "BootstrapSelfManagedAddons", "ComputeConfig", "ControlPlaneScalingConfig"),
            *("DeletionProtection", "EncryptionConfig", "Force", "KubeApiServerConfig", "KubeControllerManagerConfig"),
            *("KubeSchedulerConfig", "KubernetesNetworkConfig", "Logging", "Name", "ResourcesVpcConfig", "RoleArn"),
            *("StorageConfig", "Tags", "UpgradePolicy", "Version", "ZonalShiftConfig"),
        }
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the cluster with all properties."""
        eks, name = context.client("eks"), properties.get("Name") or context.physical_name(100)
        parameters = lower_first({key: properties[key] for key in properties.keys() - {"Force", "Logging", "Tags"}})
        if "Logging" in properties:
            parameters["logging"] = _logging(properties["Logging"])
        tags = {**tag_map(properties.get("Tags")), **context.tags}
        eks.create_cluster(**{**parameters, "name": name, "tags": tags})
        with undo_on_failure(lambda: eks.delete_cluster(name=name)):
            return self._resource(context, name)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Send one update after the other: EKS accepts one kind of update at a time."""
        eks = context.client("eks")
        different = changed(old, new) - {"Force", "Tags"}
        if "Version" in different:
            if "Version" not in new:
                raise HandlerError(f"{self.type} {physical_id} must keep its Version")
            eks.update_cluster_version(name=physical_id, version=new["Version"], force=new.get("Force", False))
        for update in _updates(old, new, different):
            self._resource(context, physical_id)
            eks.update_cluster_config(name=physical_id, **update)
        made = self._resource(context, physical_id)
        retag(context.client("eks"), made.attributes["Arn"], old, new)
        return made

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the cluster, unless it is protected or has node groups."""
        context.client("eks").delete_cluster(name=physical_id)

    def _resource(self, context: Context, name: str) -> Resource:
        eks = context.client("eks")
        found = wait_until_active(f"{self.type} {name}", lambda: eks.describe_cluster(name=name)["cluster"])
        authority = found["certificateAuthority"]
        keys = [config["provider"]["keyArn"] for config in found.get("encryptionConfig", [])]
        attributes = {
            "Arn": found["arn"],
            "CertificateAuthority.Active.ActivatedBy": authority["active"]["activatedBy"],
            "CertificateAuthority.Active.Id": authority["active"]["id"],
            "CertificateAuthority.Data": authority["data"],
            "CertificateAuthorityData": authority["data"],
            "ClusterSecurityGroupId": found["resourcesVpcConfig"]["clusterSecurityGroupId"],
            "EncryptionConfigKeyArn": "".join(keys),
            "Endpoint": found["endpoint"],
            "KubernetesNetworkConfig.ServiceIpv6Cidr": found["kubernetesNetworkConfig"].get("serviceIpv6Cidr", ""),
            "OpenIdConnectIssuerUrl": found["identity"]["oidc"]["issuer"],
        }
        return Resource(name, attributes)


@handler
class Nodegroup(Handler):
    """A managed node group. Ref gives `<cluster>/<node group>`."""

    type = "AWS::EKS::Nodegroup"
    supported_properties = frozenset(
        {
            *("AmiType", "CapacityType", "ClusterName", "DiskSize", "ForceUpdateEnabled", "InstanceTypes", "Labels"),
            *("LaunchTemplate", "NodeRepairConfig", "NodeRole", "NodegroupName", "ReleaseVersion", "ScalingConfig"),
            *("Subnets", "Tags", "Taints", "UpdateConfig", "Version", "WarmPoolConfig"),
        }
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the group."""
        eks = context.client("eks")
        name = properties.get("NodegroupName") or context.physical_name(63)
        place = {"clusterName": properties["ClusterName"], "nodegroupName": name}
        parameters = {**_group_parameters(properties), **place}
        eks.create_nodegroup(**parameters, tags={**(properties.get("Tags") or {}), **context.tags})
        with undo_on_failure(lambda: eks.delete_nodegroup(**place)):
            return self._resource(context, f"{place['clusterName']}/{name}")

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Change the settings of the group, or its launch template, or its version and release."""
        _check_one_kind(changed(old, new))
        eks, place = context.client("eks"), _identifiers(physical_id)
        if changes := _group_changes(old, new):
            eks.update_nodegroup_config(**place, **changes)
            self._resource(context, physical_id)
        before, after = _group_parameters(old), _group_parameters(new)
        if "launchTemplate" in before and "launchTemplate" not in after:
            raise HandlerError(f"{self.type} {physical_id} must keep its LaunchTemplate")
        images = pick(after, "version", "releaseVersion", "launchTemplate")
        if any(before.get(name) != value for name, value in images.items()):
            eks.update_nodegroup_version(**place, **images, force=new.get("ForceUpdateEnabled", False))
        made = self._resource(context, physical_id)
        retag(context.client("eks"), made.attributes["Arn"], old, new)
        return made

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the group."""
        context.client("eks").delete_nodegroup(**_identifiers(physical_id))

    def _resource(self, context: Context, physical_id: str) -> Resource:
        eks, place = context.client("eks"), _identifiers(physical_id)
        found = wait_until_active(f"{self.type} {physical_id}", lambda: eks.describe_nodegroup(**place)["nodegroup"])
        names = {"ClusterName": found["clusterName"], "NodegroupName": found["nodegroupName"]}
        return Resource(physical_id, {"Arn": found["nodegroupArn"], "Id": physical_id, **names})


def _updates(old: Properties, new: Properties, different: set[str]) -> list[dict[str, Any]]:
    """Parameters of the UpdateClusterConfig calls that change a cluster from `old` to `new`."""
    calls: list[dict[str, Any]] = []
    for name in sorted(different & {"AccessConfig", *_CLUSTER_DEFAULTS}):
        value = new.get(name, _CLUSTER_DEFAULTS.get(name))
        if value is None:
            raise HandlerError(f"AWS::EKS::Cluster must keep its {name}")
        member = name[:1].lower() + name[1:]
        calls.append({member: _logging(value) if name == "Logging" else lower_first(value)})
    for together in (_COMPONENTS, _AUTO_MODE):
        if parts := different.intersection(together):
            if gone := parts - new.keys():
                raise HandlerError(f"AWS::EKS::Cluster must keep its {', '.join(sorted(gone))}")
            kept = new.keys() & {*together} if together is _AUTO_MODE else parts
            calls.append(dict(lower_first({name: new[name] for name in sorted(kept)})))
    before, after = lower_first(old["ResourcesVpcConfig"]), lower_first(new["ResourcesVpcConfig"])
    for part in _VPC_PARTS:
        if any(before.get(name, default) != after.get(name, default) for name, default in part.items()):
            calls.append({"resourcesVpcConfig": {name: after.get(name, default) for name, default in part.items()}})
    for call in calls:
        call.get("accessConfig", {}).pop("bootstrapClusterCreatorAdminPermissions", None)
    return calls


def _logging(value: Properties) -> dict[str, Any]:
    """Control plane logs as the API takes them: enabled types, and all other types disabled."""
    enabled = (value.get("ClusterLogging") or {}).get("EnabledTypes") or []
    on = [entry["Type"] for entry in enabled]
    off = [name for name in LOG_TYPES if name not in on]
    setups = [{"types": on, "enabled": True}, {"types": off, "enabled": False}]
    return {"clusterLogging": [setup for setup in setups if setup["types"]]}


def _check_one_kind(different: set[str]) -> None:
    """Refuse an update of images or launch template together with any other.

    Which pairs AWS refuses is documented for version and release only; a launch template together with tags or instance
    types is refused too, as people report. Here every pair is refused, so that what is tried here works there.

    Source: AWS::EKS::Nodegroup, Version and ReleaseVersion (2026); aws/aws-cdk issue 16644; aws/containers-roadmap
    issue 1258.
    """
    kinds = ({"Version", "ReleaseVersion"}, {"LaunchTemplate"})
    rest = different - {"ForceUpdateEnabled"}
    for kind in kinds:
        if different & kind and rest - kind:
            raise Untouched("Version and ReleaseVersion updates cannot be combined with other updates")


def _identifiers(physical_id: str) -> dict[str, str]:
    cluster, _, name = physical_id.partition("/")
    return {"clusterName": cluster, "nodegroupName": name}


def _group_parameters(properties: Properties) -> dict[str, Any]:
    """Parameters of the create call without names and tags."""
    kept = properties.keys() - {"ClusterName", "ForceUpdateEnabled", "Labels", "NodegroupName", "Tags"}
    parameters: dict[str, Any] = lower_first({name: properties[name] for name in kept})
    if "Labels" in properties:
        parameters["labels"] = properties["Labels"]
    for name in ("maxUnavailable", "maxUnavailablePercentage"):  # the registry has numbers, the API integers
        if name in parameters.get("updateConfig", {}):
            parameters["updateConfig"][name] = int(parameters["updateConfig"][name])
    return parameters


def _group_changes(old: Properties, new: Properties) -> dict[str, Any]:
    """Parameters of UpdateNodegroupConfig. As in CloudFormation, a size that the template no longer sets stays."""
    before, after = _group_parameters(old), _group_parameters(new)
    changes: dict[str, Any] = {}
    if "scalingConfig" in after and before.get("scalingConfig") != after["scalingConfig"]:
        changes["scalingConfig"] = after["scalingConfig"]
    for name, default in _GROUP_DEFAULTS.items():
        if before.get(name) != after.get(name):
            changes[name] = after.get(name, default)
    labels, wanted = before.get("labels") or {}, after.get("labels") or {}
    if labels != wanted:
        gone = sorted(labels.keys() - wanted.keys())
        changes["labels"] = {"addOrUpdateLabels": wanted, "removeLabels": gone}
    taints, asked = before.get("taints") or [], after.get("taints") or []
    if taints != asked:
        kept = [(taint["key"], taint["effect"]) for taint in asked]
        removed = [taint for taint in taints if (taint["key"], taint["effect"]) not in kept]
        changes["taints"] = {"addOrUpdateTaints": asked, "removeTaints": removed}
    return changes
