"""Options of the command itself."""

import tomllib

from typer.testing import CliRunner

from tests.synthesis import ROOT
from ultracluster.cli import app


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"ultracluster {project['version']}\n")


def test_help_names_every_command():
    text = CliRunner().invoke(app, ["--help"]).stdout
    assert all(name in text for name in ("validate", "catalog", "schema", "job", "local", "--version"))
