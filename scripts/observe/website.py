"""Serves the tour on loopback."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from scripts.observe.drawing.board import draw
from scripts.observe.page import page
from scripts.observe.tour import Tour
from tests.synthesis import ROOT

RUNBOOKS = ROOT / "docs/runbooks"


def contents(tour: Tour) -> dict[str, tuple[str, str]]:
    """Content type and text of each path of the site."""
    found = {"/": ("text/html", page(tour.day, tour.firing, tour.pictures))}
    for picture in tour.pictures:
        found[f"/dashboards/{picture.slug}.svg"] = ("image/svg+xml", draw(picture.dashboard, picture.look))
    for file in sorted(RUNBOOKS.glob("*.md")):
        found[f"/runbooks/{file.name}"] = ("text/plain", file.read_text("utf-8"))
    return found


@contextmanager
def website(site: Mapping[str, tuple[str, str]], port: int = 0) -> Iterator[str]:
    """Serves `site` on 127.0.0.1 and yields its address. Port 0 is any free one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, text = site.get(self.path, ("", ""))
            body = text.encode()
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", f"{kind or 'text/plain'}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing: the terminal shows the address only."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
