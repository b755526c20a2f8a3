"""The step that mounts the instance store, run on a machine with fake disks."""

import pytest

from tests.unit.nodes.machine import Machine
from ultracluster.nodes.steps import Step

SCRATCH = Step("mount-scratch", ("/scratch",), "every_boot")
MOUNT = "mount -t xfs -o noatime,nofail /dev/disk/by-label/scratch /scratch"


def test_first_boot_joins_formats_and_mounts_all_volumes(machine):
    ran = machine.run(SCRATCH)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert machine.commands("mdadm", "mkfs.xfs", "udevadm", "mount") == [
        "mdadm --examine /dev/nvme0n1",
        "mdadm --create /dev/md/scratch --run --level=0 --raid-devices=2 /dev/nvme0n1 /dev/nvme1n1",
        "mkfs.xfs -L scratch /dev/md/scratch",
        "udevadm settle",
        MOUNT,
    ]
    assert (machine.root / "scratch").stat().st_mode & 0o7777 == 0o1777


def test_the_root_volume_is_not_used(machine):
    machine.run(SCRATCH)
    assert "nvme2n1" in machine.read("disks")
    assert not any("nvme2n1" in command for command in machine.commands())


def test_after_a_reboot_systemd_mounts_the_array_and_the_step_only_checks(machine):
    machine.run(SCRATCH)
    machine.reboot()
    assert machine.mounts == ["/scratch"]
    assert machine.run(SCRATCH).returncode == 0
    assert machine.commands("mdadm", "mkfs.xfs", "mount") == []
    assert machine.mounts == ["/scratch"]


def test_an_array_that_the_kernel_did_not_assemble_is_assembled_with_its_data(machine):
    machine.run(SCRATCH)
    for file in ("dev/disk/by-label/scratch", "dev/md/scratch"):
        (machine.root / file).unlink()
    machine.reboot()
    assert machine.mounts == []
    assert machine.run(SCRATCH).returncode == 0
    assert machine.commands("mdadm", "mkfs.xfs", "mount") == [
        "mdadm --examine /dev/nvme0n1",
        "mdadm --assemble /dev/md/scratch /dev/nvme0n1 /dev/nvme1n1",
        MOUNT,
    ]


def test_a_second_run_changes_nothing(machine):
    for _ in range(2):
        assert machine.run(SCRATCH).returncode == 0
    assert machine.mounts == ["/scratch"]


def test_one_volume_needs_no_array(tmp_path):
    machine = Machine(tmp_path, instance_store=1)
    assert machine.run(SCRATCH).returncode == 0
    assert machine.commands("mdadm", "mkfs.xfs", "mount") == ["mkfs.xfs -L scratch /dev/nvme0n1", MOUNT]


def test_an_array_of_the_image_is_waited_for_and_bind_mounted_at_every_boot(tmp_path):
    machine = Machine(tmp_path, instance_store=2, dlami=True)
    for first in (True, False):
        if not first:
            machine.reboot()
        ran = machine.run(SCRATCH)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert machine.mounts == ["/opt/dlami/nvme", "/scratch"]
        assert machine.commands("mdadm", "mkfs.xfs") == []
    assert "systemctl start dlami-nvme.service" in machine.commands("systemctl")
    assert "mount -t none -o bind /opt/dlami/nvme /scratch" not in machine.commands()  # systemd mounted it at boot
    unit = machine.unit("scratch.mount")
    assert "Requires=dlami-nvme.service\nAfter=dlami-nvme.service\n" in unit


@pytest.mark.parametrize("failing", ["mdadm", "mkfs.xfs", "mount", "lsblk"])
def test_a_command_that_fails_fails_the_step(machine, failing):
    assert machine.run(SCRATCH, **{failing: "exit 1"}).returncode != 0
    assert machine.mounts == []


def test_a_failure_of_the_unit_of_the_image_fails_the_step(tmp_path):
    machine = Machine(tmp_path, instance_store=2, dlami=True)
    assert machine.run(SCRATCH, mount="exit 1").returncode != 0
    assert machine.commands("mdadm", "mkfs.xfs") == []


def test_a_machine_without_instance_store_fails_and_formats_nothing(tmp_path):
    machine = Machine(tmp_path)
    ran = machine.run(SCRATCH)
    assert ran.returncode != 0
    assert "no NVMe instance store volume found" in ran.stderr
    assert machine.commands("mdadm", "mkfs.xfs", "mount") == []
