"""The program that measures pairs of nodes: which pairs it plans, what it reads, and which nodes it names."""

import os
import shlex
import subprocess
import sys
from collections import Counter

import pytest

from tests.unit.nodes.machine import await_end
from ultracluster.jobs import pair_nodes
from ultracluster.jobs.pair_nodes import Result, at_fault, bandwidth, fault, next_round, rounds, table, unclear

OUTPUT = """\
# nccl-tests version 2.20.0 nccl-headers=23102 nccl-library=23102
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 17179869184 maxBytes 17179869184 step: 1048576(bytes) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   6899 on      gpu-1 device  0 [0000:53:00] NVIDIA H100 80GB HBM3
#  Rank  8 Group  0 Pid   6733 on      gpu-2 device  0 [0000:53:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
 17179869184    4294967296     float     sum      -1    90590  189.64  355.58       0    90699  189.42  355.15       0
# Out of bounds values : {wrong}
# Avg bus bandwidth    : {average}
#
# Collective test concluded: all_reduce_perf
"""
"""What all_reduce_perf prints for two nodes (nccl-tests 2.20, src/util.cu), shortened."""


def names(count):
    return [f"gpu-{number}" for number in range(1, count + 1)]


def good(one, two, gb_per_s=355.0):
    return Result((one, two), gb_per_s)


def hung(one, two):
    return Result((one, two), 0, "does not end in 300 s")


@pytest.mark.parametrize("count", range(3, 20))
def test_each_node_has_two_partners_in_two_rounds_or_three(count):
    planned = rounds(names(count))
    assert len(planned) == 2 + count % 2
    for pairs in planned:
        assert max(Counter(node for pair in pairs for node in pair).values()) == 1
    partners = {node: set() for node in names(count)}
    for one, two in (pair for pairs in planned for pair in pairs):
        partners[one].add(two)
        partners[two].add(one)
    assert {len(each) for each in partners.values()} == {2}
    assert not any(node in each for node, each in partners.items())


def test_two_nodes_are_one_pair():
    assert rounds(["a", "b"]) == [[("a", "b")]]


@pytest.mark.parametrize("lines", ["", "[1,0]<stdout>:"])
def test_the_bandwidth_is_the_average(lines):
    text = OUTPUT.format(wrong="0 OK", average="355.365 ")
    assert bandwidth("".join(f"{lines}{line}\n" for line in text.splitlines())) == 355.365


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (OUTPUT.format(wrong="3 FAILED", average="355.3 "), "3 values are wrong"),
        (OUTPUT.format(wrong="0 OK", average="0 "), "its output has no bandwidth"),
        (OUTPUT.format(wrong="0 OK", average="-nan "), "its output has no bandwidth"),
        (OUTPUT.format(wrong="0 OK", average="inf "), "its output has no bandwidth"),
        (OUTPUT.partition("# Avg")[0].format(wrong="0 OK"), "its output has no bandwidth"),
        ("# Avg bus bandwidth    : 355.3 \n", "its output has no bandwidth"),
        ("gpu-1: Test NCCL failure common.cu:1017 'unhandled system error'\n", "its output has no bandwidth"),
        ("", "its output has no bandwidth"),
    ],
)
def test_output_without_a_right_result_is_none(output, said):
    with pytest.raises(ValueError, match=said):
        bandwidth(output)


def test_a_node_whose_pairs_are_slow_is_named_and_its_partners_are_not():
    results = [good("a", "b"), good("c", "d", 200), good("b", "c", 180), good("d", "a")]
    assert at_fault(results, 320) == {"c"}
    assert unclear(results, 320) == []
    assert next_round(results, 320) == []
    assert fault(results, "c", 320) == "its best pair, with d, has 200 GB/s, below the floor of 320 GB/s"


def test_a_pair_at_the_floor_is_good():
    assert not at_fault([good("a", "b", 320), good("b", "c", 320), good("c", "a", 319.99)], 320)


def test_a_node_between_two_slow_ones_is_measured_again_before_it_is_named():
    first = [good("a", "b", 90), good("c", "d", 90), good("e", "f")]
    ring = [*first, good("b", "c", 90), good("d", "e"), good("f", "a", 90)]
    assert at_fault(ring, 320) == {"a", "c"}
    assert next_round(ring, 320) == [("b", "d")]
    assert at_fault([*ring, good("b", "d")], 320) == {"a", "c"}
    assert at_fault([*ring, good("b", "d", 91)], 320) == {"a", "b", "c"}
    assert next_round([*ring, good("b", "d", 91)], 320) == []


