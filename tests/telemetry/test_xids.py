"""XIDs agree with NVIDIA's driver and catalogue, and with the repairs of EKS."""

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

CATALOGUE = {
    "RESTART_APP": (13, 31, 94),
    "IGNORE": (43, 63, 92, 121, 137, 157),
    "RESET_GPU": (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158),
    "RESTART_VM": (151,),
    "RESTART_BM": (79,),
    "CHECK_MECHANICALS": (54,),
    "WORKFLOW_XID_45": (45,),
    "WORKFLOW_XID_48": (48,),
    "CHECK_UVM": (159,),
    "CONTACT_SUPPORT": (61, 81, 125, 142),
    "WORKFLOW_NVLINK_ERR": (74,),
    "WORKFLOW_NVLINK5_ERR": (144, 145, 146, 147, 148, 149, 150),
    None: (162, 163, 164, 165, 168, 171, 172),
}
"""Immediate actions of NVIDIA's Xid Catalog, spreadsheet of October 2025; None where it names none."""
ACTIONS = {
    "RESTART_APP": {"restart_job", "reset_after_job"},
    "IGNORE": {"none", "reset_after_job"},
    "RESET_GPU": {"reset"},
    "RESTART_VM": {"reset"},
    "RESTART_BM": {"replace"},  # the whole machine, which on EC2 is another instance
    "CHECK_MECHANICALS": {"replace"},
    "WORKFLOW_XID_45": {"none"},
    "WORKFLOW_XID_48": {"reset"},
    "CHECK_UVM": {"read_log"},
    "WORKFLOW_NVLINK_ERR": {"reset"},
    "WORKFLOW_NVLINK5_ERR": {"reset_after_job"},
}
"""What NVIDIA's actions become."""

REPAIRS = {
    entry["reason"].removeprefix("NvidiaXID").removesuffix("Error"): entry["action"]
    for entry in records("eks")["repairs"]
    if entry["reason"].startswith("NvidiaXID")
}
EKS_ACTION = {"reset": "Reboot", "replace": "Replace"}


def test_symbols_and_codes_are_those_of_the_driver():
    assert {each.symbol: each.code for each in XIDS.values() if each.symbol} == DRIVER


def test_actions_are_those_of_nvidias_catalogue():
    """64 is the exception: no reset brings back a row whose remapping failed."""
    nvidia = {code: action for action, codes in CATALOGUE.items() for code in codes}
    assert [code for code in XIDS if code not in nvidia] == [154]  # whose message names the action
    stated = [each for each in XIDS.values() if nvidia.get(each.code)]
    assert [each.code for each in stated if each.nvidia_action != nvidia[each.code]] == []
    wrong = [each.code for each in stated if each.action not in ACTIONS.get(each.nvidia_action, {each.action})]
    assert wrong == [64]


def test_where_eks_repairs_an_xid_it_does_the_same():
    """One XID has one treatment on both control planes."""
    assert {code: EKS_ACTION[XIDS[int(code)].action] for code in REPAIRS} == REPAIRS
    assert REPAIRS


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
    assert xid_pattern(xids(action="replace")) == "54|64|79|142"
    assert len(xids(severity="critical")) + len(xids(severity="warning")) + len(xids(severity="info")) == len(XIDS)
