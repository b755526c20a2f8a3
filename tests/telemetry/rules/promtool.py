"""Unit tests of rules, and what promtool says of them."""

import re
from pathlib import Path
from typing import Any

import yaml

from tests.telemetry.engines import Engines, Ran


def unit_tests(engines: Engines, folder: Path, files: list[Path], tests: list[dict[str, Any]]) -> Ran:
    """Runs unit tests of rules."""
    document = {"rule_files": [str(file) for file in files], "evaluation_interval": "1m", "tests": tests}
    at = folder / "tests.yml"
    at.write_text(yaml.safe_dump(document, width=100000))
    return engines.promtool("test", "rules", at)


def reported(output: str) -> list[dict[str, str]]:
    """Annotations of the alerts that a failing test of promtool prints."""
    found = re.findall(r"Annotations:\{(.*?)\}\s*(?:\]|\d+:|$)", output, re.MULTILINE)
    return [dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', each)) for each in found]
