"""The budget agrees with the series that a real Prometheus stores, and rules run over them."""

import pytest
import yaml

from tests.telemetry.load import measure
from tests.telemetry.rules.environments import environment
from ultracluster.catalog import catalog
from ultracluster.telemetry.budget import Fleet, series, series_by_exporter
from ultracluster.telemetry.rules import groups, rule_files

NODES = 3


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return Fleet(NODES, catalog["p5.48xlarge"], "pcs")


@pytest.fixture(scope="module")
def measured(engines, tmp_path_factory, fleet):
    rules = {name: every_two_seconds(text) for name, text in rule_files(environment("pcs")).items()}
    return measure(engines, tmp_path_factory.mktemp("load"), fleet, rules, interval=10, seconds=8)


def every_two_seconds(text: str) -> str:
    """A rules file whose groups are evaluated every two seconds."""
    file = yaml.safe_load(text)
    return yaml.safe_dump({"groups": [{**group, "interval": "2s"} for group in file["groups"]]})


def test_a_fleet_writes_the_series_of_its_budget(measured, fleet):
    """Training jobs are not in the synthetic load; GPUs are those of Hopper."""
    assert measured.series == series(fleet) - series_by_exporter(fleet)["training"]
    assert measured.scrapes_failed == 0


def test_every_rule_group_is_evaluated_without_error(measured):
    assert set(measured.rules) == {group.name for group in groups(environment("pcs"))}
    assert all(seconds > 0 for seconds in measured.rules.values())
    assert measured.rule_errors == ()
    assert measured.recorded > 0
