"""The counters file of DCGM exporter, from the list of metrics, for the DCGM version of an exporter image."""

import csv
import io

from ultracluster.telemetry.metrics import Metric, metrics_of

OLDEST = (4, 4)
"""The oldest DCGM, major and minor, whose exporter has every field without `since`."""

LABEL_FIELDS = {"DCGM_FI_DRIVER_VERSION": "Driver version"}
"""Fields that become a label of every metric."""


def counters(dcgm: str) -> tuple[Metric, ...]:
    """Metrics that an exporter with DCGM version `dcgm`, for example 4.5.3, can collect.

    Raises ValueError for a version that is too old: the exporter stops at the first unknown name.
    """
    version = _version(dcgm)
    if version[:2] < OLDEST:
        raise ValueError(f"DCGM {dcgm} is older than {OLDEST[0]}.{OLDEST[1]}, whose exporter lacks fields of the list")
    return tuple(each for each in metrics_of("dcgm") if each.since is None or _version(each.since) <= version)


def counters_csv(dcgm: str) -> str:
    """The file for DCGM exporter's option `--collectors`: field, Prometheus type, help.

    Raises ValueError as `counters` does. Source: NVIDIA/dcgm-exporter, internal/pkg/counters/counter_config.go: three
    columns, lines with # are comments, the name in the first column is the metric's name.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows((name, "label", described) for name, described in LABEL_FIELDS.items())
    rows.writerows((each.name, each.declared or each.kind, f"{each.help} ({each.unit})") for each in counters(dcgm))
    return text.getvalue()


def exporter_dcgm(tag: str) -> str:
    """DCGM version of an exporter image's tag: 4.5.3 for 4.5.3-4.8.2-ubuntu22.04, which is DCGM, then exporter."""
    version = tag.partition("-")[0]
    _version(version)
    return version


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise ValueError(f"{text} is not a version such as 4.5.3")
    return tuple(int(part) for part in parts)
