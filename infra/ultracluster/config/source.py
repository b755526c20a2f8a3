"""YAML with positions: the core schema of YAML 1.2 on PyYAML's parser, without its surprises for readers."""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, BinaryIO

import yaml

from ultracluster.config.codes import Code
from ultracluster.config.named_files import FileText
from ultracluster.config.problems import Path
from ultracluster.config.syntax import in_words
from ultracluster.errors import UltraclusterError

WHICH_FILE = "give the path of an environment file"
MAXIMUM_BYTES = 256 * 1024
MAXIMUM_VALUES = 50_000
MAXIMUM_DEPTH = 40
"""Limits far above any environment file, so that no input makes the parser hang."""

Position = tuple[int, int]
"""Line and column, both from 1."""


class UnreadableSource(UltraclusterError):
    """A file that cannot be parsed: one problem at one position.

    `path` is that of the value with the mistake, empty for the whole file. `file` is the file that the environment
    file names and that has the mistake, empty for the environment file itself.
    """

    def __init__(
        self, code: Code, message: str, hint: str, position: Position, *, path: Path = (), file: str = ""
    ) -> None:
        self.code, self.message, self.hint = code, message, hint
        self.position, self.path, self.file = position, path, file
        super().__init__(message)


@dataclass
class Source:
    """A parsed file: its data, the position of every path, and the path of every mapping by identity.

    `written` is the text of every value that is not text: 012 and 25.10 would be shown as the numbers 12 and 25.1.

    `folder` is that of the file; every text in `data` knows it.

    Of a file that extends `base_file`, `inherited` holds the paths that only the base sets, and `parts` the two
    sources, whose mappings `paths` identifies. `included` maps paths to the files whose content is there.
    """

    data: Any = None
    positions: dict[Path, Position] = field(default_factory=dict)
    paths: dict[int, Path] = field(default_factory=dict)
    written: dict[Path, str] = field(default_factory=dict)
    folder: FilePath = FilePath()
    base_file: str = ""
    inherited: set[Path] = field(default_factory=set)
    parts: tuple["Source", ...] = ()
    included: dict[Path, str] = field(default_factory=dict)

    def is_inherited(self, path: Path) -> bool:
        """Whether the value at `path` is the base file's."""
        return any(path[:n] in self.inherited for n in range(1, len(path) + 1))

    def place(self, path: Path) -> tuple[str, Path]:
        """The file of the value at `path`, empty for the file itself, and the path in that file."""
        for n in range(1, len(path)):
            if file := self.included.get(path[:n]):
                return file, path[n:]
        return self.base_file if self.is_inherited(path) else "", path


def read_text(file: str | FilePath, maximum: int = MAXIMUM_BYTES, hint: str = WHICH_FILE) -> str:
    """The text of `file`. Raises UnreadableSource if it cannot be read as text; with `hint` above `maximum` bytes."""
    try:
        # without O_NONBLOCK, opening a named pipe waits for somebody to write to it
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                message = "the file is a pipe or a device"
                raise UnreadableSource("file-unreadable", message, "save it as a regular file", (1, 1))
            return read_stream(stream, maximum, hint)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        message = f"the file cannot be read: {reason.lower()}"
        raise UnreadableSource("file-unreadable", message, "check the path", (1, 1)) from None


def read_stream(stream: BinaryIO, maximum: int = MAXIMUM_BYTES, hint: str = WHICH_FILE) -> str:
    """The text of `stream`. Raises UnreadableSource if it is no text; with `hint` above `maximum` bytes."""
    content = stream.read(maximum + 1)
    if len(content) > maximum:
        message = f"the file is larger than {maximum // 1024} KiB"
        raise UnreadableSource("file-unreadable", message, hint, (1, 1))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"byte {error.start + 1} is not UTF-8 text"
        raise UnreadableSource("file-unreadable", message, "save the file as UTF-8 text", (1, 1)) from None


