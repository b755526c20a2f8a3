"""An exporter that serves the metrics of the catalogue: text in the exposition format, and an HTTP server for it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product

from ultracluster.telemetry.metrics import Metric

Value = Callable[[Metric, Mapping[str, str]], float]
"""Value of a metric for the labels of one series."""

Labels = Callable[[Metric], Mapping[str, tuple[str, ...]]]
"""Values of a metric's labels."""

LE = ("0.1", "1", "10", "+Inf")


def one(*_: object) -> float:
    """The value 1 for every series."""
    return 1.0


def exposition(
    metrics: tuple[Metric, ...],
    *,
    labels: Mapping[str, tuple[str, ...]] | Labels | None = None,
    value: Value = one,
) -> str:
    """What an exporter answers: each metric with each combination of the values of its labels.

    A label that `labels` does not name has the stored value of the catalogue, or its own name as value.
    """
    lines = []
    for each in metrics:
        given = labels(each) if callable(labels) else labels or {}
        declared = each.declared or each.kind
        lines += [f"# HELP {each.name} {each.help}", f"# TYPE {each.name} {declared}"]
        choices = [given.get(label) or each.only.get(label) or (label,) for label in each.labels]
        for combination in product(*choices):
            lines += _samples(each, dict(zip(each.labels, combination, strict=True)), value)
    return "\n".join(lines) + "\n"


@contextmanager
def serving(paths: Mapping[str, str | Callable[[], str]]) -> Iterator[str]:
    """An HTTP server on loopback with texts by path, such as /metrics; yields its host:port. Other paths answer 404."""

    answers = {path: text if callable(text) else text.encode() for path, text in paths.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.end_headers()
            with suppress(BrokenPipeError):  # a scrape that took too long
                self.wfile.write(answer().encode() if callable(answer) else answer or b"")

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _samples(each: Metric, labels: Mapping[str, str], value: Value) -> list[str]:
    number = value(each, labels)
    if each.kind != "histogram":
        return [f"{each.name}{_text(labels)} {number}"]
    buckets = [f"{each.name}_bucket{_text({**labels, 'le': le})} {number}" for le in LE]
    return [*buckets, f"{each.name}_sum{_text(labels)} {number}", f"{each.name}_count{_text(labels)} {number}"]


def _text(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
