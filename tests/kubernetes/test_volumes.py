"""Volumes and claims of teams."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from tests.kubernetes.environments import P5, eks_environment
from tests.kubernetes.schemas import check
from ultracluster.config.buckets import Bucket
from ultracluster.config.lustre import S3Link
from ultracluster.kubernetes.deployed import DeployedResources, FileSystem
from ultracluster.kubernetes.folders import FOLDERS, NAMESPACE, link_claim, lustre_mounts
from ultracluster.kubernetes.labels import FILE_SYSTEM_CLAIM
from ultracluster.kubernetes.queues import team_and_queue_objects
from ultracluster.kubernetes.releases import releases
from ultracluster.kubernetes.volumes import bucket_claim, prefix_claim, storage_class, volumes

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Names of volumes and claims (Kubernetes, "Object Names and IDs")."""

TEAMS = [
    {"name": "c", "node_groups": ["train"], "gpus": 8},
    {"name": "b-c", "node_groups": ["train"], "gpus": 8, "user": "2001:2002"},
]
BUCKETS = ("a", "a-b", "training", "logs-")
LINKS = [
    {"path": "/a", "bucket": "a", "import_events": ["new"]},
    {"path": "/out", "bucket": "a-b", "export_events": ["new", "changed"]},
    {"path": "/both/", "bucket": "training", "import_events": ["new"], "export_events": ["new"]},
]
EVERY_CLAIM = {FILE_SYSTEM_CLAIM, "a-link", "out-link", "both-link"} | {
    name for key in BUCKETS for name in (bucket_claim(key), prefix_claim(key))
}


def linked(environment):
    links = tuple(S3Link.model_validate(link) for link in LINKS)
    lustre = environment.storage.lustre.model_copy(update={"links": links})
    return replace(environment, storage=environment.storage.model_copy(update={"lustre": lustre}))


ENVIRONMENT = linked(eks_environment(P5, lustre=True, buckets=BUCKETS, teams=TEAMS))
FILE_SYSTEM = FileSystem("fs-0123456789abcdef0", "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com", "abcdefgh")
DEPLOYED = DeployedResources("test-1", FILE_SYSTEM, {name: f"test-{name}-bucket-1" for name in BUCKETS})


@pytest.fixture(scope="module")
def sets():
    return {found.name: found for found in volumes(ENVIRONMENT, DEPLOYED)}


@pytest.fixture(scope="module")
def pairs(sets):
    """Volume and claim, by namespace and name of the claim."""
    items = [item for found in sets.values() for item in found.items]
    by_name = {item["metadata"]["name"]: item for item in items if item["kind"] == "PersistentVolume"}
    claims = [item for item in items if item["kind"] == "PersistentVolumeClaim"]
    assert len(by_name) == len(claims)
    return {
        (claim["metadata"]["namespace"], claim["metadata"]["name"]): (by_name[claim["spec"]["volumeName"]], claim)
        for claim in claims
    }


def test_every_object_follows_the_schema_of_kubernetes(sets):
    for found in sets.values():
        for item in found.items:
            check(item)


def test_each_folder_and_bucket_is_a_set_of_its_own_after_its_namespace(sets):
    """Removing a file system, link or bucket from the file removes its volumes and no others."""
    namespaces = {found.name for found in team_and_queue_objects(ENVIRONMENT)}
    charts = {release.name for release in releases(ENVIRONMENT, DEPLOYED)}
    folders = {FOLDERS, f"{FOLDERS}-training"}
    assert len(sets) == len(folders) + 2 * (1 + len(LINKS) + len(BUCKETS))
    assert {"volume-training.c", "volume-training.b-c", "volume-out-link.c", "volume-a-bucket.c"} <= set(sets)
    for found in sets.values():
        assert set(found.after) <= namespaces | charts | folders


def test_names_are_valid_and_unique(sets):
    metadata = [item["metadata"] for found in sets.values() for item in found.items]
    names = Counter((found.get("namespace"), found["name"]) for found in metadata)
    assert set(names.values()) == {1}
    assert all(SUBDOMAIN.fullmatch(name) and len(name) <= 63 for _, name in names)


