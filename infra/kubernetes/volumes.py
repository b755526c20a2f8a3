"""Volumes of a team's namespace: the file system, and the buckets.

A volume is bound by one claim, so each team has volumes of its own upon the same storage. Pods of several teams on a
node may use one file system: the FSx driver does not stage volumes, and goes by the place where it mounts.

Source: aws-fsx-csi-driver 1.9, static provisioning and node service; mountpoint-s3-csi-driver 2.7, CONFIGURATION.md.
"""

from infra.config.eks import Eks
from infra.config.environment import Environment
from infra.kubernetes.labels import FILE_SYSTEM_CLAIM
from infra.kubernetes.parts import Deployed, FileSystem, Object, Objects

FILE_SYSTEM_OPTIONS = ["relatime", "flock"]
"""As FSx advises; access times stay, since tasks that release files go by them. Over EFA or TCP, the node decides."""

NOMINAL_SIZE = "1200Gi"
"""Size that volumes of buckets state: Kubernetes wants one, and the driver ignores it."""


def volumes(environment: Environment, deployed: Deployed) -> tuple[Objects, ...]:
    """Volumes and claims, a set for each team; nothing without EKS or storage. Data stays when they go."""
    settings = environment.control_plane
    if not isinstance(settings, Eks):
        return ()
    sets = []
    for team in settings.teams:
        items: list[Object] = []
        if deployed.file_system:
            items += _file_system(environment, team.name, deployed.file_system)
        for key, bucket in deployed.buckets.items():
            items += _bucket(environment, team.name, key, bucket)
        if items:
            sets.append(Objects(f"volumes-{team.name}", tuple(items), after=(f"namespace-{team.name}",)))
    return tuple(sets)


def bucket_claim(key: str) -> str:
    """Claim of the bucket that the file calls `key`, in each team's namespace."""
    return f"{key}-bucket"


def _file_system(environment: Environment, team: str, file_system: FileSystem) -> tuple[Object, Object]:
    source = {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": file_system.file_system_id,
        "volumeAttributes": {"dnsname": file_system.dns_name, "mountname": file_system.mount_name},
    }
    size = f"{file_system.size_gib}Gi"
    return _bound(environment, team, FILE_SYSTEM_CLAIM, source, size=size, options=FILE_SYSTEM_OPTIONS)


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
    return _bound(environment, team, claim, source, size=NOMINAL_SIZE, options=options)


def _bound(
    environment: Environment, team: str, claim: str, source: Object, *, size: str, options: list[str]
) -> tuple[Object, Object]:
    """A volume and the claim it is kept for."""
    name = _volume_name(environment, team, claim)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": size},
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
            "resources": {"requests": {"storage": size}},
            "storageClassName": "",
            "volumeName": name,
        },
    }
    return volume, claimed


def _volume_name(environment: Environment, team: str, claim: str) -> str:
    """Of the whole cluster, so with a dot, which stands in no name of a claim or a team."""
    return f"{environment.name}-{claim}.{team}"
