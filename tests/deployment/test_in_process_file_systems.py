"""Homes, further and existing file systems, deployed in this process in an existing VPC."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
import yaml

from localaws import accounts, local_aws
from tests.deployment.in_process import client, create, failures, in_order, objects, prepare
from tests.synthesis import synthesise
from ultracluster.config.environment import Environment

FOLDER = Path(__file__).parents[1] / "unit" / "config"
PLANES = {"pcs": "minimal.yaml", "eks": "minimal-eks.yaml"}
REGION = "us-east-2"
STORAGE = {
    "home": {"type": "openzfs", "capacity_gib": 512, "throughput_mbps": 320},
    "lustre": {"capacity_gib": 9600, "throughput_mbps_per_tib": 500, "efa": True},
    "more": [
        {"name": "scratch", "type": "lustre", "deployment": "scratch_2", "capacity_gib": 2400, "mount_path": "/work"},
        {"name": "tools", "type": "efs", "mount_path": "/tools"},
        {"name": "models", "type": "lustre", "mount_path": "/models", "read_only": True},
        {"name": "old", "type": "openzfs", "mount_path": "/old", "volume": "/fsx/data"},
        {"name": "shared", "type": "efs", "mount_path": "/shared"},
    ],
    "backups": {"retention_days": 7, "window": "05:00"},
    "maintenance_window": "sun:06:00",
}


def existing_network() -> tuple[dict[str, Any], str]:
    """Creates a VPC and a security group for file servers. Returns the section of the file, and the group's id."""
    ec2 = boto3.client("ec2", region_name=REGION)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{i * 16}.0/20", AvailabilityZone=f"{REGION}{zone}")["Subnet"]
        for i, zone in enumerate("bac")
    ]
    node, *others = (subnet["SubnetId"] for subnet in subnets)
    group = ec2.create_security_group(VpcId=vpc, GroupName="servers", Description="File servers")["GroupId"]
    rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=[rule])
    return {"existing": {"vpc_id": vpc, "node_subnet_id": node, "control_plane_subnet_ids": others}}, group