def test_every_team_has_the_same_claims(pairs):
    for team in ("c", "b-c"):
        assert {claim for namespace, claim in pairs if namespace == team} == EVERY_CLAIM


def test_a_volume_binds_only_to_its_claim(pairs):
    for (namespace, name), (volume, claim) in pairs.items():
        assert volume["spec"]["claimRef"] == {"namespace": namespace, "name": name}
        assert volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"] == ""
        assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadWriteMany"]
        assert volume["spec"]["capacity"]["storage"] == claim["spec"]["resources"]["requests"]["storage"]


def test_growing_the_file_system_changes_no_claim():
    """A claim without a storage class cannot be enlarged, so its size must not follow the file system's."""
    lustre = ENVIRONMENT.storage.lustre.model_copy(update={"capacity_gib": 9600})
    storage = ENVIRONMENT.storage.model_copy(update={"lustre": lustre})
    assert volumes(replace(ENVIRONMENT, storage=storage), DEPLOYED) == volumes(ENVIRONMENT, DEPLOYED)


def test_data_is_retained_when_a_volume_is_deleted(pairs):
    assert {volume["spec"]["persistentVolumeReclaimPolicy"] for volume, _ in pairs.values()} == {"Retain"}


def test_a_team_mounts_only_its_folder_of_the_file_system(pairs):
    for team in ("c", "b-c"):
        volume, _ = pairs[team, FILE_SYSTEM_CLAIM]
        source = volume["spec"]["csi"]
        assert source["driver"] == "fsx.csi.aws.com"
        assert source["volumeAttributes"] == {"dnsname": FILE_SYSTEM.dns_name, "mountname": f"abcdefgh/teams/{team}"}
        assert volume["spec"]["mountOptions"] == ["relatime", "flock"]


def test_only_the_folders_namespace_mounts_the_whole_file_system(pairs):
    whole = [
        namespace
        for (namespace, _), (volume, _) in pairs.items()
        if volume["spec"]["csi"]["volumeAttributes"].get("mountname") == "abcdefgh"
    ]
    assert whole == [NAMESPACE]


def test_a_team_writes_only_its_folder_of_a_link_that_exports(pairs):
    for link, folder in (("out-link", "out"), ("both-link", "both")):
        spec = pairs["c", link][0]["spec"]
        assert spec["csi"]["volumeAttributes"]["mountname"] == f"abcdefgh/{folder}/teams/c"
        assert "ro" not in spec["mountOptions"]


def test_a_link_that_only_imports_is_read_only_for_every_team(pairs):
    """The kubelet ignores `readOnly` of a persistent volume; the driver mounts with the volume's options."""
    spec = pairs["c", "a-link"][0]["spec"]
    assert spec["csi"]["volumeAttributes"]["mountname"] == "abcdefgh/a"
    assert "ro" in spec["mountOptions"]
    assert "readOnly" not in spec["csi"]


def test_a_pod_can_mount_several_folders_of_the_file_system(pairs):
    """Kubernetes mounts volumes with the same handle once in a pod, so handles differ."""
    handles = Counter(volume["spec"]["csi"]["volumeHandle"] for volume, _ in pairs.values())
    assert set(handles.values()) == {1}


def test_pods_mount_linked_folders_where_slurm_nodes_see_them():
    paths = {"training": "/fsx", "a-link": "/fsx/a", "out-link": "/fsx/out", "both-link": "/fsx/both"}
    assert dict(lustre_mounts(ENVIRONMENT.storage.lustre)) == paths


def test_a_link_of_the_root_folder_is_no_folder_of_its_own():
    lustre = ENVIRONMENT.storage.lustre.model_copy(update={"links": (S3Link(path="/", bucket="a"),)})
    assert lustre_mounts(lustre) == (("training", "/fsx"),)


