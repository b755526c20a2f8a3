"""Panels over time and single values."""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

from scripts.observe.drawing.queries import Json, Look, Series
from scripts.observe.drawing.svg import colour, fit, path, rect, rule, runs, text, width
from scripts.observe.drawing.units import format_value, ticks

LEGEND_ROW = 17
CALCULATION_WIDTH = 78
CALCULATIONS = {"mean": "mean", "max": "max", "min": "min", "lastNotNull": "last", "sum": "total"}


class Box(NamedTuple):
    """Where a panel's content goes."""

    x: float
    y: float
    width: float
    height: float


def value(panel: Json, series: Sequence[Series], box: Box) -> list[str]:
    """A stat panel: the last value, in the colour of its threshold, over its course."""
    defaults = panel["fieldConfig"]["defaults"]
    found = next(iter(series), None)
    if found is None or found.last is None:
        return [no_data(box)]
    paint = threshold(defaults["thresholds"], found.last)
    out = []
    if panel["options"]["graphMode"] == "area" and len(found.values) > 2:
        low, high = min(v for _, v in found.values), max(v for _, v in found.values)
        strip = box.height * 0.34
        base = box.y + box.height
        span = (found.values[-1][0] - found.values[0][0]) or 1
        points = [
            (
                box.x + box.width * (t - found.values[0][0]) / span,
                base - 2 - strip * ((v - low) / (high - low) if high > low else 0.1),
            )
            for t, v in found.values
        ]
        line = path(points)
        out.append(f'<path d="{line}V{base:.1f}H{box.x:.1f}z" style="fill:{colour(paint)}" fill-opacity=".13"/>')
        out.append(f'<path class="line" d="{line}" style="stroke:{colour(paint)}" stroke-opacity=".55"/>')
    shown = mapped(defaults.get("mappings"), found.last) or format_value(
        found.last, defaults.get("unit", ""), defaults.get("decimals")
    )
    size = min(38.0, 38 * (box.width - 24) / max(1.0, width(shown, 38)))
    middle = box.y + box.height * 0.38 + size * 0.2
    out.append(
        f'<text x="{box.x + box.width / 2:.1f}" y="{middle:.1f}" text-anchor="middle" '
        f'style="font-size:{size:.0f}px;font-weight:700;fill:{colour(paint)}">{shown}</text>'
    )
    return out


