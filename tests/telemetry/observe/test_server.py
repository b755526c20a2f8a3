"""Which Prometheus the tour starts."""

import shutil

import pytest

from scripts.observe import server


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
