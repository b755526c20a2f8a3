"""Tables and matrices."""

from collections.abc import Sequence
from typing import Any

from scripts.observe.drawing.charts import Box, mapped, no_data, threshold
from scripts.observe.drawing.queries import Json, Look, natural
from scripts.observe.drawing.svg import colour, fit, rect, rule, text, width
from scripts.observe.drawing.units import format_value

ROW = 26
NARROWEST = 64
"""Pixels that a column of texts keeps."""


def table(panel: Json, look: Look, box: Box) -> list[str]:
    """A table panel after its transformations."""
    kinds = [transformation["id"] for transformation in panel["transformations"]]
    if "groupingToMatrix" in kinds:
        return _matrix(panel, look, box)
    rows, headings = merged(panel, look)
    return _rows(panel, rows, headings, box) if rows else [no_data(box)]


def merged(panel: Json, look: Look) -> tuple[list[Json], list[str]]:
    """Rows of all queries joined on their labels, and the headings in order: Grafana's merge and organize."""
    organize = next(each["options"] for each in panel["transformations"] if each["id"] == "organize")
    joined: dict[tuple[tuple[str, str], ...], Json] = {}
    several = len(panel["targets"]) > 1
    for target in panel["targets"]:
        name = f"Value #{target['refId']}" if several else "Value"
        for row in look.rows(target):
            value = row.pop("Value")
            joined.setdefault(tuple(sorted(row.items())), dict(row))[name] = value
    order = sorted(organize["indexByName"], key=organize["indexByName"].__getitem__)
    renamed = organize["renameByName"]
    rows = [{renamed.get(name, name): row.get(name) for name in order} for row in joined.values()]
    sort = panel["options"]["sortBy"][0]
    rows.sort(key=lambda row: natural("/".join(str(row[renamed.get(name, name)]) for name in order)))
    rows.sort(key=lambda row: _sortable(row.get(sort["displayName"])), reverse=bool(sort.get("desc")))
    return rows, [renamed.get(name, name) for name in order]


def _sortable(value: Any) -> float:
    return value if isinstance(value, float) else float("-inf")


