"""Measures all_reduce between pairs of nodes, and names the nodes that are slow with every partner.

Each node is measured with its two neighbours in the list of nodes, in rounds in which all pairs run at the same time.
A pair is good if it ends in time, with correct values, at --floor GB/s or more; without a floor, at any bandwidth. A
node without a good pair may have had bad partners: it is measured once more with a node that has a good pair. If that
pair is bad too, the node is at fault. If no pair is good, no node can be identified.

Under Slurm it drains the nodes at fault, or prints the commands if the user may not; under Kubernetes it prints
commands. Exit code 1: a node has no good pair. The output of each pair is a file in $JOB_FOLDER.

It needs Python 3.10 and nothing else. Source of the output of all_reduce_perf: nccl-tests 2.20, src/util.cu.
"""

import argparse
import contextlib
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

SECONDS_TO_END = 20  # between SIGTERM and SIGKILL
LONGEST_REASON = 240  # characters
SHOWN = 5  # lines of the output of a pair that fails

Pair = tuple[str, str]


class Result(NamedTuple):
    """Measurement of a pair: its bus bandwidth in GB/s, or 0 and the problem."""

    pair: Pair
    gb_per_s: float
    problem: str = ""

    def partner(self, node: str) -> str:
        """The other node."""
        return self.pair[self.pair[0] == node]


def rounds(nodes: Sequence[str]) -> list[list[Pair]]:
    """Pairs of neighbours in a ring, in rounds in which each node has one pair at most. Two nodes are one pair."""
    ring = list(zip(nodes, [*nodes[1:], *nodes[:1]], strict=True))
    if len(nodes) == 2:
        return [ring[:1]]
    even = len(nodes) // 2 * 2
    return [ring[0:even:2], ring[1:even:2], *([ring[even:]] if ring[even:] else [])]


def bandwidth(output: str) -> float:
    """Bus bandwidth in GB/s in the output of all_reduce_perf. Raises ValueError for wrong values or no bandwidth."""
    wrong = re.search(r"# Out of bounds values\s*:\s*(\d+)", output)
    average = re.search(r"# Avg bus bandwidth\s*:\s*([0-9.]+)", output)
    if wrong and int(wrong[1]):
        raise ValueError(f"{wrong[1]} values are wrong")
    if not wrong or not average or not float(average[1]):
        raise ValueError("its output has no bandwidth")
    return float(average[1])


def healthy(results: Iterable[Result], floor: float) -> set[str]:
    """Nodes with a good pair."""
    return {node for each in results if not each.problem and each.gb_per_s >= floor for node in each.pair}


def at_fault(results: Sequence[Result], floor: float) -> set[str]:
    """Nodes without a good pair, measured with a partner that has one."""
    good = healthy(results, floor)
    return {node for each in results for node in each.pair if node not in good and each.partner(node) in good}


def unclear(results: Sequence[Result], floor: float) -> list[str]:
    """Nodes without a good pair whose partners have none either, in the order of `results`."""
    known = healthy(results, floor) | at_fault(results, floor)
    return list(dict.fromkeys(node for each in results for node in each.pair if node not in known))


def next_round(results: Sequence[Result], floor: float) -> list[Pair]:
    """Pairs of unclear nodes with nodes that have a good pair."""
    return list(zip(unclear(results, floor), sorted(healthy(results, floor)), strict=False))


def best(results: Iterable[Result], node: str) -> Result:
    """The fastest pair of a node; of pairs that failed, the first."""
    return max((each for each in results if node in each.pair), key=lambda each: each.gb_per_s)


def fault(results: Iterable[Result], node: str, floor: float) -> str:
    """The fault of a node without a good pair, for the reason of a drain."""
    found = best(results, node)
    other = found.partner(node)
    if found.problem:
        return f"no pair of it works: all_reduce with {other} {found.problem}"
    return f"its best pair, with {other}, has {found.gb_per_s:g} GB/s, below the floor of {floor:g} GB/s"


def table(results: Sequence[Result]) -> list[str]:
    """The best pair of each node, the slowest node first, as a share of the median."""
    nodes = dict.fromkeys(node for each in results for node in each.pair)
    found = sorted((best(results, node).gb_per_s, node) for node in nodes)
    median = statistics.median(value for value, _ in found) or 1
    return [f"{node}: {value:g} GB/s, {value / median:.0%} of the median" for value, node in found]


def say(text: str) -> None:
    """Writes to the output of the job."""
    print(f"nccl-pairs: {text}", flush=True)


