"""The program that serves what jobs write, with files as a hostile user would write them."""

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from tests.telemetry.engines import ask, free_port
from tests.unit.nodes.machine import Machine
from ultracluster.nodes.steps import Step
from ultracluster.telemetry.metrics import metrics_of

PROGRAM = "opt/ultracluster/job-metrics"
GOOD = """\
# HELP training_step Step
# TYPE training_step gauge
training_step{workload="17"} 120
training_tokens_total{workload="17",} 1.5e+09
nccl_bus_bandwidth_gbs{version="v5.1",slurm_job_id="17",node="x",gpu="GPU0",message_size="1-2MB"} 44.1181
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    made = Machine(tmp_path_factory.mktemp("machine") / "root")
    ran = made.run(Step("serve-job-metrics"))
    assert (ran.returncode, ran.stderr) == (0, "")
    return made


@contextmanager
def serving(machine, folder):
    """The program with its options, on a port of its own, once it answers."""
    port = free_port()
    program = str(machine.root / PROGRAM)
    with subprocess.Popen([sys.executable, "-IS", program, str(folder), str(port)]) as process:
        try:
            while not answers(port):
                assert process.poll() is None
                time.sleep(0.1)
            yield port
        finally:
            process.terminate()


def answers(port):
    try:
        return ask(port, "/metrics")
    except ConnectionError:
        return None


@pytest.fixture(scope="module")
def program(machine, tmp_path_factory):
    """Port of the program, and its folder."""
    folder = tmp_path_factory.mktemp("jobs")
    with serving(machine, folder) as port:
        yield port, folder


@pytest.fixture
def served(program):
    """What the program answers, and its folder, which is empty again afterwards."""
    port, folder = program
    yield lambda: ask(port, "/metrics")[1], folder
    for file in folder.iterdir():
        file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()


def test_the_folder_is_open_to_all_users_and_the_program_is_not_root(machine):
    assert (machine.root / "var/lib/node_exporter/jobs").stat().st_mode & 0o7777 == 0o1777
    unit = machine.unit("job-metrics.service")
    assert "ExecStart=/usr/bin/python3 -IS /opt/ultracluster/job-metrics /var/lib/node_exporter/jobs 9101" in unit
    assert {"User=ultracluster-metrics", "ProtectSystem=strict", "MemoryMax=256M", "TasksMax=64"} <= set(
        unit.splitlines()
    )
    assert machine.commands("systemctl")[-1] == "systemctl start --no-block job-metrics.service"


def test_metrics_of_the_catalogue_are_served_with_their_type(served):
    answer, folder = served
    (folder / "training.prom").write_text(GOOD)
    lines = answer().splitlines()
    assert [line for line in lines if not line.startswith("#")] == sorted(
        line for line in GOOD.splitlines() if not line.startswith("#")
    )
    assert "# TYPE training_tokens_total counter" in lines
    assert "# TYPE training_step gauge" in lines


def test_every_metric_that_jobs_may_write_passes_and_has_the_type_of_the_catalogue(served):
    answer, folder = served
    metrics = (*metrics_of("training"), *metrics_of("nccl"))
    (folder / "all.prom").write_text("".join(f"{each.name} 1\n" for each in metrics))
    found = dict(re.findall(r"^# TYPE (\S+) (\S+)$", answer(), re.M))
    assert found == {each.name: each.kind for each in metrics}


@pytest.mark.parametrize(
    "line",
    [
        'lustre_mounted{target="abcdefgh",mountpoint="/fsx"} 0',
        "node_amazonefa_info 0",
        'DCGM_FI_DEV_XID_ERRORS{gpu="0"} 79',
        "training_step 1 1795333414",
        'training_step{workload="17} 1',
        "training_step one",
        "training_step 1 # {} 1",
        'training_step{workload="' + "x" * 300 + '"} 1',
        "training_step{" + ",".join(f'l{number}="x"' for number in range(40)) + "} 1",
        "training_step 1\rlustre_mounted 0",
    ],
)
def test_other_lines_are_left_out_and_spoil_no_other(served, line):
    answer, folder = served
    (folder / "forged.prom").write_bytes((line + "\n" + "training_loss 2\n").encode())
    found = [each for each in answer().splitlines() if not each.startswith("#")]
    assert found in (["training_loss 2"], ["training_loss 2", "training_step 1"])
    assert found == ["training_loss 2"] or "\r" in line


def test_pipes_links_folders_large_and_secret_files_are_not_read(served, tmp_path):
    answer, folder = served
    os.mkfifo(folder / "pipe.prom")
    (tmp_path / "secret").write_text("training_step 1\n")
    (folder / "link.prom").symlink_to(tmp_path / "secret")
    (folder / "device.prom").symlink_to("/dev/zero")
    (folder / "folder.prom").mkdir()
    (folder / "large.prom").write_text("training_step 1\n" * 100_000)
    (folder / "other.txt").write_text("training_step 1\n")
    assert answer() == ""


def test_a_user_and_all_users_have_a_limit(served):
    answer, folder = served
    for number in range(3):
        lines = (f'training_step{{workload="{number}-{line}"}} 1\n' for line in range(2_000))
        (folder / f"{number}.prom").write_text("".join(lines))
    assert len(answer().splitlines()) == 1 + 2_500
    os.chown(folder / "1.prom", 1001, 1001)
    os.chown(folder / "2.prom", 1002, 1002)
    assert len(answer().splitlines()) == 1 + 5_000


def test_users_with_many_files_and_samples_hide_nobody(served):
    if os.geteuid():
        pytest.skip("only root gives files away")
    answer, folder = served
    greedy = "".join(f'training_step{{workload="greedy-{line}"}} 1\n' for line in range(2_500))
    for user in range(2001, 2006):
        for number in range(2_100):
            (folder / f"{user}-{number}.prom").write_text(greedy if number > 2_095 else "")
            os.chown(folder / f"{user}-{number}.prom", user, user)
    (folder / "modest.prom").write_text('training_step{workload="modest"} 7\n')
    os.chown(folder / "modest.prom", 2010, 2010)
    lines = answer().splitlines()
    assert 'training_step{workload="modest"} 7' in lines
    assert len(lines) == 1 + 5_000


def test_a_file_that_changes_is_read_again(served):
    answer, folder = served
    for step in (1, 2):
        (folder / "a.prom").write_text(f"training_step {step}\n")
        assert f"training_step {step}" in answer().splitlines()


def test_a_user_who_sends_nothing_keeps_no_other_from_an_answer(program, served):
    answer, folder = served
    (folder / "good.prom").write_text(GOOD)
    with socket.create_connection(("127.0.0.1", program[0])):
        assert "training_step" in answer()
