"""Whole fleets, each in one file with `extends`: groups of every kind, homes, people and existing things."""

from pathlib import Path

import pytest

from localaws.resources import client
from tests.deployment.in_process import deployed_as
from tests.synthesis import synthesise
from ultracluster.config.loader import load

FOLDER = Path(__file__).parent / "fleets"
GROUPS = {"slurm": ("pcs", "list_compute_node_groups"), "kubernetes": ("eks", "list_nodegroups")}


@pytest.mark.parametrize("name", GROUPS)
def test_a_whole_fleet_is_accepted_and_deploys(name):
    environment = load(FOLDER / f"{name}.yaml")
    with deployed_as(environment, synthesise(environment)):
        account = environment.account
        stacks = client("cloudformation", environment.region, account).describe_stacks()["Stacks"]
        assert {stack["StackStatus"] for stack in stacks} == {"CREATE_COMPLETE"}
        systems = client("fsx", environment.region, account).describe_file_systems()["FileSystems"]
        kinds = sorted((each["FileSystemType"], each["StorageCapacity"]) for each in systems)
        assert kinds == [("LUSTRE", 1200), ("LUSTRE", 4800), ("LUSTRE", 19200), ("OPENZFS", 512)]
        hosts = client("ec2", environment.region, account).describe_instances()["Reservations"]
        assert len(hosts) == 1
