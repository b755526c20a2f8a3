"""Problems of settings, the rules that find them, and the error that reports them in Python."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from ultracluster.config.codes import Code
from ultracluster.config.layout import entry
from ultracluster.errors import UltraclusterError

Severity = Literal["error", "warning"]
Path = tuple[str | int, ...]

SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True)
class Problem:
    """An error or warning about a value.

    `at` is a key, or a path of keys and indexes, relative to the model whose rule found the problem. `message` states
    what is wrong with the value and what is allowed; `hint` is an instruction.
    """

    code: Code
    at: str | Path
    message: str
    hint: str
    severity: Severity = "error"

    @property
    def path(self) -> Path:
        """`at` as a path."""
        return (self.at,) if isinstance(self.at, str) else self.at

    @property
    def field(self) -> str:
        """`at` as text: `create.cidr`, `node_groups[0].name`; empty for the whole model."""
        return dotted(self.path)


def rule(check: Callable[[SettingsT], Iterable[Problem]]) -> Callable[[SettingsT], Iterable[Problem]]:
    """Marks a method of Settings as a rule: it yields a Problem for each value that it refuses or warns about."""
    check.is_rule = True  # type: ignore[attr-defined]
    return check


def repeated(key: str, entries: Sequence[str]) -> Iterator[Problem]:
    """Problem of each entry of the list `key` that is already in it."""
    for i, each in enumerate(entries):
        if each in entries[:i]:
            message = f"{each} is already {key}[{entries.index(each)}]"
            yield Problem("duplicate-name", (key, i), message, "remove the duplicate")


def repeated_names(key: str, names: Sequence[str]) -> Iterator[Problem]:
    """Problem of each entry of the list `key` whose name, in `names`, is that of an earlier entry."""
    for i, name in enumerate(names):
        if name in names[:i]:
            message = f"{name} is already the name of {key}[{names.index(name)}]"
            yield Problem("duplicate-name", (key, i, "name"), message, "choose another name")


@dataclass
class Collector:
    """Validation context that collects the problems of all rules, so that one problem does not hide the next.

    Each problem is kept with the data that its model was validated from. `from_file` is True for data of a file, where
    CDK tokens have no meaning. With `partial`, sections keep what is well shaped in them, so that the rules of the
    others run.
    """

    from_file: bool
    partial: bool = False
    found: list[tuple[object, Problem]] = field(default_factory=list)


class InvalidSettings(UltraclusterError, ValueError):
    """Settings built in Python with values that are refused.

    `settings` is the name of the class, `problems` holds each error with its code and the path of its field. The text
    is the report that `ultracluster validate` prints for a file.
    """

    def __init__(self, settings: str, problems: Sequence[Problem]) -> None:
        self.settings, self.problems = settings, tuple(problems)
        entries = [entry(each.code, each.field, each.message, each.hint, each.severity) for each in problems]
        super().__init__("\n".join([settings, *entries]))


def dotted(path: Path) -> str:
    """`("node_groups", 0, "name")` as `node_groups[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
