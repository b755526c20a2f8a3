"""The page of the tour: what fires, what happened, and the dashboards, in HTML without a script from elsewhere."""

import time
from collections.abc import Sequence
from html import escape

from scripts.observe.course import Day
from scripts.observe.drawing.units import format_value
from scripts.observe.replay import Firing
from scripts.observe.tour import Picture

STORY = (
    (24.0, "Filling file system", "Checkpoints fill FSx for Lustre from 64 % to over 93 %.", "storage"),
    (
        6.0,
        "ECC storm",
        "GPU 2 of train-16 corrects more and more errors. Three hours later one is uncorrectable, and the job ends.",
        "gpu-cluster",
    ),
    (5.0, "Straggler", "GPU 3 of train-5 overheats and slows down. All 64 GPUs of job 4711 wait for it.", "training"),
    (
        4.0,
        "Packet loss",
        "An EFA device of train-3 retransmits for 48 minutes. Nothing fires now: it is over.",
        "fabric",
    ),
    (1.5, "Hung job", "Job 4720 holds 32 GPUs at full utilisation and computes nothing.", "training"),
    (1.2, "Lost GPU", "GPU 6 of train-14 falls off the bus: XID 79.", "fleet"),
)
"""What happens in the day: hours before its end, name, text, and the dashboard that shows it best."""

_HEADS = ("Severity", "Alert", "What is wrong", "First step", "For", "Runbook")

_STYLE = """
:root {
  color-scheme: light dark;
  --paper: light-dark(#f4f6f9, #0b0e14); --panel: light-dark(#fff, #151a23); --edge: light-dark(#d8dee6, #252c38);
  --text: light-dark(#1f2328, #e6edf3); --soft: light-dark(#57606a, #9da7b3);
  --critical: light-dark(#d1293d, #ff5468); --warning: light-dark(#c26a00, #ff9d33);
  --info: light-dark(#2f6fde, #6ea6ff);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--text); font: 15px/1.5 Inter, "Segoe UI", Arial, sans-serif; }
main, header, nav div { max-width: 1640px; margin: auto; padding: 20px; }
h1 { font-size: 26px; margin: 6px 0; }
h2 { font-size: 18px; margin: 26px 0 10px; }
p { color: var(--soft); margin: 4px 0 10px; max-width: 95ch; }
a { color: var(--info); text-decoration: none; }
a:hover { text-decoration: underline; }
nav { position: sticky; top: 0; background: var(--paper); border-block: 1px solid var(--edge); z-index: 1; }
nav div { padding: 10px 20px; display: flex; gap: 6px 18px; flex-wrap: wrap; }
table { width: 100%; border-collapse: collapse; background: var(--panel); outline: 1px solid var(--edge); }
th, td { text-align: left; padding: 8px 14px; border-bottom: 1px solid var(--edge); vertical-align: top; }
th { font-size: 13px; color: var(--soft); }
.when { white-space: nowrap; }
.critical, .warning, .info { font-weight: 600; }
.critical { color: var(--critical); } .warning { color: var(--warning); } .info { color: var(--info); }
.story { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 12px; }
.story div { background: var(--panel); border: 1px solid var(--edge); border-radius: 8px; padding: 12px 16px; }
section { scroll-margin-top: 60px; margin-block: 26px; overflow-x: auto; }
img { width: 100%; height: auto; display: block; border: 1px solid var(--edge); border-radius: 8px; }
"""


def page(day: Day, firing: Sequence[Firing], pictures: Sequence[Picture]) -> str:
    """The HTML of the tour."""
    links = "".join(f'<a href="#{each.slug}">{escape(each.dashboard["title"])}</a>' for each in pictures)
    sections = "".join(map(_section, pictures))
    heads = "".join(f"<th>{name}</th>" for name in _HEADS)
    rows = "".join(_row(each, day) for each in firing)
    story = "".join(_told(day, *each) for each in STORY)
    until = time.strftime("%d %B %Y, %H:%M UTC", time.gmtime(day.end))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>ultracluster: a day of a GPU fleet</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><style>{_STYLE}</style></head>
<body><header><h1>A day of a GPU fleet</h1>
<p>Sixteen p5en.48xlarge nodes under Slurm and a Kubernetes cluster, made up, in a real Prometheus on this machine.
Rules are those of environments/prod.yaml, dashboards those of prod.yaml and staging.yaml.
The day ends on {until}.</p></header>
<nav><div><a href="#alerts">Alerts</a><a href="#story">What happened</a>{links}</div></nav>
<main><section id="alerts"><h2>{_count(firing)}</h2>
<table><thead><tr>{heads}</tr></thead>
<tbody>{rows}</tbody></table></section>
<section id="story"><h2>What happened</h2><div class="story">{story}</div></section>
{sections}</main>
<script>
addEventListener("load", () => {{
  document.body.dataset.loaded = [...document.images].filter(image => image.naturalWidth).length
}})
</script></body></html>
"""


def _section(picture: Picture) -> str:
    title, address = escape(picture.dashboard["title"]), f"/dashboards/{picture.slug}.svg"
    image = f'<a href="{address}"><img src="{address}" alt="{title}"></a>'
    return f'<section id="{picture.slug}" aria-label="{title}">{image}</section>'


def _count(firing: Sequence[Firing]) -> str:
    critical = sum(each.severity == "critical" for each in firing)
    return f"{len(firing)} alerts fire, {critical} of them critical"


def _row(alert: Firing, day: Day) -> str:
    slug = alert.runbook.rpartition("/")[2]
    cells = (
        f'<td class="{alert.severity}">{alert.severity}</td>',
        f"<td>{escape(alert.name)}</td><td>{escape(alert.summary)}</td><td>{escape(alert.action)}</td>",
        f'<td class="when">{format_value(day.end - alert.since, "s")}</td>',
        f'<td class="when"><a href="/runbooks/{escape(slug)}">{escape(slug.removesuffix(".md"))}</a></td>',
    )
    return f'<tr data-alert="{escape(alert.name)}">{"".join(cells)}</tr>'


def _told(day: Day, hours: float, name: str, text: str, slug: str) -> str:
    when = "All day:" if hours >= day.hours else time.strftime("%H:%M", time.gmtime(day.ago(hours)))
    return f'<div><strong>{when} {escape(name)}</strong><p>{escape(text)} <a href="#{slug}">See it</a></p></div>'
