"""A fresh copy of the Debian folder for each test."""

import subprocess
from pathlib import Path

import pytest

from tests.engines.debian import Debian
from tests.engines.folder import engines_folder, missing


@pytest.fixture(scope="session")
def debian_folder() -> Path:
    """The Debian folder, on a machine with namespaces."""
    folder = engines_folder()
    isolated = subprocess.run(["unshare", "--uts", "--mount", "--net", "true"], text=True, capture_output=True)
    if isolated.returncode:
        missing(f"no namespaces on this machine: {isolated.stderr.strip()}")
    return folder


@pytest.fixture
def debian(debian_folder: Path, tmp_path: Path) -> Debian:
    """A system of its own, with what a test writes on top of the Debian folder."""
    return Debian(debian_folder, tmp_path)
