"""Where real engines are: the Debian folder that scripts/engines.sh builds, or the reason why a test cannot run."""

import os
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from tests.synthesis import ROOT

REQUIRED = "ULTRACLUSTER_ENGINES_REQUIRED"
"""Environment variable: engines that cannot run fail the tests instead of skipping them. `.ci/run` sets it."""


def engines_folder() -> Path:
    """The Debian folder, built by the first test of this machine that needs it."""
    built = subprocess.run([ROOT / "scripts/engines.sh"], text=True, capture_output=True)
    if built.returncode:
        missing(f"scripts/engines.sh: {built.stderr.strip().splitlines()[-1]}")
    return Path(built.stdout.strip())


def missing(reason: str) -> NoReturn:
    """Skips the test, or fails it where engines are required."""
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)
