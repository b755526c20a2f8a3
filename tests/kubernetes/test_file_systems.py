"""Volumes of teams beside the first Lustre file system: homes, and further or existing file systems."""

from dataclasses import replace

import pytest

from tests.kubernetes.environments import P5, eks_environment
from tests.kubernetes.schemas import check
from ultracluster.config.storage import Storage
from ultracluster.kubernetes.deployed import DeployedResources, FileSystem, NfsExport
from ultracluster.kubernetes.file_systems import POLICY, further_mounts, nfs_policy
from ultracluster.kubernetes.folders import FOLDERS, NAMESPACE
from ultracluster.kubernetes.job_pods import file_system_mounts, user_environment
from ultracluster.kubernetes.volumes import volumes

STORAGE = Storage(
    home={"type": "openzfs", "capacity_gib": 512, "throughput_mbps": 320},
    more=(
        {"name": "scratch", "type": "lustre", "deployment": "scratch_2", "capacity_gib": 1200, "mount_path": "/work"},
        {"name": "models", "type": "lustre", "existing": "fs-0123456789abcdef0", "mount_path": "/models"},
        {"name": "data", "type": "efs", "existing": "fs-0123456789abcdef1", "mount_path": "/data", "read_only": True},
    ),
)
TEAMS = [
    {"name": "research", "node_groups": ["train"], "gpus": 8},
    {"name": "product", "node_groups": ["train"], "gpus": 8, "user": "2001:2002"},
]
ENVIRONMENT = replace(eks_environment(P5, teams=TEAMS), storage=STORAGE)
DEPLOYED = DeployedResources(
    "test-1",
    home=NfsExport("fs-9.fsx.us-east-2.amazonaws.com", "/fsx", ("nfsvers=4.2",)),
    more={
        "scratch": FileSystem("fs-1", "fs-1.fsx.us-east-2.amazonaws.com", "aaaaaaaa"),
        "models": FileSystem("fs-0123456789abcdef0", "fs-0.fsx.us-east-2.amazonaws.com", "bbbbbbbb"),
        "data": NfsExport("fs-0123456789abcdef1.efs.us-east-2.amazonaws.com", "/", ("nfsvers=4.1",)),
    },
)


@pytest.fixture(scope="module")
def sets():
    return {found.name: found for found in volumes(ENVIRONMENT, DEPLOYED)}


def of_kind(found, kind):
    return [item for item in found.items if item["kind"] == kind]


def volume(sets, claim, team="research"):
    (found,) = of_kind(sets[f"volume-{claim}.{team}"], "PersistentVolume")
    return found["spec"]


def test_every_object_has_the_form_of_its_kind(sets):
    for found in sets.values():
        for item in found.items:
            check(item)


def test_a_team_mounts_its_own_folder_of_homes_and_of_new_file_systems(sets):
    assert volume(sets, "home")["nfs"] == {"server": DEPLOYED.home.server, "path": "/fsx/teams/research"}
    assert volume(sets, "home")["mountOptions"] == ["nfsvers=4.2"]
    assert volume(sets, "scratch-files")["csi"]["volumeAttributes"]["mountname"] == "aaaaaaaa/teams/research"


def test_a_team_mounts_all_of_an_existing_file_system(sets):
    assert volume(sets, "models-files")["csi"]["volumeAttributes"]["mountname"] == "bbbbbbbb"
    assert volume(sets, "data-files")["nfs"]["path"] == "/"
    assert volume(sets, "data-files")["mountOptions"] == ["nfsvers=4.1", "ro"]


def test_a_job_creates_each_folder_on_the_volume_of_its_file_system(sets):
    """Each whole file system is a set of its own: what leaves a set stays in the cluster."""
    of_jobs = {name: items for name, items in sets.items() if name.startswith(f"{FOLDERS}-")}
    assert set(of_jobs) == {f"{FOLDERS}-home", f"{FOLDERS}-scratch-files"}
    whole = {item["metadata"]["name"] for each in of_jobs.values() for item in of_kind(each, "PersistentVolumeClaim")}
    assert whole == {"home", "scratch-files"}
    for claim in whole:
        (job,) = of_kind(sets[f"volume-{claim}.product"], "Job")
        pod = job["spec"]["template"]["spec"]
        assert job["metadata"]["namespace"] == NAMESPACE
        assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": claim}
        assert "chown 2001:2002 '/lustre/teams/product'" in pod["containers"][0]["command"][-1]
    assert not of_kind(sets["volume-models-files.product"], "Job")
    assert not of_kind(sets["volume-data-files.product"], "Job")


def test_names_of_jobs_differ(sets):
    names = [item["metadata"]["name"] for found in sets.values() for item in of_kind(found, "Job")]
    assert len(names) == len(set(names)) == 2 * len(TEAMS)


def test_pods_mount_them_where_nodes_of_slurm_do():
    mounts = (("home", "/home"), ("scratch-files", "/work"), ("models-files", "/models"), ("data-files", "/data"))
    assert further_mounts(ENVIRONMENT) == file_system_mounts(ENVIRONMENT) == mounts


def test_a_home_is_the_home_of_every_pod():
    research, product = ENVIRONMENT.teams
    assert user_environment(ENVIRONMENT, research) == {"HOME": "/home"}
    assert user_environment(ENVIRONMENT, product) == {"HOME": "/home", "LOGNAME": "product"}
    without = replace(ENVIRONMENT, storage=Storage())
    assert user_environment(without, product) == {"HOME": "/scratch", "LOGNAME": "product"}
    assert user_environment(without, research) == {}


def test_pods_of_teams_name_no_file_server_themselves(sets):
    policy, binding = nfs_policy().items
    assert sets[POLICY].items == (policy, binding)
    (rule,) = policy["spec"]["validations"]
    assert "!has(v.nfs)" in rule["expression"]
    selector = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert selector == [{"key": "ultracluster/team", "operator": "Exists"}]


def test_without_nfs_there_is_no_policy():
    lustre = Storage(more=[each for each in STORAGE.more if each.type == "lustre"])
    found = volumes(replace(ENVIRONMENT, storage=lustre), replace(DEPLOYED, home=None, more={}))
    assert POLICY not in {each.name for each in found}
