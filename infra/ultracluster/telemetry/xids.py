"""NVIDIA's XIDs: what each means, what NVIDIA advises, and this project's severity and action."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ultracluster.telemetry.records import records

Severity = Literal["critical", "warning", "info"]
XidAction = Literal["none", "restart_job", "read_log", "reset_after_job", "reset", "replace"]
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
