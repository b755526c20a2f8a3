"""Problems of an environment file, and the rules that find them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from ultracluster.config.codes import Code

Severity = Literal["error", "warning"]
Path = tuple[str | int, ...]

SettingsT = TypeVar("SettingsT", bound="Settings")
Rule = Callable[[SettingsT], Iterable["Problem"]]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, where it is, and what to do.

    `at` is relative to the model whose rule found it: a key, or a path of keys and indexes. `message` says what is
    wrong with the value and what is allowed, `hint` what to do.
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


def rule(check: Callable[[SettingsT], Iterable[Problem]]) -> Callable[[SettingsT], Iterable[Problem]]:
    """Marks a method of Settings as a rule: it yields a Problem for each thing it refuses or warns of."""
    check.is_rule = True  # type: ignore[attr-defined]
    return check


@dataclass
class Findings:
    """Collects what the rules find while a whole file is read, so that one refusal does not hide the next."""

    found: list[tuple[object, Problem]] = field(default_factory=list)


class Settings(BaseModel):
    """Base of every section of the environment file: frozen, no unknown keys, checked by its rules.

    Built in Python, a refused section raises pydantic's ValidationError with one entry for each problem. Read from a
    file, the loader passes Findings and reports everything at once.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="wrap")
    @classmethod
    def _apply_rules(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        settings = handler(data)
        problems = list(settings.problems())
        if isinstance(info.context, Findings):
            info.context.found += [(data, problem) for problem in problems]
        elif errors := [problem for problem in problems if problem.severity == "error"]:
            raise ValidationError.from_exception_data(cls.__name__, [_details(error, data) for error in errors])
        return settings

    def problems(self) -> Iterator[Problem]:
        """What this section's own rules find, in the order in which they are written."""
        for check in _rules(type(self)):
            yield from check(self)


def _rules(model: type[Settings]) -> Iterator[Rule[Any]]:
    for base in reversed(model.__mro__):
        yield from (member for member in vars(base).values() if getattr(member, "is_rule", False))


def _details(problem: Problem, data: object) -> InitErrorDetails:
    text = f"{problem.message}. {problem.hint}".replace("{", "{{").replace("}", "}}")
    return InitErrorDetails(type=PydanticCustomError(problem.code, text), loc=problem.path, input=data)
