"""Where Kubernetes' servers are: the folder of scripts/kubernetes_servers.sh, or the reason why a test cannot run."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.kubernetes.schemas import REQUIRED
from tests.synthesis import ROOT


def servers_folder() -> Path:
    """The folder with bin and charts. Skips the test, or fails it where servers are required."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("make test-kubernetes: every worker would start servers of its own")
    built = subprocess.run([ROOT / "scripts/kubernetes_servers.sh", "--built"], text=True, capture_output=True)
    if built.returncode:
        reason = built.stderr.strip().splitlines()[-1]
        pytest.fail(reason) if os.environ.get(REQUIRED) else pytest.skip(reason)
    return Path(built.stdout.strip())
