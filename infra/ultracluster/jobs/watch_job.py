"""Runs the command of a training job, ends it when it hangs, and names the ranks that stopped and their nodes.

Heartbeats: each rank writes the number of its step to $JOB_FOLDER/heartbeats/RANK. The job hangs if a rank writes
nothing for --stalled seconds. Traces: when the command fails, those of PyTorch's flight recorder in $JOB_FOLDER/traces
show which ranks the others waited for. Files from before the start of this program belong to an earlier run.

Under Slurm it runs in the batch script, on the first node. It requeues the job after a hang or a failure, and excludes
the nodes of these ranks if the queue has others. It also requeues before the time limit and when another job preempts
this one: Slurm then sends SIGUSR1, and the file $JOB_FOLDER/stop asks the ranks to save a checkpoint and end. After
--restarts failures in a row it ends the job; a run that got further than all runs before it resets the count. Under
Kubernetes it runs in each pod and exits with 75, which restarts the job; if the pods share the folder, the first one
watches all ranks. A command that exits with 2, 126 or 127 cannot start and is not restarted.

It needs Python 3.10 and nothing else. Source of the traces: PyTorch, FlightRecorder.hpp (2.4 to 2.14).
"""

import argparse
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

RESTART = 75
CANNOT_START = (2, 126, 127)
SHOWN = 16  # ranks in a report
TIME_TO_STOP = 240  # seconds; Slurm sends the signal 300 s before the end


class Beat(NamedTuple):
    """The last heartbeat of a rank: seconds since the epoch, and the step, None for a text that is no number."""

    at: float
    step: int | None


def heartbeats(folder: Path, since: float) -> dict[int, Beat]:
    """Last heartbeat of each rank since `since`, in seconds since the epoch."""
    found = {}
    for file in folder.glob("[0-9]*"):
        try:
            at, text = file.stat().st_mtime, file.read_bytes()[:100].decode("ascii", "replace").strip()
        except OSError:  # the rank is replacing the file
            continue
        if file.name.isascii() and file.name.isdigit() and at >= since:
            found[int(file.name)] = Beat(at, int(text) if text.isdecimal() else None)
    return found


def hangs(beats: dict[int, Beat], ranks: int, now: float, stalled: float) -> bool:
    """Whether a rank wrote no heartbeat for `stalled` seconds. A job hangs only once at least one rank writes them."""
    if not beats:
        return False
    if len(beats) < ranks:  # a rank that never wrote counts from the first heartbeat of the others
        return now - min(beat.at for beat in beats.values()) > stalled
    return any(now - beat.at > stalled for beat in beats.values())


def behind(beats: dict[int, Beat], ranks: int, stalled: float) -> list[int]:
    """Ranks that stopped first: those without a heartbeat, else at the lowest step, else with the oldest heartbeats."""
    missing = [rank for rank in range(ranks) if rank not in beats]
    if missing and 2 * len(missing) < ranks:
        return missing
    steps = {rank: beat.step for rank, beat in beats.items() if beat.step is not None}
    if steps and len(set(steps.values())) > 1:
        return sorted(rank for rank, step in steps.items() if step == min(steps.values()))
    newest = max(beat.at for beat in beats.values())
    return sorted(rank for rank, beat in beats.items() if newest - beat.at > stalled / 2)


class PlainUnpickler(pickle.Unpickler):
    """Unpickles numbers, strings, lists and dictionaries only: a trace must not run code."""

    def find_class(self, module: str, name: str) -> Any:
        """PyTorch wraps typed lists in a function of torch.jit._pickle, which `list` replaces."""
        if module == "torch.jit._pickle":
            return list
        raise pickle.UnpicklingError(f"a trace holds {module}.{name}")


ENQUEUED, COMPLETED = COUNTS = ("last_enqueued_collective", "last_completed_collective")
Groups = Mapping[str, Mapping[str, int]]
"""Numbers of the last collectives of a rank, by process group. Group 0 has all ranks."""


