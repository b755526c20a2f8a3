"""YAML with positions: the core schema of YAML 1.2 over PyYAML's parser, refusing what a reader would not notice."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from infra.config.codes import Code
from infra.config.problems import Path

Position = tuple[int, int]
"""Line and column, both from 1."""


class UnreadableSource(Exception):
    """YAML that cannot be read: one problem, at one position."""

    def __init__(self, code: Code, message: str, hint: str, position: Position) -> None:
        self.code, self.message, self.hint, self.position = code, message, hint, position
        super().__init__(message)


@dataclass
class Source:
    """A parsed file: its data, the position of every path, and the path of every mapping by identity."""

    data: Any = None
    positions: dict[Path, Position] = field(default_factory=dict)
    paths: dict[int, Path] = field(default_factory=dict)


def parse(text: str) -> Source:
    """Parses one YAML document.

    Only true and false are booleans, only decimal digits are numbers, and nothing is a date. Raises UnreadableSource
    for a syntax error, a key given twice, an alias, or an empty file.
    """
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error, text) from None
    except yaml.YAMLError as error:
        raise UnreadableSource("yaml-syntax", str(error), "save the file as UTF-8 text", (1, 1)) from None
    if root is None:
        raise UnreadableSource("empty-file", "the file holds nothing", "start from environments/dev.yaml", (1, 1))
    source = Source()
    source.data = _build(root, (), source, set())
    return source


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Resolves scalars by the core schema of YAML 1.2."""


_Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), list(first))

_SCALARS: dict[str, Callable[[str], Any]] = {
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
}


def _build(node: yaml.Node, path: Path, source: Source, above: set[int]) -> Any:
    if id(node) in above:
        raise UnreadableSource(
            "yaml-alias", "an alias contains itself", "write the section out", _position(node.start_mark)
        )
    above = above | {id(node)}
    source.positions.setdefault(path, _position(node.start_mark))
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, source, above)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, index), source, above) for index, item in enumerate(node.value)]
    return _SCALARS.get(node.tag, str)(node.value)


def _mapping(node: yaml.MappingNode, path: Path, source: Source, above: set[int]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, position = str(key_node.value), _position(key_node.start_mark)
        if key in result:
            first = source.positions[(*path, key)][0]
            message = f"{key} is given twice, first on line {first}"
            raise UnreadableSource("yaml-duplicate-key", message, "keep one of them", position)
        source.positions[(*path, key)] = position
        result[key] = _build(value_node, (*path, key), source, above)
    source.paths[id(result)] = path
    return result


def _position(mark: yaml.Mark) -> Position:
    return mark.line + 1, mark.column + 1


def _unreadable(error: yaml.MarkedYAMLError, text: str) -> UnreadableSource:
    mark = error.problem_mark or error.context_mark
    position = _position(mark) if mark else (1, 1)
    lines = text.splitlines()
    line = lines[position[0] - 1] if position[0] <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        message, hint = "a tab indents this line, and YAML indents with spaces", "replace it by spaces"
    else:
        message = " ".join(filter(None, (error.context, error.problem)))
        hint = "look for a missing colon, quote or bracket here or on the line before"
    return UnreadableSource("yaml-syntax", message, hint, position)
