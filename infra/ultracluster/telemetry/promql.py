"""What a PromQL expression reads: names of metrics, and labels that it groups, matches and joins by."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

_TOKEN = re.compile(
    r"""
    (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
  | (?P<range>\[[^\]]*\])
  | (?P<number>(?:\d+\.?\d*(?:[eE][+-]?\d+)?(?:ms|[smhdwy])?|\.\d+)+)
  | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
  | (?P<sign>[{}(),]|=~|!~|!=|==|<=|>=|[^\s\w])
    """,
    re.VERBOSE,
)
_GROUPING = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = _GROUPING | {"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan"}


@dataclass(frozen=True)
class Reading:
    """Names of metrics and of labels in one expression."""

    metrics: frozenset[str]
    labels: frozenset[str]


@cache
def reading(expr: str) -> Reading:
    """Metrics and labels that `expr` reads. Metric names must be bare words, as in all our expressions."""
    words = list(_words(list(_TOKEN.finditer(expr))))
    return Reading(
        frozenset(word.group() for kind, word in words if kind == "metric"),
        frozenset(word.group() for kind, word in words if kind == "label"),
    )


def matching(expr: str, matcher: str, of: Callable[[str], bool]) -> str:
    """`expr` with `matcher`, such as `a="b"`, in the selector of every metric for whose name `of` is true."""
    parts, at = [], 0
    for kind, word in _words(list(_TOKEN.finditer(expr))):
        if kind == "metric" and of(word.group()):
            parts.append(expr[at : word.end()])
            at = word.end()
            if expr[at : at + 1] == "{":
                at += 1
                parts.append("{" + matcher + ("" if expr[at : at + 1] == "}" else ", "))
            else:
                parts.append("{" + matcher + "}")
    return "".join((*parts, expr[at:]))


def _words(tokens: list[re.Match[str]]) -> Iterator[tuple[str, re.Match[str]]]:
    braces, grouping, grouped_at, depth = False, False, -1, 0
    for position, token in enumerate(tokens):
        kind, text = token.lastgroup, token.group()
        following = tokens[position + 1].group() if position + 1 < len(tokens) else ""
        match text:
            case "{" | "}":
                braces = text == "{"
            case "(":
                depth += 1
                if grouping:
                    grouped_at, grouping = depth, False
            case ")":
                grouped_at = -1 if depth == grouped_at else grouped_at
                depth -= 1
            case _ if kind == "name" and (braces or depth == grouped_at):
                yield "label", token
            case _ if kind == "name" and text.lower() in _WORDS:
                grouping = text.lower() in _GROUPING and following == "("
            case _ if kind == "name" and following != "(" and not _aggregation(tokens, position):
                yield "metric", token


def _aggregation(tokens: list[re.Match[str]], position: int) -> bool:
    """Whether the word is an aggregation written with its grouping first, as in `sum by (node) (...)`."""
    following = [token.group().lower() for token in tokens[position + 1 : position + 3]]
    return len(following) == 2 and following[0] in {"by", "without"} and following[1] == "("
