"""Writes the tables of docs/metrics.md and docs/observability-scale.md from the room telemetry: `make docs`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ultracluster.catalog import catalog
from ultracluster.catalog.metric_groups import METRIC_GROUPS
from ultracluster.config.observability import NAMED_ALERTS
from ultracluster.telemetry import labels
from ultracluster.telemetry.budget import (
    AMP,
    DROP_FIRST,
    Fleet,
    kube_state_metrics_shards,
    remote_write_requests,
    samples_per_second,
    series,
    series_by_exporter,
    series_dropped,
    shortest_interval,
)
from ultracluster.telemetry.metrics import EXPORTERS, METRICS, Exporter, Metric, metrics_of
from ultracluster.telemetry.xids import XIDS

DOCS = Path(__file__).parent.parent / "docs"
PAGES = (DOCS / "metrics.md", DOCS / "observability-scale.md")

SIZES = (4, 64, 1_000, 10_000)
TYPES = ("p5.48xlarge", "p6-b200.48xlarge", "p6e-gb200.36xlarge")
LOSSES = Fleet(1_000, catalog["p5.48xlarge"], "eks", more=frozenset({"nccl"}))
"""The fleet for which the table of losses counts."""


def page(text: str) -> str:
    """The text of a page with its tables, which stand between two comments of the same name, written anew."""
    tables = {
        "labels": _labels,
        "xids": _xids,
        "metrics": _metrics,
        "budget": _budget,
        "losses": _losses,
        "groups": _metric_groups,
    }
    for name, table in tables.items():
        mark = f"<!-- {name} -->"
        if mark in text:
            before, _, after = text.split(mark)
            text = f"{before}{mark}\n{table()}\n{mark}{after}"
    return text


def _labels() -> str:
    groups = {
        "every series": labels.COMMON,
        "series of nodes": labels.NODE,
        "series of GPUs": labels.GPU,
    }
    rows = [
        (f"`{each.name}`", where, each.help, each.eks, each.pcs) for where, group in groups.items() for each in group
    ]
    return _table(("label", "on", "meaning", "on EKS", "on PCS"), rows)


def _xids() -> str:
    rows = [
        (str(each.code), each.meaning, each.nvidia_action, each.severity, each.action.replace("_", " "))
        for each in XIDS.values()
    ]
    return _table(("XID", "meaning", "NVIDIA", "severity", "action"), rows)


def _metrics() -> str:
    return "\n".join(_exporter(each) for each in EXPORTERS.values())


def _exporter(each: Exporter) -> str:
    found = metrics_of(each.name)
    # columns that no metric of the exporter fills are left out
    head = ("metric", "unit", "type", "meaning", "labels", "since")
    cells = [(_name(m), m.unit, m.kind, m.help, _extra_labels(m), m.since or "") for m in found]
    filled = [column for column in range(len(head)) if any(row[column] for row in cells)]
    rows = [[row[column] for column in filled] for row in cells]
    where = f"Scrape job {' or '.join(f'`{job}`' for job in each.jobs)}." if each.jobs else "Read from CloudWatch."
    common = f" Labels: {', '.join(f'`{label}`' for label in each.labels)}." if each.labels else ""
    return f"### {each.name}\n\n{where}{common}\n\n{_table([head[column] for column in filled], rows)}\n"


def _name(metric: Metric) -> str:
    only = "; ".join(f"{label} {', '.join(values)}" for label, values in metric.only.items())
    return f"`{metric.name}`" + (f" ({only})" if only else "")


def _extra_labels(metric: Metric) -> str:
    return ", ".join(f"`{label}`" for label in metric.labels if label not in EXPORTERS[metric.exporter].labels)


def _budget() -> str:
    rows = []
    for control_plane in ("pcs", "eks"):
        for name in TYPES:
            for nodes in SIZES:
                fleet = Fleet(nodes, catalog[name], control_plane)
                interval = max(30, shortest_interval(fleet))
                requests = remote_write_requests(fleet, interval) if control_plane == "pcs" else None
                shards = kube_state_metrics_shards(nodes) if control_plane == "eks" else None
                rows.append(
                    (
                        f"{nodes:,} {name} on {control_plane.upper()}",
                        f"{series(fleet):,}",
                        _share(series(fleet), AMP["active_series"]),
                        f"{samples_per_second(fleet, interval):,.0f}",
                        _share(samples_per_second(fleet, interval), AMP["samples_per_second"]),
                        f"{shortest_interval(fleet)} s",
                        "" if requests is None else "< 1" if requests < 1 else f"{requests:,.0f}",
                        "" if shards is None else str(shards),
                    )
                )
    head = (
        "fleet",
        "series",
        "of quota",
        "samples/s at 30 s",
        "of quota",
        "shortest interval",
        "requests/s",
        "KSM shards",
    )
    return _table(head, rows)


def _losses() -> str:
    per_node = LOSSES.nodes
    rows = [(f"`{drop.name}`", f"{series_dropped(LOSSES, drop) / per_node:,.0f}", drop.lost) for drop in DROP_FIRST]
    kept = (
        sum(series_by_exporter(LOSSES).values()) / per_node
        - sum(series_dropped(LOSSES, drop) for drop in DROP_FIRST) / per_node
    )
    return _table(("group", "series a node", "what is lost"), [*rows, ("everything else", f"{kept:,.0f}", "")])


def _metric_groups() -> str:
    rows = []
    for name, planes in METRIC_GROUPS.items():
        alerts = sorted({alert for names in planes.values() for alert in names})
        some = ", ".join(alerts[:NAMED_ALERTS])
        more = f" and {len(alerts) - NAMED_ALERTS} more" if len(alerts) > NAMED_ALERTS else ""
        count = sum(each.group_name == name for each in METRICS.values())
        rows.append((f"`{name}`", ", ".join(plane.upper() for plane in planes), str(count), some + more))
    return _table(("group", "on", "metrics", "read by alerts"), rows)


def _share(part: float, whole: float) -> str:
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 else "< 1 %"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def main() -> None:
    """Write both pages."""
    for doc in PAGES:
        doc.write_text(page(doc.read_text()))


if __name__ == "__main__":
    main()
