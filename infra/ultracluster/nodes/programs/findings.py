"""What the programs of a node's health have in common: findings, and commands that they run."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import NamedTuple

ROOT = os.environ.get("CHECK_NODE_ROOT", "/")
LARGEST = 16_000_000
"""Bytes that are read of what a command prints."""

VERDICTS = ("ok", "monitor", "reset", "reboot", "isolate", "replace")
"""From the best to the worst."""

Facts = dict[str, str]


class Finding(NamedTuple):
    """One finding: the check that found it, the verdict, and what it saw."""

    check: str
    verdict: str
    detail: str


def place(path: str) -> str:
    """A path of the node."""
    return os.path.join(ROOT, path.lstrip("/"))


def worst(findings: list[Finding]) -> str:
    """The worst verdict."""
    return max((found.verdict for found in findings), key=VERDICTS.index, default="ok")


def passes(findings: list[Finding]) -> bool:
    """Whether the node may take jobs."""
    return worst(findings) in ("ok", "monitor")


class Failed(Exception):
    """A command that is missing, fails, does not end or prints nonsense; the text says which."""


class Slow(Failed):
    """A command that does not end."""


def output(command: list[str], seconds: float, *, may_fail: bool = False, **environment: str) -> str:
    """What a command prints, as ASCII and in English. Raises Failed.

    One that the kernel does not let go, such as a driver that waits for a lost GPU, is left behind: a wait for its end
    would have none.
    """
    end, name = time.monotonic() + seconds, os.path.basename(command[0])
    (reads, writes), none = os.pipe(), subprocess.DEVNULL
    env = {**os.environ, **environment, "LC_ALL": "C"}
    try:
        process = subprocess.Popen(command, env=env, stdin=none, stdout=writes, stderr=writes, start_new_session=True)
    except OSError as problem:
        os.close(reads)
        raise Failed(f"{name} fails: {problem.strerror}") from problem
    finally:
        os.close(writes)
    said, more = bytearray(), True
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(reads, selectors.EVENT_READ)
            while more and (left := end - time.monotonic()) > 0 and selector.select(left):
                more = bool(read := os.read(reads, 65536))
                said += read
                if len(said) > LARGEST:
                    raise Failed(f"{name} fails: it prints without an end")
        process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired as problem:
        raise Slow(f"{name} does not answer in {seconds} s") from problem
    finally:
        os.close(reads)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    text = said.decode("ascii", "backslashreplace")
    if process.returncode and not may_fail:
        last = (text.strip().splitlines() or ["it says nothing"])[-1]
        raise Failed(f"{name} fails with {process.returncode}: {last}"[:200])
    return text
