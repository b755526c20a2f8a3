"""`make observe`: a day of a made-up fleet in a local Prometheus, with alerts and dashboards on one page.

With `--previews` it writes the pictures in docs/dashboards instead.
"""

import argparse
import signal
import sys
import threading
import time

from scripts.observe.course import Day
from scripts.observe.drawing.board import draw
from scripts.observe.server import MissingPrometheus
from scripts.observe.tour import Tour, tour
from scripts.observe.website import contents, website
from tests.synthesis import ROOT

PREVIEWS = ROOT / "docs/dashboards"
PREVIEW_DAY = Day(1795270200)
"""21 November 2026, 14:10 UTC, for pictures that do not change."""


def main() -> None:
    """Serves the tour until interrupted, or writes previews."""
    arguments = argparse.ArgumentParser(prog="make observe", description=__doc__)
    arguments.add_argument("--previews", action="store_true", help="write docs/dashboards/*.svg and end")
    arguments.add_argument("--port", type=int, default=0, help="port of the page; any free one by default")
    chosen = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # by default nothing stops Prometheus
    day = PREVIEW_DAY if chosen.previews else Day(int(time.time()) // 300 * 300)
    print("Filling Prometheus with a day of samples; takes a minute or two", flush=True)  # noqa: T201
    try:
        with tour(day) as made:
            if chosen.previews:
                write_previews(made)
                return
            with website(contents(made), chosen.port) as address:
                print(f"Tour: {address}\nPrometheus: {made.server.address}\nPress Ctrl-C to stop", flush=True)  # noqa: T201
                threading.Event().wait()
    except MissingPrometheus as missing:
        sys.exit(str(missing))
    except KeyboardInterrupt:
        print()  # noqa: T201


_GALLERY = """# Dashboards

For operators who want to see the dashboards before they deploy. The pictures show a day of a simulated fleet in which
a GPU overheats, another has ECC errors, a third falls off the bus, a job hangs and a file system fills. `make previews`
draws them from the dashboards deployed to Grafana and from query results of a real Prometheus; Grafana looks slightly
different. Dashed lines are thresholds of alert rules; blue numbers have no threshold; red marks are critical alerts
that start to fire. [observability.md](../observability.md) describes how to deploy Grafana.
"""


def write_previews(made: Tour) -> None:
    """Writes the picture of each dashboard, and a page with all of them."""
    PREVIEWS.mkdir(exist_ok=True)
    parts = [_GALLERY]
    for picture in made.pictures:
        title, question = picture.dashboard["title"], picture.dashboard["description"]
        parts.append(f"## {title}\n\n{question}\n\n[![{title}]({picture.slug}.svg)]({picture.slug}.svg)\n")
    (PREVIEWS / "README.md").write_text("\n".join(parts), "utf-8")
    for picture in made.pictures:
        (PREVIEWS / f"{picture.slug}.svg").write_text(draw(picture.dashboard, picture.look), "utf-8")


if __name__ == "__main__":
    main()
