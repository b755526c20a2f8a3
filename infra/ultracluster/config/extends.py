"""Environment files that share parts: `extends` names a file whose keys apply where this file does not set them."""

from difflib import get_close_matches
from pathlib import Path as FilePath
from typing import Any

from ultracluster.config.codes import Code
from ultracluster.config.problems import Path
from ultracluster.config.source import Position, Source, UnreadableSource, parse, read_text
from ultracluster.config.wording import EXTENDS
from ultracluster.errors import UltraclusterError

KEY = EXTENDS

_SYNONYMS = ("include", "includes", "import", "imports", "base", "inherit", "inherits", "parent")
"""Other words for the key."""


class CannotExtend(UltraclusterError):
    """The file that `extends` names cannot be used. `file` is the file with the mistake, empty for the file itself."""

    def __init__(self, code: Code, path: str, message: str, hint: str, position: Position, file: str = "") -> None:
        self.code, self.path, self.message, self.hint = code, path, message, hint
        self.position, self.file = position, file
        super().__init__(message)


def extended(own: Source, folder: FilePath) -> Source:
    """The content of a file in `folder` with that of the file it extends; unchanged without `extends`.

    Mappings are merged at every depth; lists and all other values of the file replace those of the base,
    and null removes them. Raises
    CannotExtend for a base that cannot be read, is no mapping, or extends another file.
    """
    if not isinstance(own.data, dict):
        return own
    _refuse_misspelt(own)
    if own.data.get(KEY) is None:
        return own
    named, position = own.data[KEY], own.positions[KEY,]
    if not isinstance(named, str):
        raise CannotExtend("wrong-type", KEY, "the value is not text", "give the path of the file to extend", position)
    base = _read(named, folder, position)
    if KEY in base.data:
        message = "a file that another one extends cannot extend a third"
        hint, place = "write the shared keys into one of the two", base.positions[KEY,]
        raise CannotExtend("extends-twice", KEY, message, hint, place, str(folder / named))
    merged = Source(base_file=str(folder / named), parts=(own, base))
    merged.paths = {**base.paths, **own.paths}
    merged.data = _merged({key: value for key, value in own.data.items() if key != KEY}, base.data, (), merged)
    merged.positions = {path: at for path, at in base.positions.items() if merged.is_inherited(path)} | own.positions
    merged.written = {path: text for path, text in base.written.items() if merged.is_inherited(path)} | own.written
    return merged


def _refuse_misspelt(own: Source) -> None:
    """Raises CannotExtend for a key that probably means `extends`: otherwise each key of the base is missing."""
    if KEY in own.data:
        return
    for key, value in own.data.items():
        near = key.lower() in _SYNONYMS or get_close_matches(key.lower(), [KEY], n=1)
        if near and isinstance(value, str):
            message = f"unknown key; {KEY} names the file whose keys apply where this file does not set them"
            raise CannotExtend("unknown-key", key, message, f"did you mean {KEY}?", own.positions[key,])


def _read(named: str, folder: FilePath, position: Position) -> Source:
    try:
        base = parse(read_text(folder / named), (folder / named).parent)
    except UnreadableSource as error:
        if error.code == "file-unreadable":
            raise CannotExtend("extends-unreadable", KEY, f"{named}: {error.message}", error.hint, position) from None
        raise CannotExtend(error.code, "", error.message, error.hint, error.position, str(folder / named)) from None
    if not isinstance(base.data, dict):
        message = f"{named} does not consist of keys with values"
        raise CannotExtend("extends-unreadable", KEY, message, "give the path of an environment file", position)
    return base


def _merged(own: Any, base: Any, path: Path, merged: Source) -> Any:
    if not (isinstance(own, dict) and isinstance(base, dict)):
        return own
    result: dict[str, Any] = {}
    for key in {**base, **own}:
        here = (*path, key)
        if key in own and own[key] is None and key in base:
            continue
        if key in own:
            result[key] = _merged(own[key], base[key], here, merged) if key in base else own[key]
        else:
            result[key] = base[key]
            merged.inherited.add(here)
    merged.paths[id(result)] = path
    return result
