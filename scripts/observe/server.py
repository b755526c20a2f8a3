"""A Prometheus on loopback, from the machine or from the folder of scripts/engines.sh."""

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from scripts.observe import remote_write
from tests.synthesis import ROOT

LONGEST_START = 60
SLICE = 1800
"""Seconds of samples that one request holds. Prometheus takes samples up to one hour older than the newest."""

_CONFIGURATION = "storage: {tsdb: {out_of_order_time_window: 30h}}\n"


class MissingPrometheus(Exception):
    """No Prometheus on this machine."""


class QueryFailed(Exception):
    """Prometheus refused a query."""


def command() -> list[str]:
    """The command that starts Prometheus. Raises MissingPrometheus with what to install."""
    if found := shutil.which("prometheus"):
        return [found]
    built = subprocess.run([ROOT / "scripts/engines.sh"], text=True, capture_output=True)  # noqa: S603
    binary = Path(built.stdout.strip()) / "usr/bin/prometheus"
    if built.returncode == 0 and binary.exists():
        return [str(binary)]  # a static program: it needs nothing else of the folder
    raise MissingPrometheus(
        "make observe needs the program prometheus: apt-get install prometheus, or let scripts/engines.sh build"
        " its folder"
        f" ({(built.stderr.strip().splitlines() or ['no reason given'])[-1]})"
    )


class Prometheus:
    """A running server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def write(self, series: Sequence[tuple[dict[str, str], Sequence[float | None]]], times: Sequence[int]) -> None:
        """Stores series with samples at `times`, oldest first."""
        named = [(remote_write.labels(labels), values) for labels, values in series]
        start = 0
        while start < len(times):
            stop = start
            while stop < len(times) and times[stop] < times[start] + SLICE:
                stop += 1
            window = times[start:stop]
            packed = [
                (
                    labels,
                    remote_write.samples(window, values[start:stop], there=start > 0 and values[start - 1] is not None),
                )
                for labels, values in named
            ]
            for first in range(0, len(packed), 5000):
                if some := [pair for pair in packed[first : first + 5000] if pair[1]]:
                    self._post(some)
            start = stop

    def _post(self, packed: Sequence[tuple[bytes, bytes]]) -> None:
        headers = {
            "Content-Encoding": "snappy",
            "Content-Type": "application/x-protobuf",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        }
        request = Request(f"{self.address}/api/v1/write", remote_write.body(packed), headers)  # noqa: S310
        with urlopen(request, timeout=120):  # noqa: S310
            pass

    def instant(self, query: str, at: int) -> list[dict[str, Any]]:
        """Result of an instant query: series with `metric` and `value`."""
        found = self._get("query", query=query, time=str(at))
        return [{"metric": {}, "value": found["result"]}] if found["resultType"] == "scalar" else found["result"]

    def range(self, query: str, start: int, end: int, step: int) -> list[dict[str, Any]]:
        """Result of a range query: series with `metric` and `values`."""
        found: list[dict[str, Any]] = self._get("query_range", query=query, start=start, end=end, step=step)["result"]
        return found

    def _get(self, what: str, **parameters: object) -> dict[str, Any]:
        address = f"{self.address}/api/v1/{what}"
        try:
            with urlopen(Request(address, urlencode(parameters).encode()), timeout=120) as answer:  # noqa: S310
                found: dict[str, Any] = json.load(answer)["data"]
                return found
        except HTTPError as error:
            reason = json.load(error).get("error", str(error))
            raise QueryFailed(f"{reason}\nin {parameters['query']}") from None


@contextmanager
def prometheus(step: int, program: Sequence[str] | None = None) -> Iterator[Prometheus]:
    """Starts a Prometheus with an empty store for samples every `step` seconds, and stops it."""
    with tempfile.TemporaryDirectory(prefix="observe-") as place, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        (Path(place) / "prometheus.yml").write_text(_CONFIGURATION)
        arguments = [
            f"--config.file={place}/prometheus.yml",
            f"--storage.tsdb.path={place}/data",
            "--storage.tsdb.retention.time=30y",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-remote-write-receiver",
            f"--query.lookback-delta={2 * step}s",
            "--query.max-samples=200000000",
            "--log.level=error",
        ]
        with (Path(place) / "log").open("w+") as log:
            process = subprocess.Popen([*(program or command()), *arguments], stdout=log, stderr=log, cwd=place)  # noqa: S603
            try:
                server = Prometheus(f"http://127.0.0.1:{port}")
                _wait(server, process, Path(place) / "log")
                yield server
            finally:
                process.terminate()
                process.wait(30)


def _wait(server: Prometheus, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + LONGEST_START
    while time.monotonic() < until:
        if process.poll() is not None:
            raise MissingPrometheus(f"Prometheus ended at once: {log.read_text().strip()[-400:]}")
        try:
            with urlopen(f"{server.address}/-/ready", timeout=2):  # noqa: S310
                return
        except (HTTPError, URLError, OSError):
            time.sleep(0.1)
    raise MissingPrometheus(f"Prometheus was not ready after {LONGEST_START} s: {log.read_text().strip()[-400:]}")
