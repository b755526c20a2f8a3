"""An environment file among those of its folder: found by its name, which is that of its stacks too."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path as FilePath

from ultracluster.config.problems import Problem
from ultracluster.errors import UltraclusterError

FOLDER = "environments"
_NAME = re.compile(r"^name:\s*[\"']?([a-z][a-z0-9-]*)[\"']?\s*(#.*)?$", re.MULTILINE)

_OWN_KEYS = re.compile(r"^(schema_version|extends)\s*:", re.MULTILINE)
_EXTENDS = re.compile(r"^extends\s*:\s*[\"']?([^\"'#\n]+)", re.MULTILINE)


class UnknownEnvironment(UltraclusterError):
    """No file in the folder has this name. The text lists the names that there are."""

    def __init__(self, name: str, folder: FilePath) -> None:
        self.name, self.folder = name, folder
        names = sorted(file.stem for file in folder.glob("*.yaml"))
        close = get_close_matches(name, names, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        super().__init__(f"{folder / name}.yaml does not exist.{hint} Environments: {', '.join(names) or 'none'}")


def environment_file(folder: str | FilePath, name: str) -> FilePath:
    """The file NAME.yaml in `folder`. Raises UnknownEnvironment when there is none."""
    file = FilePath(folder) / f"{name}.yaml"
    if not file.is_file():
        raise UnknownEnvironment(name, FilePath(folder))
    return file


def environment_files(folder: FilePath) -> list[FilePath]:
    """The environment files in `folder`, by name: without lists of users, and without files that others extend."""
    texts = {file: _text(file) for file in sorted(folder.glob("*.y*ml"))}
    shared = {(folder / found[1].strip()).resolve() for text in texts.values() if (found := _EXTENDS.search(text))}
    return [file for file, text in texts.items() if _OWN_KEYS.search(text) and file.resolve() not in shared]


def sibling_problems(file: FilePath, name: str) -> Iterator[Problem]:
    """Warnings of a file whose stacks have another name than the file, or the name of another file's stacks.

    Only for files in a folder `environments`, where `-c env=NAME` finds them.
    """
    if file.resolve().parent.name != FOLDER:
        return
    hint = "stacks are named by it: give each file a name of its own, unless it replaces the other file"
    for other in sorted(file.parent.glob("*.y*ml")):
        if other.name != file.name and _name_in(other) == name:
            yield Problem("environment-named-twice", "name", f"{name} is the name in {other.name} too", hint, "warning")
    if name not in file.stem:
        message = f"{name} is not in the file's name, {file.name}"
        hint = f"stacks are named {name}-...: change the name, or rename the file"
        yield Problem("environment-file-name", "name", message, hint, "warning")


def _name_in(file: FilePath) -> str | None:
    """The name in a file, without parsing it."""
    found = _NAME.search(_text(file))
    return found[1] if found else None


def _text(file: FilePath) -> str:
    """The text of a file, empty if it cannot be read."""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
