"""Boot scripts of every shipped environment: they fit into what EC2 and PCS take, and run."""

from email import message_from_string

import pytest

from tests.synthesis import FILES
from tests.unit.nodes.machine import Machine, syntax_errors
from ultracluster.config.eks import Eks
from ultracluster.config.loader import load
from ultracluster.kubernetes.labels import GPU_TAINT, node_labels
from ultracluster.nodes.eks import group_user_data, karpenter_node_user_data, system_node_user_data
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.pcs import (
    compute_node_steps,
    compute_node_user_data,
    login_node_steps,
    login_node_user_data,
)

ENVIRONMENTS = {name: load(file) for name, file in FILES.items()}
EKS = {name: found for name, found in ENVIRONMENTS.items() if isinstance(found.control_plane, Eks)}
PCS = {name: found for name, found in ENVIRONMENTS.items() if name not in EKS}


def eks_documents(environment):
    settings, lustre = environment.control_plane, environment.storage.lustre
    gpu_nodes = [
        group_user_data(
            group, labels=node_labels(group.name, settings), taints=[GPU_TAINT], lustre=lustre, cluster=None
        )
        for group in environment.node_groups
    ]
    karpenter = [karpenter_node_user_data(group.hardware, lustre=lustre) for group in environment.node_groups]
    return [*gpu_nodes, system_node_user_data(lustre=lustre), *karpenter, karpenter_node_user_data(None, lustre=lustre)]


def pcs_steps(environment):
    lustre = environment.storage.lustre
    mounts = [LustreMount("fs-1.fsx.amazonaws.com", "abcdefgh", "/fsx", lustre.efa)] if lustre else []
    groups, region = environment.node_groups, environment.region
    login = login_node_steps(mounts, bootstrap=environment.control_plane.login.boot_scripts, region=region)
    return [login, *(compute_node_steps(group, mounts, region=region) for group in groups)]


DOCUMENTS = {name: eks_documents(found) for name, found in EKS.items()}
DOCUMENTS |= {name: [login_node_user_data(), compute_node_user_data()] for name in PCS}


def scripts(document):
    parts = message_from_string(document).get_payload()
    return [part.get_payload() for part in parts if part.get_content_type() == "text/x-shellscript"]


def test_there_are_both_kinds():
    assert EKS
    assert PCS


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_script_is_valid_bash(name):
    texts = {script for document in DOCUMENTS[name] for script in scripts(document)}
    assert all(text.startswith("#!/bin/bash\n") for text in texts)
    assert syntax_errors(sorted(texts)) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_user_data_fits(name):
    """EC2 takes 16 KiB; EKS adds parts of its own, which take about 2 KiB."""
    assert all(len(document.encode()) < (12 if name in EKS else 16) * 1024 for document in DOCUMENTS[name])


DISTINCT = list(dict.fromkeys(steps for found in PCS.values() for steps in pcs_steps(found)))


@pytest.mark.parametrize("number", range(len(DISTINCT)))
def test_first_boot_and_reboot_succeed_on_pcs(number, tmp_path):
    # scripts of users would change this machine: their paths are not inside the folder
    # and containers need more commands than this machine has: tests/engines runs their step
    steps = [step for step in DISTINCT[number] if step.own_text is None and step.name != "set-up-containers"]
    machine = Machine(tmp_path, instance_store=8, dlami=True)
    machine.write("etc/systemd/system/nvidia-imex.service", "[Service]\nExecStart=/bin/true\n")
    machine.systemctl("daemon-reload")
    assert machine.boot(steps) == [step.name for step in steps]
    machine.reboot()
    again = [step.name for step in steps if step.frequency == "every_boot"]
    assert machine.boot(steps, first=False) == again


@pytest.mark.parametrize("name", PCS)
def test_pcs_takes_the_arguments_of_every_step(name):
    """At most 20 scripts a stage with 20 arguments of 256 characters (PCS API Reference, NodeLifecycleScript)."""
    for steps in pcs_steps(PCS[name]):
        assert len(steps) <= 20
        for step in steps:
            assert len(step.arguments) <= 20
            assert all(0 < len(argument) <= 256 for argument in step.arguments)
