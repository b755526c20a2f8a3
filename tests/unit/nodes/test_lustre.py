"""Scripts that mount Lustre (PCS) and prepare its client (EKS): their text, and what they do when they run."""

import pytest

from tests.unit.nodes.machine import Machine, syntax_errors
from ultracluster.catalog import catalog
from ultracluster.nodes.lustre import LustreMount, mount_lustre, prepare_lustre_client

P5EN, P5_SMALL = catalog["p5en.48xlarge"], catalog["p5.4xlarge"]
OVER_EFA = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=True)
OVER_TCP = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=False)
EFA_UNIT = "configure-efa-fsx-lustre-client.service"

PCS_SCRIPTS = [mount_lustre(OVER_EFA, P5EN), mount_lustre(OVER_TCP, P5_SMALL), mount_lustre(OVER_TCP, None)]
EKS_SCRIPTS = [prepare_lustre_client(hardware, efa=efa) for hardware in (P5EN, None) for efa in (True, False)]


@pytest.fixture
def without_efa(tmp_path):
    """A machine on which AWS's EFA client does not start."""
    return Machine(tmp_path, efa=False)


@pytest.mark.parametrize("script", PCS_SCRIPTS + EKS_SCRIPTS)
def test_every_script_is_valid_bash_that_stops_at_the_first_failure(script):
    assert script.startswith("#!/bin/bash\nset -euo pipefail\n")
    assert syntax_errors([script]) == []


@pytest.mark.parametrize("script", PCS_SCRIPTS + EKS_SCRIPTS)
def test_every_script_can_run_twice(machine, script):
    for _ in range(2):
        ran = machine.run(script)
        assert (ran.returncode, ran.stderr) == (0, "")


# PCS


def test_fstab_mounts_lustre_with_relatime_flock_and_netdev(machine):
    assert machine.run(mount_lustre(OVER_TCP, None)).returncode == 0
    (entry,) = machine.fstab
    device, path, kind, options, *_ = entry.split()
    assert (device, path, kind) == ("fs-1.fsx.us-east-2.amazonaws.com@tcp:/abcdefgh", "/fsx", "lustre")
    assert options.split(",")[:3] == ["relatime", "flock", "_netdev"]
    assert machine.mounts == ["/fsx"]


def test_the_mount_over_efa_waits_for_the_efa_unit_and_checks_it():
    script = mount_lustre(OVER_EFA, P5EN)
    assert f"x-systemd.after={EFA_UNIT}" in script
    assert f"systemctl is-active --quiet {EFA_UNIT}" in script
    assert "lnetctl net show --net efa | grep -q 'status: up'" in script


@pytest.mark.parametrize(("mount", "hardware"), [(OVER_TCP, P5EN), (OVER_EFA, None)])
def test_efa_is_set_up_only_if_node_and_file_system_have_it(machine, mount, hardware):
    script = mount_lustre(mount, hardware)
    assert "efa-" not in script
    assert "lnetctl" not in script
    machine.run(script)
    assert machine.commands("curl", "lnetctl") == []


def test_tuning_depends_on_memory_and_vcpus():
    large, small = mount_lustre(OVER_TCP, P5EN), mount_lustre(OVER_TCP, P5_SMALL)
    assert "ldlm.namespaces.*.lru_size=19200" in large
    assert "ptlrpcd_per_cpt_max=32" in large
    assert "ldlm.namespaces.*.lru_size=1600" in small
    assert "ptlrpcd_per_cpt_max" not in small


def test_first_boot_sets_efa_up_before_it_mounts_and_tunes_after_it(machine):
    assert machine.run(mount_lustre(OVER_EFA, P5EN)).returncode == 0
    steps = [command.split()[0] for command in machine.commands("curl", "python3", "mount", "lnetctl")]
    assert steps == ["curl", "python3", "mount", "lnetctl"]
    assert machine.commands("systemctl")[-1] == "systemctl enable --now lustre-tuning.service"
    assert "options ksocklnd credits=2560\n" in machine.read("etc/modprobe.d/lustre-tuning.conf")
    unit = machine.read("etc/systemd/system/lustre-tuning.service")
    assert "ExecStart=/usr/sbin/lctl set_param ldlm.namespaces.*.lru_size=19200\n" in unit
    assert "WantedBy=multi-user.target\n" in unit