def test_claims_of_links_have_distinct_valid_names():
    paths = ["/a", "/A", "/a_b", "/a/b", "/a-b", "/Ä", "/" + "x" * 254, "/" + "x" * 255]
    names = [link_claim(S3Link(path=path, bucket="a")) for path in paths]
    assert len(set(names)) == len(names)
    assert all(SUBDOMAIN.fullmatch(name) and len(name) <= 63 for name in names)
    assert names[0] == "a-link"


def test_mountpoint_uses_the_role_of_the_pod(pairs):
    attributes = [
        volume["spec"]["csi"]["volumeAttributes"]
        for volume, _ in pairs.values()
        if volume["spec"]["csi"]["driver"] == "s3.csi.aws.com"
    ]
    assert len(attributes) == 2 * 2 * len(BUCKETS)
    assert {found["authenticationSource"] for found in attributes} == {"pod"}


def test_a_team_reads_the_whole_bucket_and_writes_only_its_prefix(pairs):
    whole, own = (pairs["c", claim("a")][0]["spec"] for claim in (bucket_claim, prefix_claim))
    assert whole["csi"]["volumeAttributes"]["bucketName"] == own["csi"]["volumeAttributes"]["bucketName"]
    assert "read-only" in whole["mountOptions"]
    assert not [option for option in whole["mountOptions"] if option.startswith("prefix")]
    assert "prefix teams/c/" in own["mountOptions"]
    assert "read-only" not in own["mountOptions"]


@pytest.mark.parametrize(
    ("team", "modes"),
    [
        ("c", ["dir-mode 777", "file-mode 666"]),
        ("b-c", ["uid 2001", "gid 2002", "dir-mode 770", "file-mode 660"]),
    ],
)
def test_users_of_a_pod_can_write_to_a_bucket_as_the_team_wants(pairs, team, modes):
    options = pairs[team, prefix_claim("a")][0]["spec"]["mountOptions"]
    assert "allow-other" in options
    assert options[-len(modes) :] == modes


def test_mountpoint_is_told_its_bandwidth_and_region(pairs):
    """It has no access to the instance metadata, so it would assume 10 Gbps."""
    options = pairs["c", bucket_claim("a")][0]["spec"]["mountOptions"]
    assert "region us-east-2" in options
    assert "maximum-throughput-gbps 100" in options


def test_a_bucket_named_like_the_file_systems_claim_does_not_replace_it(pairs):
    assert pairs["c", FILE_SYSTEM_CLAIM][0]["spec"]["csi"]["driver"] == "fsx.csi.aws.com"
    assert pairs["c", bucket_claim("training")][0]["spec"]["csi"]["driver"] == "s3.csi.aws.com"


def test_without_storage_there_are_no_volumes():
    assert volumes(eks_environment(), DeployedResources("test-1")) == ()


def test_the_default_storage_class_makes_encrypted_volumes_in_the_zone_of_the_pod():
    (made,) = storage_class().items
    check(made)
    assert made["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert made["parameters"] == {"type": "gp3", "encrypted": "true"}
    assert made["volumeBindingMode"] == "WaitForFirstConsumer"


@pytest.mark.parametrize(
    ("access", "options"),
    [("read", {"read-only"}), ("write", set()), ("write_and_delete", {"allow-delete", "allow-overwrite"})],
)
def test_mountpoint_does_in_a_teams_prefix_what_the_bucket_allows(access, options):
    changed = ENVIRONMENT.storage.model_copy(update={"buckets": dict.fromkeys(BUCKETS, Bucket(access=access))})
    parts = {part.name: part.items for part in volumes(replace(ENVIRONMENT, storage=changed), DEPLOYED)}
    specs = [item["spec"] for item in parts[f"volume-{bucket_claim('a')}.c"] if item["kind"] == "PersistentVolume"]
    mounts = {spec["claimRef"]["name"]: set(spec["mountOptions"]) for spec in specs}
    special = {"read-only", "allow-delete", "allow-overwrite"}
    assert mounts[prefix_claim("a")] & special == options
    assert mounts[bucket_claim("a")] & special == {"read-only"}