def lines(panel: Json, series: Sequence[Series], box: Box, look: Look, marks: Sequence[int]) -> list[str]:
    """A time series panel with its legend."""
    if not series:
        return [no_data(box)]
    defaults = panel["fieldConfig"]["defaults"]
    unit = defaults.get("unit", "")
    stacked = defaults["custom"]["stacking"]["mode"] == "normal"
    paints = _paints(panel, series)
    legend = _legend(series, paints, panel, box)
    times = range(look.day.start, look.day.end + 1, look.step)
    known = [dict(each.values) for each in series]
    tops = _stacked(known, times) if stacked else [[each.get(t) for t in times] for each in known]
    low, high = _bounds(defaults, tops)
    marks_y = ticks(
        low, high, max(2, int((box.height - legend.height) // 38)), unit, whole=defaults.get("decimals") == 0
    )
    if defaults.get("max") is None and marks_y and marks_y[-1] < high and len(marks_y) > 1:
        high = marks_y[-1] + (marks_y[1] - marks_y[0])
        marks_y.append(high)
    labels = _axis(marks_y, unit)
    left = max(width(label, 11) for label in labels) + 12
    plot = Box(box.x + left, box.y + 6, box.width - left - 8, box.height - legend.height - 30)

    def to_x(moment: float) -> float:
        return plot.x + plot.width * (moment - times[0]) / (times[-1] - times[0])

    def to_y(number: float) -> float:
        return plot.y + plot.height * (1 - (min(high, max(low, number)) - low) / (high - low))

    out = []
    for mark, label in zip(marks_y, labels, strict=True):
        out.append(rule(plot.x, to_y(mark), plot.x + plot.width, to_y(mark)))
        out.append(text(plot.x - 7, to_y(mark) + 4, label, "axis", "end"))
    for moment in _hours(times[0], times[-1], plot.width):
        out.append(rule(to_x(moment), plot.y, to_x(moment), plot.y + plot.height))
        out.append(
            text(to_x(moment), plot.y + plot.height + 18, time.strftime("%H:%M", time.gmtime(moment)), "axis", "middle")
        )
    for number in reversed(range(len(series))):
        points = [None if v is None else (to_x(t), to_y(v)) for t, v in zip(times, tops[number], strict=True)]
        if defaults["custom"].get("drawStyle") == "bars":
            out += [
                rect(x - 2.5, y, 5, to_y(low) - y).replace("/>", f' style="fill:{paints[number]}"/>')
                for x, y in filter(None, points)
            ]
            continue
        edge = [to_y(v or 0.0) for v in tops[number - 1]] if stacked and number else [to_y(low)] * len(times)
        filled = stacked or len(series) <= 3
        opacity = 0.45 if stacked else defaults["custom"].get("fillOpacity", 0) / 100
        out += _curve(points, edge, paints[number], opacity if filled else 0.0)
    for mark_time in marks:
        if times[0] <= mark_time <= times[-1]:
            x, y = to_x(mark_time), plot.y + plot.height
            out.append(rule(x, plot.y, x, y, "mark"))
            out.append(f'<path d="M{x - 4:.1f} {y + 6:.1f}h8l-4 -6z" style="fill:{colour("red")}"/>')
    if defaults["custom"]["thresholdsStyle"]["mode"] == "dashed":
        for step in defaults["thresholds"]["steps"]:
            if step["value"] is not None and low <= step["value"] <= high:
                out.append(
                    rule(
                        plot.x,
                        to_y(step["value"]),
                        plot.x + plot.width,
                        to_y(step["value"]),
                        "line",
                        step["color"],
                        "7 5",
                    )
                )
            elif step["value"] is not None and step["value"] > high:
                shown = f"limit {format_value(step['value'], unit)} ↑"
                out.append(text(plot.x + plot.width - 2, plot.y + 10, shown, "axis", "end", step["color"]))
                break
    out += legend.draw(box.y + box.height - legend.height + 15)
    return out


def bars(panel: Json, series: Sequence[Series], box: Box) -> list[str]:
    """A bar gauge: a bar for each series, longest first."""
    defaults = panel["fieldConfig"]["defaults"]
    found = sorted((each for each in series if each.last is not None), key=lambda each: -(each.last or 0))
    if not found:
        return [no_data(box)]
    high = defaults.get("max") or max(each.last or 0 for each in found) or 1
    height = min(30.0, (box.height - 10) / len(found))
    names = max(width(each.name) for each in found) + 14
    out = []
    for number, each in enumerate(found):
        y = box.y + 4 + number * height
        shown = format_value(each.last, defaults.get("unit", ""), defaults.get("decimals"))
        room = box.width - names - 84
        paint = threshold(defaults["thresholds"], each.last or 0)
        out.append(text(box.x + names - 4, y + height / 2 + 4, each.name, "cell", "end"))
        out.append(rect(box.x + names + 4, y + 4, room, height - 8, "chip", radius=3))
        out.append(
            rect(
                box.x + names + 4,
                y + 4,
                room * min(1.0, (each.last or 0) / high),
                height - 8,
                fill=paint,
                radius=3,
                opacity=0.85,
            )
        )
        out.append(text(box.x + names + 12 + room, y + height / 2 + 4, shown, "cell", fill=paint))
    return out


def threshold(thresholds: Json, number: float) -> str:
    """The colour of a value."""
    found = "green"
    for step in thresholds["steps"]:
        if step["value"] is None or number >= step["value"]:
            found = str(step["color"])
    return found


def mapped(mappings: Sequence[Json] | None, number: object) -> str | None:
    """The text that stands for a value."""
    for mapping in mappings or []:
        key = f"{number:g}" if isinstance(number, float) else str(number)
        if key in mapping["options"]:
            return str(mapping["options"][key]["text"])
    return None


def no_data(box: Box) -> str:
    """What a panel without data shows."""
    return text(box.x + box.width / 2, box.y + box.height / 2, "No data", "soft", "middle")


class _Legend(NamedTuple):
    """Lines of a legend, each with elements at offsets from its baseline."""

    lines: list[list[str]]

    @property
    def height(self) -> int:
        return LEGEND_ROW * len(self.lines) + 6

    def draw(self, y: float) -> list[str]:
        return [
            f'<g transform="translate(0 {y + LEGEND_ROW * number - 6:.1f})">{"".join(line)}</g>'
            for number, line in enumerate(self.lines)
        ]


def _legend(series: Sequence[Series], paints: Sequence[str], panel: Json, box: Box) -> _Legend:
    defaults, calculations = panel["fieldConfig"]["defaults"], panel["options"]["legend"].get("calcs", [])
    if not calculations:
        return _names(series, paints, box)
    lines: list[list[str]] = [[]]
    for number, name in enumerate(reversed(calculations)):
        x = box.x + box.width - 10 - CALCULATION_WIDTH * number
        lines[0].append(text(x, 0, CALCULATIONS[name], "heading", "end"))
    rows = min(len(series), max(2, int((box.height * 0.36 - LEGEND_ROW) // LEGEND_ROW)))
    order = sorted(range(len(series)), key=lambda number: -_calculated(series[number], calculations[0]))
    kept = sorted(order[: rows if len(series) <= rows else rows - 1])
    room = box.width - 44 - CALCULATION_WIDTH * len(calculations)
    for index in kept:
        line = [_swatch(box.x + 10, paints[index]), text(box.x + 30, 0, fit(series[index].name, room, 11.5), "legend")]
        for number, name in enumerate(reversed(calculations)):
            shown = format_value(_calculated(series[index], name), defaults.get("unit", ""), defaults.get("decimals"))
            line.append(text(box.x + box.width - 10 - CALCULATION_WIDTH * number, 0, shown, "legend", "end"))
        lines.append(line)
    if len(kept) < len(series):
        lines.append([text(box.x + 30, 0, f"and {len(series) - len(kept)} more", "legend soft")])
    return _Legend(lines)


def _names(series: Sequence[Series], paints: Sequence[str], box: Box) -> _Legend:
    """Names side by side."""
    lines: list[list[str]] = [[]]
    x = box.x + 10
    for each, paint in zip(series, paints, strict=True):
        size = width(each.name, 11.5) + 30
        if x + size > box.x + box.width and lines[-1]:
            lines.append([])
            x = box.x + 10
        lines[-1] += [_swatch(x, paint), text(x + 20, 0, each.name, "legend")]
        x += size
    return _Legend(lines)


def _swatch(x: float, paint: str) -> str:
    return rect(x, -8, 14, 4, radius=2).replace("/>", f' style="fill:{paint}"/>')


def _curve(
    points: Sequence[tuple[float, float] | None], edge: Sequence[float], paint: str, opacity: float
) -> list[str]:
    """A line with gaps, and the area down to `edge`."""
    out = []
    below = {point[0]: y for point, y in zip(points, edge, strict=True) if point}
    for run in runs(points):
        if len(run) == 1:
            out.append(f'<circle cx="{run[0][0]:.1f}" cy="{run[0][1]:.1f}" r="2" style="fill:{paint}"/>')
            continue
        drawn = path(run)
        if opacity:
            floor = path([(x, below[x]) for x, _ in reversed(run)]).replace("M", "L", 1)
            out.append(f'<path d="{drawn}{floor}z" style="fill:{paint}" fill-opacity="{opacity:g}"/>')
        out.append(f'<path class="line" d="{drawn}" style="stroke:{paint}"/>')
    return out


def _axis(marks: Sequence[float], unit: str) -> list[str]:
    """Labels of an axis, with as few decimals as tell them apart."""
    for decimals in (0, 1, 2, None):
        labels = [format_value(mark, unit, decimals) for mark in marks]
        exact = (
            unit != "percentunit"
            or decimals is None
            or all(abs(round(100 * mark, decimals) - 100 * mark) < 1e-9 for mark in marks)
        )
        if len(set(labels)) == len(labels) and exact and unit in ("percentunit", "percent", "celsius", "s"):
            return [label.replace(".0 ", " ") for label in labels]
    return [format_value(mark, unit) for mark in marks]


def _calculated(series: Series, name: str) -> float:
    values = [number for _, number in series.values if not math.isnan(number)]
    if not values:
        return math.nan
    match name:
        case "mean":
            return sum(values) / len(values)
        case "max":
            return max(values)
        case "min":
            return min(values)
        case "sum":
            return sum(values)
        case "lastNotNull":
            return values[-1]
    raise ValueError(name)


def _paints(panel: Json, series: Sequence[Series]) -> list[str]:
    fixed = {
        override["matcher"]["options"]: change["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
        if override["matcher"]["id"] == "byFrameRefID"
        for change in override["properties"]
        if change["id"] == "color"
    }
    number, paints = 0, []
    for each in series:
        if each.ref in fixed:
            paints.append(colour(fixed[each.ref]))
        else:
            paints.append(colour(f"s{number % 10}"))
            number += 1
    return paints


def _stacked(known: Sequence[dict[int, float]], times: Sequence[int]) -> list[list[float | None]]:
    total = [0.0] * len(times)
    tops: list[list[float | None]] = []
    for each in known:
        total = [before + each.get(moment, 0.0) for before, moment in zip(total, times, strict=True)]
        tops.append(list(total))
    return tops


def _bounds(defaults: Json, tops: Sequence[Sequence[float | None]]) -> tuple[float, float]:
    values = [number for top in tops for number in top if number is not None and math.isfinite(number)]
    low = defaults.get("min")
    high = defaults.get("max")
    smallest, largest = (min(values), max(values)) if values else (0.0, 1.0)
    low = smallest if low is None else low
    for step in defaults["thresholds"]["steps"]:
        shown = defaults["custom"]["thresholdsStyle"]["mode"] == "dashed"
        if shown and step["value"] is not None and high is None and largest < step["value"] <= 3 * largest:
            largest = step["value"] * 1.05
    if high is None:
        high = largest + 0.06 * (largest - low)
    if high <= low:
        high = low + 1
    return low, high


def _hours(start: int, end: int, room: float) -> list[int]:
    hours = (end - start) / 3600
    step = next(step for step in (0.25, 0.5, 1, 2, 3, 4, 6, 12, 24) if hours / step <= max(2, room / 75))
    first = math.ceil(start / (step * 3600)) * step * 3600
    return [int(first + number * step * 3600) for number in range(int((end - first) / (step * 3600)) + 1)]
