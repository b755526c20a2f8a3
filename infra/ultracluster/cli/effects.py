"""`ultracluster validate --effects`: what a deployment of a changed environment file does."""

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from ultracluster.config.comparison import Difference
    from ultracluster.config.environment import Environment
    from ultracluster.config.findings import Reading

STANDARD_INPUT = "-"
LARGEST_FILE = 1024 * 1024
"""Largest file of a repository that an environment file can name, in bytes."""


def print_effects(files: Sequence[str], *, as_json: bool) -> None:
    """Prints the effects of the changes between two files, or of a file since its last commit.

    Exit code 1 if the new file has errors, or if a change is refused; 2 if there is nothing to compare with.
    """
    from ultracluster.cli.console import coloured, terminal_width
    from ultracluster.config.comparison import compare
    from ultracluster.config.layout import WIDTH
    from ultracluster.config.report import report, report_json

    if not 1 <= len(files) <= 2:
        _wrong("--effects takes two files, OLD NEW, or one file that git knows")
    with ExitStack() as stack:
        old = _old(files[0], stack) if len(files) == 2 else _committed("HEAD", files[0], stack)
        reading = _reading(files[-1])
        if reading.environment is None:
            typer.echo(report_json([reading]) if as_json else report(reading))
            raise typer.Exit(1)
        found = compare(old, reading.environment)
    if as_json:
        typer.echo(json.dumps([_record(each, old) for each in found], indent=2, default=str))
    else:
        width = min(WIDTH, terminal_width())
        typer.echo(coloured("\n".join([reading.file, *_text(found, old, width)])))
    raise typer.Exit(any(each.effect.kind == "refused" for each in found))


def _old(name: str, stack: ExitStack) -> "Environment":
    revision, colon, file = name.partition(":")
    if colon and not Path(name).exists():
        if not revision or not file:
            _wrong(f"{name} is not REVISION:FILE")
        return _committed(revision, file, stack)
    return _deployed(_reading(name, strict=False))


def _reading(name: str, *, strict: bool = True) -> "Reading":
    from ultracluster.config import loader

    if name == STANDARD_INPUT:
        return loader.validate_stream(sys.stdin.buffer, "standard input", strict=strict)
    return loader.validate(name, strict=strict)


def _deployed(reading: "Reading") -> "Environment":
    """The environment of the old file, which may break rules that are newer than its deployment."""
    from ultracluster.config.report import report

    if reading.environment is None:
        typer.echo(report(reading), err=True)
        _wrong("the old file cannot be read")
    return reading.environment


def _committed(revision: str, file: str, stack: ExitStack) -> "Environment":
    """The environment in the version of `file` that git has, with the files that it names."""
    folder = Path(file).resolve().parent
    try:
        root = Path(_git(folder, "rev-parse", "--show-toplevel").decode().strip())
        inside = Path(file).resolve().relative_to(root.resolve())
        archive = _git(root, "archive", "--format=tar", revision)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        reason = (
            error.stderr.decode(errors="replace").strip() if isinstance(error, subprocess.CalledProcessError) else ""
        )
        _wrong(f"git has no version {revision} of {file} to compare with. {reason}".strip())
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ultracluster-")))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        small = [each for each in tar if each.size <= LARGEST_FILE]
        # Python before 3.11.4, as in Debian 12, has no filters; git stores no path that leads out of a folder
        filtered: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(copy, small, **filtered)  # noqa: S202
    if not (copy / inside).is_file():
        _wrong(f"git has no version {revision} of {file} to compare with")
    return _deployed(_reading(str(copy / inside), strict=False))


def _git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True).stdout  # noqa: S603, S607


def _wrong(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(2)


def _record(each: "Difference", old: "Environment") -> dict[str, Any]:
    from ultracluster.config.effect_words import happens, jobs, jobs_lost

    plane = old.control_plane.type
    return {
        "path": each.path,
        "old": _plain(each.old),
        "new": _plain(each.new),
        "effect": each.effect.kind,
        "what": happens(each.effect, plane).replace("NAME", old.name),
        "nodes": list(each.nodes),
        "jobs_lost": jobs_lost(each.effect, plane),
        "jobs": jobs(each.effect, plane),
        "first": each.effect.first.replace("NAME", old.name).replace("GROUP", "".join(each.nodes[:1])),
    }


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def _text(found: Sequence["Difference"], old: "Environment", width: int) -> list[str]:
    if not found:
        return ["  no change"]
    return [line for each in found for line in _entry(_record(each, old), width)]


def _entry(record: dict[str, Any], width: int) -> list[str]:
    values = f"{_short(record['old'])} -> {_short(record['new'])}" if record["old"] != record["new"] else ""
    about = record["what"] + (f"; nodes: {', '.join(record['nodes'])}" if record["nodes"] else "")
    lines = [f"{record['path']}: {values}".rstrip(": "), f"  {about}"]
    if record["jobs"]:
        lines.append(f"  jobs: {record['jobs']}")
    if record["first"]:
        lines.append(f"  {'instead' if record['effect'] == 'refused' else 'first'}: {record['first']}")
    return [part for line in lines for part in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    start = "  " + " " * (len(line) - len(line.lstrip()))
    options = {"break_long_words": False, "break_on_hyphens": False}
    return wrap(line.strip(), width, initial_indent=start, subsequent_indent=start + "  ", **options)  # type: ignore[arg-type]


def _short(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool | int | str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
