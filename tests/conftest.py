"""Settings of every test run, made before a test starts Node, and how the tests are shared between workers."""

import gc
import os
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.synthesis import FILES, forget_others

# the validation engine costs seconds in each process; one test switches it on in a process of its own
os.environ["CDK_VALIDATION"] = "false"
# the Node of the virtual environment, not the machine's, which may be out of support
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
# settings of a terminal change what commands print
for variable in ("FORCE_COLOR", "COLUMNS", "LINES"):
    os.environ.pop(variable, None)
# aws_cdk, moto and cfn-lint keep millions of objects; at the usual thresholds the collector takes a fifth of the time
gc.set_threshold(200_000, 20, 20)

# each mock of AWS starts a boto3 session, and each session parses botocore's models: read a file once a process
_read = JSONFileLoader.load_file


@cache
def _model(path: str) -> Any:
    return _read(JSONFileLoader(), path)


# S3's clients change their model while they use it, and moto would read what they left
JSONFileLoader.load_file = lambda self, path: _read(self, path) if "/data/s3/" in path else _model(path)

# moto makes an RSA key for each KMS key, symmetric ones too: make one of each size a process
rsa.generate_private_key = cache(rsa.generate_private_key)

PARTED = (
    "tests/access/test_access.py",
    "tests/access/test_mutants.py",
    "tests/constructs/test_gates.py",
    "tests/deployment/test_in_process",
)
"""Long test files whose tests for one environment need nothing of those for another."""

WAITING = "tests/engines/"
"""Test files that wait for most of their time, with a processor idle."""


REFERENCES = {"dev", "staging", "prod", "slurm-whole-fleet", "eks-whole-fleet", "u-p6e-gb200x72"}
"""Environments that go through the slow gates in every run; `--every-environment` takes all shipped ones."""

SLOW = (
    "tests/access/test_access.py",
    "tests/access/test_lint.py",
    "tests/constructs/test_gates.py",
    "tests/constructs/test_second_synth.py",
    "tests/deployment/test_in_process",
)
"""Test files that take seconds for each environment."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--every-environment`."""
    parser.addoption("--every-environment", action="store_true", help="every shipped environment in the slow gates")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the slow gates of environments that are not references."""
    others = set() if config.getoption("--every-environment") else FILES.keys() - REFERENCES
    left_out = [item for item in items if item.nodeid.startswith(SLOW) and not others.isdisjoint(_parameters(item))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def _parameters(item: pytest.Item) -> set[str]:
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {value for value in values if isinstance(value, str)}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Skipped tests in a line per reason, and the test files that took the most time."""
    stats = terminalreporter.stats
    if reasons := Counter(str(report.longrepr[2]) for report in stats.get("skipped", [])):
        terminalreporter.section("skipped")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count:6} {reason.removeprefix('Skipped: ')}")
    seconds: Counter[str] = Counter()
    for report in (report for reports in stats.values() for report in reports):
        seconds[getattr(report, "nodeid", "").partition("::")[0]] += getattr(report, "duration", 0)
    if sum(seconds.values()) > 60:
        terminalreporter.section("seconds by file")
        for file, duration in seconds.most_common(20):
            terminalreporter.line(f"{duration:6.0f} {file}")


def pytest_configure(config: pytest.Config) -> None:
    """Removes what earlier runs kept of other sources."""
    if not hasattr(config, "workerinput"):
        forget_others()


def pytest_collection_finish() -> None:
    """Keeps the garbage collector from going through all imported modules again and again."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three workers for two cores: a third of the time, a worker waits for Slurm, systemd, the CDK CLI or a server."""
    cores = os.cpu_count() or 1
    return cores + cores // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With `--dist loadfile`, the parted files are shared out by environment, the others whole.

    One worker begins with the files that wait, so that they do not keep all workers waiting at the same time.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByEnvironment(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return f"{file}[{nodeid.partition('[')[2]}" if file.startswith(PARTED) else file

        def _assign_work_unit(self, node: object) -> None:
            wanted = node is self.nodes[0]
            if found := [scope for scope in self.workqueue if scope.startswith(WAITING) is wanted]:
                self.workqueue.move_to_end(found[0], last=False)
            super()._assign_work_unit(node)

    return ByEnvironment(config, log) if config.getoption("dist") == "loadfile" else None
