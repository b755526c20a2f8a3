"""Volumes and claims of each team: its folders of file systems, and its prefix of each bucket.

What a pod mounts is what its team may reach: a team can neither create volumes nor change the folder that one mounts.
Pods of several teams can mount the same file system on a node: the FSx CSI driver does not stage volumes and tells
them apart by their mount path.

Source: aws-fsx-csi-driver 1.9, static provisioning and node service; mountpoint-s3-csi-driver 2.7, CONFIGURATION.md.
"""

from ultracluster.config.eks import Team
from ultracluster.kubernetes.claims import file_system_claim, volume_and_claim, volume_name
from ultracluster.kubernetes.deployed import DeployedResources, FileSystem
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.file_systems import nfs_policy, team_volumes, whole_volumes
from ultracluster.kubernetes.folders import (
    NAMESPACE,
    before_jobs,
    folder_objects,
    link_claim,
    link_folder,
    link_folder_job,
    own_folder_job,
    team_folder,
    team_links,
    team_prefix,
)
from ultracluster.kubernetes.labels import FILE_SYSTEM_CLAIM
from ultracluster.kubernetes.parts import Object, Objects


def volumes(environment: EksEnvironment, deployed: DeployedResources) -> tuple[Objects, ...]:
    """A set for each team and each folder or bucket. Deleting one deletes no data."""
    first = deployed.file_system
    whole = {FILE_SYSTEM_CLAIM: file_system_claim(environment, NAMESPACE, FILE_SYSTEM_CLAIM, first)} if first else {}
    volumes = {**whole, **whole_volumes(environment, deployed)}
    folders = folder_objects(volumes) if volumes else ()
    jobs = before_jobs(environment, folders) if folders else ()
    policy = (nfs_policy(),) if environment.storage.nfs else ()
    return (
        *policy,
        *folders,
        *(part for team in environment.teams for part in _of_team(environment, team, deployed, jobs)),
    )


def storage_class() -> Objects:
    """The default StorageClass: encrypted gp3 volumes of EBS, in the zone of the node that mounts them."""
    volume = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "gp3", "encrypted": "true"},
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": True,
    }
    return Objects("storage-class", (volume,))


def bucket_claim(key: str) -> str:
    """Name of the read-only claim of all of bucket `key` of the environment file, in each team's namespace."""
    return f"{key}-bucket"


def prefix_claim(key: str) -> str:
    """Name of the claim of a team's prefix in bucket `key`, in the team's namespace."""
    return f"{key}-team"


def _of_team(
    environment: EksEnvironment, team: Team, deployed: DeployedResources, jobs: tuple[str, ...]
) -> list[Objects]:
    namespace = (f"namespace-{team.name}",)
    folders = _folders(environment, team, deployed.file_system) if deployed.file_system else {}
    folders |= team_volumes(environment, team, deployed)
    return [
        *(Objects(_set_name(claim, team), items, after=(*namespace, *jobs)) for claim, items in folders.items()),
        *(
            Objects(_set_name(bucket_claim(key), team), _bucket(environment, team, key, name), after=namespace)
            for key, name in deployed.buckets.items()
        ),
    ]


def _set_name(claim: str, team: Team) -> str:
    return f"volume-{claim}.{team.name}"


def _folders(environment: EksEnvironment, team: Team, file_system: FileSystem) -> dict[str, tuple[Object, ...]]:
    """Objects by claim. A folder that only receives objects from S3 is shared by all teams, and read-only."""
    lustre = environment.storage.lustre
    if lustre is None:
        return {}
    own = file_system_claim(environment, team.name, FILE_SYSTEM_CLAIM, file_system, folder=team_folder(team.name))
    found: dict[str, tuple[Object, ...]] = {FILE_SYSTEM_CLAIM: (own_folder_job(environment, team, lustre), *own)}
    for link in team_links(lustre):
        claim = link_claim(link)
        mounted = file_system_claim(
            environment,
            team.name,
            claim,
            file_system,
            folder=link_folder(link, team.name),
            read_only=not link.export_events,
        )
        jobs = (link_folder_job(environment, team, link),) if link.export_events else ()
        found[claim] = (*jobs, *mounted)
    return found


def _bucket(environment: EksEnvironment, team: Team, key: str, bucket: str) -> tuple[Object, ...]:
    """A team's prefix of a bucket, to which it adds objects, and the whole bucket, which it only reads.

    Mountpoint deletes and overwrites objects only where the options allow it. The claim of the prefix exists with
    `access: read` too, read-only: a set of objects that shrinks leaves what it lacks. Mountpoint uses the role of the
    pod that mounts the volume, and then it cannot ask the instance for its bandwidth: without a figure it expects 10
    Gbps. The driver takes the Region of `region` for STS too.
    """
    common = [f"region {environment.region}", "allow-other", f"maximum-throughput-gbps {_gbps(environment, team)}"]
    rights = {"read": ["read-only"], "write": [], "write_and_delete": ["allow-delete", "allow-overwrite"]}
    allowed = rights[environment.storage.buckets[key].access]
    own = [*common, f"prefix {team_prefix(team.name)}", *_owner(team), *allowed]
    return (
        *_mountpoint(environment, team, bucket_claim(key), bucket, [*common, "read-only"]),
        *_mountpoint(environment, team, prefix_claim(key), bucket, own),
    )


def _mountpoint(
    environment: EksEnvironment, team: Team, claim: str, bucket: str, options: list[str]
) -> tuple[Object, Object]:
    """The volume's name is its handle, because Kubernetes treats volumes with the same handle as one."""
    source = {
        "driver": "s3.csi.aws.com",
        "volumeHandle": volume_name(environment, team.name, claim),
        "volumeAttributes": {"bucketName": bucket, "authenticationSource": "pod"},
    }
    return volume_and_claim(environment, team.name, claim, {"csi": source}, options)


def _owner(team: Team) -> list[str]:
    """Owner and modes. Without them, files belong to Mountpoint's own user and no other user can write."""
    if team.user is None:
        return ["dir-mode 777", "file-mode 666"]
    user, group = team.user.split(":")
    return [f"uid {user}", f"gid {group}", "dir-mode 770", "file-mode 660"]


def _gbps(environment: EksEnvironment, team: Team) -> int:
    """Bandwidth that Mountpoint may use: network card 0, where pods have their addresses, of the fastest node."""
    groups = (group for group, _ in environment.quotas(team))
    return max(int(group.hardware.network_cards[0].gbps) for group in groups)
