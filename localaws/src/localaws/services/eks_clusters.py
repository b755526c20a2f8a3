"""Clusters of the embedded EKS: the actions on control planes."""

import base64
import copy
import datetime
import secrets
from typing import Any

from moto.core.responses import ActionResult

from localaws.services import eks_logs as logs
from localaws.services import eks_network as network
from localaws.services.eks_actions import EksActions
from localaws.services.eks_store import DEFAULT_VERSION, END_OF_SUPPORT, LOG_TYPES, Cluster, in_use, invalid, refused
from localaws.services.trust import allows_service

# Members of a request that form one update. UpdateClusterConfig accepts one update at a time.
UPDATES = {
    "logging": "LoggingUpdate",
    "accessConfig": "AccessConfigUpdate",
    "upgradePolicy": "UpgradePolicyUpdate",
    "zonalShiftConfig": "ZonalShiftConfigUpdate",
    "computeConfig": "AutoModeUpdate",
    "storageConfig": "AutoModeUpdate",
    "kubernetesNetworkConfig": "AutoModeUpdate",
    "deletionProtection": "DeletionProtectionUpdate",
    "controlPlaneScalingConfig": "ControlPlaneScalingConfigUpdate",
    "kubeApiServerConfig": "ControlPlaneComponentConfigUpdate",
    "kubeSchedulerConfig": "ControlPlaneComponentConfigUpdate",
    "kubeControllerManagerConfig": "ControlPlaneComponentConfigUpdate",
}
VPC_UPDATES = {
    "endpointPublicAccess": "EndpointAccessUpdate",
    "endpointPrivateAccess": "EndpointAccessUpdate",
    "publicAccessCidrs": "EndpointAccessUpdate",
    "subnetIds": "VpcConfigUpdate",
    "securityGroupIds": "VpcConfigUpdate",
    "controlPlaneEgressMode": "ControlPlaneEgressUpdate",
}
AUTHENTICATION_MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")  # a cluster can only move to the right
_AUTO_MODE = (
    ("computeConfig",),
    ("storageConfig", "blockStorage"),
    ("kubernetesNetworkConfig", "elasticLoadBalancing"),
)
_DEFAULTS: dict[str, Any] = {
    "upgradePolicy": {"supportType": "EXTENDED"},
    "zonalShiftConfig": {"enabled": False},
    "controlPlaneScalingConfig": {"tier": "standard"},
    "computeConfig": {"enabled": False},
    "storageConfig": {"blockStorage": {"enabled": False}},
}
_KEPT = ("encryptionConfig", "kubeApiServerConfig", "kubeSchedulerConfig", "kubeControllerManagerConfig")


