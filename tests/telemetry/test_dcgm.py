"""The counters file agrees with NVIDIA's own field list, for each version of the exporter."""

import csv
import io
import json
from pathlib import Path

import pytest

from ultracluster.telemetry.dcgm import counters, counters_csv, exporter_dcgm
from ultracluster.telemetry.metrics import metrics_of

FIELDS = json.loads((Path(__file__).parent / "data/dcgm_fields.json").read_text())["fields"]
"""NVIDIA's fields: identifier, first DCGM with the name, first DCGM whose exporter resolves it."""

VERSIONS = ("4.4.2", "4.5.3", "4.6.0")
EXPORTER_MADE = {"DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_CLOCK_EVENTS_COUNT", "DCGM_EXP_GPU_HEALTH_STATUS"}


def version(text):
    return tuple(int(part) for part in text.split("."))


@pytest.mark.parametrize("each", metrics_of("dcgm"), ids=lambda each: each.name)
def test_a_metric_has_the_identifier_of_its_field(each):
    if each.name in EXPORTER_MADE:
        assert each.dcgm_field is None
    else:
        assert each.dcgm_field == FIELDS[each.name][0]


@pytest.mark.parametrize("dcgm", VERSIONS)
def test_the_exporter_of_a_version_resolves_every_name_of_its_file(dcgm):
    """An unknown name stops the exporter."""
    for name, _, _ in csv.reader(io.StringIO(counters_csv(dcgm))):
        if name not in EXPORTER_MADE:
            assert version(FIELDS[name][2]) <= version(dcgm), name


@pytest.mark.parametrize("each", metrics_of("dcgm"), ids=lambda each: each.name)
def test_a_metric_is_left_out_only_where_nvidia_has_no_field(each):
    """`since` is the first of NVIDIA's versions, so nothing is hidden from a version that has it."""
    if each.since:
        assert FIELDS[each.name][1] == each.since


def test_health_of_the_fabric_needs_dcgm_4_6():
    name = "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY"
    assert name not in counters_csv("4.5.3")
    assert name in counters_csv("4.6.0")


def test_the_recovery_action_is_there_before_4_6_under_its_first_name():
    assert "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION" in counters_csv("4.5.3")
    assert "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION" not in counters_csv("4.4.2")


@pytest.mark.parametrize("dcgm", VERSIONS)
def test_the_file_has_what_the_exporter_parses(dcgm):
    rows = list(csv.reader(io.StringIO(counters_csv(dcgm)), strict=True))
    assert len(rows) == len(counters(dcgm)) + 1
    for row in rows:
        assert len(row) == 3
        assert row[1] in ("gauge", "counter", "label")
        assert not row[0].startswith("#")
    assert len({row[0] for row in rows}) == len(rows)


def test_bytes_per_second_of_pcie_and_nvlink_are_gauges():
    """They are rates already; rate() over them would be wrong."""
    for name in ("PCIE_TX", "PCIE_RX", "NVLINK_TX", "NVLINK_RX"):
        assert f"DCGM_FI_PROF_{name}_BYTES,gauge," in counters_csv("4.5.3")


def test_what_a_health_set_needs_is_switched_on():
    """The exporter's own default file has none of these (default-counters.csv at 4.5.3-4.8.2)."""
    names = {each.name.removeprefix("DCGM_FI_DEV_") for each in counters("4.5.3")}
    assert names >= {
        "ECC_DBE_VOL_TOTAL",
        "ECC_SBE_VOL_TOTAL",
        "ROW_REMAP_PENDING",
        "THRESHOLD_SRM",
        "FABRIC_MANAGER_STATUS",
        "FABRIC_HEALTH_MASK",
        "CLOCKS_EVENT_REASONS",
        "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        "NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS",
        "PCIE_LINK_WIDTH",
        "DCGM_EXP_XID_ERRORS_COUNT",
    }


@pytest.mark.parametrize(("tag", "dcgm"), [("4.5.3-4.8.2-ubuntu22.04", "4.5.3"), ("4.6.0-4.8.3-distroless", "4.6.0")])
def test_an_image_tag_names_its_dcgm(tag, dcgm):
    assert exporter_dcgm(tag) == dcgm


@pytest.mark.parametrize("dcgm", ["3.3.9", "4.3.1", "latest"])
def test_a_version_without_the_fields_is_refused(dcgm):
    with pytest.raises(ValueError, match=dcgm):
        counters_csv(dcgm)
