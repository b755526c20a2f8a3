"""Figures of AWS: from the API models where these state them, otherwise from JSON files with source and date."""

import json
from pathlib import Path
from typing import Any

from moto.core.utils import get_service_model

FOLDER = Path(__file__).parent / "data"


def records(name: str) -> dict[str, Any]:
    """The content of `data/NAME.json`."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return content


def enumeration(service: str, shape: str) -> tuple[str, ...]:
    """The values of an enumeration in the API model of a service, in the model's order."""
    return tuple(get_service_model(service).shape_for(shape).enum)
