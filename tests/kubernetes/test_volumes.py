"""Volumes and claims of teams."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from tests.kubernetes.environments import P5, eks_environment
from tests.kubernetes.schemas import check
from ultracluster.kubernetes.deployed import DeployedResources, FileSystem
from ultracluster.kubernetes.labels import FILE_SYSTEM_CLAIM
from ultracluster.kubernetes.queues import team_and_queue_objects
from ultracluster.kubernetes.volumes import bucket_claim, volumes

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Names of volumes and claims (Kubernetes, "Object Names and IDs")."""

TEAMS = [
    {"name": "c", "node_groups": ["train"], "gpus": 8},
    {"name": "b-c", "node_groups": ["train"], "gpus": 8},
]
BUCKETS = ("a", "a-b", "training", "logs-")
ENVIRONMENT = eks_environment(P5, lustre=True, buckets=BUCKETS, teams=TEAMS)
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


def test_each_claim_is_a_set_of_its_own_after_its_namespace(sets):
    """Removing a file system or bucket from the file removes its volumes and no others."""
    namespaces = {found.name for found in team_and_queue_objects(ENVIRONMENT)}
    assert len(sets) == 2 * (1 + len(BUCKETS))
    assert {"volume-training.c", "volume-training.b-c"} <= set(sets)
    for found in sets.values():
        assert set(found.after) <= namespaces


def test_names_are_valid_and_unique(sets):
    metadata = [item["metadata"] for found in sets.values() for item in found.items]
    names = Counter((found.get("namespace"), found["name"]) for found in metadata)
    assert set(names.values()) == {1}
    assert len(names) == 2 * 2 * (1 + len(BUCKETS))
    assert all(SUBDOMAIN.fullmatch(name) for _, name in names)


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


def test_every_team_mounts_the_same_file_system(pairs):
    for team in ("c", "b-c"):
        volume, _ = pairs[team, FILE_SYSTEM_CLAIM]
        assert volume["spec"]["csi"] == {
            "driver": "fsx.csi.aws.com",
            "volumeHandle": "fs-0123456789abcdef0",
            "volumeAttributes": {"dnsname": FILE_SYSTEM.dns_name, "mountname": "abcdefgh"},
        }
        assert volume["spec"]["mountOptions"] == ["relatime", "flock"]


def test_volumes_of_buckets_have_unique_handles(pairs):
    found = [
        volume["spec"]["csi"] for volume, _ in pairs.values() if volume["spec"]["csi"]["driver"] == "s3.csi.aws.com"
    ]
    assert len({source["volumeHandle"] for source in found}) == len(found) == 2 * len(BUCKETS)


def test_pods_can_read_and_add_objects_but_not_delete_them(pairs):
    volume, _ = pairs["c", bucket_claim("a")]
    assert volume["spec"]["csi"]["volumeAttributes"] == {"bucketName": "test-a-bucket-1"}
    assert volume["spec"]["mountOptions"] == ["region us-east-2", "allow-other"]


def test_a_bucket_named_like_the_file_systems_claim_does_not_replace_it(pairs):
    assert pairs["c", FILE_SYSTEM_CLAIM][0]["spec"]["csi"]["driver"] == "fsx.csi.aws.com"
    assert pairs["c", bucket_claim("training")][0]["spec"]["csi"]["driver"] == "s3.csi.aws.com"


def test_without_storage_there_are_no_volumes():
    assert volumes(eks_environment(), DeployedResources("test-1")) == ()
