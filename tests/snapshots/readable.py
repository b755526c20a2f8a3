"""Writes CloudFormation templates so that a reviewer can read their diff.

* A property has a line of its own. Its value stays on that line where it fits.
* A `Fn::Join` without a separator becomes the `Fn::Sub` that gives the same text.
* A text that is JSON becomes `{"JSON": ...}`. A text of several lines becomes `{"Lines": [...]}`.
* In a list, `{"like [3] but": {...}}` repeats an element before it with other values, at any depth.

Every value has a notation of its own, so a change of the template is a change of the text. Only the hashes of assets
are masked: they change with the CDK's own code.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

WIDTH = 120
JSON_STYLES: tuple[tuple[str, str], ...] = ((",", ":"), (", ", ": "))
"""Separators of the two ways in which our code and the CDK write JSON."""


def readable(value: Any) -> Any:
    """A part of a template with its keys sorted, `Type` first, its texts unfolded and the hashes of assets masked."""
    match value:
        case {"Fn::Join": ["", list(parts)], **others} if not others and (text := _substitution(parts)) is not None:
            return {"Fn::Sub": _unfolded(text)}
        case dict():
            return {key: readable(value[key]) for key in sorted(value, key=lambda key: (key != "Type", key))}
        case list():
            return [readable(each) for each in value]
        case str():
            return _unfolded(value)
    return value


def _substitution(parts: list[Any]) -> str | None:
    """Text of the `Fn::Sub` that joins `parts`; None where a part is more than a reference."""
    texts = [_part(part) for part in parts]
    return None if None in texts else "".join(text for text in texts if text)


def _part(part: Any) -> str | None:
    match part:
        case str():
            return part.replace("${", "${!")
        case dict() if len(part) != 1:
            return None
        case {"Ref": str(name)}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::ImportValue": str(name)}:
            return f"${{Fn::ImportValue {name}}}"
    return None


def _unfolded(text: str) -> Any:
    if text[:1] in ("{", "["):
        for separators in JSON_STYLES:
            try:
                content = json.loads(text)
            except ValueError:
                break
            if json.dumps(content, separators=separators, ensure_ascii=False) == text:
                return {"JSON": _texts_unfolded(content)}
    text = re.sub(r"[0-9a-f]{64}", "<hash>", text)
    return {"Lines": text.split("\n")} if "\n" in text else text


def _texts_unfolded(value: Any) -> Any:
    """The content of an embedded JSON text, in its own order: another order is another text."""
    match value:
        case dict():
            return {key: _texts_unfolded(each) for key, each in value.items()}
        case list():
            return [_texts_unfolded(each) for each in value]
        case str():
            return _unfolded(value)
    return value


def _repeats_folded(value: Any) -> Any:
    """`value` with each long element of a list that resembles an earlier one reduced to what differs."""
    match value:
        case dict():
            return {key: _repeats_folded(each) for key, each in value.items()}
        case list():
            return [_difference_from(value[:at], each) or _repeats_folded(each) for at, each in enumerate(value)]
    return value


def _difference_from(earlier: list[Any], element: Any) -> Any:
    length = len(json.dumps(element))
    if not isinstance(element, dict) or length < WIDTH:
        return None
    changes = {
        f"like [{at}] but": changed
        for at, other in enumerate(earlier)
        if _keys_of(other) == element.keys() and len(json.dumps(changed := _changed(other, element))) <= length // 2
    }
    nearest = min(changes, key=lambda at: len(json.dumps(changes[at])), default=None)
    return {nearest: changes[nearest]} if nearest else None


def _changed(above: Any, element: Any) -> Any:
    """The values that differ; of mappings with the same keys and of lists as long only what differs in them."""
    match above, element:
        case dict(), dict() if above.keys() == element.keys():
            return {key: _changed(above[key], each) for key, each in element.items() if each != above[key]}
        case list(), list() if len(above) == len(element):
            pairs = enumerate(zip(above, element, strict=True))
            return {f"[{at}]": _changed(old, new) for at, (old, new) in pairs if old != new}
    return element


def _keys_of(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


def written(value: Any, depth: int) -> str:
    """JSON in which objects down to `depth` have one key a line; a deeper value stays on one line where it fits."""
    return "\n".join(_lines("", _repeats_folded(value), "", depth)) + "\n"


def _lines(key: str, value: Any, indent: str, depth: int) -> Iterator[str]:
    line = f"{indent}{key}{json.dumps(value, ensure_ascii=False)}"
    expand = depth > 0 and isinstance(value, dict)
    if not value or not isinstance(value, dict | list) or (not expand and len(line) < WIDTH):
        yield line
        return
    pairs = value.items() if isinstance(value, dict) else ((None, each) for each in value)
    yield f"{indent}{key}{'{' if isinstance(value, dict) else '['}"
    for number, (name, each) in enumerate(pairs, 1):
        *most, last = _lines("" if name is None else f"{json.dumps(name)}: ", each, indent + "  ", depth - 1)
        yield from most
        yield last + ("," if number < len(value) else "")
    yield f"{indent}{'}' if isinstance(value, dict) else ']'}"


class PropertyALine(SingleFileSnapshotExtension):
    """One template: each resource, and each property of a resource, starts a line."""

    _write_mode = WriteMode.TEXT
    file_extension = "json"
    depth = 4

    def serialize(self, data: Any, **_: Any) -> str:
        """The text of the snapshot."""
        return written(data, self.depth)


class ResourceALine(PropertyALine):
    """Templates by stack: each resource starts a line."""

    depth = 3


class KeyALine(PropertyALine):
    """Any object: each key starts a line."""

    depth = 1
