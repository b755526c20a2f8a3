"""A fresh copy of the Debian folder for each test."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.engines.debian import Debian
from tests.synthesis import ROOT

REQUIRED = "ULTRACLUSTER_ENGINES_REQUIRED"
"""Environment variable: engines that cannot run fail the tests instead of skipping them. `.ci/run` sets it."""


@pytest.fixture(scope="session")
def debian_folder() -> Path:
    """The Debian folder, built by the first test of this machine that needs it."""
    built = subprocess.run([ROOT / "scripts/engines.sh"], text=True, capture_output=True)
    if built.returncode:
        _missing(f"scripts/engines.sh: {built.stderr.strip().splitlines()[-1]}")
    folder = Path(built.stdout.strip())
    isolated = subprocess.run(["unshare", "--uts", "--mount", "true"], text=True, capture_output=True)
    if isolated.returncode:
        _missing(f"no namespaces on this machine: {isolated.stderr.strip()}")
    return folder


@pytest.fixture
def debian(debian_folder: Path, tmp_path: Path) -> Debian:
    """A system of its own, with what a test writes on top of the Debian folder."""
    return Debian(debian_folder, tmp_path)


def _missing(reason: str) -> None:
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)
