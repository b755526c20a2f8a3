"""EKS: clusters and managed node groups. EKS accepts one kind of update at a time, and waits in between."""

from typing import Any

from localaws.resources import Context, HandlerError, Properties, Untouched, changed, lower_first, pick
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting
from localaws.services.eks_store import LOG_TYPES


def _cluster(properties: Properties) -> Properties:
    """Logging with the disabled types too, as the API takes it. Only a creation has bootstrap permissions."""
    given = dict(properties)
    if "Logging" in given:
        given["Logging"] = _logging(given["Logging"])
    if "ref" in given and "AccessConfig" in given:
        given["AccessConfig"] = pick(given["AccessConfig"], "AuthenticationMode")
    return given


def _logging(value: Properties) -> Properties:
    on = [entry["Type"] for entry in (value.get("ClusterLogging") or {}).get("EnabledTypes") or ()]
    setups = [
        {"Types": on, "Enabled": True},
        {"Types": [name for name in LOG_TYPES if name not in on], "Enabled": False},
    ]
    return {"ClusterLogging": [setup for setup in setups if setup["Types"]]}


_CLUSTER = {
    "ControlPlaneScalingConfig": {"Tier": "standard"},
    "DeletionProtection": False,
    "Logging": _logging({}),
    "UpgradePolicy": {"SupportType": "EXTENDED"},
    "ZonalShiftConfig": {"Enabled": False},
}
"""What a cluster returns to when the template no longer sets a property."""

_VPC_PARTS: tuple[dict[str, Any], ...] = (
    {"endpointPublicAccess": True, "endpointPrivateAccess": False, "publicAccessCidrs": ["0.0.0.0/0"]},
    {"subnetIds": None, "securityGroupIds": []},
    {"controlPlaneEgressMode": "AWS_MANAGED"},
)
"""Members of ResourcesVpcConfig that form one update, with EKS's defaults."""


def _set_network(context: Context, old: Properties, new: Properties) -> None:
    """One update after the other for the parts of ResourcesVpcConfig."""
    eks, name = context.client("eks"), new["ref"]
    if not old:
        return
    before, after = lower_first(old["ResourcesVpcConfig"]), lower_first(new["ResourcesVpcConfig"])
    for part in _VPC_PARTS:
        values = {member: after.get(member, default) for member, default in part.items()}
        if any(before.get(member, default) != values[member] for member, default in part.items()):
            eks.get_waiter("cluster_active").wait(name=name, WaiterConfig={"Delay": 1})
            eks.update_cluster_config(name=name, resourcesVpcConfig=values)


def _check_group(_: Context, old: Properties, new: Properties) -> Properties | None:
    """One kind of update; a launch template and a version stay; labels and taints as what to add and to remove."""
    if not old:
        return None
    _check_one_kind(changed(old, new))
    if "LaunchTemplate" in old and "LaunchTemplate" not in new:
        raise HandlerError(f"AWS::EKS::Nodegroup {new['ref']} must keep its LaunchTemplate")
    given = {**pick(old, "Version", "ReleaseVersion"), **new}
    labels, wanted = old.get("Labels") or {}, new.get("Labels") or {}
    if labels != wanted:
        given["Labels"] = {"AddOrUpdateLabels": wanted, "RemoveLabels": sorted(labels.keys() - wanted.keys())}
    taints, asked = old.get("Taints") or [], new.get("Taints") or []
    if taints != asked:
        kept = [(taint["Key"], taint["Effect"]) for taint in asked]
        removed = [taint for taint in taints if (taint["Key"], taint["Effect"]) not in kept]
        given["Taints"] = {"AddOrUpdateTaints": asked, "RemoveTaints": removed}
    return given


def _check_one_kind(different: set[str]) -> None:
    """Refuse an update of images or launch template together with any other.

    Which pairs AWS refuses is documented for version and release only; a launch template together with tags or instance
    types is refused too, as people report. Here every pair is refused, so that what is tried here works there.

    Source: AWS::EKS::Nodegroup, Version and ReleaseVersion (2026); aws/aws-cdk issue 16644; aws/containers-roadmap
    issue 1258.
    """
    rest = different - {"ForceUpdateEnabled"}
    for kind in ({"Version", "ReleaseVersion"}, {"LaunchTemplate"}):
        if different & kind and rest - kind:
            raise Untouched("Version and ReleaseVersion updates cannot be combined with other updates")


register(
    Row(
        type="AWS::EKS::Cluster",
        service="eks",
        ignored="OutpostConfig RemoteNetworkConfig",
        name=("Name", 100),
        ready="ACTIVE",
        settings=(
            Setting("Version", put="UpdateClusterVersion", also="Force", kept=True, at_creation=False),
            Setting("AccessConfig", put="UpdateClusterConfig", kept=True, at_creation=False),
            *(
                Setting(name, put="UpdateClusterConfig", reset={name: default}, at_creation=False)
                for name, default in _CLUSTER.items()
            ),
            *(
                Setting(names, put="UpdateClusterConfig", kept=True, at_creation=False)
                for names in (
                    "KubeApiServerConfig KubeControllerManagerConfig KubeSchedulerConfig",
                    "ComputeConfig KubernetesNetworkConfig StorageConfig",
                )
            ),
        ),
        attributes={
            "CertificateAuthority.Active.ActivatedBy": "certificateAuthority.active.activatedBy",
            "CertificateAuthority.Active.Id": "certificateAuthority.active.id",
            "CertificateAuthority.Data": "certificateAuthority.data",
            "CertificateAuthorityData": "certificateAuthority.data",
            "ClusterSecurityGroupId": "resourcesVpcConfig.clusterSecurityGroupId",
            "EncryptionConfigKeyArn": "encryptionConfig.0.provider.keyArn|",
            "KubernetesNetworkConfig.ServiceIpv6Cidr": "kubernetesNetworkConfig.serviceIpv6Cidr|",
            "OpenIdConnectIssuerUrl": "identity.oidc.issuer",
        },
        prepare=_cluster,
        by_hand="Force ResourcesVpcConfig",
        hook=_set_network,
    ),
    Row(
        type="AWS::EKS::Nodegroup",
        service="eks",
        ignored="RemoteAccess",
        name=("NodegroupName", 63),
        update="UpdateNodegroupConfig",
        ready="ACTIVE",
        ref="{ClusterName}/{NodegroupName}",
        ident={"clusterName": "{ref/0}", "nodegroupName": "{ref/1}"},
        # as in CloudFormation, a size that the template no longer sets stays
        resets={
            "NodeRepairConfig": {"Enabled": False},
            "ScalingConfig": None,
            "UpdateConfig": {"MaxUnavailable": 1},
            "WarmPoolConfig": {"Enabled": False},
        },
        settings=(
            Setting(
                "Version ReleaseVersion LaunchTemplate",
                put="UpdateNodegroupVersion",
                also="ForceUpdateEnabled",
                renames={"ForceUpdateEnabled": "force"},
                at_creation=False,
            ),
        ),
        attributes={"Id": "{ref}"},
        check=_check_group,
        by_hand="ForceUpdateEnabled",
    ),
)
