"""Values of releases are values of their charts: Helm ignores a name that a chart does not know, without a word."""

import pytest

from tests.kubernetes.chart_values import of_chart, recorded, unknown
from tests.kubernetes.environments import GB200, P5, eks_environment
from tests.kubernetes.helm import RENDERED
from ultracluster.catalog.software import charts
from ultracluster.kubernetes.deployed import DeployedResources, LogGroups
from ultracluster.kubernetes.releases import releases


@pytest.mark.parametrize("groups", [P5, GB200], ids=["p5", "gb200"])
def test_every_value_is_one_of_the_chart(groups):
    logs = LogGroups("/pods", "/nodes", "us-east-2")
    made = releases(eks_environment(groups), DeployedResources("test-1", logs=logs))
    found = {release.chart.name: release.values for release in made if release.chart.name in RENDERED}
    assert found.keys() == {*RENDERED}
    assert {name: unknown(values, recorded(name)["values"]) for name, values in found.items()} == {
        name: [] for name in RENDERED
    }


def test_a_misspelt_value_is_found():
    known = recorded("dcgm-exporter")["values"]
    assert unknown({"arguments": ["-f"], "securityContext": {"runAsUsr": 0}}, known) == ["securityContext/runAsUsr"]


@pytest.mark.parametrize("name", RENDERED)
def test_the_record_is_of_the_version_in_the_catalogue(name):
    assert recorded(name)["version"] == charts[name].version


@pytest.mark.parametrize("name", RENDERED)
def test_the_record_is_that_of_the_chart(name):
    assert recorded(name) == of_chart(name)
