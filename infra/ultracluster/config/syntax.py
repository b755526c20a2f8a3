"""YAML syntax errors in plain words: PyYAML's messages are about tokens, these are about the text."""

import re
from typing import NamedTuple

import yaml


class _Words(NamedTuple):
    """Message and hint for errors of PyYAML that match `pattern`; `at_start` places them where the construct begins."""

    pattern: str
    message: str
    hint: str
    at_start: bool = False


_WORDS = (
    _Words(r"found character '\\t'", "a tab where YAML requires spaces", "replace the tab with spaces"),
    _Words(
        r"flow sequence expected",
        "the list that starts here is not closed",
        "add ] or a missing comma",
        at_start=True,
    ),
    _Words(
        r"flow mapping expected",
        "the mapping that starts here is not closed",
        "add } or a missing comma",
        at_start=True,
    ),
    _Words(
        r"quoted scalar found unexpected end",
        "the quote that opens here is not closed",
        "add the closing quote",
        at_start=True,
    ),
    _Words(r"mapping values are not allowed", "the line has a second colon", 'put text that contains ": " in quotes'),
    _Words(r"could not find expected ':'", "this line is not a key with a colon", "write key: value", at_start=True),
    _Words(
        r"expected <block end>",
        "the line does not match the structure of the lines above",
        "correct the indentation, or remove an extra bracket or quote",
    ),
    _Words(r"found character '(.)'", r"a value cannot start with \1", "put the value in quotes"),
    _Words(
        r"found undefined alias '(.*)'",
        r"*\1 refers to an anchor that does not exist",
        r"add &\1 to a value above, or put *\1 in quotes",
    ),
    _Words(r"found duplicate anchor '(.*)'", r"the anchor &\1 is defined twice", "rename one of the anchors"),
    _Words(r"scanning an alias", "* is an alias without a name", "put * in quotes"),
    _Words(r"unknown escape character '(.)'", r"\\\1 is not an escape sequence of double quotes", "use single quotes"),
    _Words(r"expected '<document start>'", "this text belongs to no key above", "add the missing key or quote"),
    _Words(
        r"found another document", "a second YAML document starts here", "keep one environment per file, and remove ---"
    ),
    _Words(r"nested too deeply", "brackets or indents are nested too deeply", "close open brackets"),
)


def in_words(error: yaml.MarkedYAMLError, text: str) -> tuple[str, str, yaml.Mark | None]:
    """Message, hint and place."""
    said = " ".join(filter(None, (error.context, error.problem)))
    end = error.problem_mark or error.context_mark
    if end and _tab_indents(text, end.line):
        return "a tab indents this line; YAML requires spaces", "replace the tab with spaces", end
    if end and "mapping values are not allowed" in said and ":" not in _line(text, end.line)[: end.column]:
        said = "expected <block end>"
    for words in _WORDS:
        if match := re.search(words.pattern, said):
            start = error.context_mark if words.at_start else None
            return match.expand(words.message), match.expand(words.hint), start or end
    return said, "check for a missing colon, quote or bracket here or on the line before", end


def _tab_indents(text: str, line: int) -> bool:
    content = _line(text, line)
    return "\t" in content[: len(content) - len(content.lstrip())]


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number] if number < len(lines) else ""
