"""Environment files that share parts: `extends` names a file whose keys apply where this file does not set them."""

from difflib import get_close_matches
from pathlib import Path as FilePath
from typing import Any

from ultracluster.config.problems import Path
from ultracluster.config.source import Position, Source, UnreadableSource, parse, read_text
from ultracluster.config.wording import EXTENDS

_SYNONYMS = ("include", "includes", "import", "imports", "base", "inherit", "inherits", "parent")
"""Other words for the key."""


def extended(own: Source, folder: FilePath) -> Source:
    """The content of a file in `folder` with that of the file it extends; unchanged without `extends`.

    Mappings are merged at every depth; lists and all other values of the file replace those of the base, and null
    removes them. Raises UnreadableSource for a base that cannot be read, is no mapping, or extends another file.
    """
    if not isinstance(own.data, dict):
        return own
    _refuse_misspelt(own)
    if EXTENDS not in own.data:
        return own
    named, position = own.data[EXTENDS], own.positions[EXTENDS,]
    if not isinstance(named, str):
        message, hint = "the value is not text", "give the path of the file to extend, or remove the key"
        raise UnreadableSource("wrong-type", message, hint, position, path=(EXTENDS,))
    base = _read(named, folder, position)
    if EXTENDS in base.data:
        message = "a file that another one extends cannot extend a third"
        hint, place = "write the shared keys into one of the two", base.positions[EXTENDS,]
        raise UnreadableSource("extends-twice", message, hint, place, path=(EXTENDS,), file=str(folder / named))
    merged = Source(base_file=str(folder / named), parts=(own, base))
    merged.paths = {**base.paths, **own.paths}
    merged.data = _merged({key: value for key, value in own.data.items() if key != EXTENDS}, base.data, (), merged)
    merged.positions = {path: at for path, at in base.positions.items() if merged.is_inherited(path)} | own.positions
    merged.written = {path: text for path, text in base.written.items() if merged.is_inherited(path)} | own.written
    return merged


def _refuse_misspelt(own: Source) -> None:
    """Raises UnreadableSource for a key that probably means `extends`: otherwise each key of the base is missing.

    Also for the file of another tool, of which each key would be unknown.
    """
    if EXTENDS in own.data:
        return
    if "Scheduling" in own.data and "HeadNode" in own.data:
        message = "this is a configuration of AWS ParallelCluster, not an environment file"
        hint = "copy environments/dev.yaml and carry the values over"
        raise UnreadableSource("unknown-key", message, hint, own.positions["HeadNode",], path=("HeadNode",))
    for key, value in own.data.items():
        near = key.lower() in _SYNONYMS or get_close_matches(key.lower(), [EXTENDS], n=1)
        if near and isinstance(value, str):
            message = f"unknown key; {EXTENDS} names the file whose keys apply where this file does not set them"
            hint = f"did you mean {EXTENDS}?"
            raise UnreadableSource("unknown-key", message, hint, own.positions[key,], path=(key,))


def _read(named: str, folder: FilePath, position: Position) -> Source:
    try:
        base = parse(read_text(folder / named), (folder / named).parent)
    except UnreadableSource as error:
        if error.code == "file-unreadable":
            message = f"{named}: {error.message}"
            raise UnreadableSource("extends-unreadable", message, error.hint, position, path=(EXTENDS,)) from None
        raise UnreadableSource(
            error.code, error.message, error.hint, error.position, file=str(folder / named)
        ) from None
    if not isinstance(base.data, dict):
        message, hint = f"{named} does not consist of keys with values", "give the path of an environment file"
        raise UnreadableSource("extends-unreadable", message, hint, position, path=(EXTENDS,))
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