def traces(folder: Path, since: float) -> dict[int, Groups]:
    """Last collectives of each rank that wrote a trace."""
    found: dict[int, Groups] = {}
    for file in folder.glob("rank-*"):
        try:
            if file.stat().st_mtime >= since:
                with file.open("rb") as opened:
                    status = PlainUnpickler(opened).load()["pg_status"]
                groups = {str(group): {key: int(each[key]) for key in COUNTS} for group, each in status.items()}
                found[int(file.name[5:])] = groups
        except (OSError, ValueError, EOFError, LookupError, TypeError, AttributeError, pickle.UnpicklingError):
            continue  # incomplete, or written by an unknown version
    return found


def in_collective(groups: Groups) -> bool:
    """Whether a rank has enqueued a collective that has not completed."""
    return any(each[ENQUEUED] > each[COMPLETED] for each in groups.values())


def awaited(states: Mapping[int, Groups], ranks: int) -> list[int]:
    """Ranks for which the others wait in a collective; empty if the traces do not show any.

    Ranks without a trace come first, since a process that is gone or stopped writes none; then ranks in no collective
    while others are in one; then ranks that have enqueued fewer collectives than others.
    """
    missing = [rank for rank in range(ranks) if rank not in states]
    if missing:
        return missing if 2 * len(missing) < ranks else []
    waiting = {rank for rank, groups in states.items() if in_collective(groups)}
    if waiting and len(waiting) < len(states):
        return sorted(set(states) - waiting)
    counts = {rank: groups["0"][ENQUEUED] for rank, groups in states.items() if "0" in groups}
    if len(set(counts.values())) > 1:
        return sorted(rank for rank, count in counts.items() if count == min(counts.values()))
    return []