def measure(number: int, pairs: Sequence[Pair], options: argparse.Namespace) -> list[Result]:
    """Runs the command for all pairs at the same time, and ends those that exceed --seconds."""
    running = []
    for pair in pairs:
        first, second = (options.hosts[node] for node in pair)
        words = [word.replace("{first}", first).replace("{second}", second) for word in options.command]
        file = Path(os.environ.get("JOB_FOLDER", "."), f"round-{number}-{pair[0]}-{pair[1]}.out")
        with file.open("wb") as opened:
            process = subprocess.Popen(words, stdout=opened, stderr=subprocess.STDOUT, start_new_session=True)
        running.append((pair, process, file))
    deadline = time.monotonic() + options.seconds
    for _, process, _ in running:
        wait(process, deadline - time.monotonic())
    hung = [(pair, process) for pair, process, _ in running if process.poll() is None]
    end(hung)
    results = []
    for pair, process, file in running:
        output = file.read_text(errors="replace")
        if (pair, process) in hung:
            found = Result(pair, 0, f"does not end in {options.seconds:g} s")
        else:
            found = result(pair, process.returncode, output)
        say(f"round {number}: {pair[0]} with {pair[1]}: {found.problem or f'{found.gb_per_s:g} GB/s'}")
        for line in output.splitlines()[-SHOWN:] if found.problem else ():
            say(f"  {line}")
        results.append(found)
    return results


def result(pair: Pair, code: int, output: str) -> Result:
    """Result of a command that has ended with exit code `code`."""
    try:
        found = bandwidth(output)
    except ValueError as problem:
        return Result(pair, 0, f"fails with exit code {code}: {problem}" if code else f"fails: {problem}")
    return Result(pair, 0, f"fails with exit code {code}") if code else Result(pair, found)


def wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Waits for a process to end, at most `seconds`."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(seconds, 0))


def end(hung: Sequence[tuple[Pair, "subprocess.Popen[bytes]"]]) -> None:
    """Ends commands and their job steps on other nodes: the next round needs the GPUs."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + SECONDS_TO_END
        for _, process in hung:
            if process.poll() is None:
                os.killpg(process.pid, number)
        for _, process in hung:
            wait(process, deadline - time.monotonic())
    if hung and "SLURM_JOB_ID" in os.environ:
        nodes = ",".join(node for pair, _ in hung for node in pair)
        words = ["squeue", "--steps", f"--jobs={os.environ['SLURM_JOB_ID']}", f"--nodelist={nodes}", "-h", "-o", "%i"]
        steps = [step for step in output_of(words).split() if step.rpartition(".")[2].isdigit()]
        for step in steps:
            output_of(["scancel", "--signal=KILL", step])


def output_of(words: list[str]) -> str:
    """Standard output of a command, whatever its exit code."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def drain(node: str, reason: str) -> None:
    """Drains a node, unless it is drained already. Prints the command if the user may not drain nodes."""
    if "drain" in output_of(["sinfo", "--noheader", f"--nodes={node}", "--format=%T"]):
        say(f"{node} is drained already")
        return
    words = ["scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}"]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        say(f"you may not drain {node}; an operator runs: {shlex.join(words)}")
    else:
        say(f"{node} is drained")


def report(results: Sequence[Result], options: argparse.Namespace) -> int:
    """Prints the results, and drains nodes at fault. Returns the exit code."""
    for line in table(results):
        say(line)
    if not options.floor:
        say(f"no floor is known for {options.type}, so bandwidth is not judged: compare the nodes with each other")
    for node in sorted(at_fault(results, options.floor)):
        reason = f"health: isolate: nccl: {fault(results, node, options.floor)}"
        say(f"FAILED: {node}: {reason}")
        if "SLURM_JOB_ID" in os.environ:
            drain(node, reason[:LONGEST_REASON])
        else:
            say(f"an operator runs: kubectl cordon {node}")
    rest = unclear(results, options.floor)
    if rest:
        say("FAILED: no node has a good pair, so this does not tell which are at fault, or whether all share a problem")
    for node in rest:
        say(f"{node}: {fault(results, node, options.floor)}")
    if rest or at_fault(results, options.floor):
        return 1
    say(f"every node has a pair {f'of {options.floor:g} GB/s or more' if options.floor else 'that works'}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the rounds. Returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--nodes", required=True, help="names, separated by commas; HOST=NAME if the command needs another name"
    )
    parser.add_argument("--type", required=True, help="instance type of the nodes")
    parser.add_argument("--floor", type=float, required=True, help="GB/s of a good pair; 0 if none is known")
    parser.add_argument("--seconds", type=float, required=True, help="time limit of a pair")
    parser.add_argument("command", nargs="+", help="command of a pair, with {first} and {second} for the nodes")
    options = parser.parse_args(arguments)
    named = (each.partition("=") for each in options.nodes.split(","))
    options.hosts = {name or host: host for host, _, name in named}
    nodes = list(options.hosts)
    if len(nodes) < 2:
        say("FAILED: a pair needs two nodes")
        return 2
    results: list[Result] = []
    planned, number = rounds(nodes), 0
    while pairs := planned.pop(0) if planned else next_round(results, options.floor):
        number += 1
        try:
            results += measure(number, pairs, options)
        except OSError as problem:
            say(f"FAILED: {problem}")
            return 2
    return report(results, options)


if __name__ == "__main__":
    sys.exit(main())
