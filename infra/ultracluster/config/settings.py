"""The base class of every settings model: frozen, without unknown keys, checked by its rules."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationInfo, create_model, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from ultracluster.config.problems import Collector, InvalidSettings, Path, Problem
from ultracluster.config.wording import misshapen, secondary, without_consequences
from ultracluster.errors import UltraclusterError

SettingsT = TypeVar("SettingsT", bound="Settings")


class _Misshapen(UltraclusterError):
    """A rule read a value of the wrong shape, so it has nothing to say."""


class Settings(BaseModel):
    """Base of every section of the environment file.

    Built in Python, by its constructor or `model_validate`, a section with errors raises InvalidSettings with all of
    them. Warnings do not raise. Read from a file, the loader collects the problems of the whole file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def __init__(self, /, **values: Any) -> None:
        _raise_errors(type(self), values, examine(type(self), values, self_instance=self))

    # Pydantic's own mark. Without it, pydantic calls this constructor for nested sections and loses their context.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Pydantic's `model_validate`. Raises InvalidSettings instead of ValidationError; ignores `context`."""
        options.pop("context", None)
        examined = examine(cls, obj, **options)
        return _raise_errors(cls, obj, examined)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Pydantic's `model_copy` without the values of cached properties, which an update may change."""
        copied = super().model_copy(update=update, deep=deep)
        for cached in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[cached]
        return copied

    def __getattr__(self, name: str) -> Any:
        if name in type(self).model_fields:
            raise _Misshapen(name)
        return super().__getattr__(name)  # type: ignore[misc]

    @model_validator(mode="wrap")
    @classmethod
    def _apply_rules(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        try:
            settings = handler(data)
        except ValidationError as error:
            if not (isinstance(info.context, Collector) and info.context.partial and isinstance(data, Mapping)):
                raise
            settings = cls._well_shaped_part(data, error, info.context)
        problems: list[Problem] = []
        with suppress(_Misshapen):
            problems += settings.problems()
        if isinstance(info.context, Collector):
            info.context.found += [(data, problem) for problem in problems]
        elif errors := [problem for problem in problems if problem.severity == "error"]:
            # a section inside a pydantic model of another library
            raise ValidationError.from_exception_data(cls.__name__, [_details(error, data) for error in errors])
        return settings

    @classmethod
    def _well_shaped_part(cls, data: Mapping[str, Any], error: ValidationError, collector: Collector) -> Self:
        """The section without the keys that `error` names; reading one of those raises _Misshapen."""
        named = {str(details["loc"][0]) for details in error.errors(include_url=False) if details["loc"]}
        fields = cls.model_fields.keys()
        wrong = set(named)
        for key in named - fields:
            # a misspelt key stands for the one that it is near to; another unknown key for any that is not written
            wrong.update(get_close_matches(key, fields, n=1) or fields - data.keys())
        values = {key: _one_value(cls, key, data[key], collector) for key in fields & data.keys() - wrong}
        constructed: Any = cls.model_construct(set(values), **values)
        part: Self = constructed
        for key in wrong:
            part.__dict__.pop(key, None)
        return part

    def problems(self) -> Iterator[Problem]:
        """Problems of this section's own rules, those of its base classes first, in source order."""
        for base in reversed(type(self).__mro__):
            for member in vars(base).values():
                if getattr(member, "is_rule", False):
                    with suppress(_Misshapen):
                        yield from member(self)


class Examined(NamedTuple):
    """Result of validation.

    `settings` is None when values have the wrong shape, which `misshapen` lists. `found` holds the problems of rules,
    each with the data that its model was validated from.
    """

    settings: Any
    misshapen: list[Problem]
    found: list[tuple[object, Problem]]


def examine(
    model: type[Settings], data: object, *, written: Mapping[Path, str] | None = None, **options: Any
) -> Examined:
    """Validates `data` as `model` and collects every problem.

    `written` is given for data from a file: the text of every value that is not text.
    """
    collector = Collector(from_file=written is not None)
    try:
        settings = model.__pydantic_validator__.validate_python(data, context=collector, **options)
    except ValidationError as error:
        errors = [details for details in error.errors(include_url=False) if not secondary(details)]
        problems = without_consequences([misshapen(details, model, written) for details in errors])
        return Examined(None, problems, _found_in_the_rest(model, data, collector, **options))
    return Examined(settings, [], collector.found)


def _found_in_the_rest(
    model: type[Settings], data: object, collector: Collector, **options: Any
) -> list[tuple[object, Problem]]:
    """Problems that rules find in `data` without reading a value of the wrong shape."""
    partial = Collector(collector.from_file, partial=True)
    options.pop("self_instance", None)
    with suppress(ValidationError):  # data is no mapping
        model.__pydantic_validator__.validate_python(data, context=partial, **options)
    return partial.found


def _one_value(model: type[Settings], key: str, value: object, collector: Collector) -> Any:
    validated = _model_of_one(model, key).__pydantic_validator__.validate_python({key: value}, context=collector)
    return getattr(validated, key)


@cache
def _model_of_one(model: type[Settings], key: str) -> type[BaseModel]:
    """A model of one field of `model`."""
    field = model.model_fields[key]
    fields: dict[str, Any] = {key: (field.annotation, field)}
    one: type[BaseModel] = create_model(model.__name__, __config__=model.model_config, **fields)
    return one


def _raise_errors(model: type[SettingsT], data: object, examined: Examined) -> SettingsT:
    """The settings. Raises InvalidSettings when there are errors, in the order of `data`."""
    errors = [*examined.misshapen, *(problem for _, problem in examined.found if problem.severity == "error")]
    if not errors:
        settings: SettingsT = examined.settings
        return settings
    order: dict[Path, int] = {}
    paths: dict[int, list[Path]] = {}
    for path, value in _values(data, ()):
        order[path] = len(order)
        paths.setdefault(id(value), []).append(path)
    placed = list(examined.misshapen)
    for value, problem in examined.found:
        placed += [replace(problem, at=(*path, *problem.path)) for path in paths.get(id(value), [()])]
    found = [problem for problem in dict.fromkeys(placed) if problem.severity == "error"]
    raise InvalidSettings(model.__name__, sorted(found, key=lambda problem: _position(problem.path, order)))


def _values(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    """Every value inside `value`, itself first, with its path."""
    yield path, value
    entries: Iterable[tuple[Any, object]] = ()
    if isinstance(value, Mapping):
        entries = value.items()
    elif isinstance(value, list | tuple):
        entries = enumerate(value)
    for key, entry in entries:
        yield from _values(entry, (*path, key))


def _position(path: Path, order: Mapping[Path, int]) -> int:
    return next(order[path[:n]] for n in range(len(path), -1, -1) if path[:n] in order)


def _details(problem: Problem, data: object) -> InitErrorDetails:
    text = f"{problem.message}. {problem.hint}".replace("{", "{{").replace("}", "}}")
    return InitErrorDetails(type=PydanticCustomError(problem.code, text), loc=problem.path, input=data)
