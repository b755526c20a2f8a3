"""What the programs of a node's health share: findings with verdicts, and commands with a time limit."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import NamedTuple

ROOT = os.environ.get("CHECK_NODE_ROOT", "/")
MAX_OUTPUT_BYTES = 16_000_000
"""Most that is read of a command's output."""

VERDICTS = ("ok", "monitor", "reset", "reboot", "isolate", "replace")
"""From the best to the worst."""

Facts = dict[str, str]


class Finding(NamedTuple):
    """One finding: the check that made it, its verdict, and the details."""

    check: str
    verdict: str
    detail: str


def node_path(path: str) -> str:
    """An absolute path of the node, below ROOT."""
    return os.path.join(ROOT, path.lstrip("/"))


def worst(findings: list[Finding]) -> str:
    """The worst verdict; `ok` without findings."""
    return max((finding.verdict for finding in findings), key=VERDICTS.index, default="ok")


def passes(findings: list[Finding]) -> bool:
    """Whether the node may take jobs."""
    return worst(findings) in ("ok", "monitor")


class CommandFailed(Exception):
    """A command is missing, fails, or prints too much; the text says which."""


class TimedOut(CommandFailed):
    """A command did not end in its time."""


def output(command: list[str], seconds: float, *, may_fail: bool = False, **environment: str) -> str:
    """Standard output and standard error of a command as ASCII text, in English.

    Raises CommandFailed if it exits with another status than 0, unless it `may_fail`, and TimedOut after `seconds`.
    A process that SIGKILL does not end, such as one in a driver that waits for a lost GPU, is left behind: waiting for
    it would block.
    """
    deadline, name = time.monotonic() + seconds, os.path.basename(command[0])
    env = {**os.environ, **environment, "LC_ALL": "C"}
    read_end, write_end = os.pipe()
    try:
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=write_end, stderr=write_end, start_new_session=True
        )
    except OSError as problem:
        os.close(read_end)
        raise CommandFailed(f"{name} fails: {problem.strerror}") from problem
    finally:
        os.close(write_end)
    try:
        printed = read_until(deadline, read_end, name)
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as problem:
        raise TimedOut(f"{name} does not answer in {seconds} s") from problem
    finally:
        os.close(read_end)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    text = printed.decode("ascii", "backslashreplace")
    if process.returncode and not may_fail:
        last_line = (text.strip().splitlines() or ["it says nothing"])[-1]
        raise CommandFailed(f"{name} fails with {process.returncode}: {last_line}"[:200])
    return text


def read_until(deadline: float, pipe: int, command: str) -> bytearray:
    """Everything a command writes to a pipe before it closes the pipe, or before `deadline` of the monotonic clock.

    Raises CommandFailed beyond MAX_OUTPUT_BYTES.
    """
    printed = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (remaining := deadline - time.monotonic()) > 0 and selector.select(remaining):
            chunk = os.read(pipe, 65536)
            if not chunk:
                break
            printed += chunk
            if len(printed) > MAX_OUTPUT_BYTES:
                raise CommandFailed(f"{command} fails: it prints without an end")
    return printed