class ClusterActions(EksActions):
    """The actions on clusters."""

    def create_cluster(self) -> ActionResult:
        """Validate the request and create the cluster with its security group and network interfaces."""
        request, references = self.params, self.eks.references
        name, version = request["name"], request.get("version") or DEFAULT_VERSION
        if name in self.eks.clusters:
            raise in_use(f"Cluster already exists with name: {name}")
        if request.get("outpostConfig") or request.get("remoteNetworkConfig"):
            raise invalid("The embedded AWS has neither Outposts nor hybrid nodes.")
        check_version(version, datetime.datetime.now(datetime.UTC).date())
        role = references.role(request["roleArn"])
        if role is None or not allows_service(role, "eks.amazonaws.com"):
            words = "could not be assumed because it does not exist or the trusted entity is not correct"
            raise invalid(f"Role with arn: {request['roleArn']}, {words}.")
        self._check_encryption(request.get("encryptionConfig") or [])
        vpc = request["resourcesVpcConfig"]
        subnets = network.check_subnets(references, vpc.get("subnetIds") or [])
        vpc_id = subnets[0].vpc_id
        network.check_security_groups(references, vpc.get("securityGroupIds") or [], vpc_id)
        description = self._new_cluster(name, version, vpc_id)
        network.check_endpoint(description["resourcesVpcConfig"])
        _check_auto_mode(description)
        group = network.new_security_group(references, name, vpc_id)
        description["resourcesVpcConfig"]["clusterSecurityGroupId"] = group
        cluster = Cluster(description, group)
        self.eks.store(cluster, request.get("tags"))
        network.connect(self.eks, cluster)
        logs.write(self.eks.references, cluster)
        return ActionResult({"cluster": self.eks.view(cluster)})

    def describe_cluster(self) -> ActionResult:
        """One cluster."""
        return ActionResult({"cluster": self.eks.view(self.requested_cluster())})

    def list_clusters(self) -> ActionResult:
        """The names of all clusters."""
        return self.page("clusters", list(self.eks.clusters))

    def update_cluster_config(self) -> ActionResult:
        """Apply one update to an ACTIVE cluster."""
        cluster = self.active_cluster()
        changes = self.given_parameters(*UPDATES)
        if "logging" in changes:
            changes["logging"] = _logging(cluster["logging"], changes["logging"])
        vpc = self.params.get("resourcesVpcConfig") or {}
        vpc = {name: value for name, value in vpc.items() if value is not None}
        kinds = {UPDATES[name] for name in changes} | {VPC_UPDATES[name] for name in vpc}
        if len(kinds) != 1:
            raise invalid(f"Only one type of update can be allowed, not {', '.join(sorted(kinds)) or 'none'}.")
        for name in ("accessConfig", "kubernetesNetworkConfig"):
            if name in changes:
                changes[name] = {**cluster[name], **changes[name]}
        if vpc:
            changes["resourcesVpcConfig"] = self._vpc_change(cluster, vpc)
        _check_authentication(cluster, changes.get("accessConfig", cluster["accessConfig"])["authenticationMode"])
        _check_auto_mode({**cluster.description, **changes})
        cluster.change(changes)
        logs.write(self.eks.references, cluster)
        if "subnetIds" in vpc or "securityGroupIds" in vpc:
            network.connect(self.eks, cluster)
        return self.update_response(kinds.pop())

    def update_cluster_version(self) -> ActionResult:
        """Upgrade the cluster to the next minor version. All node groups must have the current one."""
        cluster, version = self.active_cluster(), self.params["version"]
        check_version(version, datetime.datetime.now(datetime.UTC).date())
        current = cluster["version"]
        if _minor(version) != _minor(current) + 1:
            raise invalid(f"Unsupported Kubernetes minor version update from {current} to {version}.")
        for group in self.eks.all("nodegroup", cluster):
            if group["version"] != current:
                message = f"Nodegroup {group['nodegroupName']} is at {group['version']}; it must be updated to match "
                raise refused(f"{message}cluster version {current} before updating cluster version.")
        cluster.change({"version": version, "platformVersion": "eks.1"})
        return self.update_response("VersionUpdate", Version=version)

    def delete_cluster(self) -> ActionResult:
        """Delete a cluster without deletion protection, node groups and capabilities, with its other resources."""
        cluster = self.active_cluster()
        name = cluster["name"]
        if cluster["deletionProtection"]:
            raise refused(f"Cluster {name} has deletion protection enabled; disable it before deleting the cluster.")
        if groups := self.eks.all("nodegroup", cluster):
            names = ", ".join(group["nodegroupName"] for group in groups)
            raise in_use(f"Cluster {name} has nodegroups attached: {names}.")
        if capabilities := self.eks.all("capability", cluster):
            names = ", ".join(capability["capabilityName"] for capability in capabilities)
            raise in_use(f"Cluster {name} has capabilities attached: {names}.")
        network.disconnect(self.eks, cluster)
        network.delete_security_group(self.eks, cluster)
        view = {**self.eks.view(cluster), "status": "DELETING"}
        children = [item for item in self.eks.children if item["clusterName"] == name]
        self.eks.remove([*children, cluster])
        logs.write_late(self.eks.references, cluster)
        return ActionResult({"cluster": view})

    def _new_cluster(self, name: str, version: str, vpc_id: str) -> dict[str, Any]:
        """The description of the new cluster."""
        request, vpc = self.params, self.params["resourcesVpcConfig"]
        asked = request.get("kubernetesNetworkConfig") or {}
        if asked.get("ipFamily") == "ipv6":
            raise invalid("The embedded AWS has no IPv6 clusters.")
        access = request.get("accessConfig") or {}
        number = secrets.token_hex(16).upper()
        return {
            **copy.deepcopy(_DEFAULTS),
            **self.given_parameters(*_DEFAULTS, *_KEPT),
            "name": name,
            "arn": self.eks.arn("eks", f"cluster/{name}"),
            "version": version,
            "platformVersion": "eks.1",
            "roleArn": request["roleArn"],
            "endpoint": f"https://{number}.gr7.{self.region}.eks.amazonaws.com",
            "identity": {"oidc": {"issuer": f"https://oidc.eks.{self.region}.amazonaws.com/id/{number}"}},
            "certificateAuthority": {
                "data": base64.b64encode(f"-----BEGIN CERTIFICATE-----\n{number}\n".encode()).decode(),
                "active": {"id": secrets.token_hex(8), "activatedBy": "EKS"},
            },
            "resourcesVpcConfig": {
                "endpointPublicAccess": True,
                "endpointPrivateAccess": False,
                "publicAccessCidrs": ["0.0.0.0/0"],
                "securityGroupIds": [],
                "controlPlaneEgressMode": "AWS_MANAGED",
                **{key: value for key, value in vpc.items() if value is not None},
                "vpcId": vpc_id,
            },
            "kubernetesNetworkConfig": {
                "ipFamily": "ipv4",
                "elasticLoadBalancing": asked.get("elasticLoadBalancing") or {"enabled": False},
                "serviceIpv4Cidr": network.service_cidr(self.eks.references, vpc_id, asked.get("serviceIpv4Cidr")),
            },
            "logging": _logging(None, request.get("logging") or {}),
            "accessConfig": {
                "authenticationMode": access.get("authenticationMode") or "CONFIG_MAP",
                "bootstrapClusterCreatorAdminPermissions": access.get("bootstrapClusterCreatorAdminPermissions", True),
            },
            "deletionProtection": bool(request.get("deletionProtection")),
        }

    def _vpc_change(self, cluster: Cluster, changes: dict[str, Any]) -> dict[str, Any]:
        """The cluster's network settings with the changes. Refusal when EKS does not allow them."""
        old = cluster["resourcesVpcConfig"]
        new: dict[str, Any] = {**old, **changes}
        references = self.eks.references
        if "subnetIds" in changes:
            subnets = network.check_subnets(references, new["subnetIds"])
            if subnets[0].vpc_id != old["vpcId"]:
                raise invalid(f"Provided subnets must belong to VPC {old['vpcId']}, as those of the cluster do.")
        if old["controlPlaneEgressMode"] != "AWS_MANAGED" and new["controlPlaneEgressMode"] == "AWS_MANAGED":
            raise invalid("controlPlaneEgressMode cannot be changed back to AWS_MANAGED.")
        network.check_security_groups(references, new["securityGroupIds"], old["vpcId"])
        network.check_endpoint(new)
        return new

    def _check_encryption(self, configs: list[dict[str, Any]]) -> None:
        for config in configs:
            key = (config.get("provider") or {}).get("keyArn") or ""
            if config.get("resources") != ["secrets"]:
                raise invalid("encryptionConfig.resources must be [secrets].")
            found = self.eks.references.key(key)
            if found is None:
                raise invalid(f"Key {key} does not exist.")
            if found.key_spec != "SYMMETRIC_DEFAULT":
                raise invalid(f"Key {key} is not symmetric.")


