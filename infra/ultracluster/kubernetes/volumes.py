"""Persistent volumes and claims of the file system and the buckets, for each team.

A volume binds to one claim, so each team has volumes of its own for the same storage. Pods of several teams can mount
the same file system on a node: the FSx CSI driver does not stage volumes and tells them apart by their mount path.

Source: aws-fsx-csi-driver 1.9, static provisioning and node service; mountpoint-s3-csi-driver 2.7, CONFIGURATION.md.
"""

from ultracluster.kubernetes.deployed import DeployedResources, FileSystem
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import FILE_SYSTEM_CLAIM
from ultracluster.kubernetes.parts import Object, Objects

FILE_SYSTEM_OPTIONS = ["relatime", "flock"]
"""Mount options that FSx advises. Access times stay, because tasks that release files use them.

Whether a mount uses EFA or TCP depends on the node.
"""

NOMINAL_SIZE = "1200Gi"
"""Size of every volume. Kubernetes requires one but does not use it here, and does not let these claims grow."""


def volumes(environment: EksEnvironment, deployed: DeployedResources) -> tuple[Objects, ...]:
    """A volume and its claim for each team and each file system or bucket. Deleting them does not delete data."""
    return tuple(
        Objects(f"volume-{claim}.{team.name}", items, after=(f"namespace-{team.name}",))
        for team in environment.teams
        for claim, items in _claims(environment, team.name, deployed).items()
    )


def bucket_claim(key: str) -> str:
    """Name of the claim of bucket `key` of the environment file, in each team's namespace."""
    return f"{key}-bucket"


def _claims(environment: EksEnvironment, team: str, deployed: DeployedResources) -> dict[str, tuple[Object, Object]]:
    claims = {}
    if deployed.file_system:
        claims[FILE_SYSTEM_CLAIM] = _file_system(environment, team, deployed.file_system)
    return claims | {bucket_claim(key): _bucket(environment, team, key, name) for key, name in deployed.buckets.items()}


def _file_system(environment: EksEnvironment, team: str, file_system: FileSystem) -> tuple[Object, Object]:
    source = {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": file_system.file_system_id,
        "volumeAttributes": {"dnsname": file_system.dns_name, "mountname": file_system.mount_name},
    }
    return _volume_and_claim(environment, team, FILE_SYSTEM_CLAIM, source, FILE_SYSTEM_OPTIONS)


def _bucket(environment: EksEnvironment, team: str, key: str, bucket: str) -> tuple[Object, Object]:
    """A bucket: any user of a pod can read it and write new objects, but cannot delete or overwrite objects.

    The volume's name is its handle, because Kubernetes treats volumes with the same handle as one.
    """
    claim = bucket_claim(key)
    source = {
        "driver": "s3.csi.aws.com",
        "volumeHandle": _volume_name(environment, team, claim),
        "volumeAttributes": {"bucketName": bucket},
    }
    options = [f"region {environment.region}", "allow-other"]
    return _volume_and_claim(environment, team, claim, source, options)


def _volume_and_claim(
    environment: EksEnvironment, team: str, claim_name: str, source: Object, options: list[str]
) -> tuple[Object, Object]:
    """A volume and the only claim that can bind to it."""
    name = _volume_name(environment, team, claim_name)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": NOMINAL_SIZE},
            "claimRef": {"namespace": team, "name": claim_name},
            "csi": source,
            "mountOptions": options,
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name, "namespace": team},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": NOMINAL_SIZE}},
            "storageClassName": "",
            "volumeName": name,
        },
    }
    return volume, claim


def _volume_name(environment: EksEnvironment, team: str, claim: str) -> str:
    """Name of a volume, unique in the cluster: no name of a claim or a team has a dot."""
    return f"{environment.name}-{claim}.{team}"