def test_more_unclear_nodes_than_good_ones_need_more_rounds():
    results = [good("a", "b", 9), good("c", "d", 9), good("e", "f"), *(good("b", "c", 9) for _ in range(2))]
    seen = 0
    while pairs := next_round(results, 320):
        results += [good(*pair, 9) for pair in pairs]
        seen += 1
    assert seen == 2
    assert at_fault(results, 320) == {"a", "b", "c", "d"}


def test_a_pair_that_hangs_names_the_node_that_works_with_none():
    results = [hung("a", "b"), good("c", "d"), hung("b", "c"), good("d", "a")]
    assert at_fault(results, 320) == {"b"}
    assert fault(results, "b", 320) == "no pair of it works: all_reduce with a does not end in 300 s"


def test_one_slow_pair_does_not_tell_which_node_is_slow():
    assert not at_fault([good("a", "b", 90)], 320)
    assert unclear([good("a", "b", 90)], 320) == ["a", "b"]
    assert next_round([good("a", "b", 90)], 320) == []


def test_of_measurements_of_the_same_pair_the_best_counts():
    results = [good("a", "b", 90), good("b", "a", 355), good("a", "b", 100)]
    assert not unclear(results, 320)
    assert table(results) == ["a: 355 GB/s, 100% of the median", "b: 355 GB/s, 100% of the median"]


def test_without_a_floor_only_pairs_that_fail_count():
    results = [good("a", "b", 9), good("b", "c"), hung("c", "d"), hung("d", "a")]
    assert at_fault(results, 0) == {"d"}


