"""Reads the output of the CDK CLI and prints a line for each stack, failures in full: `make up` and `make down`.

    cdk deploy --progress events ... 2>&1 | python -m scripts.phases LOG

LOG gets every line. After Ctrl-C it reads on until the CDK CLI ends, which finishes its work with the stacks first.
"""

import re
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

_EVENT = re.compile(r"^(\S+) \| +(?:\d+/)?(\d+) \| [^|]+\| (\w+) +\| (\S+)")
_DONE = re.compile(r"^ ?✅ +(\S+)( \(no changes\))?\s*$")
_DESTROYED = re.compile(r"^ ?✅ +(\S+): destroyed\s*$")
_TIME = re.compile(r"^✨ +Deployment time: (\S+?)s\s*$")
_FAILED = re.compile(r"❌|^(Error|error)\b|_FAILED\b|ROLLBACK")
_OUTPUT = re.compile(r"^[\w-]+\.(?!Exports)\w+ = ")
_OTHER = re.compile(r"^✨ +Total time|✅ +Environment |^WARNING |^\[?Warning|^[\w-]+: (deploying|destroying)\.\.\.")


def phases(lines: Iterable[str]) -> Iterator[str]:
    """The lines to show: one for each stack that begins or is done, and all from the first error on."""
    resources: dict[str, str] = {}
    deletions: Counter[tuple[str, str]] = Counter()
    done, failed = "", False
    for line in map(str.rstrip, lines):
        if event := _EVENT.match(line):
            resources[event[1]] = event[2]
            deletions[event[1], event[3]] += event[4] != "AWS::CloudFormation::Stack"
        failed = failed or bool(re.search("❌", line))
        if failed or _FAILED.search(line):
            yield line
        elif event:
            continue
        elif found := _DONE.match(line):
            done = found[1]
            if found[2]:
                yield f"  {done}: no changes"
        elif found := _DESTROYED.match(line):
            deleted, retained = (deletions[found[1], state] for state in ("DELETE_COMPLETE", "DELETE_SKIPPED"))
            yield f"  {found[1]}: destroyed; {deleted} deleted, {retained} retained"
        elif (time := _TIME.match(line)) and done:
            if done in resources:
                yield f"  {done}: deployed, {resources[done]} resources in {time[1]} s"
            done = ""
        elif _OUTPUT.match(line) or _OTHER.search(line):
            yield line


def _logged(lines: Iterable[str], log: Path) -> Iterator[str]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as stream:
        for line in lines:
            stream.write(line)
            stream.flush()
            yield line


def main(log: str) -> None:
    """Reads standard input to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    for line in phases(_logged(sys.stdin, Path(log))):
        print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
