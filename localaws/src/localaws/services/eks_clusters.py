"""Clusters of the embedded EKS: what their descriptions add to requests, and what EKS refuses."""

import base64
import datetime
import secrets
from collections.abc import Mapping
from typing import Any, cast

from localaws import clock
from localaws.services import eks_logs as logs
from localaws.services import eks_network as network
from localaws.services.eks_store import DEFAULT_VERSION, END_OF_SUPPORT, LOG_TYPES, Cluster, in_use, invalid, refused
from localaws.services.store import Call, Item, Kind, Rule
from localaws.services.trust import allows_service

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
    "endpointPublicAccess": "EndpointAccessUpdate",
    "endpointPrivateAccess": "EndpointAccessUpdate",
    "publicAccessCidrs": "EndpointAccessUpdate",
    "subnetIds": "VpcConfigUpdate",
    "securityGroupIds": "VpcConfigUpdate",
    "controlPlaneEgressMode": "ControlPlaneEgressUpdate",
}
"""Members of a request, and of its resourcesVpcConfig, that form one update. A request has one."""
AUTHENTICATION_MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")  # a cluster can only move to the right
_AUTO_MODE = (
    ("computeConfig",),
    ("storageConfig", "blockStorage"),
    ("kubernetesNetworkConfig", "elasticLoadBalancing"),
)


def _describe(call: Call) -> None:
    number, region = secrets.token_hex(16).upper(), call.store.region_name
    certificate = base64.b64encode(f"-----BEGIN CERTIFICATE-----\n{number}\n".encode()).decode()
    call.new |= {
        "endpoint": f"https://{number}.gr7.{region}.eks.amazonaws.com",
        "identity": {"oidc": {"issuer": f"https://oidc.eks.{region}.amazonaws.com/id/{number}"}},
        "certificateAuthority": {
            "data": certificate,
            "active": {"id": secrets.token_hex(8), "activatedBy": "EKS"},
        },
        "logging": logging(None, call.request.get("logging") or {}),
    }


def _make(call: Call) -> None:
    """Create the security group and the network interfaces."""
    cluster, vpc = cast("Cluster", call.target), call.target["resourcesVpcConfig"]
    vpc_id, services = call.references.subnet(vpc["subnetIds"][0]).vpc_id, cluster["kubernetesNetworkConfig"]
    services["serviceIpv4Cidr"] = network.service_cidr(call.references, vpc_id, services.get("serviceIpv4Cidr"))
    cluster.security_group = network.new_security_group(call.references, cluster.id, vpc_id)
    vpc |= {"vpcId": vpc_id, "clusterSecurityGroupId": cluster.security_group}
    network.connect(call.references, cluster)
    logs.write(call.references, cluster)


def _remove(call: Call) -> None:
    cluster = cast("Cluster", call.target)
    network.disconnect(call.references, cluster)
    network.delete_security_group(call.references, cluster)
    logs.write_late(call.references, cluster)


CLUSTER = Kind(
    noun="Cluster",
    item=Cluster,
    address="clusterName name",
    id="name",
    arn="cluster/{name}",
    active_itself="Change Delete",
    defaults={
        "version": DEFAULT_VERSION,
        "platformVersion": "eks.1",
        "upgradePolicy": {"supportType": "EXTENDED"},
        "zonalShiftConfig": {"enabled": False},
        "controlPlaneScalingConfig": {"tier": "standard"},
        "computeConfig": {"enabled": False},
        "storageConfig": {"blockStorage": {"enabled": False}},
        "deletionProtection": False,
        "accessConfig": {"authenticationMode": "CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": True},
        "kubernetesNetworkConfig": {"ipFamily": "ipv4", "elasticLoadBalancing": {"enabled": False}},
        "resourcesVpcConfig": {
            "endpointPublicAccess": True,
            "endpointPrivateAccess": False,
            "publicAccessCidrs": ["0.0.0.0/0"],
            "securityGroupIds": [],
            "controlPlaneEgressMode": "AWS_MANAGED",
        },
    },
    describe=_describe,
    made=_make,
    removed=_remove,
    missing="No cluster found for name: {id}.",
    taken="Cluster already exists with name: {id}",
    busy="Cluster {name} is {status}, not ACTIVE.",
)


def logging(current: Mapping[str, Any] | None, change: Mapping[str, Any]) -> dict[str, Any]:
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


def changes_of(call: Call) -> tuple[str, dict[str, Any]]:
    """The type of the one update in a request, and the members that it changes."""
    old, request = call.old, call.request
    vpc = {name: value for name, value in (request.get("resourcesVpcConfig") or {}).items() if value is not None}
    changes = {name: request[name] for name in UPDATES if request.get(name) is not None}
    kinds = {UPDATES[name] for name in (*changes, *vpc)}
    if len(kinds) != 1:
        raise invalid(f"Only one type of update can be allowed, not {', '.join(sorted(kinds)) or 'none'}.")
    if "logging" in changes:
        changes["logging"] = logging(old["logging"], changes["logging"])
    for name in ("accessConfig", "kubernetesNetworkConfig"):
        if name in changes:
            changes[name] = {**old[name], **changes[name]}
    if vpc:
        changes["resourcesVpcConfig"] = {**old["resourcesVpcConfig"], **vpc}
    return kinds.pop(), changes


# refusals


