"""Evaluates rule files over the whole day, as a Prometheus that had run through it would have.

Prometheus evaluates rules from its start on, so alerts with a long `for` would take as long to fire. Here each rule is
one range query, and `for` and `keep_firing_for` are applied to its result. What a rule records is written back before
the next rule is evaluated.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from scripts.observe.course import Day, Values
from scripts.observe.drawing.units import format_value
from scripts.observe.server import Prometheus

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Firing:
    """An alert that fires at the end of the day. `since` is when its condition began, in seconds."""

    name: str
    labels: dict[str, str]
    since: int
    summary: str
    action: str
    runbook: str

    @property
    def severity(self) -> str:
        """critical, warning or info."""
        return self.labels.get("severity", "")


def replay(server: Prometheus, files: Iterable[str], day: Day) -> list[Firing]:
    """Writes what the rules of `files` record, and ALERTS and ALERTS_FOR_STATE of their alerts. Returns what fires."""
    firing: list[Firing] = []
    for text in files:
        for group in yaml.safe_load(text)["groups"]:
            for rule in group["rules"]:
                found = server.range(rule["expr"], day.times[0], day.end, day.step)
                series = list(_recorded(rule, found, day))
                for alert in found if "alert" in rule else ():
                    labels = {**_unnamed(alert), **rule.get("labels", {}), "alertname": rule["alert"]}
                    values, sustained = _values(alert, day), _seconds(rule.get("for", "0s"))
                    since = active_since(values, day.times, sustained, _seconds(rule.get("keep_firing_for", "0s")))
                    series += _alert(labels, since, day.times, sustained)
                    if (start := since[-1]) is not None and day.end - start >= sustained:
                        firing.append(_firing(rule, labels, values, start))
                if series:
                    server.write(series, day.times)
    return firing


def _recorded(
    rule: dict[str, Any], found: Iterable[dict[str, Any]], day: Day
) -> Iterator[tuple[dict[str, str], Values]]:
    for series in found if "record" in rule else ():
        yield {**_unnamed(series), **rule.get("labels", {}), "__name__": rule["record"]}, _values(series, day)


def _alert(
    labels: dict[str, str], since: Sequence[int | None], times: Sequence[int], sustained: int
) -> list[tuple[dict[str, str], Values]]:
    """The series that Prometheus writes of an alert, ALERTS first; none if it never fires."""
    firing: Values = [
        1.0 if start is not None and time - start >= sustained else None
        for time, start in zip(times, since, strict=True)
    ]
    if not any(firing):
        return []
    return [
        ({**labels, "__name__": "ALERTS", "alertstate": "firing"}, firing),
        ({**labels, "__name__": "ALERTS_FOR_STATE"}, [None if start is None else float(start) for start in since]),
    ]


def _firing(rule: dict[str, Any], labels: dict[str, str], values: Values, since: int) -> Firing:
    value = next((number for number in reversed(values) if number is not None), math.nan)
    texts = {name: expanded(text, labels, value) for name, text in rule["annotations"].items()}
    return Firing(rule["alert"], labels, since, texts["summary"], texts.get("action", ""), texts.get("runbook_url", ""))


def expanded(template: str, labels: dict[str, str], value: float) -> str:
    """An annotation as Prometheus writes it: labels, and the value with the functions that our rules use."""

    def filled(found: "re.Match[str]") -> str:
        what, _, function = (part.strip() for part in found[1].partition("|"))
        if what.startswith("$labels."):
            return labels.get(what.removeprefix("$labels."), "")
        if what == "$value":
            return _FUNCTIONS[function](value)
        raise ValueError(f"{{{{ {found[1]} }}}} is not expanded here")

    return re.sub(r"\{\{\s*(.*?)\s*\}\}", filled, template)


_FUNCTIONS = {
    "": lambda value: f"{value:.4g}",
    "humanize": lambda value: format_value(value, "short").replace(" ", ""),
    "humanizePercentage": lambda value: f"{100 * value:.4g}%",
    "humanizeDuration": lambda value: format_value(value, "s"),
}


def active_since(values: Sequence[float | None], times: Sequence[int], sustained: int, keep: int) -> list[int | None]:
    """Since when an alert is active, None while it is not. It fires for `keep` longer than its condition."""
    since: list[int | None] = []
    start: int | None = None
    last = -math.inf
    for time, value in zip(times, values, strict=True):
        if value is not None:
            start = time if start is None else start
            last = time
        elif start is not None and not (last - start >= sustained and time - last <= keep):
            start = None
        since.append(start)
    return since


def _values(series: dict[str, Any], day: Day) -> Values:
    known = {int(float(time)): float(value) for time, value in series["values"]}
    return [known.get(time) for time in day.times]


def _unnamed(series: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in series["metric"].items() if name != "__name__"}


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * _SECONDS[duration[-1]]
