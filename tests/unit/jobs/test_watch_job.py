"""The program that watches a job: which ranks it names, what it excludes, when it restarts."""

import os
import pickle
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from ultracluster.jobs import watch_job
from ultracluster.jobs.watch_job import Beat, awaited, behind, hangs, heartbeats, traces

PROGRAM = watch_job.__file__


def watch(folder, *words, options=("--poll", "0.05"), **variables):
    """Runs the program as a job does."""
    environment = {**os.environ, "JOB_FOLDER": str(folder), **variables}
    environment.pop("SLURM_JOB_ID", None)
    if "SLURM_JOB_ID" in variables:
        environment |= variables
    command = [sys.executable, "-IS", PROGRAM, *options, "--", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def state(enqueued, completed, **more):
    groups = {"0": (enqueued, completed), **more}
    return {
        name: {"last_enqueued_collective": a, "last_started_collective": b, "last_completed_collective": b}
        for name, (a, b) in groups.items()
    }


def test_a_job_without_heartbeats_is_not_watched():
    assert not hangs({}, 8, now=1e9, stalled=1)


def test_one_silent_rank_is_a_hang():
    beats = {0: Beat(100, 5), 1: Beat(10, 4)}
    assert hangs(beats, 2, now=120, stalled=60)
    assert not hangs(beats, 2, now=60, stalled=60)
    assert behind(beats, 2, stalled=60) == [1]


def test_the_ranks_at_the_lowest_step_stopped_first():
    beats = {rank: Beat(10 + rank / 100, 7) for rank in range(4)} | {2: Beat(10, 6)}
    assert behind(beats, 4, stalled=60) == [2]


def test_ranks_that_are_alike_are_not_named():
    """They wait in the same collective: their heartbeats differ by moments."""
    beats = {rank: Beat(10 + rank / 100, 7) for rank in range(4)}
    assert behind(beats, 4, stalled=60) == []


def test_a_rank_that_never_started_is_named():
    beats = {rank: Beat(10, 1) for rank in (0, 1, 3)}
    assert hangs(beats, 4, now=80, stalled=60)
    assert behind(beats, 4, stalled=60) == [2]


def test_heartbeats_of_rank_0_alone_name_nobody():
    beats = {0: Beat(10, 1)}
    assert behind(beats, 64, stalled=60) == []


def test_text_that_is_no_step_is_a_heartbeat(tmp_path):
    (tmp_path / "3").write_text("alive")
    (tmp_path / "other").write_text("1")
    (tmp_path / "4").write_bytes(b"\xff\xfe7")
    (tmp_path / "5").write_text("\N{SUPERSCRIPT TWO}")
    (tmp_path / "6\N{SUPERSCRIPT TWO}").write_text("1")
    assert {rank: beat.step for rank, beat in heartbeats(tmp_path, 0).items()} == {3: None, 4: None, 5: None}
    assert heartbeats(tmp_path, time.time() + 60) == {}


@pytest.mark.parametrize(
    ("states", "ranks", "named"),
    [
        ({0: state(9, 8), 1: state(8, 8), 2: state(9, 8)}, 3, [1]),  # computes, while the others wait for it
        ({0: state(9, 8), 2: state(9, 8)}, 3, [1]),  # gone: it wrote no trace
        ({0: state(9, 8), 1: state(9, 7), 2: state(8, 7)}, 3, [2]),  # all wait, one in an earlier collective
        ({0: state(9, 8), 1: state(9, 8), 2: state(9, 8)}, 3, []),
        ({0: state(4, 4, **{"1": (9, 8)}), 1: state(4, 4, **{"1": (8, 8)})}, 2, [1]),  # in a group of its own
        ({0: state(9, 8)}, 8, []),  # most wrote none, so the job just ended
        ({}, 8, []),
    ],
)
def test_traces_tell_for_whom_the_others_wait(states, ranks, named):
    assert awaited(states, ranks) == named


def test_a_trace_runs_no_code(tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "made"),))

    (tmp_path / "rank-0").write_bytes(pickle.dumps({"pg_status": Evil()}))
    (tmp_path / "rank-1").write_bytes(pickle.dumps({"pg_status": state(2, 1), "entries": []}))
    (tmp_path / "rank-2").write_bytes(pickle.dumps({"pg_status": state(2, 1)})[:20])
    (tmp_path / "rank-3").write_bytes(pickle.dumps({"pg_status": {"0": {"last_enqueued_collective": 1}}}))
    (tmp_path / "rank-4").write_bytes(pickle.dumps({"pg_status": [1]}))
    (tmp_path / "rank-5").write_bytes(b"\x80\x04garbage.")
    (tmp_path / "rank-x").write_bytes(b"")
    assert set(traces(tmp_path, 0)) == {1}
    assert not (tmp_path / "made").exists()