def existing_file_systems(subnet: str, group: str) -> dict[str, str]:
    """Creates file systems before the environment. Returns their ids by the names in STORAGE."""
    fsx, efs = (boto3.client(service, region_name=REGION) for service in ("fsx", "efs"))
    place = {"SubnetIds": [subnet], "SecurityGroupIds": [group]}
    lustre = fsx.create_file_system(
        FileSystemType="LUSTRE", StorageCapacity=1200, LustreConfiguration={"DeploymentType": "SCRATCH_2"}, **place
    )
    openzfs = fsx.create_file_system(
        FileSystemType="OPENZFS",
        StorageCapacity=64,
        OpenZFSConfiguration={"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 64},
        **place,
    )
    elastic = efs.create_file_system(CreationToken=str(uuid4()), Encrypted=True)
    return {
        "models": lustre["FileSystem"]["FileSystemId"],
        "old": openzfs["FileSystem"]["FileSystemId"],
        "shared": elastic["FileSystemId"],
    }


def environment_of(plane: str, network: dict[str, Any], ids: dict[str, str], group: str) -> Environment:
    settings = yaml.safe_load((FOLDER / PLANES[plane]).read_text("utf-8"))
    more = [
        {**each, **({"existing": ids[each["name"]], "security_group": group} if each["name"] in ids else {})}
        for each in STORAGE["more"]
    ]
    return Environment(**{**settings, "network": network, "storage": {**STORAGE, "more": more}})


@contextmanager
def deployed_beside(plane: str) -> Iterator[tuple[Environment, dict[str, str]]]:
    """Deploys an environment of a control plane beside existing file systems, whose ids it yields too."""
    with local_aws(accounts.DEFAULT):
        network, group = existing_network()
        ids = existing_file_systems(network["existing"]["node_subnet_id"], group)
        environment = environment_of(plane, network, ids, group)
        parts = synthesise(environment)
        prepare(environment, parts)
        for part in in_order(parts):
            status = create(environment, part, parts[part])
            assert status == "CREATE_COMPLETE", (part, status, failures(environment, part))
        yield environment, ids


def test_a_deployment_fails_where_the_existing_file_system_is_not_lustre():
    with local_aws(accounts.DEFAULT):
        network, group = existing_network()
        ids = existing_file_systems(network["existing"]["node_subnet_id"], group)
        environment = environment_of("pcs", network, {**ids, "models": ids["old"], "old": ids["models"]}, group)
        parts = synthesise(environment)
        prepare(environment, parts)
        assert create(environment, "network", parts["network"]) == "CREATE_COMPLETE"
        assert create(environment, "storage", parts["storage"]) == "ROLLBACK_COMPLETE"
        assert any(
            "is a file system of type OPENZFS, not LUSTRE" in why for why in failures(environment, "storage").values()
        )


@pytest.fixture(scope="module", params=PLANES)
def both(request):
    with deployed_beside(request.param) as found:
        yield found


def file_systems(environment, ids) -> dict[str, dict[str, Any]]:
    """Those of FSx that the environment created, by deployment type."""
    found = client(environment, "fsx").describe_file_systems()["FileSystems"]
    new = [each for each in found if each["FileSystemId"] not in ids.values()]
    return {(each.get("LustreConfiguration") or each["OpenZFSConfiguration"])["DeploymentType"]: each for each in new}


def test_the_new_file_systems_have_the_sizes_of_the_file(both):
    environment, ids = both
    found = file_systems(environment, ids)
    assert {name: each["StorageCapacity"] for name, each in found.items()} == {
        "SINGLE_AZ_HA_2": 512,
        "PERSISTENT_2": 9600,
        "SCRATCH_2": 2400,
    }
    assert found["SINGLE_AZ_HA_2"]["OpenZFSConfiguration"]["ThroughputCapacity"] == 320


def test_backups_and_maintenance_apply_to_what_can_have_them(both):
    environment, ids = both
    found = file_systems(environment, ids)
    homes, first = found["SINGLE_AZ_HA_2"]["OpenZFSConfiguration"], found["PERSISTENT_2"]["LustreConfiguration"]
    for each in (homes, first):
        assert (each["AutomaticBackupRetentionDays"], each["DailyAutomaticBackupStartTime"]) == (7, "05:00")
        assert each["WeeklyMaintenanceStartTime"] == "7:06:00"
    scratch = found["SCRATCH_2"]["LustreConfiguration"]
    assert not scratch.get("AutomaticBackupRetentionDays")
    assert scratch["WeeklyMaintenanceStartTime"] == "7:06:00"


def test_homes_keep_root_and_are_encrypted_with_the_key_of_the_stack(both):
    environment, ids = both
    homes = file_systems(environment, ids)["SINGLE_AZ_HA_2"]
    assert homes["KmsKeyId"] == file_systems(environment, ids)["PERSISTENT_2"]["KmsKeyId"]
    fsx = client(environment, "fsx")
    (root,) = fsx.describe_volumes(VolumeIds=[homes["OpenZFSConfiguration"]["RootVolumeId"]])["Volumes"]
    (export,) = root["OpenZFSConfiguration"]["NfsExports"]
    assert export["ClientConfigurations"] == [{"Clients": "*", "Options": ["rw", "crossmnt", "no_root_squash"]}]


def test_efs_has_a_mount_target_in_the_subnet_of_the_nodes(both):
    environment, ids = both
    efs = client(environment, "efs")
    (new,) = (each for each in efs.describe_file_systems()["FileSystems"] if each["FileSystemId"] != ids["shared"])
    (target,) = efs.describe_mount_targets(FileSystemId=new["FileSystemId"])["MountTargets"]
    assert target["SubnetId"] == environment.network.existing.node_subnet_id
    assert (new["Encrypted"], new["ThroughputMode"]) == (True, "elastic")
    backups = efs.describe_backup_policy(FileSystemId=new["FileSystemId"])["BackupPolicy"]
    assert backups == {"Status": "ENABLED"}


def ports_into(environment, group: str) -> set[tuple[str, int]]:
    (found,) = client(environment, "ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    return {(rule["IpProtocol"], rule.get("FromPort", 0)) for rule in found["IpPermissions"]}


def test_the_group_of_existing_file_servers_lets_the_nodes_in(both):
    environment, _ = both
    ec2 = client(environment, "ec2")
    (group,) = ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": ["servers"]}])["SecurityGroups"]
    expected = {("tcp", 988), ("tcp", 1018), ("tcp", 111), ("udp", 111), ("tcp", 2049), ("udp", 2049)}
    assert expected <= ports_into(environment, group["GroupId"])


def mounts_of_pcs(environment) -> dict[str, list[str]]:
    """What the steps of each node group mount, by the group's name without its hash."""
    pcs = client(environment, "pcs")
    (cluster,) = pcs.list_clusters()["clusters"]
    found = {}
    for group in pcs.list_compute_node_groups(clusterIdentifier=cluster["id"])["computeNodeGroups"]:
        described = pcs.get_compute_node_group(clusterIdentifier=cluster["id"], computeNodeGroupIdentifier=group["id"])
        actions = described["computeNodeGroup"]["nodeLifecycleActions"]["stages"]["nodeBootstrapped"]
        found[group["name"].rpartition("-")[0]] = [
            argument
            for action in actions
            if action["name"] in ("mount-nfs", "mount-lustre")
            for argument in action["arguments"]
            if " " in argument
        ]
    return found


def check_slurm(environment, ids):
    """Every node and login node mounts all file systems."""
    mounts = mounts_of_pcs(environment)
    (models,) = client(environment, "fsx").describe_file_systems(FileSystemIds=[ids["models"]])["FileSystems"]
    name = models["LustreConfiguration"]["MountName"]
    assert mounts["train"] == mounts["login"]
    assert [each.split()[1] for each in mounts["train"]] == [
        *("/home", "/tools", "/old", "/shared", "/fsx", "/work", "/models"),
    ]
    old, shared, model = (mounts["train"][i] for i in (2, 3, 6))
    assert old.startswith(f"{ids['old']}.fsx.us-east-2.amazonaws.com:/fsx/data /old nfsvers=4.2,")
    assert shared.startswith(f"{ids['shared']}.efs.us-east-2.amazonaws.com:/ /shared nfsvers=4.1,")
    assert model == f"{models['DNSName']}@tcp:/{name} /models relatime,flock,_netdev,ro"


def check_kubernetes(environment, ids):
    """Each team has volumes of all file systems."""
    found, homes = objects(environment), file_systems(environment, ids)["SINGLE_AZ_HA_2"]["DNSName"]
    volumes = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "PersistentVolume"}
    own = {name: spec for name, spec in volumes.items() if name.endswith(".research")}
    assert set(own) == {
        f"test-{claim}.research"
        for claim in ("training", "home", *(f"{each['name']}-files" for each in STORAGE["more"]))
    }
    assert own["test-home.research"]["nfs"] == {"server": homes, "path": "/fsx/teams/research"}
    assert own["test-old-files.research"]["nfs"]["path"] == "/fsx/data"
    assert own["test-tools-files.research"]["nfs"]["path"] == "/teams/research"
    assert own["test-models-files.research"]["mountOptions"][-1] == "ro"
    assert own["test-models-files.research"]["csi"]["volumeHandle"].startswith(ids["models"])
    assert any(each["kind"] == "ValidatingAdmissionPolicy" for each in found)
    jobs = {json.dumps(each) for each in found if each["kind"] == "Job"}
    assert sum("'/lustre/teams/research'" in job for job in jobs) == 4


def test_all_file_systems_are_mounted(both):
    environment, ids = both
    {"pcs": check_slurm, "eks": check_kubernetes}[environment.control_plane.type](environment, ids)
