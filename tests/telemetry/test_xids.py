"""XIDs agree with NVIDIA's driver and with the repairs of EKS."""

import pytest

from ultracluster.catalog.records import records
from ultracluster.telemetry.xids import XIDS, xid_pattern, xids

DRIVER = {
    "ROBUST_CHANNEL_GR_EXCEPTION": 13,
    "ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT": 31,
    "ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR": 43,
    "ROBUST_CHANNEL_PREEMPTIVE_REMOVAL": 45,
    "ROBUST_CHANNEL_GPU_ECC_DBE": 48,
    "PMU_BREAKPOINT": 61,
    "PMU_HALT_ERROR": 62,
    "INFOROM_DRAM_RETIREMENT_EVENT": 63,
    "INFOROM_DRAM_RETIREMENT_FAILURE": 64,
    "NVLINK_ERROR": 74,
    "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS": 79,
    "ROBUST_CHANNEL_VGA_SUBSYSTEM_ERROR": 81,
    "EXCESSIVE_SBE_INTERRUPTS": 92,
    "ROBUST_CHANNEL_CONTAINED_ERROR": 94,
    "ROBUST_CHANNEL_UNCONTAINED_ERROR": 95,
    "GSP_RPC_TIMEOUT": 119,
    "GSP_ERROR": 120,
    "C2C_ERROR": 121,
    "INFOROM_FS_ERROR": 125,
}
"""Names and codes of NVIDIA/open-gpu-kernel-modules, src/common/sdk/nvidia/inc/nverror.h."""

REPAIRS = {
    entry["reason"].removeprefix("NvidiaXID").removesuffix("Error"): entry["action"]
    for entry in records("eks")["repairs"]
    if entry["reason"].startswith("NvidiaXID")
}
EKS_ACTION = {"reset": "Reboot", "replace": "Replace"}


def test_symbols_and_codes_are_those_of_the_driver():
    assert {each.symbol: each.code for each in XIDS.values() if each.symbol} == DRIVER


@pytest.mark.parametrize("each", XIDS.values(), ids=lambda each: str(each.code))
def test_the_action_is_what_eks_does(each):
    """One XID has one treatment on both control planes. EKS acts on nothing that its agent does not report."""
    expected = EKS_ACTION.get(each.action, "NoAction")
    assert REPAIRS.get(str(each.code), "NoAction") == expected


@pytest.mark.parametrize("each", XIDS.values(), ids=lambda each: str(each.code))
def test_severity_follows_from_the_action(each):
    severity = {"reset": "critical", "replace": "critical", "reset_after_job": "warning", "read_log": "warning"}
    assert each.severity == severity.get(each.action, "info")


def test_a_recorded_remapping_waits_and_a_failed_one_replaces():
    """Articles call 63 the failure and 64 the bus."""
    assert (XIDS[63].severity, XIDS[64].action, XIDS[79].kind) == ("warning", "replace", "bus")


def test_errors_of_applications_page_nobody():
    assert {each.code for each in XIDS.values() if each.kind == "application"} == {13, 31, 43, 45, 137}
    assert {each.severity for each in XIDS.values() if each.kind == "application"} == {"info"}


def test_a_pattern_selects_codes():
    assert xid_pattern(xids(action="replace")) == "54|64|74|79|140|142|151"
    assert len(xids(severity="critical")) + len(xids(severity="warning")) + len(xids(severity="info")) == len(XIDS)