def _features(call: Call) -> None:
    if call.request.get("outpostConfig") or call.request.get("remoteNetworkConfig"):
        raise invalid("The embedded AWS has neither Outposts nor hybrid nodes.")
    if call.new["kubernetesNetworkConfig"]["ipFamily"] == "ipv6":
        raise invalid("The embedded AWS has no IPv6 clusters.")


def check_version(version: str, today: datetime.date) -> None:
    """The version is in standard or extended support."""
    supported = [each for each, end in END_OF_SUPPORT.items() if today < end]
    if version not in supported:
        raise invalid(f"unsupported Kubernetes version {version}; supported: {', '.join(supported)}")


def _version(call: Call) -> None:
    check_version(call.new["version"], clock.today())


def _next_version(call: Call) -> None:
    current, version = call.old["version"], call.new["version"]
    if _minor(version) != _minor(current) + 1:
        raise invalid(f"Unsupported Kubernetes minor version update from {current} to {version}.")
    for group in _children(call, "Nodegroup"):
        if group["version"] != current:
            message = f"Nodegroup {group.id} is at {group['version']}; it must be updated to match "
            raise refused(f"{message}cluster version {current} before updating cluster version.")


def _role(call: Call) -> None:
    role = call.references.role(call.request["roleArn"])
    if role is None or not allows_service(role, "eks.amazonaws.com"):
        words = "could not be assumed because it does not exist or the trusted entity is not correct"
        raise invalid(f"Role with arn: {call.request['roleArn']}, {words}.")


def _encryption(call: Call) -> None:
    for config in call.request.get("encryptionConfig") or ():
        key = (config.get("provider") or {}).get("keyArn") or ""
        if config.get("resources") != ["secrets"]:
            raise invalid("encryptionConfig.resources must be [secrets].")
        found = call.references.key(key)
        if found is None:
            raise invalid(f"Key {key} does not exist.")
        if found.key_spec != "SYMMETRIC_DEFAULT":
            raise invalid(f"Key {key} is not symmetric.")


def _network(call: Call) -> None:
    """Subnets, security groups, the endpoint and the services' addresses."""
    vpc, old = call.new["resourcesVpcConfig"], call.old.get("resourcesVpcConfig")
    if "subnetIds" in (call.request.get("resourcesVpcConfig") or {}) or old is None:
        vpc_id = network.check_subnets(call.references, vpc.get("subnetIds") or [])[0].vpc_id
        if old and vpc_id != old["vpcId"]:
            raise invalid(f"Provided subnets must belong to VPC {old['vpcId']}, as those of the cluster do.")
    else:
        vpc_id = old["vpcId"]
    if old and old["controlPlaneEgressMode"] != "AWS_MANAGED" and vpc["controlPlaneEgressMode"] == "AWS_MANAGED":
        raise invalid("controlPlaneEgressMode cannot be changed back to AWS_MANAGED.")
    network.check_security_groups(call.references, vpc["securityGroupIds"], vpc_id)
    network.check_endpoint(vpc)
    if old is None:
        asked = call.new["kubernetesNetworkConfig"].get("serviceIpv4Cidr")
        network.service_cidr(call.references, vpc_id, asked)


def _authentication(call: Call) -> None:
    current, mode = (each["accessConfig"]["authenticationMode"] for each in (call.old, call.new))
    if AUTHENTICATION_MODES.index(mode) < AUTHENTICATION_MODES.index(current):
        raise invalid(f"Unsupported authentication mode update from {current} to {mode}.")


def _auto_mode(call: Call) -> None:
    """The settings of Auto Mode are all on or all off."""
    switches = set()
    for path in _AUTO_MODE:
        part = call.new
        for step in path:
            part = part.get(step) or {}
        switches.add(bool(part.get("enabled")))
    if len(switches) > 1:
        raise invalid("computeConfig, storageConfig and elasticLoadBalancing must be all enabled or all disabled.")


def _deletion(call: Call) -> None:
    name = call.target.id
    if call.old["deletionProtection"]:
        raise refused(f"Cluster {name} has deletion protection enabled; disable it before deleting the cluster.")
    for noun, word in (("Nodegroup", "nodegroups"), ("Capability", "capabilities")):
        if found := _children(call, noun):
            raise in_use(f"Cluster {name} has {word} attached: {', '.join(item.id for item in found)}.")


def _children(call: Call, noun: str) -> list[Item]:
    return [item for item in call.children if item.kind.noun == noun]


def _minor(version: str) -> int:
    return int(version.split(".")[1])


RULES = (
    Rule("CreateCluster", _features, "not in the embedded AWS"),
    Rule("CreateCluster UpdateClusterVersion", _version, "User Guide, Kubernetes version lifecycle"),
    Rule("UpdateClusterVersion", _next_version, "User Guide, update a cluster to a new Kubernetes version"),
    Rule("CreateCluster", _role, "User Guide, cluster IAM role"),
    Rule("CreateCluster", _encryption, "API Reference, EncryptionConfig, Provider"),
    Rule("CreateCluster UpdateClusterConfig", _network, "User Guide, networking requirements; API Reference"),
    Rule("UpdateClusterConfig", _authentication, "User Guide, change authentication mode to use access entries"),
    Rule("CreateCluster UpdateClusterConfig", _auto_mode, "API Reference, ComputeConfigRequest"),
    Rule("DeleteCluster", _deletion, "API Reference, DeleteCluster"),
)
