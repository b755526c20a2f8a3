"""The sbatch scripts of examples/slurm are what `ultracluster job` prints. tests/engines runs such scripts on Slurm."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.synthesis import ROOT
from ultracluster.cli import app

SHELLCHECK = Path(sys.executable).with_name("shellcheck")
FOLDER = ROOT / "examples" / "slurm"
SCRIPTS = sorted(file.name for file in FOLDER.glob("*.sbatch"))
PRINTED_BY = "# Printed by: ultracluster "


def test_there_is_an_example_of_every_kind():
    titles = {(FOLDER / name).read_text().splitlines()[1].split()[1] for name in SCRIPTS}
    assert titles == {"Trains", "Measures", "Prepares"}


def test_shellcheck_finds_nothing():
    done = subprocess.run([SHELLCHECK, *(FOLDER / name for name in SCRIPTS)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_command_in_the_script_prints_it(script, monkeypatch):
    """If this fails, run the command of the third line in the root of the project, and write its output to the file."""
    monkeypatch.chdir(ROOT)
    text = (FOLDER / script).read_text()
    (line,) = (line for line in text.splitlines() if line.startswith(PRINTED_BY))
    done = CliRunner().invoke(app, shlex.split(line.removeprefix(PRINTED_BY)))
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == text


@pytest.mark.parametrize("script", SCRIPTS)
def test_sbatch_options_come_before_any_command(script):
    """sbatch stops reading options at the first command."""
    lines = (FOLDER / script).read_text().splitlines()
    options = [number for number, line in enumerate(lines) if line.startswith("#SBATCH")]
    commands = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    assert lines[0] == "#!/bin/bash"
    assert options
    assert max(options) < min(commands)
