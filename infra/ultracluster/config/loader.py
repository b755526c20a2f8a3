"""Reads an environment file and reports everything that is wrong with it at once, in file order."""

from dataclasses import dataclass
from pathlib import Path as FilePath

from pydantic import ValidationError

from ultracluster.config.codes import Code
from ultracluster.config.environment import Environment
from ultracluster.config.problems import Findings, Path, Problem, Severity
from ultracluster.config.source import Source, UnreadableSource, parse, read_text
from ultracluster.config.wording import misshapen, secondary


@dataclass(frozen=True)
class Finding:
    """A problem with its place in a file."""

    code: Code
    path: str
    message: str
    hint: str
    severity: Severity
    line: int
    column: int


@dataclass(frozen=True)
class Reading:
    """What a file yields: the environment, unless an error stands against it, and all findings in file order."""

    file: str
    environment: Environment | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that refuse the file."""
        return tuple(finding for finding in self.findings if finding.severity == "error")


class RefusedEnvironment(Exception):
    """An environment file with errors. Its text is the report that `ultracluster validate` prints."""

    def __init__(self, reading: Reading) -> None:
        from ultracluster.config.report import report

        self.reading = reading
        super().__init__(report(reading))


def load(file: str | FilePath) -> Environment:
    """The environment in `file`. Raises RefusedEnvironment with every error of the file."""
    reading = read(file)
    if reading.environment is None:
        raise RefusedEnvironment(reading)
    return reading.environment


def read(file: str | FilePath) -> Reading:
    """Reads `file` and checks it whole. Never raises for what a user may have written."""
    try:
        source = parse(read_text(file))
    except UnreadableSource as error:
        finding = Finding(error.code, "", error.message, error.hint, "error", *error.position)
        return Reading(str(file), None, (finding,))
    return check(source, str(file))


def check(source: Source, file: str = "") -> Reading:
    """Checks parsed data against the models and all their rules."""
    findings = Findings()
    environment: Environment | None = None
    problems: list[Problem] = []
    try:
        environment = Environment.model_validate(source.data, context=findings)
    except ValidationError as error:
        problems = [
            misshapen(details, source.written) for details in error.errors(include_url=False) if not secondary(details)
        ]
    placed = [(problem.path, problem) for problem in problems]
    placed += [((*source.paths[id(data)], *problem.path), problem) for data, problem in findings.found]
    found = dict.fromkeys(_finding(path, problem, source) for path, problem in placed)
    ordered = sorted(found, key=lambda finding: (finding.line, finding.column))
    refused = any(finding.severity == "error" for finding in ordered)
    return Reading(file, None if refused else environment, tuple(ordered))


def dotted(path: Path) -> str:
    """`("node_groups", 0, "name")` as `node_groups[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _finding(path: Path, problem: Problem, source: Source) -> Finding:
    known = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in source.positions)
    line, column = source.positions[known]
    return Finding(problem.code, dotted(path), problem.message, problem.hint, problem.severity, line, column)
