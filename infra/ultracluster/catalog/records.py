"""Reads the data files that hold AWS's figures, each with its source and the day it was read."""

import json
from functools import cache
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parent / "data"


@cache
def records(name: str) -> dict[str, Any]:
    """The data file `data/<name>.json` of this package, parsed once. Callers must not change it."""
    parsed: dict[str, Any] = json.loads((_DATA / f"{name}.json").read_text("utf-8"))
    return parsed