def run(folder, floor, script, *, nodes="a,b,c,d", seconds=120, **commands):
    """Runs the program as a job does: `script` is the command of a pair, $1 and $2 its nodes."""
    (folder / "bin").mkdir()
    for name, text in commands.items():
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "output").write_text(OUTPUT.format(wrong="0 OK", average="AVERAGE "))
    (folder / "pair.sh").write_text(
        f"reaches() {{ sed s/AVERAGE/$1/ {shlex.quote(str(folder / 'output'))}; }}\n"
        f"of() {{ [ $1 = $first ] || [ $1 = $second ]; }}\nfirst=$1 second=$2\n{script}\n"
    )
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "JOB_FOLDER": str(folder)}
    if commands:
        environment["SLURM_JOB_ID"] = "7"
    options = ["--nodes", nodes, "--type", "p5.48xlarge", "--floor", str(floor), "--seconds", str(seconds)]
    command = [sys.executable, "-IS", pair_nodes.__file__, *options, "--", "bash", str(folder / "pair.sh")]
    done = subprocess.run(
        [*command, "{first}", "{second}"], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.stderr == ""
    return done.returncode, [line.removeprefix("nccl-pairs: ") for line in done.stdout.splitlines()]


def test_a_fleet_without_a_fault_ends_well(tmp_path):
    assert run(tmp_path, 320, "reaches 355.4") == (
        0,
        [
            "round 1: a with b: 355.4 GB/s",
            "round 1: c with d: 355.4 GB/s",
            "round 2: b with c: 355.4 GB/s",
            "round 2: d with a: 355.4 GB/s",
            *(f"{node}: 355.4 GB/s, 100% of the median" for node in "abcd"),
            "every node has a pair of 320 GB/s or more",
        ],
    )
    assert "355.4" in (tmp_path / "round-2-d-a.out").read_text()


def test_bandwidth_of_a_type_without_a_floor_is_not_judged(tmp_path):
    code, said = run(tmp_path, 0, "if of c; then reaches 20; else reaches 200; fi")
    assert code == 0
    assert "c: 20 GB/s, 10% of the median" in said
    assert said[-2:] == [
        "no floor is known for p5.48xlarge, so bandwidth is not judged: compare the nodes with each other",
        "every node has a pair that works",
    ]


SINFO, SCONTROL = "echo mixed", 'echo "$@" >> "$JOB_FOLDER/scontrol"'
REASON = "health: isolate: nccl: its best pair, with d, has 200 GB/s, below the floor of 320 GB/s"


def test_slurm_drains_a_node_at_fault_with_the_reason(tmp_path):
    script = "if of c; then reaches 200; else reaches 355; fi"
    code, said = run(tmp_path, 320, script, sinfo=SINFO, scontrol=SCONTROL)
    assert code == 1
    assert said[-2:] == [f"FAILED: c: {REASON}", "c is drained"]
    assert (tmp_path / "scontrol").read_text() == f"update nodename=c state=drain reason={REASON}\n"


def test_a_user_who_may_not_drain_gets_the_command(tmp_path):
    script = "if of c; then reaches 200; else reaches 355; fi"
    code, said = run(tmp_path, 320, script, sinfo=SINFO, scontrol="exit 1")
    assert code == 1
    assert said[-1] == (
        f"you may not drain c; an operator runs: scontrol update nodename=c state=drain 'reason={REASON}'"
    )


def test_the_reason_of_a_drained_node_stays(tmp_path):
    script = "if of c; then reaches 200; else reaches 355; fi"
    code, said = run(tmp_path, 320, script, sinfo="echo draining", scontrol=SCONTROL)
    assert (code, said[-1]) == (1, "c is drained already")
    assert not (tmp_path / "scontrol").exists()


def test_pairs_that_hang_are_ended_with_all_their_processes(tmp_path):
    script = 'if of c; then sleep 600 & echo $! >> "$JOB_FOLDER/pids"; wait; else reaches 355; fi'
    commands = {"squeue": "printf '7.batch\\n7.3\\n7.extern\\n'", "scancel": 'echo "$@" >> "$JOB_FOLDER/scancel"'}
    code, said = run(tmp_path, 320, script, seconds=5, sinfo=SINFO, scontrol=SCONTROL, **commands)
    assert code == 1
    assert "round 1: c with d: does not end in 5 s" in said
    assert said[-2].startswith("FAILED: c: health: isolate: nccl: no pair of it works: all_reduce with d does not end")
    assert (tmp_path / "scancel").read_text() == "--signal=KILL 7.3\n" * 2
    for number in (tmp_path / "pids").read_text().split():
        await_end(number)


def test_a_command_may_need_another_name_of_a_node_than_its_own(tmp_path):
    nodes = "pod-0.job=a,pod-1.job=b,pod-2.job="
    code, said = run(tmp_path, 320, "if of pod-1.job; then reaches 9; else reaches 355; fi", nodes=nodes)
    assert code == 1
    assert said[0] == "round 1: a with b: 9 GB/s"
    assert said[-2].startswith("FAILED: b: health: isolate: nccl: its best pair, with ")
    assert said[-1] == "an operator runs: kubectl cordon b"


def test_commands_that_fail_name_their_node(tmp_path):
    code, said = run(tmp_path, 320, "if of a; then echo NCCL failure; exit 3; fi; reaches 355", nodes="a,b,c")
    assert code == 1
    assert "round 1: a with b: fails with exit code 3: its output has no bandwidth" in said
    assert said[1] == "  NCCL failure"
    assert [line.partition(":")[0] for line in said].count("a") == 1
    assert said[-2].startswith("FAILED: a: health: isolate: nccl: no pair of it works: all_reduce with b fails")


def test_two_nodes_below_the_floor_are_both_named_and_none_is_drained(tmp_path):
    code, said = run(tmp_path, 320, "reaches 200", nodes="a,b", sinfo=SINFO, scontrol=SCONTROL)
    assert code == 1
    assert said[-3:] == [
        "FAILED: no node has a good pair, so this does not tell which are at fault, or whether all share a problem",
        "a: its best pair, with b, has 200 GB/s, below the floor of 320 GB/s",
        "b: its best pair, with a, has 200 GB/s, below the floor of 320 GB/s",
    ]
    assert not (tmp_path / "scontrol").exists()


def test_one_node_is_no_pair(tmp_path):
    assert run(tmp_path, 320, "reaches 355", nodes="a") == (2, ["FAILED: a pair needs two nodes"])


def test_a_command_that_does_not_exist_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("JOB_FOLDER", str(tmp_path))
    words = ["--nodes", "a,b", "--type", "p5.48xlarge", "--floor", "0", "--seconds", "1", "--", "/no/mpirun", "{first}"]
    assert pair_nodes.main(words) == 2
    assert "FAILED: [Errno 2] No such file or directory: '/no/mpirun'" in capsys.readouterr().out
