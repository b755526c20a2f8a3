"""Hints about keys that a file inherits: `null` in the file itself removes them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ultracluster.config.problems import Path, Problem, dotted
from ultracluster.config.source import Source

_REMOVE = re.compile(r"\bremove (\w+)(?: or (\w+))?")
"""Keys that a hint tells to remove."""

Placed = tuple[Path, Problem]


def with_nulls(placed: Sequence[Placed], source: Source, own_file: str) -> list[Placed]:
    """Problems at their paths, for the file `own_file` that extends another one; unchanged for one that does not.

    A hint to remove an inherited key names its `null` in `own_file`. Keys of the base that do not belong to the `type`
    that the file sets are one problem.
    """
    if not source.inherited:
        return [*placed]
    switched = _of_other_types(placed, source)
    found: list[Placed] = []
    for path, problem in placed:
        section = next((section for section, keys in switched.items() if path in keys), None)
        problems = switched[section] if section is not None else {path: path}
        if next(iter(problems)) != path:
            continue
        keys = [*dict.fromkeys(problems.values())]
        if len(problems) > 1:
            hint = f"set {_nulls(keys, own_file)}, or move them from the shared file into those that need them"
            names = ", ".join(str(key[-1]) for key in keys)
            message = f"{names} of the shared file belong to another type than that of {own_file}"
            found.append((keys[0], replace(problem, code="unknown-key", message=message, hint=hint)))
        else:
            nulls = [*_removable(path, problem.hint, source)]
            hint = f"{problem.hint}, or set {_nulls(nulls, own_file, ' or ')}" if nulls else problem.hint
            found.append((path, replace(problem, hint=hint)))
    return found


def _of_other_types(placed: Sequence[Placed], source: Source) -> dict[Path, dict[Path, Path]]:
    """By section of which the file itself sets the `type`: keys of the base that this type does not have.

    A key that both types have, with other keys inside, such as `teams`, is one of them. Each is listed by the path of
    its problem.
    """
    found: dict[Path, dict[Path, Path]] = {}
    for path, problem in placed:
        for end in range(len(path)):
            section, key = path[:end], path[: end + 1]
            kind = (*section, "type")
            if kind not in source.positions or source.is_inherited(kind) or not source.is_inherited(key):
                continue
            inside = problem.code in ("unknown-key", "missing-key") and _value(source.parts[1], kind) not in (
                None,
                _value(source.parts[0], kind),
            )
            if inside or (problem.code == "unknown-key" and key == path):
                found.setdefault(section, {})[path] = key
                break
    return found


def _value(source: Source, path: Path) -> Any:
    """The value at a path of sections; None without it."""
    value = source.data
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _removable(path: Path, hint: str, source: Source) -> Iterator[Path]:
    """Inherited keys that `hint` tells to remove: at `path`, below it or beside it. Lists are inherited as a whole."""
    for key in filter(None, (name for found in _REMOVE.finditer(hint) for name in found.groups())):
        places = (path, (*path, key), (*path[:-1], key))
        inherited = (each for each in places if each and each[-1] == key and source.is_inherited(each))
        for place in inherited:
            if place in source.positions and not any(isinstance(part, int) for part in place):
                yield place
                break


def _nulls(keys: Sequence[Path], own_file: str, joined: str = " and ") -> str:
    return f"{joined.join(f'{dotted(key)}: null' for key in keys)} in {own_file}"
