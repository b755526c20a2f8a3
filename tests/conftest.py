"""Settings of every test run, made before a test starts Node, and how the tests are shared between workers."""

import gc
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.synthesis import SHARED

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


def pytest_configure(config: pytest.Config) -> None:
    """Makes the folder in which the workers of a run share synthesised templates."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="ultracluster-templates-")
        os.environ[SHARED] = folder.name
        config.add_cleanup(folder.cleanup)


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
