"""How a syntax error of YAML is put into words: PyYAML's speak of tokens, ours of what a reader sees."""

import re
from typing import NamedTuple

import yaml


class _Words(NamedTuple):
    """What is said when PyYAML's words match `pattern`. With `at_start`, of the place where the construct begins."""

    pattern: str
    message: str
    hint: str
    at_start: bool = False


_WORDS = (
    _Words(r"found character '\\t'", "a tab stands where YAML wants spaces", "replace it by spaces"),
    _Words(
        r"flow sequence expected",
        "the list that starts here has no ]",
        "close it, or add a missing comma",
        at_start=True,
    ),
    _Words(
        r"flow mapping expected",
        "the mapping that starts here has no }",
        "close it, or add a missing comma",
        at_start=True,
    ),
    _Words(r"quoted scalar found unexpected end", "the quote that opens here is not closed", "close it", at_start=True),
    _Words(r"mapping values are not allowed", "a second colon in one line", 'put text that holds ": " in quotes'),
    _Words(r"could not find expected ':'", "this line is no key with a colon", "write key: value", at_start=True),
    _Words(
        r"expected <block end>",
        "the line does not fit the lines above it",
        "indent it like its neighbours, and look for a bracket or quote too many",
    ),
    _Words(r"found character '(.)'", r"a value cannot start with \1", "put it in quotes"),
    _Words(
        r"found undefined alias '(.*)'", r"*\1 refers to nothing", r"mark a value with &\1 above, or put *\1 in quotes"
    ),
    _Words(r"found duplicate anchor '(.*)'", r"the anchor &\1 is set a second time", "give it another name"),
    _Words(r"scanning an alias", "* alone refers to nothing", "put it in quotes"),
    _Words(r"unknown escape character '(.)'", r"\\\1 means nothing in double quotes", "use single quotes"),
    _Words(r"expected '<document start>'", "this text belongs to nothing above it", "look for a missing key or quote"),
    _Words(r"found another document", "a second document starts here", "keep one environment a file, without ---"),
    _Words(r"nested too deeply", "brackets or indents are nested too deeply", "look for brackets that are not closed"),
)


def in_words(error: yaml.MarkedYAMLError, text: str) -> tuple[str, str, yaml.Mark | None]:
    """What is wrong, what to do, and where."""
    said = " ".join(filter(None, (error.context, error.problem)))
    end = error.problem_mark or error.context_mark
    if end and _tab_indents(text, end.line):
        return "a tab indents this line, and YAML indents with spaces", "replace it by spaces", end
    if end and "mapping values are not allowed" in said and ":" not in _line(text, end.line)[: end.column]:
        said = "expected <block end>"
    for words in _WORDS:
        if match := re.search(words.pattern, said):
            start = error.context_mark if words.at_start else None
            return match.expand(words.message), match.expand(words.hint), start or end
    return said, "look for a missing colon, quote or bracket here or on the line before", end


def _tab_indents(text: str, line: int) -> bool:
    content = _line(text, line)
    return "\t" in content[: len(content) - len(content.lstrip())]


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number] if number < len(lines) else ""
