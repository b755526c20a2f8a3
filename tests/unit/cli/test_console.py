"""Colours of a report, and the width of tables."""

import io
import os
import re
import sys

import pytest

from tests.bad_files import printed
from ultracluster.cli.console import UNBROKEN, coloured, console


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def on_terminal(monkeypatch, **variables):
    """Within a test: pytest replaces stdout between a fixture and its test."""
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)


def plain(text):
    return re.sub(r"\033\[\d+m", "", text)


@pytest.mark.parametrize("name", ["out-of-range", "image-not-pinned", "yaml-syntax", "empty-file"])
def test_a_report_on_a_terminal_has_colours_and_the_same_words(monkeypatch, name):
    on_terminal(monkeypatch)
    text = coloured(printed(name))
    assert plain(text) == printed(name)
    assert f"\033[1mbad/{name}.yaml\033[0m" in text
    assert f"\033[2m[{name}]\033[0m" in text
    assert ("\033[36m" in text) == (name != "empty-file")
    assert ("\033[33mwarning:\033[0m" in text) == (name == "image-not-pinned")


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_switched_off(monkeypatch, variable, value):
    on_terminal(monkeypatch, **{variable: value})
    assert coloured(printed("out-of-range")) == printed("out-of-range")


def test_a_pipe_gets_no_colours_and_whole_lines(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.delenv("COLUMNS", raising=False)
    assert coloured(printed("out-of-range")) == printed("out-of-range")
    assert console(whole_lines=True).width == UNBROKEN
    assert console().width < UNBROKEN
    monkeypatch.setitem(os.environ, "COLUMNS", "100")
    assert console(whole_lines=True).width == 100
