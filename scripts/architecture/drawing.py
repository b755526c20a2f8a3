"""SVG elements and colours of the architecture pictures.

Colours follow the light or dark mode of the viewer. Each picture has its own background.
"""

from collections.abc import Sequence
from xml.sax.saxutils import escape

TIMES = "\N{MULTIPLICATION SIGN}"

# paper: fill and border; text: main and secondary; each part: fill and line
LIGHT = {
    "paper": ("#ffffff", "#d0d7de"),
    "text": ("#1f2328", "#57606a"),
    "network": ("#e7f0fd", "#2563c9"),
    "storage": ("#e5f6ec", "#157f45"),
    "links": ("#e0f5f7", "#0b7683"),
    "control-plane": ("#fdf1dc", "#a86200"),
    "compute": ("#efe9fd", "#6a3fc8"),
    "platform": ("#f2f5d9", "#647700"),
    "observability": ("#fde9f0", "#b92c63"),
    "alerts": ("#fbe6fb", "#a02ba3"),
    "repair": ("#e9ecf8", "#4653a8"),
    "collection": ("#e2f3ee", "#0c6f63"),
    "grafana": ("#fdeae3", "#b5471f"),
    "shared": ("#f3f4f6", "#6e7781"),
}
DARK = {
    "paper": ("#0d1117", "#30363d"),
    "text": ("#e6edf3", "#9da7b3"),
    "network": ("#11243f", "#6aa6f8"),
    "storage": ("#0f2d1d", "#56c786"),
    "links": ("#0c2c31", "#4bbfcc"),
    "control-plane": ("#33240b", "#e3a74a"),
    "compute": ("#261b47", "#b196f5"),
    "platform": ("#262b0b", "#b9cb4f"),
    "observability": ("#3a1525", "#f285ab"),
    "alerts": ("#33123a", "#e08be6"),
    "repair": ("#1a2040", "#98a5f2"),
    "collection": ("#0b2e29", "#5ccbb9"),
    "grafana": ("#3a1c10", "#f0936b"),
    "shared": ("#1b2028", "#8b949e"),
}


def svg(title: str, width: int, height: int, parts: Sequence[str], body: Sequence[str]) -> str:
    """Return the SVG document, with the colours of `parts`."""
    lines = "\n".join(body)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>{escape(title)}</title>
<style>
{style(parts)}
</style>
<defs>{head("shared")}{head("links")}</defs>
<rect class="paper" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="14"/>
{lines}
</svg>
"""


def label(x: float, y: float, text: str, style: str = "line", anchor: str = "start") -> str:
    """Return one line of text."""
    return f'<text x="{x}" y="{y}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'


def box(part: str, x: int, y: int, width: int, height: int, title: str, *lines: str, kind: str = "") -> str:
    """Return a box with a title and lines of text. Data attributes name its stack and resource type."""
    data = f' data-stack="{part}" data-type="{kind}"' if kind else ""
    shape = f'<rect class="box {part}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
    bar = f'<rect class="bar {part}" x="{x}" y="{y + 10}" width="4" height="{height - 20}" rx="2"/>'
    texts = [label(x + 18, y + 28, title, "name")]
    texts += [label(x + 18, y + 50 + 20 * number, line) for number, line in enumerate(lines)]
    return f"<g{data}>{shape}{bar}{''.join(texts)}</g>"


def frame(
    part: str,
    x: int,
    y: int,
    width: int,
    height: int,
    title: str,
    *,
    kind: str,
    dashed: bool = False,
    at_bottom: bool = False,
) -> str:
    """Return a frame around other boxes. Its title is at the top left or at the bottom left."""
    style = "frame dashed" if dashed else "frame"
    baseline = y + height - 12 if at_bottom else y + 25
    shape = f'<rect class="{style} {part}" x="{x}" y="{y}" width="{width}" height="{height}" rx="10"/>'
    return f'<g data-stack="{part}" data-type="{kind}">{shape}{label(x + 16, baseline, title, f"title {part}")}</g>'


def head(part: str) -> str:
    """Return the marker for an arrow head."""
    shape = f'<path class="bar {part}" d="M0 1 L10 5 L0 9 z"/>'
    size = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8"'
    return f'<marker id="{part}" {size} orient="auto-start-reverse">{shape}</marker>'


def arrow(path: str, *, both: bool = False, part: str = "shared") -> str:
    """Return a line with an arrow head at its end, or at both ends."""
    start = f' marker-start="url(#{part})"' if both else ""
    return f'<path class="arrow {part}" d="{path}" marker-end="url(#{part})"{start}/>'


def style(parts: Sequence[str]) -> str:
    """Return the style sheet: fonts, then colours for light and dark mode."""
    return f"""text {{ font-family: Inter, "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; }}
.head1 {{ font-size: 26px; font-weight: 700; }}
.name {{ font-size: 16px; font-weight: 600; }}
.title {{ font-size: 14px; font-weight: 600; }}
.legend {{ font-size: 12px; font-weight: 600; }}
.line {{ font-size: 14px; }}
.small {{ font-size: 13px; }}
.box, .frame {{ stroke-width: 1.5; }}
.dashed {{ stroke-dasharray: 6 5; }}
.arrow {{ fill: none; stroke-width: 1.6; }}
{colours(LIGHT, parts)}
@media (prefers-color-scheme: dark) {{
{colours(DARK, parts)}
}}"""


def colours(palette: dict[str, tuple[str, str]], parts: Sequence[str]) -> str:
    """Return the CSS rules that set colours."""
    paper, text = palette["paper"], palette["text"]
    rules = [
        f".paper {{ fill: {paper[0]}; stroke: {paper[1]}; }}",
        f".head1, .name, .legend {{ fill: {text[0]}; }}",
        f".line, .small {{ fill: {text[1]}; }}",
        ".frame { fill: none; }",
        f".node {{ fill: {palette['compute'][1]}; }}",
    ]
    for part in (*parts, "shared"):
        fill, line = palette["compute" if part.startswith("compute") else part]  # on EKS a stack a node group
        rules += [
            f".box.{part} {{ fill: {fill}; stroke: {line}; }}",
            f".bar.{part} {{ fill: {line}; }}",
            f".frame.{part} {{ stroke: {line}; }}",
            f".title.{part} {{ fill: {line}; }}",
            f".arrow.{part} {{ stroke: {line}; }}",
        ]
    return "\n".join(rules)
