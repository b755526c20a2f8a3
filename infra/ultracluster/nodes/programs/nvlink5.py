"""Verdict of the XIDs 144 to 150 of NVLink 5: the message names a unit and has registers, which decide."""

import re
from typing import Any

from ultracluster.nodes.programs.findings import VERDICTS

_MESSAGE = re.compile(r"(\w+)(?:/\w+)?\s+(?:Fatal|Nonfatal)\b.*?\(0x([0-9a-fA-F]+) 0x([0-9a-fA-F]+)")


def nvlink5_verdict(text: str, units: dict[str, Any]) -> str:
    """Verdict of a message by the tables of units; `isolate` for one that they do not know, as of older drivers."""
    match = _MESSAGE.search(text)
    if not match or match[1] not in units:
        return "isolate"
    unit, first, status = units[match[1]], int(match[2], 16), int(match[3], 16)
    if any(first & mask == value for mask, value in unit["promoted"]):
        return "reset"
    found = {
        "status_bits": [1 << bit for bit in range(32) if status >> bit & 1],
        "status": [status],
        "subcode": [first >> 20 & 0x3F],
    }[unit["register"]]
    verdicts = [unit["verdicts"].get(str(value), "isolate") for value in found]
    return max(verdicts, key=VERDICTS.index, default="isolate")
