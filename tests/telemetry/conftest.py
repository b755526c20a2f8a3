"""Real engines for the tests of telemetry."""

import pytest

from tests.engines.folder import engines_folder
from tests.telemetry.engines import Engines


@pytest.fixture(scope="session")
def engines() -> Engines:
    """Prometheus, promtool and amtool. Without them the test is skipped, or fails in CI."""
    return Engines(engines_folder())
