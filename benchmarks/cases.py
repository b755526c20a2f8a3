"""The benchmark cases, each with its goal."""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.timing import ROOT, interleaved, run

HEAVY = ("aws_cdk", "jsii", "boto3", "botocore", "moto", "cfnlint")
"""What `ultracluster validate` must not import."""

SYNTH_GOALS = {"prod": 2.5, "staging": 3.2}
"""Maximum time of a synth of each shipped environment, as a multiple of an empty App."""


@dataclass(frozen=True)
class Result:
    """One line of the table. The goal is met if `measured` is at most `goal`."""

    what: str
    goal: float
    measured: float
    unit: str
    details: str

    @property
    def met(self) -> bool:
        """Whether the goal is met."""
        return self.measured <= self.goal


def validate(rounds: int) -> Iterator[Result]:
    """`ultracluster validate`, compared with `python -c pass`."""
    command = [str(Path(sys.executable).with_name("ultracluster")), "validate", "environments/prod.yaml"]
    nothing, whole = interleaved([partial(run, [sys.executable, "-c", "pass"]), partial(run, command)], rounds)
    details = f"validate {whole:.2f} s, python -c pass {nothing:.2f} s"
    yield Result("validate prod.yaml, more than python -c pass", 0.25, whole - nothing, "s", details)
    imported = json.loads(run([sys.executable, "-m", "benchmarks.imports", *HEAVY]))
    yield Result("  heavy packages it imports", 0, len(imported), "", f"of {', '.join(HEAVY)}: {imported or 'none'}")


def synth(rounds: int) -> Iterator[Result]:
    """Whole environments, compared with an empty App; all import the CDK, start Node and synthesise."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    scripts = [("benchmarks/empty_app.py", "empty"), *(("app.py", name) for name in SYNTH_GOALS)]
    empty, *whole = interleaved(
        [
            partial(run, [sys.executable, script], {"CDK_CONTEXT_JSON": json.dumps({**context, "env": name})})
            for script, name in scripts
        ],
        rounds,
    )
    for (name, goal), seconds in zip(SYNTH_GOALS.items(), whole, strict=True):
        details = f"{name} {seconds:.2f} s, empty App {empty:.2f} s"
        yield Result(f"synth of {name}, times an empty App", goal, seconds / empty, "x", details)


def further_environments(rounds: int) -> Iterator[Result]:
    """Every other shipped file after prod, in one process. The median file is compared with the goal."""
    runs: list[Mapping[str, float]] = [
        json.loads(run([sys.executable, "-m", "benchmarks.further"])) for _ in range(rounds)
    ]
    seconds = {name: median(taken[name] for taken in runs) for name in runs[0]}
    slowest = max(seconds, key=lambda name: seconds[name])
    details = f"median of {len(seconds)}; the slowest is {slowest} with {seconds[slowest]:.2f} s"
    yield Result("each further environment in the same process", 0.3, median(seconds.values()), "s", details)


def node_groups(rounds: int) -> Iterator[Result]:
    """64 node groups compared with 4, in one process: at most 16 times the time means linear growth."""
    few, many = json.loads(run([sys.executable, "-m", "benchmarks.node_groups", str(rounds)]))
    details = f"64 groups {many:.2f} s, 4 groups {few:.2f} s: {(many - few) / 60 * 1000:.0f} ms a group"
    yield Result("64 node groups, times 4 node groups", 16, many / few, "x", details)
