"""The data of a panel, fetched as Grafana fetches it: variables replaced, one query for each target."""

import re
from dataclasses import dataclass
from typing import Any

from scripts.observe.course import Day
from scripts.observe.server import Prometheus

Json = dict[str, Any]

POINTS = 180
"""Points of a line."""


@dataclass(frozen=True)
class Series:
    """A series of a range query, with its display name. `values` are (time, value)."""

    name: str
    labels: dict[str, str]
    values: list[tuple[int, float]]
    ref: str

    @property
    def last(self) -> float | None:
        """The last value."""
        return self.values[-1][1] if self.values else None


@dataclass(frozen=True)
class Look:
    """What a dashboard is looked at with: variables, and the time."""

    server: Prometheus
    day: Day
    variables: dict[str, str]
    names: dict[str, str]
    """Values of text variables in addresses and titles."""

    @property
    def step(self) -> int:
        """Seconds between points, a multiple of the sample interval."""
        wanted = self.day.hours * 3600 / POINTS
        return max(1, round(wanted / self.day.step)) * self.day.step

    def expression(self, expr: str) -> str:
        """A query with the variables of the dashboard and Grafana's own replaced."""
        own = {
            "__rate_interval": f"{max(4 * self.day.step, self.step + self.day.step)}s",
            "__interval": f"{self.step}s",
            "__range": f"{int(self.day.hours * 3600)}s",
        }
        return re.sub(r"\$\{?(\w+)\}?", lambda found: {**own, **self.variables}[found[1]], expr)

    def series(self, target: Json) -> list[Series]:
        """Result of a target, sorted by name."""
        query, legend = (
            (cloudwatch(target), target.get("label", ""))
            if "namespace" in target
            else (target["expr"], target.get("legendFormat", ""))
        )
        expr = self.expression(query)
        if target.get("instant"):
            found = [{**each, "values": [each["value"]]} for each in self.server.instant(expr, self.day.end)]
        else:
            found = self.server.range(expr, self.day.start, self.day.end, self.step)
        made = [self._series(target, legend, each) for each in found]
        return sorted(made, key=lambda each: natural(each.name))

    def _series(self, target: Json, legend: str, found: Json) -> Series:
        labels = {name: value for name, value in found["metric"].items() if name != "__name__"}
        name = re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), legend)
        name = re.sub(r"\$\{PROP\('Dim\.(\w+)'\)\}", lambda match: labels.get(match[1], ""), name)
        name = name or ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or target.get("refId", "")
        values = [(int(float(time)), float(value)) for time, value in found["values"] if value not in ("NaN",)]
        return Series(name, labels, values, target["refId"])

    def rows(self, target: Json) -> list[Json]:
        """Rows of a target in table format: labels and `Value`."""
        return [
            {
                **{name: value for name, value in each["metric"].items() if name != "__name__"},
                "Value": float(each["value"][1]),
            }
            for each in self.server.instant(self.expression(target["expr"]), self.day.end)
        ]


def cloudwatch(target: Json) -> str:
    """The stand-in for a CloudWatch query: the series `cloudwatch` of the synthetic fleet."""
    matchers = [f'namespace="{target["namespace"]}"', f'metric="{target["metricName"]}"']
    matchers += [f'{name}="{value}"' if value != "*" else f'{name}!=""' for name, value in target["dimensions"].items()]
    return f'cloudwatch{{{", ".join(matchers)}, statistic="{target["statistic"]}"}}'


def natural(text: str) -> list[tuple[int, int | str]]:
    """A key that sorts train-2 before train-10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", text) if part]
