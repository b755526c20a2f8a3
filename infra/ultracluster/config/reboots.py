"""Lines of boot scripts that stop or restart the node."""

import re

_SHELL = re.compile(r"#! *(/usr/bin/env +)?\S*\b(ba|da|z|k|a)?sh\b")
"""Shebang of shell scripts. Scripts in other languages are not searched."""

_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_COMMENT = re.compile(r"(^|\s)#.*$")

_BEFORE = r"(?:^|[;&|({]|\b(?:then|do|else|exec|sudo(?:\s+-\S+)*|nohup|command|!)\s)\s*"
_NAMES = r"reboot|poweroff|halt|shutdown|kexec"
_COMMAND = re.compile(
    rf"{_BEFORE}(?:\S*/)?(?P<found>(?:{_NAMES})(?![\w.=/-])(?!.*\s-c\b)"
    rf"|systemctl\s+(?:-\S+\s+)*(?:reboot|poweroff|halt|kexec|soft-reboot)\b|(?:tel)?init\s+[06]\b)"
)
"""Commands of systemd and SysV init at positions where a command can start. `shutdown -c` cancels a shutdown."""

_HERE = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")


def stops_node(script: str) -> tuple[int, str] | None:
    """Number of the first line of a shell script that stops or restarts the node, and its command; None without one.

    Here documents, strings and comments are not searched.
    """
    lines = script.splitlines()
    if not lines or not _SHELL.match(lines[0]):
        return None
    end = ""
    for number, line in enumerate(lines, 1):
        if end:
            end = "" if line.strip() == end else end
            continue
        code = _COMMENT.sub("", _QUOTED.sub("''", line))
        if found := _COMMAND.search(code):
            return number, " ".join(found["found"].split())
        if begins := _HERE.search(_COMMENT.sub("", line)):
            end = begins[1]
    return None
