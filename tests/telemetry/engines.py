"""Prometheus, promtool and amtool of the Debian folder, run on this machine."""

import http.client
import json
import socket
import subprocess
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

STARTS_IN = 60
"""Seconds that a busy machine may take to start Prometheus."""

PORTS = range(10_000, 16_000)
_KEPT: list[socket.socket] = []

NOTHING = "global: {scrape_interval: 30s, evaluation_interval: 30s}\n"


class Ran(NamedTuple):
    """What a tool said."""

    ok: bool
    said: str


class Engines:
    """The tools below a Debian folder. They need the C library of Debian 12 or later."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "usr/bin"

    def promtool(self, *arguments: str | Path) -> Ran:
        """Runs promtool, for example `promtool("check", "rules", file)`."""
        return self._run("promtool", *arguments)

    def amtool(self, *arguments: str | Path) -> Ran:
        """Runs amtool, for example `amtool("check-config", file)`."""
        return self._run("amtool", *arguments)

    def check_rules(self, folder: Path, files: Mapping[str, str]) -> Ran:
        """What promtool says of rule files, which it finds in `folder` by name."""
        return self.promtool("check", "rules", *_written(folder, files))

    def blocks(self, folder: Path, openmetrics: str) -> None:
        """Writes samples in OpenMetrics text, with times in seconds, as blocks of a Prometheus database in `folder`."""
        source = folder.parent / f"{folder.name}.openmetrics"
        source.write_text(openmetrics)
        made = self.promtool("tsdb", "create-blocks-from", "openmetrics", source, folder)
        assert made.ok, made.said

    @contextmanager
    def prometheus(
        self, folder: Path, *, config: str = NOTHING, rules: Mapping[str, str] | None = None
    ) -> Iterator["Prometheus"]:
        """A Prometheus on loopback with its database in `folder`, which may hold blocks; stopped at the end.

        `rules` are rule files by name; the configuration gets them appended.
        """
        folder.mkdir(parents=True, exist_ok=True)
        files = _written(folder / "configuration", rules or {})
        settings = folder / "configuration/prometheus.yaml"
        settings.write_text(config + "".join(("rule_files:\n", *(f"  - {file}\n" for file in files)) if files else ""))
        port = free_port()
        with (folder / "configuration/log").open("w+") as log:
            process = subprocess.Popen(
                [
                    self.programs / "prometheus",
                    f"--config.file={settings}",
                    f"--storage.tsdb.path={folder}",
                    "--storage.tsdb.retention.time=10y",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--web.enable-remote-write-receiver",
                    "--web.enable-admin-api",
                ],
                stdout=log,
                stderr=log,
            )
            try:
                server = Prometheus(port, process)
                server.wait(Path(log.name))
                yield server
            finally:
                process.terminate()
                try:
                    process.wait(STARTS_IN)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _run(self, program: str, *arguments: str | Path) -> Ran:
        ran = subprocess.run([self.programs / program, *arguments], text=True, capture_output=True, timeout=300)
        return Ran(ran.returncode == 0, ran.stdout + ran.stderr)


class Prometheus:
    """A running server. `url` is its address on loopback, `at` the time of instant queries, None for now."""

    def __init__(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.url, self.process = f"http://127.0.0.1:{port}", process
        self.at: float | None = None
        self._port = port

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """Result of an instant query: entries with `metric` (labels) and `value` (time, text)."""
        at = self.at if at is None else at
        found: list[dict[str, Any]] = self.get("query", query=expression, **({} if at is None else {"time": str(at)}))[
            "result"
        ]
        return found

    def scraped(self, targets: str, count: int) -> None:
        """Waits until as many targets of the selector are up, and keeps that time: a later scrape may be too slow.

        Until then each target was scraped, so that no scrape that is still under way can change what queries answer.
        """
        until = time.monotonic() + STARTS_IN + 60
        while True:
            at = min(self.values(f"timestamp(up{targets})"), default=0)
            if self.values(f"count(up{targets} == 1)", at) == [count]:
                break
            assert time.monotonic() < until, self.get("targets")
            time.sleep(0.5)
        self.at = at

    def values(self, expression: str, at: float | None = None) -> list[float]:
        """Values of an instant query, without their labels."""
        return [float(entry["value"][1]) for entry in self.query(expression, at)]

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """Result of a range query: entries with `metric` and `values`."""
        times = {"start": str(start), "end": str(end), "step": str(step)}
        found: list[dict[str, Any]] = self.get("query_range", query=expression, **times)["result"]
        return found

    def get(self, path: str, **parameters: str) -> Any:
        """Data of a call of the API, for example `get("targets")`. Raises AssertionError with the server's refusal."""
        status, body = ask(self._port, f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        assert status == 200, body
        return json.loads(body)["data"]

    def wait(self, log: Path) -> None:
        """Waits until the server answers. Raises AssertionError with the end of its log when it stops or is late."""
        until = time.monotonic() + STARTS_IN
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if ask(self._port, "/-/ready")[0] == 200:
                    return
            except ConnectionError:
                pass
            time.sleep(0.1)
        raise AssertionError(log.read_text()[-3000:])


def ask(port: int, path: str) -> tuple[int, str]:
    """Status and text that a server on loopback answers. Raises ConnectionError when nothing listens yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def free_port() -> int:
    """A port that nothing on loopback listens on.

    It is below those that the kernel hands out, and a name keeps it from other processes that ask here.
    """
    for port in PORTS:
        kept = socket.socket(socket.AF_UNIX)
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                kept.bind(f"\0ultracluster-tests-{port}")
                tried.bind(("127.0.0.1", port))
            except OSError:
                kept.close()
                continue
        _KEPT.append(kept)
        return port
    raise AssertionError("no port is free")


def _written(folder: Path, files: Mapping[str, str]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return [folder / name for name in files]