def test_second_boot_adds_no_second_fstab_entry_and_downloads_nothing(machine):
    script = mount_lustre(OVER_EFA, P5EN)
    machine.run(script)
    options = machine.read("etc/modprobe.d/lustre-tuning.conf")
    machine.restart()
    assert machine.run(script).returncode == 0
    assert len(machine.fstab) == 1
    assert machine.mounts == ["/fsx"]
    assert machine.commands("curl") == []
    assert machine.read("etc/modprobe.d/lustre-tuning.conf") == options


def test_an_image_with_the_efa_client_downloads_nothing(machine):
    machine.write("efa-active", "")
    assert machine.run(mount_lustre(OVER_EFA, P5EN)).returncode == 0
    assert machine.commands("curl", "python3") == []


def test_other_fstab_entries_stay(machine):
    machine.write("etc/fstab", "UUID=1 / xfs defaults 0 0\n")
    machine.run(mount_lustre(OVER_TCP, P5EN))
    assert machine.fstab[0] == "UUID=1 / xfs defaults 0 0"
    assert len(machine.fstab) == 2


def test_on_pcs_a_node_without_efa_fails_before_it_mounts(without_efa):
    assert without_efa.run(mount_lustre(OVER_EFA, P5EN)).returncode != 0
    assert without_efa.fstab == without_efa.mounts == []


def test_on_pcs_a_failed_download_stops_the_script(machine):
    assert machine.run(mount_lustre(OVER_EFA, P5EN), curl="exit 22").returncode == 22
    assert machine.commands("python3", "mount") == []


def test_on_pcs_a_mount_without_an_efa_interface_fails_the_script(machine):
    ran = machine.run(mount_lustre(OVER_EFA, P5EN), lnetctl="echo 'status: down'")
    assert ran.returncode != 0
    assert machine.commands("systemctl")[-1] == "systemctl daemon-reload"


def test_a_failed_mount_is_retried(machine):
    third = """
[ "$(grep -c "^mount " "$ROOT/log")" -ge 3 ] || exit 1
echo "$1" >> "$ROOT/mounts"
"""
    assert machine.run(mount_lustre(OVER_TCP, P5EN), mount=third).returncode == 0
    assert len(machine.commands("mount")) == 3


def test_a_mount_that_never_succeeds_fails_the_script(machine):
    assert machine.run(mount_lustre(OVER_TCP, P5EN), mount="exit 1").returncode != 0
    assert len(machine.commands("mount")) == 30
    assert not (machine.root / "etc/systemd/system/lustre-tuning.service").exists()


# EKS


def test_on_eks_a_node_without_efa_reports_it_and_uses_tcp(without_efa):
    ran = without_efa.run(prepare_lustre_client(P5EN, efa=True))
    assert ran.returncode == 0
    assert "Lustre runs over TCP" in ran.stderr
    assert (without_efa.root / "etc/systemd/system/lustre-tuning.timer").exists()


def test_on_eks_a_failed_download_is_reported_too(machine):
    ran = machine.run(prepare_lustre_client(P5EN, efa=True), curl="exit 22")
    assert ran.returncode == 0
    assert "Lustre runs over TCP" in ran.stderr


def test_on_eks_a_node_with_efa_reports_nothing(machine):
    ran = machine.run(prepare_lustre_client(P5EN, efa=True))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(machine.commands("curl")) == 1


def test_a_client_that_cannot_be_installed_fails_the_script(machine):
    ran = machine.run(prepare_lustre_client(None, efa=False), rpm="exit 1", dnf="exit 1")
    assert ran.returncode != 0
    assert len(machine.commands("dnf")) == 5


def test_a_client_in_the_ami_is_not_installed_again(machine):
    machine.write("lustre-client-installed", "")
    assert machine.run(prepare_lustre_client(P5EN, efa=False)).returncode == 0
    assert machine.commands("dnf", "curl") == []


def test_on_eks_large_clients_are_tuned_every_minute(machine):
    machine.run(prepare_lustre_client(P5EN, efa=False))
    service = machine.read("etc/systemd/system/lustre-tuning.service")
    assert "ExecStart=-/usr/sbin/lctl set_param ldlm.namespaces.*.lru_size=19200\n" in service
    assert "options ksocklnd credits=2560\n" in machine.read("etc/modprobe.d/lustre-tuning.conf")
    assert "OnUnitActiveSec=1min" in machine.read("etc/systemd/system/lustre-tuning.timer")
    assert machine.commands("systemctl") == ["systemctl enable --now lustre-tuning.timer"]
