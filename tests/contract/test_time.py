"""Time refuses no shipped file: `make later` runs this 18 months ahead, when all its versions have ended."""

from datetime import UTC, datetime
from unittest.mock import patch

from tests.synthesis import FILES, templates
from ultracluster.config.loader import survey


def test_every_shipped_file_synthesises():
    assert all(templates(name) for name in FILES)


def test_no_shipped_file_is_refused_when_its_versions_have_ended():
    with patch("ultracluster.config.clock.now", lambda: datetime(2030, 1, 1, tzinfo=UTC)):
        readings = {name: survey(file) for name, file in FILES.items()}
    assert not {name: reading.errors for name, reading in readings.items() if reading.errors}
    ended = {finding.code for reading in readings.values() for finding in reading.warnings}
    assert ended >= {"slurm-version-ended", "kubernetes-version-unsupported"}
