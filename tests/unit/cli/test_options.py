"""Options of the command itself."""

import os
import subprocess
import sys
import tomllib

import pytest
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


def completed(words):
    variables = {"_ULTRACLUSTER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'ultracluster'; from ultracluster.cli import main; main()",
    ]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ultracluster va", ["validate"]),
        ("ultracluster validate --ex", ["--explain"]),
        ("ultracluster local d", ["down"]),
    ],
)
def test_a_shell_completes_commands_and_options(words, found):
    assert completed(words) == found


def test_the_completion_is_printed_for_a_shell():
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).stdout
