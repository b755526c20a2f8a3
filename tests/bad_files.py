"""Refused and warned environment files: the cases of tests/unit/config/faults, one fault each, named after its code.

A case is `change` (a path of a valid file and its new value) and `remove`, or a whole `text`; `base` is the valid file,
`people` its file of users. `report` is what `ultracluster validate` says; cases that are named like their code have it
in docs/errors.md.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from difflib import ndiff
from functools import cache
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import yaml

from ultracluster.config.codes import Code
from ultracluster.config.findings import Reading
from ultracluster.config.loader import survey
from ultracluster.config.report import report

FOLDER = Path(__file__).parent / "unit" / "config"
FAULTS = FOLDER / "faults"
CODES = get_args(Code)
VALID = ("minimal.yaml", "minimal-eks.yaml")
"""A valid file for each control plane."""

_COLUMNS = 118
_SECTIONS = ("storage", "node_groups", "control_plane")


def _read() -> dict[str, dict[str, Any]]:
    files = [yaml.load(file.read_text("utf-8"), yaml.CSafeLoader) for file in sorted(FAULTS.glob("*.yaml"))]
    return {name: case for cases in files for name, case in cases.items()}


CASES = _read()
NAMES = sorted(CASES)


@cache
def place() -> Path:
    """A folder with the valid files; the files of cases are written to its folder `bad`."""
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    for file in VALID:
        shutil.copy(FOLDER / file, folder / file)
    for support in (file for file in FAULTS.iterdir() if file.is_dir()):
        shutil.copytree(support, folder / "bad" / support.name, symlinks=True)
    (folder / "bad" / "people").mkdir(exist_ok=True)
    return folder


@cache
def file_of(name: str) -> Path:
    """The environment file of a case."""
    case, bad = CASES[name], place() / "bad"
    file = bad / case.get("folder", "") / f"{name}.yaml"
    file.write_bytes(_content(case))
    if "people" in case:
        (bad / "people" / f"{name}.yaml").write_text(case["people"], "utf-8")
    return file


DATE = datetime(2026, 11, 20, tzinfo=UTC)
COMMAND_AT_THAT_TIME = f"""
from datetime import UTC, datetime
from ultracluster.config import clock
clock.now = lambda: datetime.fromisoformat("{DATE.isoformat()}")
from ultracluster.cli import main
main()
"""
"""A program that is the command `ultracluster` on the date of the files."""


def reading_time():
    """Sets the clock to the date of the files: versions end and capacity blocks start over time."""
    return patch("ultracluster.config.clock.now", lambda: DATE)


@cache
def reading_of(name: str) -> Reading:
    """The findings of a case, with paths of files as `ultracluster validate bad/NAME.yaml` says them."""
    with reading_time():
        reading = survey(file_of(name))
    findings = (replace(found, file=found.file.removeprefix(f"{place()}/")) for found in reading.findings)
    return replace(reading, file=f"bad/{name}.yaml", findings=tuple(findings))


def report_of(name: str) -> str:
    """The report of `ultracluster validate`, without line numbers, which say little in docs/errors.md."""
    return report(reading_of(name), lines=False) + "\n"


def said_of(name: str) -> str:
    """The findings of the report in one line."""
    return " ".join(report(reading_of(name), lines=False, width=2000).split()[1:])


def printed(name: str) -> str:
    """The report of `ultracluster validate`, with line numbers."""
    return report(reading_of(name)) + "\n"


def code_of(name: str) -> str:
    """The code that the case is named after."""
    return max((code for code in CODES if name == code or name.startswith(f"{code}-")), key=len)


def changed_lines(name: str) -> str:
    """The lines in which the file differs from the valid one; then its file of users."""
    lines = file_of(name).read_text("utf-8", errors="backslashreplace").splitlines()
    changes = min((_added(valid, lines) for valid in _valid_lines()), key=len)
    people = CASES[name].get("people")
    return "\n".join([*changes, *([f"# people/{name}.yaml", *people.splitlines()] if people else [])])


def _valid_lines() -> Iterator[list[str]]:
    for file in VALID:
        text = (FOLDER / file).read_text("utf-8")
        yield from (text.splitlines(), _written(yaml.load(text, yaml.CSafeLoader)).splitlines())


def _added(valid: list[str], lines: list[str]) -> list[str]:
    return [line[2:] for line in ndiff(valid, lines) if line.startswith("+ ")]


def _content(case: dict[str, Any]) -> bytes:
    if "text" in case:
        text: str | bytes = case["text"]
        return text if isinstance(text, bytes) else text.encode()
    values = deepcopy(_base(case.get("base", "minimal")))
    for path in case.get("remove", ()):
        *above, key = _keys(path)
        del _at(values, above)[key]
    for path, value in case.get("change", {}).items():
        *above, key = _keys(path)
        parent = _at(values, above)
        if isinstance(parent, list) and key == len(parent):
            parent.append(value)
        else:
            parent[key] = value
    return _written(values).encode()


@cache
def _base(name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.load((FOLDER / f"{name}.yaml").read_text("utf-8"), yaml.CSafeLoader)
    return values


def _keys(path: str) -> list[Any]:
    """Keys and indices of a path such as `node_groups[0].count`."""
    return [int(key) if key.isdigit() else key for key in re.split(r"[.\[\]]+", path.removesuffix("]"))]


def _at(values: Any, keys: list[Any]) -> Any:
    for key in keys:
        values = values[key]
    return values


def _written(values: dict[str, Any]) -> str:
    """YAML in which what fits on a line is on one line, below the first level."""
    return "".join(line + "\n" for key, value in values.items() for line in _entry(key, value, top=True))


def _entry(key: Any, value: Any, *, top: bool = False) -> Iterator[str]:
    line = f"{_flow(key)}: {_flow(value)}"
    fits = len(line) <= _COLUMNS or not _nests(value)
    if fits and not (top and key in _SECTIONS and value and isinstance(value, dict | list)):
        yield line
        return
    yield f"{_flow(key)}:"
    if isinstance(value, dict):
        yield from (f"  {line}" for item in value.items() for line in _entry(*item))
    else:
        for item in value:
            first, *others = _item(item)
            yield f"  - {first}"
            yield from (f"    {line}" for line in others)


def _item(item: Any) -> list[str]:
    line = _flow(item)
    if len(line) <= _COLUMNS or not isinstance(item, dict):
        return [line]
    return [line for pair in item.items() for line in _entry(*pair)]


def _nests(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(item, dict | list) for item in inner)


def _flow(value: Any) -> str:
    options: dict[str, Any] = {"default_flow_style": True, "sort_keys": False, "allow_unicode": True, "width": 10**6}
    text = str(yaml.dump(value, Dumper=yaml.CSafeDumper, **options)).removesuffix("\n").removesuffix("\n...")
    return re.sub(r"""'([^'"\\]*)'""", r'"\1"', text)
