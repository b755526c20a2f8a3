"""What a PromQL expression reads: names of metrics, and labels that it groups, matches and joins by."""

import re
from collections.abc import Iterator
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
    tokens = [(str(match.lastgroup), match.group()) for match in _TOKEN.finditer(expr)]
    words = list(_words(tokens))
    return Reading(
        frozenset(word for kind, word in words if kind == "metric"),
        frozenset(word for kind, word in words if kind == "label"),
    )


def _words(tokens: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    braces, grouping, grouped_at, depth = False, False, -1, 0
    for position, (kind, text) in enumerate(tokens):
        following = tokens[position + 1][1] if position + 1 < len(tokens) else ""
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
                yield "label", text
            case _ if kind == "name" and text.lower() in _WORDS:
                grouping = text.lower() in _GROUPING and following == "("
            case _ if kind == "name" and following != "(" and not _aggregation(tokens, position):
                yield "metric", text


def _aggregation(tokens: list[tuple[str, str]], position: int) -> bool:
    """Whether the word is an aggregation written with its grouping first, as in `sum by (node) (...)`."""
    return (
        position + 1 < len(tokens)
        and tokens[position + 1][1].lower() in {"by", "without"}
        and (position + 2 < len(tokens) and tokens[position + 2][1] == "(")
    )
