"""One mistake in a whole fleet gives one error at most, in the file that has it: mistakes drawn over two fleets.

None where the mistake is another valid file, such as one without a key that may be left out.
"""

import copy
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ultracluster.config.loader import survey

FLEETS = Path(__file__).parents[2] / "deployment" / "fleets"
MISTAKES = 80
"""For each file. All of some 1,500 that can be made were tried once; these are another sample at each change."""
SEVERAL_KEYS = {("extends",)}
"""Without it every key of the base is missing, each of which is an error."""

Place = tuple[str | int, ...]


def places(node: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    if path:
        yield path, node
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        yield from places(value, (*path, key))


def misspelt(text: str, at: int) -> str:
    """Two neighbours of a text in the wrong order, or a character too many."""
    i = at % max(len(text) - 1, 1)
    swapped = f"{text[:i]}{text[i + 1 : i + 2]}{text[i : i + 1]}{text[i + 2 :]}"
    return swapped if swapped != text else f"{text}x"


def mistaken(data: Any, path: Place, kind: str, at: int) -> Any:
    """The data with a mistake at `path`; the data itself where the kind does not apply."""
    changed = copy.deepcopy(data)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    key, value = path[-1], parent[path[-1]]
    match kind, value:
        case "removed", _:
            del parent[key]
        case "empty", _:
            parent[key] = None
        case "another type", list():
            parent[key] = {"banana": 1}
        case "another type", _:
            parent[key] = ["banana"]
        case "misspelt key", _ if isinstance(key, str) and misspelt(key, at) not in parent:
            entries = {misspelt(key, at) if each == key else each: inner for each, inner in parent.items()}
            parent.clear()
            parent.update(entries)
        case "misspelt", str():
            parent[key] = misspelt(value, at)
        case "upper case", str():
            parent[key] = value.upper()
        case "twice", list():
            value.append(copy.deepcopy(value[0]))
        case "unknown key", dict():
            value["banana"] = 1
        case "negative", int() if not isinstance(value, bool):
            parent[key] = -value
    return changed


KINDS = (
    "removed",
    "empty",
    "another type",
    "misspelt key",
    "misspelt",
    "upper case",
    "twice",
    "unknown key",
    "negative",
)


@pytest.mark.parametrize(
    ("name", "whole"),
    [("slurm", "slurm"), ("kubernetes", "kubernetes"), ("base", "slurm"), ("base", "kubernetes")],
)
def test_one_mistake_gives_one_error_at_most(tmp_path, name, whole):
    for file in FLEETS.rglob("*"):
        if file.is_file():
            copied = tmp_path / file.relative_to(FLEETS)
            copied.parent.mkdir(exist_ok=True)
            copied.write_bytes(file.read_bytes())
    data = yaml.safe_load((FLEETS / f"{name}.yaml").read_text("utf-8"))
    drawn, refused, several = random.Random(11), 0, {}  # noqa: S311 - always the same
    for _ in range(MISTAKES):
        path, _ = drawn.choice(list(places(data)))
        kind = drawn.choice(KINDS)
        changed = mistaken(data, path, kind, drawn.randrange(100))
        if changed == data or (kind == "removed" and path in SEVERAL_KEYS):
            continue
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(changed, sort_keys=False), "utf-8")
        errors = survey(tmp_path / f"{whole}.yaml").errors
        refused += bool(errors)
        # an error of a key that the base has is in the base; a key that neither has is missing in the file itself
        for error in errors:
            if name == "base" and re.split(r"[.\[]", error.path)[0] in changed:
                assert Path(error.file).name == "base.yaml", (kind, path, error)
        if len(errors) > 1:
            several[kind, path] = [f"{error.code} {error.path}" for error in errors]
    assert several == {}
    assert refused >= MISTAKES // 4
