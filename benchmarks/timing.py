"""Wall times of commands, measured in turns, so that background load affects all of them alike."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent


def interleaved(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Median seconds of each call over `rounds`, in the order A B A B, after one warm-up round."""
    taken: list[list[float]] = [[] for _ in calls]
    for counted in [False] + [True] * rounds:
        for call, times in zip(calls, taken, strict=True):
            start = time.perf_counter()
            call()
            if counted:
                times.append(time.perf_counter() - start)
    return [median(times) for times in taken]


def run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """Run `command` in the project with a temporary output folder, and return its standard output.

    Raises RuntimeError with its standard error if it fails.
    """
    with TemporaryDirectory() as folder:
        environment = {**os.environ, **(variables or {}), "CDK_VALIDATION": "false", "CDK_OUTDIR": folder}
        # without bytecode, importing aws_cdk takes seconds longer
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} exits with {done.returncode}:\n{done.stderr}")
    return done.stdout
