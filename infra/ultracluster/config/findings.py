"""Result of reading an environment file: the environment and all findings."""

from dataclasses import dataclass

from ultracluster.config.codes import Code
from ultracluster.config.environment import Environment
from ultracluster.config.problems import Severity


@dataclass(frozen=True)
class Finding:
    """A problem with its place in a file: `file`, if it is in the file that the environment file extends."""

    code: Code
    path: str
    message: str
    hint: str
    severity: Severity
    line: int
    column: int
    file: str = ""


@dataclass(frozen=True)
class Reading:
    """The environment of a file, None when the file has errors; and all findings in file order."""

    file: str
    environment: Environment | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that refuse the file."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The other findings."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")
