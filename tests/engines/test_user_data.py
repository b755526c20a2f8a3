"""cloud-init executes the user data of nodes."""

import pytest

from tests.engines.debian import WORKING
from tests.unit.nodes.test_eks import EVERY_DOCUMENT
from ultracluster.nodes.eks_boot import READY
from ultracluster.nodes.mime import BOUNDARY
from ultracluster.nodes.pcs import compute_node_user_data, login_node_user_data

PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
LINK = READY.replace("/instance/", "/instances/i-0123456789abcdef0/")


def test_cloud_init_fences_slurmd_of_a_compute_node_and_leaves_upgrades_to_people(debian):
    debian.stub(WORKING)
    debian.cloud_init(compute_node_user_data())
    assert debian.read("/etc/needrestart/conf.d/slurmd.conf") == "$nrconf{override_rc}{qr(^slurmd)} = 0;\n"
    assert "ExecStartPre=/usr/bin/test -e /run/ultracluster/ready" in debian.read(
        "/etc/systemd/system/slurmd.service.d/ultracluster.conf"
    )
    called = [command for command in debian.stubs_called() if "systemctl" in command]
    # the wait for the network is cloud-init's own
    assert [command for command in called if "wait-online" not in command] == ["systemctl daemon-reload"]


def test_what_pcs_writes_with_its_own_part_stays(debian):
    debian.stub(WORKING)
    configuration = "#cloud-config\nwrite_files: [{path: /etc/amazon/pcs/bootstrap_config.json, content: pcs}]\n"
    part = f"--{BOUNDARY}\nContent-Type: text/cloud-config\n\n{configuration}\n"
    debian.cloud_init(compute_node_user_data().replace(f"--{BOUNDARY}\n", f"{part}--{BOUNDARY}\n", 1))
    assert debian.exists("/etc/amazon/pcs/bootstrap_config.json")
    assert debian.exists("/etc/needrestart/conf.d/slurmd.conf")


def test_apt_reads_which_packages_unattended_upgrades_must_leave_alone(debian):
    debian.cloud_init(login_node_user_data())
    dump = debian.run("apt-config", "dump", "Unattended-Upgrade::Package-Blacklist").stdout
    assert 'Package-Blacklist:: "linux-";' in dump
    assert 'Package-Blacklist:: "lustre-client";' in dump


@pytest.mark.parametrize("name", ["p5en.48xlarge", "system", "cpu", "karpenter"])
def test_cloud_init_runs_every_step_of_an_eks_node(debian, name):
    debian.stub(WORKING | {"cat": f'if [ "$*" = {PAGES} ]; then echo 5128; else exec /usr/bin/cat "$@"; fi'})
    said = debian.cloud_init(EVERY_DOCUMENT[name])
    assert "failed" not in said
    assert debian.exists(LINK) == (name != "system")
    assert "systemctl poweroff" not in debian.stubs_called()
    assert "rpm -q lustre-client" in debian.stubs_called()


@pytest.mark.parametrize("name", ["p5en.48xlarge", "cpu", "karpenter"])
def test_an_eks_node_on_which_a_step_fails_powers_off(debian, name):
    failing = {"rpm": "exit 1", "sleep": ""}
    debian.stub(WORKING | failing | {"cat": f'if [ "$*" = {PAGES} ]; then echo 5128; else exec /usr/bin/cat "$@"; fi'})
    said = debian.cloud_init(EVERY_DOCUMENT[name])
    assert "ultracluster: step install-lustre-client failed" in said
    assert debian.stubs_called()[-1] == "systemctl poweroff"
    assert not debian.exists(LINK)