def test_files_of_the_first_moment_are_of_this_run(tmp_path, monkeypatch):
    """Kernels date files by a clock that they set every few milliseconds."""
    ahead = time.time() + 10
    monkeypatch.setattr(watch_job.time, "time", lambda: ahead)
    job = watch_job.Job(tmp_path, SimpleNamespace(node_rank="", ranks=1))
    (tmp_path / "heartbeats" / "0").write_text("1")
    assert job.beats()[0].step == 1


def test_a_command_that_finishes_ends_with_0(tmp_path):
    assert watch(tmp_path, "true").returncode == 0


@pytest.mark.parametrize("code", [2, 126, 127])
def test_a_command_that_cannot_start_is_not_restarted(tmp_path, code):
    done = watch(tmp_path, "bash", "-c", f"exit {code}")
    assert (done.returncode, done.stderr) == (code, "")
    assert watch(tmp_path, "/no/such/program").returncode == 127


def test_a_command_that_fails_asks_for_a_restart(tmp_path):
    done = watch(tmp_path, "bash", "-c", "exit 1")
    assert done.returncode == watch_job.RESTART == 75
    assert done.stderr.splitlines() == [
        "watch_job: the command ended with exit code 1",
        "watch_job: no rank stopped before the others",
    ]


def beats(*steps):
    """Commands that write heartbeats of ranks, which are all there at the same moment."""
    written = "".join(f"echo {step} > new/{rank}; " for rank, step in enumerate(steps))
    return f'cd "$JOB_FOLDER"; mkdir new; {written}rm -r heartbeats; mv new heartbeats;'


def test_a_hang_is_ended_and_the_node_is_named(tmp_path):
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "1").write_text("ip-10-0-0-1\n")
    script = f"{beats(5, 5, 5, 4)} sleep 600"
    options = ("--poll", "0.05", "--stalled", "0.5", "--ranks", "4", "--ranks-per-node", "2")
    done = watch(tmp_path, "bash", "-c", script, options=options)
    assert done.returncode == watch_job.RESTART
    assert done.stderr.splitlines() == ["watch_job: rank 3 on ip-10-0-0-1 stopped at step 4"]


def test_a_pod_writes_the_node_that_it_is_on(tmp_path):
    watch(tmp_path, "true", options=("--node", "ip-10-0-0-9", "--node-rank", "3"))
    assert (tmp_path / "nodes" / "3").read_text() == "ip-10-0-0-9"


def test_of_pods_with_one_folder_the_first_looks(tmp_path):
    said = {}
    for rank, then in (("0", "exec sleep 600"), ("1", "sleep 2; exit 1")):
        script = f"{beats(5, 5, 5)} {then}"
        options = ("--poll", "0.05", "--stalled", "0.5", "--ranks", "4", "--node", f"n{rank}", "--node-rank", rank)
        done = watch(tmp_path, "bash", "-c", script, options=options)
        assert done.returncode == watch_job.RESTART
        said[rank] = done.stderr.splitlines()
    assert said["0"] == ["watch_job: rank 3 on an unknown node stopped"]
    assert said["1"] == ["watch_job: the command ended with exit code 1"]


