"""promtool and amtool of the Debian folder with engines."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.engines.conftest import REQUIRED
from tests.synthesis import ROOT


@cache
def command(name: str) -> list[str]:
    """How to run a program of the Debian folder, or of this machine. Skips the test when there is none."""
    built = subprocess.run([ROOT / "scripts/engines.sh"], text=True, capture_output=True)
    folder = Path(built.stdout.strip() or "/nonexistent")
    program = folder / "usr/bin" / name
    if program.exists():
        loader = folder / "lib64/ld-linux-x86-64.so.2"
        return [str(loader), "--library-path", str(folder / "usr/lib/x86_64-linux-gnu"), str(program)]
    if found := shutil.which(name):
        return [found]
    reason = f"{name} is missing: needs the packages prometheus and prometheus-alertmanager in scripts/engines.sh"
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)


def run(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a program."""
    return subprocess.run([*command(name), *map(str, arguments)], text=True, capture_output=True, timeout=300)


def unit_tests(folder: Path, files: list[Path], tests: list[dict[str, object]]) -> subprocess.CompletedProcess[str]:
    """Runs unit tests of rules."""
    document = {"rule_files": [str(file) for file in files], "evaluation_interval": "1m", "tests": tests}
    at = folder / "tests.yml"
    at.write_text(yaml.safe_dump(document, width=100000))
    return run("promtool", "test", "rules", at)


def reported(output: str) -> list[dict[str, str]]:
    """Annotations of the alerts that a failing test of promtool prints."""
    found = re.findall(r"Annotations:\{(.*?)\}\s*(?:\]|\d+:|$)", output, re.MULTILINE)
    return [dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', each)) for each in found]
