"""Queues over UltraServers that share nodes between jobs are refused."""

from pathlib import Path

import pytest
import yaml

from ultracluster.config.loader import survey

EXAMPLE = Path(__file__).parents[3] / "examples" / "u-p6e-gb200x36.yaml"


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("Exclusive", "NO", True),
        ("Exclusive", "USER", True),
        ("Exclusive", "NODE", False),
        ("Exclusive", "TOPO", False),
    ],
)
def test_a_queue_that_shares_ultraservers_is_refused(tmp_path, name: str, value: str, *, refused: bool):
    content = yaml.safe_load(EXAMPLE.read_text("utf-8"))
    content["control_plane"]["slurm_version"] = "26.05"
    content["control_plane"]["queues"][0]["slurm_settings"] = {name: value}
    file = tmp_path / f"{content['name']}.yaml"
    file.write_text(yaml.safe_dump(content), "utf-8")
    findings = survey(file).findings
    found = [each for each in findings if "IMEX" in str(each)]
    assert bool(found) is refused, findings
