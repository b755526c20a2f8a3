"""Steps that mount several file systems, over NFS and over Lustre's own network, run on a fake machine."""

import pytest

from tests.unit.nodes.machine import Machine
from ultracluster.catalog import catalog, nfs
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.mounts import NfsMount, mount_steps
from ultracluster.nodes.telemetry import ARGUMENT_LENGTH

P5EN = catalog["p5en.48xlarge"]
HOME = NfsMount("fs-2.fsx.us-east-2.amazonaws.com:/fsx", "/home", nfs.OPENZFS_OPTIONS)
WORK = NfsMount("10.0.1.7:/", "/work", nfs.EFS_OPTIONS, read_only=True)
FSX = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=True)
SECOND = LustreMount("fs-3.fsx.us-east-2.amazonaws.com", "zzzzzzzz", "/work", efa=False, read_only=True)


def names(steps):
    return [step.name for step in steps]


@pytest.fixture
def users(machine):
    """The machine, whose image has a user with an SSH key."""
    machine.write("home/ubuntu/.ssh/authorized_keys", "ssh-ed25519 AAAA\n")
    return machine


def test_file_systems_of_a_kind_share_a_step_and_homes_come_first():
    assert names(mount_steps([FSX, HOME, SECOND, WORK], P5EN)) == [
        *("mount-nfs", "set-lustre-module-options", "set-up-lustre-efa", "mount-lustre", "tune-lustre"),
    ]
    assert mount_steps([], P5EN) == []
    assert names(mount_steps([HOME], P5EN)) == ["mount-nfs"]


def test_an_argument_fits_with_the_longest_path():
    longest = f"/{'a' * 100}"
    for mount in (NfsMount(HOME.source, longest, HOME.options, read_only=True), FSX):
        assert len(mount.argument) <= ARGUMENT_LENGTH


def test_homes_are_mounted_with_the_options_of_the_service(users):
    (step,) = mount_steps([HOME], P5EN)
    ran = users.run(step)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert users.mounts == ["/home"]
    options = "nfsvers=4.2,hard,timeo=600,retrans=2,rsize=1048576,wsize=1048576,_netdev"
    assert users.commands("mount")[-1] == f"mount -t nfs -o {options} {HOME.source} /home"


def test_the_image_s_users_keep_their_keys_below_homes(users):
    (step,) = mount_steps([HOME], P5EN)
    assert users.run(step).returncode == 0
    assert users.read("run/ultracluster/home/ubuntu/.ssh/authorized_keys") == "ssh-ed25519 AAAA\n"
    assert "/run/ultracluster/home" not in users.mounts


def test_a_home_that_another_node_copied_stays_as_it_is(users):
    users.write("run/ultracluster/home/ubuntu/.ssh/authorized_keys", "changed\n")
    (step,) = mount_steps([HOME], P5EN)
    assert users.run(step).returncode == 0
    assert users.read("run/ultracluster/home/ubuntu/.ssh/authorized_keys") == "changed\n"
    assert [path.name for path in (users.root / "run/ultracluster/home").iterdir()] == ["ubuntu"]


def test_homes_are_mounted_although_a_folder_cannot_be_copied(users):
    (step,) = mount_steps([HOME], P5EN)
    users._command("cp", "exit 1")
    ran = users.run(step)
    assert ran.returncode == 0
    assert "/home/ubuntu of the image could not be copied" in ran.stderr.replace(str(users.root), "")
    assert users.mounts == ["/home"]


def test_after_a_reboot_systemd_mounts_homes_by_itself_and_nothing_is_copied(users):
    (step,) = mount_steps([HOME], P5EN)
    users.run(step)
    users.reboot()
    assert users.mounts == ["/home"]
    assert users.run(step).returncode == 0
    assert users.commands("mount", "umount") == []


def test_a_file_system_that_is_not_homes_is_only_mounted(users):
    (step,) = mount_steps([WORK], None)
    assert users.run(step).returncode == 0
    assert users.commands("mount") == [
        "mount -t nfs -o nfsvers=4.1,hard,timeo=600,retrans=2,rsize=1048576,wsize=1048576,noresvport,_netdev,ro"
        " 10.0.1.7:/ /work"
    ]


def test_a_mount_that_fails_fails_the_step(users):
    (step,) = mount_steps([HOME], P5EN)
    assert users.run(step, mount="exit 32").returncode != 0
    assert users.mounts == []


def test_an_image_without_the_nfs_client_installs_it(tmp_path):
    machine = Machine(tmp_path)
    (step,) = mount_steps([WORK], None)
    client = tmp_path / "bin" / "mount.nfs"
    install = f'case "$*" in *nfs-common*) : > "{client}"; chmod 755 "{client}";; esac'
    machine._fakes({})
    client.unlink()
    machine._fakes = lambda failing: machine._command("apt-get", install)
    assert machine.run(step).returncode == 0
    assert machine.commands("apt-get") == ["apt-get install -y nfs-common"]


def test_every_lustre_file_system_has_a_unit_and_one_service_tunes_them_all(machine):
    steps = mount_steps([FSX, SECOND], P5EN)
    assert machine.boot(steps) == names(steps)
    assert machine.mounts == ["/fsx", "/work"]
    assert "Options=relatime,flock,_netdev\n" in machine.unit("fsx.mount")
    assert "Options=relatime,flock,_netdev,ro\n" in machine.unit("work.mount")
    tuning = machine.unit("lustre-tuning.service")
    assert "After=fsx.mount work.mount\n" in tuning
    assert "WantedBy=fsx.mount work.mount\n" in tuning
