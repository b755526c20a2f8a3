"""The script that joins the instance store, run on a machine with fake disks."""

import pytest

from tests.unit.nodes.machine import Machine
from ultracluster.nodes.disks import raid0_instance_store

SCRIPT = raid0_instance_store()


def test_first_boot_joins_formats_and_mounts_all_volumes(machine):
    ran = machine.run(SCRIPT)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert machine.commands("mdadm", "mkfs.xfs", "mount") == [
        "mdadm --create /dev/md/scratch --run --level=0 --raid-devices=2 /dev/nvme0n1 /dev/nvme1n1",
        "mkfs.xfs /dev/md/scratch",
        "mount -o noatime /dev/md/scratch /scratch",
    ]
    assert (machine.root / "scratch").stat().st_mode & 0o7777 == 0o1777


def test_the_root_volume_is_not_used(machine):
    machine.run(SCRIPT)
    assert "nvme2n1" in machine.read("disks")
    assert not any("nvme2n1" in command for command in machine.commands())


def test_second_boot_mounts_the_array_with_its_data(machine):
    machine.run(SCRIPT)
    machine.restart()
    assert machine.run(SCRIPT).returncode == 0
    assert machine.commands("mdadm", "mkfs.xfs") == []
    assert machine.mounts == ["/scratch"]


def test_a_second_run_changes_nothing(machine):
    for _ in range(2):
        assert machine.run(SCRIPT).returncode == 0
    assert machine.mounts == ["/scratch"]


def test_one_volume_needs_no_array(tmp_path):
    machine = Machine(tmp_path, instance_store=1)
    assert machine.run(SCRIPT).returncode == 0
    assert machine.commands("mdadm", "mkfs.xfs", "mount") == [
        "mkfs.xfs /dev/nvme0n1",
        "mount -o noatime /dev/nvme0n1 /scratch",
    ]


def test_an_instance_store_that_the_ami_mounted_is_bind_mounted_and_not_formatted(machine):
    machine.write("mounts", f"{machine.root}/opt/dlami/nvme\n")
    assert machine.run(SCRIPT).returncode == 0
    assert machine.commands("mdadm", "mkfs.xfs", "mount") == ["mount --bind /opt/dlami/nvme /scratch"]


@pytest.mark.parametrize(
    ("failing", "not_run"), [("mdadm", {"mkfs.xfs", "mount"}), ("mkfs.xfs", {"mount"}), ("mount", set())]
)
def test_a_step_that_fails_stops_the_script(machine, failing, not_run):
    assert machine.run(SCRIPT, **{failing: "exit 1"}).returncode != 0
    ran = {command.split()[0] for command in machine.commands()}
    assert failing in ran
    assert not_run.isdisjoint(ran)
    assert machine.mounts == []


def test_a_machine_without_instance_store_fails_and_formats_nothing(tmp_path):
    machine = Machine(tmp_path)
    assert machine.run(SCRIPT).returncode != 0
    assert machine.commands("mdadm", "mkfs.xfs", "mount") == []