def slurm(tmp_path, state="RUNNING"):
    """Stand-ins for commands of Slurm, which log how they are called."""
    for name, body in (("squeue", f"echo {state}"), ("scontrol", f'echo "$*" >> {tmp_path}/called')):
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)
    return {"SLURM_JOB_ID": "7", "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


def fails(tmp_path, rank, spares, **variables):
    """A run in which a rank writes no trace, for whom the others waited."""
    (tmp_path / "nodes").mkdir(exist_ok=True)
    for node in range(8):
        (tmp_path / "nodes" / str(node)).write_text(f"train-{node}")
    others = "".join(f'cp {tmp_path}/trace "$JOB_FOLDER/traces/rank-{r}";' for r in range(8) if r != rank)
    (tmp_path / "trace").write_bytes(pickle.dumps({"pg_status": state(9, 8)}))
    options = ("--poll", "0.05", "--ranks", "8", "--spares", str(spares))
    return watch(tmp_path, "bash", "-c", f"{others} exit 1", options=options, **variables)


def test_slurm_starts_the_job_again_without_the_last_nodes_that_the_queue_can_spare(tmp_path):
    variables = slurm(tmp_path)
    for rank in (3, 5, 6):
        assert fails(tmp_path, rank, 2, **variables).returncode == 1
    called = (tmp_path / "called").read_text().splitlines()
    assert called[::2] == ["requeue 7"] * 3
    assert called[1::2] == [f"update JobId=7 ExcNodeList=train-{nodes}" for nodes in ("3", "3,train-5", "5,train-6")]


def test_without_spares_no_node_is_excluded(tmp_path):
    done = fails(tmp_path, 3, 0, **slurm(tmp_path))
    assert "watch_job: the queue has no other nodes, so the next run may get them again" in done.stderr
    assert (tmp_path / "called").read_text().splitlines() == ["requeue 7"]


@pytest.mark.parametrize("refused", ["requeue", "update"])
def test_what_slurm_refuses_is_told(tmp_path, refused):
    variables = slurm(tmp_path)
    (tmp_path / "bin/scontrol").write_text(
        f"#!/bin/bash\n[ $1 != {refused} ] || {{ echo 'slurm_{refused}: no' >&2; exit 1; }}"
    )
    done = fails(tmp_path, 3, 2, **variables)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"watch_job: scontrol {refused} failed: slurm_{refused}: no"


def test_a_job_that_fails_again_and_again_ends(tmp_path):
    variables = slurm(tmp_path)
    said = [fails(tmp_path, 3, 2, **variables).stderr for _ in range(4)]
    assert (tmp_path / "called").read_text().count("requeue") == 3
    assert "watch_job: the job failed 4 times, so it ends here" in said[-1]


def test_a_job_that_gets_further_is_started_again_as_often_as_it_takes(tmp_path):
    variables = slurm(tmp_path)
    runs = [5, 9, 9, 8, 12, 12, 12, 12]
    words = [f'echo {step} > "$JOB_FOLDER/heartbeats/0"; exit 1' for step in runs]
    said = [watch(tmp_path, "bash", "-c", each, **variables).stderr for each in words]
    assert ["requeue" in text for text in said] == [True] * 7 + [False]
    assert "watch_job: the job failed 4 times, so it ends here" in said[-1]


def test_a_job_that_does_not_end_in_time_again_and_again_ends(tmp_path, monkeypatch, capsys):
    for name, value in slurm(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JOB_FOLDER", str(tmp_path))
    monkeypatch.setattr(watch_job, "TIME_TO_STOP", 0)
    monkeypatch.setattr(watch_job.signal, "signal", lambda *_: None)
    words = ["watch_job", "--poll", "0.05", "--", "sleep", "60"]
    monkeypatch.setattr(watch_job.sys, "argv", words)
    run = watch_job.Job.run

    def asked(job):
        job.ask_to_stop()
        return run(job)

    monkeypatch.setattr(watch_job.Job, "run", asked)
    for _ in range(4):
        assert watch_job.main() == 1
    said = capsys.readouterr().err.splitlines()
    assert said.count("watch_job: the command did not end in time") == 4
    assert said.count("watch_job: requeue") == 3
    assert said[-1] == "watch_job: the job failed 4 times, so it ends here"


def test_a_job_that_slurm_ended_is_left_alone(tmp_path):
    done = fails(tmp_path, 3, 2, **slurm(tmp_path, "COMPLETING"))
    assert (done.returncode, done.stderr) == (1, "")
    assert not (tmp_path / "called").exists()


def test_the_end_of_the_time_asks_for_a_checkpoint_and_counts_no_failure(tmp_path):
    (tmp_path / "failures").write_text("3")
    script = 'kill -USR1 $PPID; while [ ! -e "$JOB_FOLDER/stop" ]; do sleep 0.05; done'
    done = watch(tmp_path, "bash", "-c", script, **slurm(tmp_path))
    assert "watch_job: the job has to end soon; save a checkpoint and end" in done.stderr
    assert (tmp_path / "called").read_text() == "requeue 7\n"
    assert not (tmp_path / "failures").exists(), "an earlier failure is not in a row with a later one"
    assert watch(tmp_path, "bash", "-c", 'ls "$JOB_FOLDER/stop"').returncode == 2  # gone at the next start
