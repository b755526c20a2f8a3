"""Writes the data file metric_groups of the catalogue from the metrics and rules of the room telemetry: `make docs`."""

import json
from collections import defaultdict
from pathlib import Path

from tests.telemetry.rules.environments import PLANES, environment
from ultracluster.telemetry.metrics import METRICS, Metric, UnknownMetric, metric
from ultracluster.telemetry.promql import reading
from ultracluster.telemetry.rules import Alert, Recording, groups
from ultracluster.telemetry.scrape import JOBS, user_metrics

FILE = Path(__file__).parent.parent / "infra/ultracluster/catalog/data/metric_groups.json"


def content() -> str:
    """Text of the file."""
    needed = {plane: needed_by_alerts(plane) for plane in PLANES}
    found = {
        group: {plane: sorted(needed[plane][group]) for plane in PLANES if group in collected(plane)}
        for group in dict.fromkeys(each.group_name for each in METRICS.values())
    }
    data = {
        "source": "metrics and rules of ultracluster.telemetry, by python -m scripts.metric_groups",
        "groups": {group: planes for group, planes in found.items() if planes},
    }
    return json.dumps(data, indent=1) + "\n"


def collected(plane: str) -> set[str]:
    """Groups that a control plane collects. Pods of users may publish any metric that is a user's."""
    users = {each.group_name for each in user_metrics()} if "pods" in JOBS[plane] else set()
    return users | {each.group_name for each in METRICS.values() if set(JOBS[plane]) & set(each.scrape_jobs)}


def needed_by_alerts(plane: str) -> dict[str, set[str]]:
    """Alerts by the groups of metrics that they read, themselves or through recorded series."""
    rules = [rule for group in groups(environment(plane)) for rule in group.rules]
    recorded: dict[str, set[str]] = defaultdict(set)
    for rule in rules:
        if isinstance(rule, Recording):
            recorded[rule.name] |= reading(rule.expr).metrics
    found: dict[str, set[str]] = defaultdict(set)
    for rule in rules:
        if isinstance(rule, Alert):
            for each in read(rule.expr, recorded):
                found[each.group_name].add(rule.name)
    return found


def read(expr: str, recorded: dict[str, set[str]]) -> set[Metric]:
    """Metrics of the catalogue that an expression reads, through recorded series too."""
    found, seen, waiting = set[Metric](), set[str](), set(reading(expr).metrics)
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= recorded.get(name, set()) - seen
        try:
            found.add(metric(name))
        except UnknownMetric:
            continue
    return found


def main() -> None:
    """Write the file."""
    FILE.write_text(content(), "utf-8")


if __name__ == "__main__":
    main()
