"""NVIDIA's XIDs: what each means, what NVIDIA advises, and this project's severity and action."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from ultracluster.telemetry.records import records

Severity = Literal["critical", "warning", "info"]
XidAction = Literal["none", "restart_job", "read_log", "reset_after_job", "reset", "replace"]
Verdict = Literal["monitor", "reset", "reboot", "isolate", "replace"]
XidKind = Literal["application", "ecc", "row_remap", "bus", "nvlink", "firmware", "hang", "power", "other"]


@dataclass(frozen=True)
class Xid:
    """One XID.

    `nvidia_action` is the immediate action of NVIDIA's catalogue. `severity` and `action` are this project's: reset is
    a reboot of the node, replace a new instance, reset_after_job a drain that waits for the job. `symbol` is the name
    in NVIDIA's driver, None if its published source has none.

    Source: NVIDIA, "Analyzing Xid Errors with the Xid Catalog" (`data/xids.json`).
    """

    code: int
    symbol: str | None
    meaning: str
    nvidia_action: str
    severity: Severity
    action: XidAction
    kind: XidKind


XIDS: Mapping[int, Xid] = MappingProxyType({entry["code"]: Xid(**entry) for entry in records("xids")["xids"]})
"""XIDs by code."""


def xids(*, severity: Severity | None = None, action: XidAction | None = None) -> tuple[Xid, ...]:
    """XIDs of a severity, of an action, or of both, in the order of their codes."""
    return tuple(each for each in XIDS.values() if severity in (None, each.severity) and action in (None, each.action))


def xid_pattern(selected: tuple[Xid, ...]) -> str:
    """A regular expression for the label `xid` of DCGM_EXP_XID_ERRORS_COUNT, for example 54|64|79."""
    return "|".join(str(each.code) for each in selected)


def verdict(xid: Xid) -> Verdict:
    """What a node needs after an XID before it may take a job: its GPUs reset, a reboot, a person, or to be replaced.

    `monitor` is nothing: an application's error, or one for which nvidia-smi says by itself that a reset is due, such
    as a row that waits to be remapped. The message of XID 154 names the action.
    """
    if xid.action in ("reset", "replace"):
        return "reboot" if xid.nvidia_action in _RESTART and xid.action == "reset" else xid.action
    return "isolate" if xid.action == "reset_after_job" and xid.nvidia_action not in _NO_ACTION else "monitor"


_NO_ACTION = ("IGNORE", "RESTART_APP")
_RESTART = ("RESTART_BM", "RESTART_VM")

_NVLINK5_VERDICTS: Mapping[str, Verdict] = {"IGNORE": "monitor", "XID_154_EVAL": "monitor", "RESET_GPU": "reset"}


def nvlink5_units() -> dict[str, dict[str, Any]]:
    """How the registers in the message of XIDs 144 to 150 decide, by the name of the unit in the message.

    `register` is status_bits, status or subcode; `verdicts` are by its value; `promoted` are masks and values of the
    first register that call for a reset whatever the other says.
    """
    units: dict[str, dict[str, Any]] = {}
    for entry in records("xids")["nvlink5"]:
        verdicts = {
            str(int(value, 16)): _NVLINK5_VERDICTS[action]
            for action, values in entry["actions"].items()
            for value in values
        }
        promoted = [[int(number, 16) for number in pair] for pair in entry.get("promoted", [])]
        unit = {"register": entry["register"], "verdicts": verdicts, "promoted": promoted}
        units |= dict.fromkeys(entry["names"], unit)
    return units
