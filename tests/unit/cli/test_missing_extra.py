"""`ultracluster local` without the embedded AWS, or without a package that it needs."""

import subprocess
import sys

import pytest

from ultracluster.cli.local import NOT_INSTALLED

HIDE = """
import importlib.machinery
import sys

hidden, find = {hidden!r}, importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = classmethod(
    lambda finder, name, *rest: None if name.partition(".")[0] == hidden else find(name, *rest)
)
from ultracluster.cli import main

main()
"""


def local_without(hidden, *arguments):
    command = [sys.executable, "-c", HIDE.format(hidden=hidden), "local", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("hidden", ["localaws", "moto", "flask", "cfnlint", "jsonschema", "regex"])
def test_a_missing_package_prints_what_to_install(hidden):
    for command in ("up", "status", "down") if hidden == "moto" else ("up",):
        ran = local_without(hidden, command)
        assert ran.returncode == 2
        assert ran.stderr == NOT_INSTALLED + "\n"


def test_help_needs_nothing():
    for arguments in (["--help"], ["up", "--help"]):
        ran = local_without("moto", *arguments)
        assert ran.returncode == 0
        assert "embedded AWS" in ran.stdout
