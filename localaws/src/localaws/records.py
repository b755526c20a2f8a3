"""Figures of AWS that no API model states, such as quotas and supported versions: JSON files with source and date."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data"


def records(name: str) -> dict[str, Any]:
    """The content of `data/NAME.json`."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return content
