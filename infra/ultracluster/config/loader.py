"""Reads an environment file and reports every problem at once, in file order."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path as FilePath
from typing import BinaryIO

from ultracluster.config.environment import Environment
from ultracluster.config.extends import extended
from ultracluster.config.findings import Finding, Reading
from ultracluster.config.inherited import with_nulls
from ultracluster.config.people import with_users
from ultracluster.config.problems import Path, Problem, dotted
from ultracluster.config.report import report
from ultracluster.config.settings import examine
from ultracluster.config.siblings import sibling_problems
from ultracluster.config.source import Source, UnreadableSource, parse, read_stream, read_text
from ultracluster.errors import UltraclusterError


class RefusedEnvironment(UltraclusterError):
    """An environment file with errors. Its text is the report that `ultracluster validate` prints."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        super().__init__(report(reading))


def load(file: str | FilePath) -> Environment:
    """The environment in `file`. Raises RefusedEnvironment with every error of the file."""
    reading = validate(file)
    if reading.environment is None:
        raise RefusedEnvironment(reading)
    return reading.environment


def validate(file: str | FilePath, *, strict: bool = True) -> Reading:
    """Reads `file` and checks all of it. Never raises for the content of the file.

    Without `strict` the reading has an environment also where a rule refuses it, as one that was deployed earlier may.
    """
    path = FilePath(file)
    return _reading(lambda: read_text(path), str(path), path.parent, strict=strict)


def survey(file: str | FilePath) -> Reading:
    """`validate`, with warnings about the name of the environment among the files of its folder."""
    path = FilePath(file)
    reading = validate(path)
    problems = list(sibling_problems(path, reading.environment.name)) if reading.environment else []
    if not problems:
        return reading
    source = extended(parse(read_text(path), path.parent), path.parent)
    found = [_finding(each.path, each, source) for each in problems]
    return replace(reading, findings=_ordered([*reading.findings, *found]))


def validate_stream(stream: BinaryIO, name: str, *, strict: bool = True) -> Reading:
    """`validate` of a file that is read from `stream`, such as standard input; its paths are relative to the folder."""
    return _reading(lambda: read_stream(stream), name, FilePath(), strict=strict)


def nothing_in(folder: str) -> Reading:
    """The reading of a folder without environment files."""
    message, hint = "the folder has no environment file", "give the path of an environment file"
    return Reading(folder, None, (Finding("file-unreadable", "", message, hint, "error", 1, 1),))


def _reading(read: Callable[[], str], name: str, folder: FilePath, *, strict: bool = True) -> Reading:
    try:
        source = with_users(extended(parse(read(), folder), folder))
    except UnreadableSource as error:
        finding = Finding(
            error.code, dotted(error.path), error.message, error.hint, "error", *error.position, error.file
        )
        return Reading(name, None, (finding,))
    return check(source, name, strict=strict)


def check(source: Source, file: str = "", *, strict: bool = True) -> Reading:
    """Checks parsed data against the models and all their rules."""
    examined = examine(Environment, source.data, written=source.written)
    placed = [(problem.path, problem) for problem in examined.misshapen]
    placed += [((*source.paths[id(data)], *problem.path), problem) for data, problem in examined.found]
    placed = with_nulls(placed, source, FilePath(file).name)
    found = dict.fromkeys(_finding(path, problem, source) for path, problem in placed)
    ordered = _ordered(found)
    refused = strict and any(finding.severity == "error" for finding in ordered)
    return Reading(file, None if refused else examined.settings, ordered)


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: (finding.file, finding.line, finding.column)))


def _finding(path: Path, problem: Problem, source: Source) -> Finding:
    known = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in source.positions)
    file, inside = source.place(path)
    # a key that the whole of an included file lacks has the place of its start
    line, column = (1, 1) if known in source.included and known != path else source.positions[known]
    return Finding(problem.code, dotted(inside), problem.message, problem.hint, problem.severity, line, column, file)
