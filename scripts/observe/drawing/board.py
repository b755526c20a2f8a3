"""A whole dashboard as one SVG picture."""

import time
from collections.abc import Sequence
from xml.sax.saxutils import escape

from scripts.observe.drawing.charts import Box, bars, lines, value
from scripts.observe.drawing.queries import Json, Look, Series
from scripts.observe.drawing.svg import fit, rect, text, theme, width
from scripts.observe.drawing.tables import merged, table

WIDTH = 1600
MARGIN = 20
GAP = 8
UNIT = 36
HEAD = 96
TITLE = 30


def draw(dashboard: Json, look: Look) -> str:
    """The picture of a dashboard."""
    marks = _alerts(dashboard, look)
    height = HEAD + MARGIN + UNIT * max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
    parts = [rect(0, 0, WIDTH, height, "paper"), *_head(dashboard, look)]
    for panel in dashboard["panels"]:
        parts += _panel(panel, look, marks)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="board" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f"<title>{escape(dashboard['title'])}</title>\n<style>{theme()}</style>\n{body}\n</svg>\n"
    )


def place(grid: Json) -> Box:
    """Where a panel is in the picture."""
    column = (WIDTH - 2 * MARGIN + GAP) / 24
    return Box(MARGIN + column * grid["x"], HEAD + UNIT * grid["y"], column * grid["w"] - GAP, UNIT * grid["h"] - GAP)


def _head(dashboard: Json, look: Look) -> list[str]:
    out = [text(MARGIN, 42, dashboard["title"], "head"), text(MARGIN, 70, dashboard["description"], "question")]
    chips = [
        (variable["label"], look.names.get(variable["name"], "All")) for variable in dashboard["templating"]["list"]
    ]
    until = time.strftime("%d %b %Y, %H:%M UTC", time.gmtime(look.day.end))
    chips.append(("Last 24 hours" if look.day.hours == 24 else f"Last {look.day.hours:g} hours", until))
    x = float(WIDTH - MARGIN)
    for label, content in reversed(chips):
        size = width(label, 12) + width(content, 12) + 34
        x -= size
        out.append(rect(x, 26, size, 28, "chip", radius=6))
        out.append(text(x + 11, 44, label, "soft"))
        out.append(text(x + width(label, 12) + 21, 44, content))
        x -= 10
    return out


def _panel(panel: Json, look: Look, marks: Sequence[int]) -> list[str]:
    where = place(panel["gridPos"])
    if panel["type"] == "row":
        return [text(where.x + 2, where.y + 20, panel["title"], "row")]
    out = [rect(where.x, where.y, where.width, where.height, "panel", radius=6)]
    out.append(text(where.x + 12, where.y + 20, fit(panel["title"], where.width - 20, 13.5), "title"))
    box = Box(where.x + 1, where.y + TITLE, where.width - 2, where.height - TITLE - 1)
    match panel["type"]:
        case "stat":
            out += value(panel, fetch(panel, look), box)
        case "timeseries":
            out += lines(panel, fetch(panel, look), box, look, marks)
        case "bargauge":
            out += bars(panel, fetch(panel, look), box)
        case "table":
            out += table(panel, look, box)
        case kind:
            raise ValueError(f"no drawing for panels of type {kind}")
    return [f"<g>{''.join(out)}</g>"]


def fetch(panel: Json, look: Look) -> list[Series]:
    """Series of all targets of a panel, in their order."""
    return [series for target in panel["targets"] for series in look.series(target)]


def rows(panel: Json, look: Look) -> list[Json]:
    """Rows of a table panel, before they are grouped to a matrix."""
    if any(each["id"] == "groupingToMatrix" for each in panel["transformations"]):
        return look.rows(panel["targets"][0])
    return merged(panel, look)[0]


def _alerts(dashboard: Json, look: Look) -> list[int]:
    """When critical alerts began to fire, from the annotation query."""
    starts = set()
    for annotation in dashboard["annotations"]["list"]:
        expr = look.expression(annotation["target"]["expr"])
        for found in look.server.range(expr, look.day.start, look.day.end, look.step):
            times = [int(float(moment)) for moment, _ in found["values"]]
            starts |= {t for number, t in enumerate(times) if number == 0 or t - times[number - 1] > look.step}
    return sorted(start for start in starts if start > look.day.start)
