"""Scripts of steps as files."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from ultracluster.nodes.steps import script

SCRIPTS = sorted((Path(__file__).parents[3] / "infra/ultracluster/nodes/scripts").glob("*.sh"))


def test_a_fake_of_a_real_command_leaves_the_command_of_this_machine_alone(machine):
    real = Path(shutil.which("mkdir")).read_bytes()
    assert machine.run("mkdir /root/x", mkdir="exit 3").returncode == 3
    assert Path(shutil.which("mkdir")).read_bytes() == real


def test_there_are_scripts():
    assert len(SCRIPTS) > 5


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_a_script_is_a_file_with_its_checksum(file):
    found = script(file.stem)
    assert found.file == file
    assert found.checksum == hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_a_script_says_what_it_does_and_stops_at_the_first_failure(file):
    first, second, *_ = file.read_text().splitlines()
    assert first == "#!/bin/bash"
    assert second.startswith("# ")
    assert "\nset -euo pipefail\n" in file.read_text()


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_shellcheck_finds_nothing(file):
    ran = subprocess.run(["shellcheck", str(file)], text=True, capture_output=True)
    assert (ran.returncode, ran.stdout) == (0, "")
