"""SVG elements, colours and text widths. Colours follow the light or dark mode of the viewer."""

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

SERIES = (
    ("#2f6fde", "#6ea6ff"),
    ("#2b8a3e", "#6fc76a"),
    ("#c26a00", "#f2a541"),
    ("#8338b8", "#c08be8"),
    ("#0b8580", "#48c7bd"),
    ("#c2307a", "#ff85b5"),
    ("#6f7d00", "#c3d45c"),
    ("#8a5a34", "#d0a27a"),
    ("#3b5bb5", "#93b4ff"),
    ("#b3382c", "#ff8a75"),
)
NAMED = {
    "green": ("#1e8e3e", "#5fbf63"),
    "semi-dark-green": ("#4aa564", "#3d8f4c"),
    "yellow": ("#b58900", "#f2cc0c"),
    "orange": ("#d9730d", "#ff9d33"),
    "red": ("#d1293d", "#ff5468"),
    "blue": ("#2f6fde", "#6ea6ff"),
    "text": ("#1f2328", "#e6edf3"),
    "soft": ("#57606a", "#9da7b3"),
    "faint": ("#8c959f", "#6e7681"),
    "paper": ("#f4f6f9", "#0b0e14"),
    "panel": ("#ffffff", "#151a23"),
    "edge": ("#d8dee6", "#252c38"),
    "grid": ("#e6eaf0", "#232a36"),
    "stripe": ("#f6f8fb", "#1a202b"),
    "chip": ("#e8edf5", "#1c2431"),
}
"""Light and dark colours: Grafana's names, and those of the picture itself."""

_NARROW = set("iljtfrI.,:;|!'()[]- ")
_WIDE = set("mwMW%@GOQD")


def theme() -> str:
    """The style sheet."""
    names = {**{f"s{number}": pair for number, pair in enumerate(SERIES)}, **NAMED}
    light = "".join(f"--{name}:{pair[0]};" for name, pair in names.items())
    dark = "".join(f"--{name}:{pair[1]};" for name, pair in names.items())
    return (
        f".board{{{light}font-family:Inter,'Segoe UI','Helvetica Neue',Arial,sans-serif;font-size:12px}}"
        f"@media (prefers-color-scheme:dark){{.board{{{dark}}}}}"
        ".board text{fill:var(--text)}.board .soft{fill:var(--soft)}.board .faint{fill:var(--faint)}"
        ".board .head{font-size:25px;font-weight:700}.board .question{font-size:15px;fill:var(--soft)}"
        ".board .row{font-size:15px;font-weight:600}.board .title{font-size:13px;font-weight:600}"
        ".board .axis{font-size:11px;fill:var(--soft)}.board .legend{font-size:11.5px}"
        ".board .legend.soft,.board .heading{font-size:11px;fill:var(--soft)}.board .heading{font-weight:600}"
        ".board .cell{font-size:12px}.board .oncolour{font-size:12px;fill:#fff;font-weight:600}"
        ".board .panel{fill:var(--panel);stroke:var(--edge)}.board .paper{fill:var(--paper)}.board"
        " .chip{fill:var(--chip)}"
        ".board .grid{stroke:var(--grid)}.board .rule{stroke:var(--edge)}.board .stripe{fill:var(--stripe)}"
        ".board .mark{stroke:var(--red);stroke-opacity:.45;stroke-dasharray:2 4}"
        ".board .line{fill:none;stroke-width:1.6;stroke-linejoin:round}"
    )


def colour(name: str) -> str:
    """A CSS colour: a name of the palette, Grafana's name, or a literal."""
    return name if name.startswith("#") else f"var(--{name})"


def text(x: float, y: float, content: str, style: str = "", anchor: str = "start", fill: str = "") -> str:
    """One line of text."""
    look = f" class={quoteattr(style)}" if style else ""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    filled = f' style="fill:{colour(fill)}"' if fill else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{look}{where}{filled}>{escape(content)}</text>'


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    style: str = "",
    fill: str = "",
    radius: float = 0,
    opacity: float = 1,
) -> str:
    """A rectangle."""
    look = f' class="{style}"' if style else ""
    filled = f' style="fill:{colour(fill)}"' if fill else ""
    round_ = f' rx="{radius:g}"' if radius else ""
    faint = f' fill-opacity="{opacity:g}"' if opacity != 1 else ""
    size = f'width="{max(0.0, width):.1f}" height="{max(0.0, height):.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size}{look}{filled}{round_}{faint}/>'


def rule(x1: float, y1: float, x2: float, y2: float, style: str = "grid", stroke: str = "", dashed: str = "") -> str:
    """A straight line."""
    paint = f' style="stroke:{colour(stroke)}"' if stroke else ""
    dash = f' stroke-dasharray="{dashed}"' if dashed else ""
    return f'<path class="{style}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"{paint}{dash}/>'


def runs(points: Iterable[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """Points between gaps."""
    found: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            found.append([])
        else:
            found[-1].append(point)
    return [run for run in found if run]


def path(points: list[tuple[float, float]]) -> str:
    """A line through points, in tenths of a pixel relative to each other to be short."""
    whole = [(round(10 * x), round(10 * y)) for x, y in points]
    first = whole[0]
    out = [f"M{first[0] / 10:g} {first[1] / 10:g}"]
    before = first
    for now in whole[1:]:
        across, down = now[0] - before[0], now[1] - before[1]
        out.append(f"h{across / 10:g}" if not down else f"l{across / 10:g} {down / 10:g}")
        before = now
    return "".join(out)


def width(content: str, size: float = 12) -> float:
    """Estimated width of a text in pixels."""
    return size * sum(
        0.32 if sign in _NARROW else 0.86 if sign in _WIDE else 0.68 if sign.isupper() else 0.585 for sign in content
    )


def fit(content: str, room: float, size: float = 12) -> str:
    """The text, cut with an ellipsis where it is wider than `room` pixels."""
    if width(content, size) <= room:
        return content
    while content and width(content + "…", size) > room:
        content = content[:-1]
    return content.rstrip() + "…"
