"""Which Prometheus the tour starts."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from scripts.observe import server
from tests.synthesis import ROOT

READY = """\
import http.server, os, pathlib, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
pathlib.Path(__file__).with_suffix(".pid").write_text(str(os.getpid()))
address = next(each for each in sys.argv if each.startswith("--web.listen-address="))
http.server.HTTPServer(("127.0.0.1", int(address.rpartition(":")[2])), Answer).serve_forever()
"""
"""A program that is ready as Prometheus is."""

TOUR = """\
import contextlib, sys, types
from scripts.observe import __main__ as observe, server
program = sys.argv.pop()
@contextlib.contextmanager
def tour(day):
    with server.prometheus(60, [sys.executable, program]) as running:
        yield types.SimpleNamespace(server=running)
observe.tour = tour
observe.contents = lambda made: made
observe.website = lambda made, port: contextlib.nullcontext("page")
observe.main()
"""
"""`make observe` without a fleet and a page."""


@pytest.fixture
def without_prometheus(monkeypatch, tmp_path):
    """A machine whose script for engines says what the test writes."""
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts/engines.sh"
    script.touch(mode=0o755)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(server, "ROOT", tmp_path)
    return script


def test_prometheus_of_the_machine_comes_first(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert server.command() == ["/usr/bin/prometheus"]


def test_the_folder_of_engines_comes_second(without_prometheus, tmp_path):
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/prometheus").touch()
    without_prometheus.write_text(f"#!/bin/sh\necho {tmp_path}\n")
    assert server.command() == [str(tmp_path / "usr/bin/prometheus")]


def test_without_either_the_message_names_the_package(without_prometheus):
    without_prometheus.write_text("#!/bin/sh\necho needs root >&2\nexit 1\n")
    with pytest.raises(server.MissingPrometheus, match=r"apt-get install prometheus.*needs root"):
        server.command()


def test_a_prometheus_that_ends_at_once_is_reported(tmp_path):
    program = tmp_path / "prometheus"
    program.write_text("#!/bin/sh\necho bad flag\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(server.MissingPrometheus, match="bad flag"), server.prometheus(60, [str(program)]):
        pytest.fail("it did not start")


def test_a_tour_that_is_terminated_leaves_no_prometheus_behind(tmp_path):
    program = tmp_path / "ready.py"
    program.write_text(READY)
    command = [sys.executable, "-c", TOUR, str(program)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert any(line.startswith("Press Ctrl-C") for line in running.stdout)
        server_id = int(program.with_suffix(".pid").read_text())
        running.send_signal(signal.SIGTERM)
    assert running.returncode == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(server_id, 0)
