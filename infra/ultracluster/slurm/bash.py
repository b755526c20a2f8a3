"""Text of bash scripts: variables, words, here documents and long commands."""

import re
import shlex
from collections.abc import Iterable, Mapping

from ultracluster.jobs.request import program


def joined(*parts: str) -> str:
    """Parts of a script, one below the other; empty ones are left out."""
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def exports(variables: Mapping[str, str]) -> str:
    """Export commands, one for each variable."""
    return "\n".join(f"export {name}={quoted(value)}" for name, value in variables.items())


def quoted(value: str) -> str:
    """A quoted value, in which bash expands $NAME."""
    return f'"{value}"' if "$" in value else shlex.quote(value)


def shell_words(words: Iterable[str]) -> str:
    """Quoted words of a command, in which bash expands nothing."""
    return " ".join(literal(word) for word in words)


def literal(word: str) -> str:
    """A quoted word, in which bash expands nothing."""
    if re.search(r"[$`]", word):  # shellcheck warns of $ in single quotes (SC2016)
        return '"' + re.sub(r'([\\"$`])', r"\\\1", word) + '"'
    return shlex.quote(word)


def here_document(name: str, text: str) -> str:
    """A here document that writes `text` to the file `name` in $JOB_FOLDER. No line of `text` equals its end marker."""
    end = "END"
    while f"\n{end}\n" in f"\n{text}":
        end += "_OF_FILE"
    return f"cat > \"$JOB_FOLDER/{name}\" <<'{end}'\n{text.rstrip()}\n{end}\n"


def wrapped(options: Iterable[str]) -> str:
    """Options of a command, continued over lines of at most 110 characters."""
    lines = [""]
    for option in options:
        if lines[-1] and len(lines[-1]) + len(option) > 110:
            lines.append("")
        lines[-1] += f" {option}" if lines[-1] else option
    return " \\\n        ".join(lines)


def calling_program(main: str, name: str) -> str:
    """A script that runs `main`, which calls the function write_NAME: it writes the program NAME.py of this package.

    The function follows `main`, so that a reader sees the job first and the long program last.
    """
    text = here_document(name, program(name))
    return f"main() {{\n{indented(main)}}}\n\nwrite_{name.removesuffix('.py')}() {{\n{text}}}\n\nmain\n"


def indented(text: str) -> str:
    """`text` as the body of a function, with lines of here documents unchanged."""
    lines, end = [], None
    for line in text.splitlines():
        lines.append(line if end or not line else f"    {line}")
        if end == line:
            end = None
        elif found := re.search(r"<<'(\w+)'$", line):
            end = found[1]
    return "\n".join(lines) + "\n"
