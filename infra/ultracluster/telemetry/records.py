"""Data files of telemetry: metrics of each exporter, and XIDs. Each names its source and the date of reading."""

import json
from functools import cache
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parent / "data"


@cache
def records(name: str) -> dict[str, Any]:
    """The data file `data/<name>.json` of this package, parsed once. Do not modify the result."""
    parsed: dict[str, Any] = json.loads((_DATA / f"{name}.json").read_text("utf-8"))
    return parsed
