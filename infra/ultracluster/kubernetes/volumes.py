"""Volumes of a team's namespace: the file system, and the buckets.

A volume is bound by one claim, so each team has volumes of its own upon the same storage. Pods of several teams on a
node may use one file system: the FSx driver does not stage volumes, and goes by the place where it mounts.

Source: aws-fsx-csi-driver 1.9, static provisioning and node service; mountpoint-s3-csi-driver 2.7, CONFIGURATION.md.
"""

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.labels import FILE_SYSTEM_CLAIM
from ultracluster.kubernetes.parts import Deployed, FileSystem, Object, Objects

FILE_SYSTEM_OPTIONS = ["relatime", "flock"]
"""As FSx advises; access times stay, since tasks that release files go by them. Over EFA or TCP, the node decides."""

NOMINAL_SIZE = "1200Gi"
"""Size that every volume states: Kubernetes wants one, goes by nothing else, and lets no claim of this kind grow."""


def volumes(environment: Environment, deployed: Deployed) -> tuple[Objects, ...]:
    """A volume with its claim for each team and storage; nothing without EKS or storage. Data stays when they go."""
    settings = environment.control_plane
    if not isinstance(settings, Eks):
        return ()
    return tuple(
        Objects(f"volume-{claim}.{team.name}", items, after=(f"namespace-{team.name}",))
        for team in settings.teams
        for claim, items in _claims(environment, team.name, deployed).items()
    )


def bucket_claim(key: str) -> str:
    """Claim of the bucket that the file calls `key`, in each team's namespace."""
    return f"{key}-bucket"


def _claims(environment: Environment, team: str, deployed: Deployed) -> dict[str, tuple[Object, Object]]:
    claims = {}
    if deployed.file_system:
        claims[FILE_SYSTEM_CLAIM] = _file_system(environment, team, deployed.file_system)
    return claims | {bucket_claim(key): _bucket(environment, team, key, name) for key, name in deployed.buckets.items()}


def _file_system(environment: Environment, team: str, file_system: FileSystem) -> tuple[Object, Object]:
    source = {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": file_system.file_system_id,
        "volumeAttributes": {"dnsname": file_system.dns_name, "mountname": file_system.mount_name},
    }
    return _bound(environment, team, FILE_SYSTEM_CLAIM, source, FILE_SYSTEM_OPTIONS)


def _bucket(environment: Environment, team: str, key: str, bucket: str) -> tuple[Object, Object]:
    """A bucket that every user of a pod reads, and writes new objects to. Nothing is deleted or written over.

    Kubernetes takes volumes with one handle for one and the same, so the handle has the volume's name.
    """
    claim = bucket_claim(key)
    source = {
        "driver": "s3.csi.aws.com",
        "volumeHandle": _volume_name(environment, team, claim),
        "volumeAttributes": {"bucketName": bucket},
    }
    options = [f"region {environment.region}", "allow-other"]
    return _bound(environment, team, claim, source, options)


def _bound(
    environment: Environment, team: str, claim: str, source: Object, options: list[str]
) -> tuple[Object, Object]:
    """A volume and the claim it is kept for."""
    name = _volume_name(environment, team, claim)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": NOMINAL_SIZE},
            "claimRef": {"namespace": team, "name": claim},
            "csi": source,
            "mountOptions": options,
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
        },
    }
    claimed = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": team},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": NOMINAL_SIZE}},
            "storageClassName": "",
            "volumeName": name,
        },
    }
    return volume, claimed


def _volume_name(environment: Environment, team: str, claim: str) -> str:
    """Of the whole cluster, so with a dot, which stands in no name of a claim or a team."""
    return f"{environment.name}-{claim}.{team}"
