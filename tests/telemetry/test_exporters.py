"""Names and labels of exporters that cannot run here agree with their sources at the pinned versions."""

import json
from pathlib import Path

import pytest

from ultracluster.catalog.software import charts
from ultracluster.telemetry.metrics import metrics_of

SOURCES = json.loads((Path(__file__).parent / "data/exporters.json").read_text())
"""Labels by metric by exporter, read from the exporters' own sources."""

LABELLED = ("kueue", "volcano", "kai", "jobset", "karpenter")
READ_FROM_FILES = {"node_amazonefa_info", "node_amazonefa_port_state"}
"""Metrics that our collector makes from other files of a device than its counters."""


def of(*exporters):
    return pytest.mark.parametrize(
        "each", [each for name in exporters for each in metrics_of(name)], ids=lambda each: each.name
    )


@of(*SOURCES["metrics"])
def test_the_exporter_has_the_metric(each):
    assert each.name in SOURCES["metrics"][each.exporter] or each.name in READ_FROM_FILES


@of(*LABELLED)
def test_labels_are_those_of_the_exporter(each):
    assert set(each.labels) == set(SOURCES["metrics"][each.exporter][each.name])


@of("kube-state-metrics")
def test_labels_are_among_those_of_kube_state_metrics(each):
    """Labels of objects, label_*, are those that the cluster allows."""
    own = {label for label in each.labels if not label.startswith("label_")}
    assert own <= set(SOURCES["metrics"]["kube-state-metrics"][each.name])


def test_counters_of_efa_are_all_listed_but_two_of_success_and_two_of_the_kernel():
    listed = {each.name for each in metrics_of("efa")}
    left = {name.removeprefix("node_amazonefa_") for name in SOURCES["metrics"]["efa"]} - {
        name.removeprefix("node_amazonefa_") for name in listed
    }
    assert left == {"submitted_cmds", "completed_cmds", "alloc_mr_err", "get_dma_mr_err"}


@pytest.mark.parametrize("name", ["kueue", "volcano", "jobset", "karpenter"])
def test_the_sources_are_of_the_pinned_version(name):
    assert f"v{charts[name].version.removeprefix('v')}" in SOURCES["source"]
