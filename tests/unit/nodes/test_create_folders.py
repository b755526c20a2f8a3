"""The step that creates folders for users on the file system, run on a fake machine."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.nodes.machine import Machine
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.pcs import login_node_steps

MOUNT = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=False)
LINKS = ("/fsx/checkpoints", "/fsx/100%/$HOME")
PROGRAM = "usr/local/sbin/create-folders"


def step(*links):
    return login_node_steps([MOUNT], queue_folders="/fsx", open_folders=links)[-1]


def slurm(machine, *queues):
    for version in ("25.05", "25.11"):
        machine.write(
            f"opt/aws/pcs/scheduler/slurm-{version}/bin/sinfo", f"#!/bin/bash\nprintf '%s\\n' {' '.join(queues)}\n"
        )
        (machine.root / f"opt/aws/pcs/scheduler/slurm-{version}/bin/sinfo").chmod(0o755)


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    (tmp_path / "fsx").mkdir()
    machine.write("mounts", f"{tmp_path}/fsx\n")
    return machine


def run(machine, *links, **failing):
    """Installs the program, and runs it as its timer does."""
    installed = machine.run(step(*links), **failing)
    assert installed.returncode == 0, installed.stderr
    return machine._execute(
        str(machine.root / PROGRAM), str(machine.root / "fsx"), *(f"{machine.root}{link}" for link in links)
    )


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_each_queue_gets_a_folder_to_which_every_user_may_write(machine):
    slurm(machine, "train", "evaluate")
    assert run(machine).returncode == 0
    queues = machine.root / "fsx" / "queues"
    assert {path.name: mode(path) for path in queues.iterdir()} == {"train": 0o1777, "evaluate": 0o1777}
    assert mode(queues) == 0o755


def test_a_queue_that_is_added_later_gets_its_folder(machine):
    slurm(machine, "train")
    run(machine)
    slurm(machine, "train", "later")
    assert run(machine).returncode == 0
    assert mode(machine.root / "fsx" / "queues" / "later") == 0o1777


def test_a_folder_that_somebody_changed_stays_as_it_is(machine):
    slurm(machine, "train")
    linked = machine.root / "fsx" / "checkpoints"
    linked.mkdir(mode=0o755)
    run(machine, "/fsx/checkpoints")
    folder = machine.root / "fsx" / "queues" / "train"
    for changed in (folder, linked):
        changed.chmod(0o750)
    assert run(machine, "/fsx/checkpoints").returncode == 0
    assert (mode(folder), mode(linked)) == (0o750, 0o750)


def test_a_linked_folder_is_opened_once_fsx_created_it(machine):
    slurm(machine, "train")
    assert run(machine, "/fsx/checkpoints").returncode == 0
    linked = machine.root / "fsx" / "checkpoints"
    assert not linked.exists()
    linked.mkdir(mode=0o755)
    assert run(machine, "/fsx/checkpoints").returncode == 0
    assert mode(linked) == 0o1777


def test_no_link_that_a_user_left_is_followed(machine, tmp_path_factory):
    slurm(machine, "train")
    target = tmp_path_factory.mktemp("etc")
    (target / "sub").mkdir(mode=0o755)
    queues = machine.root / "fsx" / "queues"
    queues.symlink_to(target)
    assert run(machine).returncode == 1
    assert [path.name for path in target.iterdir()] == ["sub"]
    queues.unlink()
    (machine.root / "fsx" / "checkpoints").symlink_to(target)
    assert run(machine, "/fsx/checkpoints/sub").returncode == 1
    (machine.root / "fsx" / "raw").symlink_to(target / "sub")
    assert run(machine, "/fsx/raw").returncode == 1
    assert (mode(target), mode(target / "sub")) == (0o700, 0o755)


def test_a_folder_of_a_user_in_place_of_ours_stays_as_it_is(machine):
    if os.geteuid():
        pytest.skip("only root gives folders away")
    slurm(machine, "train")
    linked = machine.root / "fsx" / "checkpoints"
    linked.mkdir(mode=0o755)
    os.chown(linked, 1001, 1001)
    assert run(machine, "/fsx/checkpoints").returncode == 0
    assert mode(linked) == 0o755


def test_squashed_root_is_told_what_to_run_elsewhere(machine):
    slurm(machine, "train")
    squashed = machine.root / "fsx" / "queues"
    squashed.write_text("no folder can be created here")
    done = run(machine)
    assert done.returncode == 1
    assert "no_squash_nids" in done.stderr
    assert "mkdir -p '/fsx/queues/train' && chmod 1777 '/fsx/queues/train'" in done.stderr.replace(
        str(machine.root), ""
    )


def test_nothing_is_created_below_a_mount_point_without_a_mount(machine):
    slurm(machine, "train")
    machine.write("mounts", "")
    assert run(machine).returncode == 1
    assert not list((machine.root / "fsx").iterdir())


def test_a_slurm_that_does_not_answer_fails_the_run_and_not_the_next(machine):
    slurm(machine, "train")
    for sinfo in machine.root.glob("opt/aws/pcs/scheduler/*/bin/sinfo"):
        sinfo.write_text("#!/bin/bash\nexit 1\n")
    assert run(machine).returncode == 1
    slurm(machine, "train")
    assert run(machine).returncode == 0


@pytest.mark.parametrize("version", ["25.05", "25.11"])
def test_a_version_of_slurm_that_the_controller_refuses_is_passed_over(machine, version):
    slurm(machine, "train")
    (machine.root / f"opt/aws/pcs/scheduler/slurm-{version}/bin/sinfo").write_text("#!/bin/bash\nexit 1\n")
    assert run(machine).returncode == 0
    assert mode(machine.root / "fsx" / "queues" / "train") == 0o1777


def test_a_timer_runs_it_at_each_boot_and_every_five_minutes(machine):
    assert machine.run(step(*LINKS)).returncode == 0
    timer = machine.unit("create-folders.timer")
    assert "OnActiveSec=1min" in timer
    assert "OnUnitInactiveSec=5min" in timer
    assert "WantedBy=timers.target" in timer
    assert machine.commands("systemctl")[-2:] == [
        "systemctl enable create-folders.timer",
        "systemctl start create-folders.timer",
    ]


def test_the_unit_passes_paths_as_they_are(machine):
    assert machine.run(step(*LINKS)).returncode == 0
    service = machine.unit("create-folders.service")
    assert 'ExecStart=/usr/local/sbin/create-folders "/fsx" "/fsx/checkpoints" "/fsx/100%%/$$HOME"\n' in service


def test_the_program_that_it_writes_is_clean_too(machine, tmp_path):
    machine.run(step())
    done = subprocess.run(["shellcheck", tmp_path / PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_login_nodes_without_a_file_system_create_no_folders():
    assert "create-folders" not in {found.name for found in login_node_steps()}


def test_a_whole_file_system_is_opened_once_it_is_mounted(machine):
    slurm(machine, "train")
    (machine.root / "work").mkdir(mode=0o755)
    done = run(machine, "/work")
    assert (done.returncode, mode(machine.root / "work")) == (1, 0o755)
    assert "work is not mounted" in done.stderr
    machine.write("mounts", f"{machine.root}/fsx\n{machine.root}/work\n")
    assert run(machine, "/work").returncode == 0
    assert mode(machine.root / "work") == 0o1777


def test_without_a_first_file_system_only_the_others_are_opened(machine):
    (machine.root / "work").mkdir(mode=0o755)
    machine.write("mounts", f"{machine.root}/work\n")
    assert machine.run(login_node_steps(open_folders=["/work"])[-1]).returncode == 0
    assert machine._execute(str(machine.root / PROGRAM), "none", f"{machine.root}/work").returncode == 0
    assert mode(machine.root / "work") == 0o1777
    assert list((machine.root / "fsx").iterdir()) == []