class Job:
    """The command and the job's folder, which keeps the count of failures and the excluded nodes between runs."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder, self.options = folder, options
        self.stop_by: float | None = None
        self.watches_ranks = options.node_rank in ("", "0") or not options.ranks
        for name in ("heartbeats", "traces", "nodes"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "stop").unlink(missing_ok=True)
        # by the clock that dates files, which is behind this one by moments
        (folder / "traces").touch()
        self.started = (folder / "traces").stat().st_mtime

    def say(self, text: str) -> None:
        """Writes to the output of the job."""
        print(f"watch_job: {text}", file=sys.stderr, flush=True)

    def ask_to_stop(self, *_: object) -> None:
        """Handler of SIGUSR1: asks the ranks to stop before the time limit, or when another job preempts this one."""
        self.say("the job has to end soon; save a checkpoint and end")
        (self.folder / "stop").touch()
        self.stop_by = time.time() + TIME_TO_STOP

    def run(self) -> int:
        """Runs the command. Returns 0 if it succeeded, RESTART, or its exit code if a restart would not help."""
        try:
            process = subprocess.Popen(self.options.command)
        except OSError as error:
            self.say(str(error))
            return 127
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        while process.poll() is None:
            try:
                process.wait(self.options.poll)
            except subprocess.TimeoutExpired:
                if self.stop_by and time.time() > self.stop_by:
                    self.say("the command did not end in time")
                    self.count_failure()
                    return self.end(process)
                if self.watches_ranks and hangs(self.beats(), self.options.ranks, time.time(), self.options.stalled):
                    self.report(behind(self.beats(), self.options.ranks, self.options.stalled))
                    return self.end(process)
        if self.stop_by:
            (self.folder / "failures").unlink(missing_ok=True)
            return RESTART
        if process.returncode == 0 or process.returncode in CANNOT_START:
            return process.returncode
        if self.options.under_slurm and not self.is_running():
            return process.returncode  # Slurm ended the job, and decides whether to requeue it
        self.say(f"the command ended with exit code {process.returncode}")
        if self.watches_ranks:
            self.report([])
        return RESTART

    def beats(self) -> dict[int, Beat]:
        """Heartbeats of this run."""
        return heartbeats(self.folder / "heartbeats", self.started)

    def report(self, ranks: list[int]) -> None:
        """Counts a failure, names the ranks that stopped, and excludes their nodes. Reads traces if there are none."""
        ranks = ranks or awaited(traces(self.folder / "traces", self.started), self.options.ranks)
        beats = self.beats()
        for rank in ranks[:SHOWN]:
            step = f" at step {beats[rank].step}" if rank in beats and beats[rank].step is not None else ""
            self.say(f"rank {rank} on {self.node_of(rank) or 'an unknown node'} stopped{step}")
        nodes = sorted({self.node_of(rank) for rank in ranks} - {""})
        if not ranks:
            self.say("no rank stopped before the others")
        self.count_failure()
        if nodes and len(nodes) <= self.options.spares:
            earlier = [name for name in self.excluded() if name not in nodes]
            (self.folder / "excluded").write_text("\n".join([*earlier, *nodes]))
        elif nodes and self.options.under_slurm:
            self.say("the queue has no other nodes, so the next run may get them again")

    def node_of(self, rank: int) -> str:
        """Name of the node of a rank; empty if unknown."""
        try:
            return (self.folder / "nodes" / str(rank // self.options.ranks_per_node)).read_text().strip()
        except OSError:
            return ""

    def count_failure(self) -> None:
        """Counts a failure. The count restarts when a rank reached a higher step than in any earlier run."""
        reached = max((beat.step or 0 for beat in self.beats().values()), default=0)
        further = reached > self.number("reached")
        if further:
            (self.folder / "reached").write_text(str(reached))
        (self.folder / "failures").write_text(str(1 if further else self.failures() + 1))

    def failures(self) -> int:
        """Number of failures in a row."""
        return self.number("failures")

    def number(self, name: str) -> int:
        """The number that an earlier run wrote to a file of the folder; 0 if there is none."""
        try:
            return int((self.folder / name).read_text())
        except (OSError, ValueError):
            return 0

    def excluded(self) -> list[str]:
        """Nodes to exclude: the latest ones, as many as the queue has spare nodes."""
        try:
            names = (self.folder / "excluded").read_text().split()
        except OSError:
            names = []
        return names[-self.options.spares :] if self.options.spares else []

    def end(self, process: "subprocess.Popen[bytes]") -> int:
        """Ends the command with SIGTERM, and after 30 s with SIGKILL. One that hangs in the kernel is left behind."""
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        return RESTART

    def is_running(self) -> bool:
        """Whether Slurm has the job as RUNNING: not cancelled, not preempted, and without failed nodes."""
        words = ["squeue", "-h", "-j", os.environ["SLURM_JOB_ID"], "-o", "%T"]
        return subprocess.run(words, stdout=subprocess.PIPE, check=False).stdout.decode().strip() == "RUNNING"

    def requeue(self) -> None:
        """Requeues the job, unless Slurm has ended it: a cancelled job must not start again."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        number = os.environ["SLURM_JOB_ID"]
        if not self.is_running():
            return
        self.say("requeue")
        nodes = ",".join(self.excluded())
        # Slurm accepts a change of ExcNodeList for a job that is not running only
        if (
            self.scontrol("requeue", number)
            and nodes
            and self.scontrol("update", f"JobId={number}", f"ExcNodeList={nodes}")
        ):
            self.say(f"the next run avoids {nodes}")

    def scontrol(self, *words: str) -> bool:
        """Runs scontrol. Returns whether it succeeded; logs the reason if not."""
        ran = subprocess.run(["scontrol", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if ran.returncode:
            self.say(f"scontrol {words[0]} failed: {ran.stdout.decode(errors='replace').strip()}")
        return ran.returncode == 0


def main() -> int:
    """Runs the job. Returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=0, help="ranks of the job; 0 if each node has a folder of its own")
    parser.add_argument("--ranks-per-node", type=int, default=1)
    parser.add_argument(
        "--stalled", type=float, default=1800, help="seconds without a heartbeat after which the job hangs"
    )
    parser.add_argument("--restarts", type=int, default=3, help="restarts after consecutive failures")
    parser.add_argument("--spares", type=int, default=0, help="nodes of the queue that the job does not need")
    parser.add_argument("--node", default="", help="name of this node, under Kubernetes")
    parser.add_argument("--node-rank", default="", help="number of this node, under Kubernetes")
    parser.add_argument("--poll", type=float, default=30, help="seconds between checks")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    options.under_slurm = "SLURM_JOB_ID" in os.environ
    job = Job(Path(os.environ["JOB_FOLDER"]), options)
    if options.node:
        (job.folder / "nodes" / options.node_rank).write_text(options.node)
    signal.signal(signal.SIGUSR1, job.ask_to_stop)
    status = job.run()
    if status == RESTART and options.under_slurm:
        if job.failures() <= job.options.restarts:
            job.requeue()
        else:
            job.say(f"the job failed {job.failures()} times, so it ends here")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