def parse(text: str, folder: FilePath = FilePath()) -> Source:
    """Parses one YAML document of a file in `folder`.

    Only true and false are booleans, only decimal digits are numbers, and there are no dates. Raises UnreadableSource
    for a syntax error, a duplicate key, an alias that contains itself, or an empty file.
    """
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        message, hint, mark = in_words(error, text)
        raise UnreadableSource("yaml-syntax", message, hint, _position(mark) if mark else (1, 1)) from None
    except yaml.reader.ReaderError as error:
        position = text.count("\n", 0, error.position) + 1, error.position - text.rfind("\n", 0, error.position)
        message = f"the character U+{error.character:04X} is not allowed in YAML"
        raise UnreadableSource(
            "yaml-syntax", message, "remove it, and check that the file is a text file", position
        ) from None
    source = Source(folder=folder)
    source.data = _build(root, (), source, frozenset()) if root else None
    if source.data is None:
        raise UnreadableSource("empty-file", "the file is empty", "copy environments/dev.yaml to start", (1, 1))
    return source


class _Loader(yaml.SafeLoader):
    """Resolves scalars by the core schema of YAML 1.2.

    Based on the Python parser: the C parser overflows the stack on deep nesting, and its error texts vary by version.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAXIMUM_DEPTH:
            raise yaml.MarkedYAMLError(None, None, "nested too deeply", self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


_Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), list(first))

_SCALARS: dict[str, Callable[[str], Any]] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
}
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def _build(node: yaml.Node, path: Path, source: Source, above: frozenset[int]) -> Any:
    position = _position(node.start_mark)
    if id(node) in above:
        raise UnreadableSource(
            "yaml-alias", "an alias contains itself", "replace the alias with a copy of the section", position
        )
    source.positions.setdefault(path, position)
    if len(source.positions) > MAXIMUM_VALUES:
        message = f"with all aliases expanded the file has more than {MAXIMUM_VALUES} values"
        raise UnreadableSource("yaml-alias", message, "remove nested aliases", position)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, path, source)
    if node.tag not in _COLLECTIONS:
        raise _tagged(node)
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, source, above | {id(node)})
    return [_build(item, (*path, index), source, above | {id(node)}) for index, item in enumerate(node.value)]


def _mapping(node: yaml.MappingNode, path: Path, source: Source, above: frozenset[int]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        position = _position(key_node.start_mark)
        if not isinstance(key_node, yaml.ScalarNode):
            raise UnreadableSource("yaml-syntax", "a key is a list or a mapping", "use text as the key", position)
        key = key_node.value
        if key == "<<" and key_node.style is None:
            message = "the merge key << is not part of YAML 1.2"
            hint = "write out the keys, or use an alias: key: *name"
            raise UnreadableSource("yaml-syntax", message, hint, position)
        if key in result:
            first = source.positions[(*path, key)][0]
            message = f"{key} is a duplicate key, first set on line {first}"
            raise UnreadableSource("yaml-duplicate-key", message, f"keep one {key}", position)
        source.positions[(*path, key)] = position
        result[key] = _build(value_node, (*path, key), source, above)
    source.paths[id(result)] = path
    return result


def _scalar(node: yaml.ScalarNode, path: Path, source: Source) -> Any:
    if node.tag not in _SCALARS:
        raise _tagged(node)
    try:
        value = _SCALARS[node.tag](node.value)
    except ValueError:
        # !!int before a word, or more digits than Python reads
        message = f"{node.value[:20]}... is not a number" if len(node.value) > 20 else f"{node.value} is not a number"
        position = _position(node.start_mark)
        raise UnreadableSource("yaml-syntax", message, "use decimal digits, or put text in quotes", position) from None
    if not isinstance(value, str):
        source.written[path] = node.value
        return value
    return FileText(value, source.folder)


def _tagged(node: yaml.Node) -> UnreadableSource:
    tag = node.tag.replace("tag:yaml.org,2002:", "!!")
    return UnreadableSource(
        "yaml-syntax", f"the tag {tag} is not supported", f"remove {tag}", _position(node.start_mark)
    )


def _position(mark: yaml.Mark) -> Position:
    return mark.line + 1, mark.column + 1