def check_version(version: str, today: datetime.date) -> None:
    """The version is in standard or extended support."""
    supported = [each for each, end in END_OF_SUPPORT.items() if today < end]
    if version not in supported:
        raise invalid(f"unsupported Kubernetes version {version}; supported: {', '.join(supported)}")


def _check_authentication(cluster: Cluster, mode: str) -> None:
    current = cluster["accessConfig"]["authenticationMode"]
    if AUTHENTICATION_MODES.index(mode) < AUTHENTICATION_MODES.index(current):
        raise invalid(f"Unsupported authentication mode update from {current} to {mode}.")


def _check_auto_mode(description: dict[str, Any]) -> None:
    """The settings of Auto Mode are all on or all off."""
    switches = set()
    for path in _AUTO_MODE:
        part = description
        for step in path:
            part = part.get(step) or {}
        switches.add(bool(part.get("enabled")))
    if len(switches) > 1:
        raise invalid("computeConfig, storageConfig and elasticLoadBalancing must be all enabled or all disabled.")


def _logging(current: dict[str, Any] | None, change: dict[str, Any]) -> dict[str, Any]:
    """Enabled and disabled log types after a change."""
    on = {kind for setup in (current or {}).get("clusterLogging", ()) if setup["enabled"] for kind in setup["types"]}
    for setup in change.get("clusterLogging") or ():
        types = set(setup.get("types") or ())
        on = on | types if setup.get("enabled") else on - types
    setups = [
        {"types": [kind for kind in LOG_TYPES if (kind in on) is enabled], "enabled": enabled}
        for enabled in (True, False)
    ]
    return {"clusterLogging": [setup for setup in setups if setup["types"]]}


def _minor(version: str) -> int:
    return int(version.split(".")[1])
