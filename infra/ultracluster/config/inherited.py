"""Hints about keys that a file inherits: `null` in the file itself removes them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

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
        keys = next((keys for keys in switched.values() if path in keys), [path])
        if keys[0] != path:
            continue
        if len(keys) > 1:
            hint = f"set {_nulls(keys, own_file)}, or move them from the shared file into those that need them"
            names = ", ".join(str(key[-1]) for key in keys)
            message = f"{names} of the shared file belong to another type than that of {own_file}"
            found.append((path, replace(problem, message=message, hint=hint)))
        else:
            nulls = [*_removable(path, problem.hint, source)]
            hint = f"{problem.hint}, or set {_nulls(nulls, own_file, ' or ')}" if nulls else problem.hint
            found.append((path, replace(problem, hint=hint)))
    return found


def _of_other_types(placed: Sequence[Placed], source: Source) -> dict[Path, list[Path]]:
    """Unknown keys of the base, by their section, where the file itself sets the `type` of the section."""
    found: dict[Path, list[Path]] = {}
    for path, problem in placed:
        kind = (*path[:-1], "type")
        own = kind in source.positions and not source.is_inherited(kind)
        if problem.code == "unknown-key" and source.is_inherited(path) and own:
            found.setdefault(path[:-1], []).append(path)
    return found


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
