"""Lines of boot scripts that restart or stop the node."""

import pytest

from tests.synthesis import ROOT
from ultracluster.config.reboots import stops_node

SHELL = "#!/bin/bash\nset -euo pipefail\n"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("reboot", "reboot"),
        ("  sudo reboot now", "reboot"),
        ("/usr/sbin/reboot --force", "reboot"),
        ("sudo -n -H reboot", "reboot"),
        ("shutdown -r +1", "shutdown"),
        ("make install && poweroff", "poweroff"),
        ("if [ -f /x ]; then halt; fi", "halt"),
        ("(sleep 60; reboot) &", "reboot"),
        ("nohup shutdown -h now &", "shutdown"),
        ("systemctl reboot", "systemctl reboot"),
        ("systemctl --no-block  poweroff", "systemctl poweroff"),
        ("init 6", "init 6"),
        ("telinit 0", "telinit 0"),
        ("test -f /var/run/reboot-required && reboot # new kernel", "reboot"),
    ],
)
def test_a_command_that_stops_the_node_is_found(line, command):
    found = stops_node(f"{SHELL}{line}\n")
    assert found is not None
    number, said = found
    assert number == 3
    assert said.replace("--no-block ", "") == command


@pytest.mark.parametrize(
    "line",
    [
        "# reboot",
        "echo reboot",
        "echo 'then; reboot'",
        'echo "kernel changed; reboot needed"',
        "apt-get install -y shutdown-tools",
        "systemctl enable --now rebootd.service",
        "reboot_needed=1",
        "reboot=no",
        "reboot.sh --check",
        "./halt-checks/run",
        "test -f /var/run/reboot-required",
        "shutdown -c",
        "git init 6folders",
        "cat > /usr/local/bin/later <<'END'\nreboot\nEND",
    ],
)
def test_other_lines_are_not(line):
    assert stops_node(f"{SHELL}{line}\n") is None


def test_the_line_after_a_here_document_counts():
    assert stops_node(f"{SHELL}cat > /etc/motd <<END\nhalt\nEND\nreboot\n") == (6, "reboot")


def test_scripts_in_other_languages_are_not_judged():
    assert stops_node("#!/usr/bin/env python3\nreboot\n") is None
    assert stops_node("") is None


@pytest.mark.parametrize("interpreter", ["/bin/sh", "/usr/bin/env bash", "/bin/dash -e", " /bin/bash"])
def test_every_shell_is(interpreter):
    assert stops_node(f"#!{interpreter}\nreboot\n") == (2, "reboot")


def test_shipped_scripts_stop_no_node():
    scripts = sorted((ROOT / "examples" / "scripts").glob("*.sh"))
    assert scripts
    assert not [script.name for script in scripts if stops_node(script.read_text())]