def _rows(panel: Json, rows: Sequence[Json], headings: Sequence[str], box: Box) -> list[str]:
    looks = {name: _properties(panel, name) for name in headings}
    shown = [{name: _shown(row[name], looks[name]) for name in headings} for row in rows]
    wishes = [
        max(width(name, 11), *(width(row[name]) for row in shown)) + (46 if _cell(looks[name]) == "gauge" else 24)
        for name in headings
    ]
    fitting = int((box.height - ROW) // ROW)
    kept = len(rows) if len(rows) <= fitting else fitting - 1
    numbers = [any(isinstance(row[name], float) for row in rows) for name in headings]
    scale = (box.width - 12) / sum(wishes)
    if scale < 1:  # texts give way, then all columns alike
        texts = sum(wish for wish, number in zip(wishes, numbers, strict=True) if not number)
        left = max(NARROWEST * numbers.count(False), box.width - 12 - (sum(wishes) - texts))
        wishes = [wish if number else wish * left / texts for wish, number in zip(wishes, numbers, strict=True)]
        scale = min(1.0, (box.width - 12) / sum(wishes))
    widths = [wish * scale for wish in wishes]
    out = []
    x = box.x + 6
    for name, room, number in zip(headings, widths, numbers, strict=True):
        out.append(
            text(
                x + room - 10 if number else x + 8,
                box.y + 16,
                fit(name, room - 12, 11),
                "heading",
                "end" if number else "start",
            )
        )
        x += room
    out.append(rule(box.x + 6, box.y + ROW - 3, box.x + box.width - 6, box.y + ROW - 3, "rule"))
    for position in range(kept):
        x, y = box.x + 6, box.y + ROW * (position + 1)
        for name, room, number in zip(headings, widths, numbers, strict=True):
            out += _drawn(rows[position][name], shown[position][name], looks[name], Box(x, y, room, ROW), number=number)
            x += room
        out.append(rule(box.x + 6, y + ROW - 1, box.x + box.width - 6, y + ROW - 1))
    if kept < len(rows):
        out.append(text(box.x + 14, box.y + ROW * (kept + 1) + 16, f"and {len(rows) - kept} more", "soft"))
    return out


def _drawn(value: Any, shown: str, look: Json, box: Box, *, number: bool) -> list[str]:
    baseline = box.y + 17
    kind = _cell(look)
    if value is None or value == "":
        return []
    paint = threshold(look["thresholds"], value) if isinstance(value, float) and "thresholds" in look else ""
    if kind == "color-background" and paint and paint != "green":
        block = rect(box.x + 3, box.y + 3, box.width - 6, box.height - 6, fill=paint, radius=4, opacity=0.9)
        return [block, text(box.x + box.width - 10, baseline, shown, "oncolour", "end")]
    if kind == "gauge" and isinstance(value, float):
        room = box.width - 24 - width(shown)
        share = min(1.0, value / (look.get("max") or 1))
        return [
            rect(box.x + 8, box.y + 8, room, 10, "chip", radius=3),
            rect(box.x + 8, box.y + 8, room * share, 10, fill="blue", radius=3),
            text(box.x + box.width - 10, baseline, shown, "cell", "end"),
        ]
    fill = ""
    if kind == "color-text":
        fill = next(
            (m["options"][str(value)].get("color", "") for m in look.get("mappings", []) if str(value) in m["options"]),
            "",
        )
    elif look.get("links"):
        fill = "blue"
    if number:
        return [text(box.x + box.width - 10, baseline, shown, "cell", "end", fill)]
    return [text(box.x + 8, baseline, fit(shown, box.width - 14), "cell", fill=fill)]


def _matrix(panel: Json, look: Look, box: Box) -> list[str]:
    options = next(each["options"] for each in panel["transformations"] if each["id"] == "groupingToMatrix")
    found = look.rows(panel["targets"][0])
    if not found:
        return [no_data(box)]
    rows = sorted({row[options["rowField"]] for row in found}, key=natural)
    columns = sorted({row[options["columnField"]] for row in found}, key=natural)
    values = {(row[options["rowField"]], row[options["columnField"]]): row["Value"] for row in found}
    defaults = panel["fieldConfig"]["defaults"]
    height = min(34.0, (box.height - 30) / len(rows))
    names = max(width(name) for name in rows) + 20
    room = (box.width - names - 12) / len(columns)
    heading = f"{options['rowField']} \\ {options['columnField']}"
    out = [text(box.x + 10, box.y + 15, heading, "heading")]
    out += [
        text(box.x + names + room * (i + 0.5), box.y + 15, name, "heading", "middle") for i, name in enumerate(columns)
    ]
    for r, row in enumerate(rows):
        y = box.y + 24 + r * height
        out.append(text(box.x + 10, y + height / 2 + 4, row, "cell", fill="blue" if _links(panel) else ""))
        for c, column in enumerate(columns):
            value = values.get((row, column))
            x = box.x + names + room * c
            if value is None:
                out.append(
                    f'<rect x="{x + 1.5:.1f}" y="{y + 1.5:.1f}" width="{room - 3:.1f}" height="{height - 3:.1f}"'
                    f' rx="3" style="fill:none;stroke:{colour("red")};stroke-dasharray:3 3"/>'
                )
                out.append(text(x + room / 2, y + height / 2 + 4, "–", "cell", "middle", "red"))  # noqa: RUF001
                continue
            out.append(
                rect(x + 1.5, y + 1.5, room - 3, height - 3, fill=threshold(defaults["thresholds"], value), radius=3)
            )
            out.append(
                text(
                    x + room / 2,
                    y + height / 2 + 4,
                    format_value(value, "none", defaults.get("decimals")),
                    "oncolour",
                    "middle",
                )
            )
    return out


def _links(panel: Json) -> bool:
    return any(
        change["id"] == "links" for override in panel["fieldConfig"]["overrides"] for change in override["properties"]
    )


def _properties(panel: Json, heading: str) -> Json:
    found: Json = {}
    for override in panel["fieldConfig"]["overrides"]:
        if override["matcher"] == {"id": "byName", "options": heading}:
            found |= {change["id"]: change["value"] for change in override["properties"]}
    return found


def _cell(look: Json) -> str:
    return str(look.get("custom.cellOptions", {}).get("type", "auto"))


def _shown(value: Any, look: Json) -> str:
    if isinstance(value, float):
        return mapped(look.get("mappings"), value) or format_value(
            value, look.get("unit", "short"), look.get("decimals")
        )
    return mapped(look.get("mappings"), value) or ("" if value is None else str(value))
