"""Values of the charts of exporters and of Fluent Bit, recorded so that tests need no chart to hold ours to them.

`python -m tests.kubernetes.chart_values` records them again from the folder of scripts/charts.sh.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.helm import RENDERED, charts_folder
from ultracluster.catalog.software import charts

FILE = Path(__file__).parent / "data" / "chart_values.json"
FREE = "/*"
"""End of a value that is empty or a list in the chart: what lies under it is not the chart's."""


def recorded(name: str) -> dict[str, Any]:
    """`version` and `values` of a chart: names joined by slashes, those of free values with a star at the end."""
    found: dict[str, Any] = json.loads(FILE.read_text())[name]
    return found


def of_chart(name: str) -> dict[str, Any]:
    """The same, read from the chart. Skips the test where charts cannot be downloaded."""
    version = charts[name].version
    folder = charts_folder() / f"{name}-{version}" / name
    given = {*_leaves(yaml.safe_load((folder / "values.yaml").read_text()))}
    return {"version": version, "values": sorted(given | {*_without_default(folder, given)})}


def _without_default(folder: Path, given: set[str]) -> Iterator[str]:
    """Values that templates read and values.yaml leaves out."""
    prefixes = {each.removesuffix(FREE)[:end] for each in given for end in (len(each), *_slashes(each))}
    for template in (folder / "templates").rglob("*"):
        for name in re.findall(r"\$?\.Values\.([A-Za-z0-9_.]+)", template.read_text() if template.is_file() else ""):
            path = name.strip(".").replace(".", "/")
            if path not in prefixes and not path.startswith(tuple(each.removesuffix("*") for each in given)):
                yield path + FREE


def _slashes(path: str) -> list[int]:
    return [place for place, character in enumerate(path) if character == "/"]


def unknown(values: Mapping[str, Any], known: list[str]) -> list[str]:
    """Values that a chart with the `known` ones does not read."""
    free = [each.removesuffix("*") for each in known if each.endswith(FREE)]
    mine = [each.removesuffix(FREE) for each in _leaves(values)]
    fixed = {each.removesuffix(FREE) for each in known}
    return [each for each in mine if each not in fixed and not each.startswith(tuple(free))]


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}/{name}".lstrip("/"))
    else:
        yield path + (FREE if value in ({}, None) or isinstance(value, list) else "")


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: of_chart(name) for name in RENDERED}, indent=1) + "\n")
