"""The list of metrics is whole and consistent."""

import re

import pytest

from ultracluster.telemetry.metrics import EXPORTER_NAMES, EXPORTERS, METRICS, UnknownMetric, metric, metrics_of
from ultracluster.telemetry.records import records

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def whole(each):
    return (
        NAME.fullmatch(each.name)
        and each.kind in ("gauge", "counter", "histogram")
        and each.unit
        and each.help
        and not each.help.endswith(".")
        and each.times >= 1
        and len(set(each.labels)) == len(each.labels)
        and set(each.only) <= set(each.labels)
    )


def test_each_metric_is_whole():
    assert not [each for each in METRICS.values() if not whole(each)]


def test_no_two_exporters_have_the_same_metric():
    assert sum(len(records(name)["metrics"]) for name in EXPORTER_NAMES) == len(METRICS)
    assert sum(len(metrics_of(name)) for name in EXPORTER_NAMES) == len(METRICS)


def test_each_exporter_names_its_source_and_when_it_was_read():
    for exporter in EXPORTERS.values():
        assert exporter.source
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", exporter.read)


def test_an_unknown_metric_names_the_nearest():
    with pytest.raises(UnknownMetric, match="did you mean DCGM_FI_DEV_GPU_TEMP"):
        metric("DCGM_FI_DEV_GPU_TEMPERATURE")


def test_efa_counters_have_no_total_suffix():
    """AWS's dashboards query node_amazonefa_rx_bytes; a suffix on one path would hide it from the rules."""
    assert not [each.name for each in metrics_of("efa") if each.name.endswith("_total")]
