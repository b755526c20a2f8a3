"""The checks of a node, against stubs of the commands that they read, which print as NVIDIA's do."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.nodes.test_pcs import group
from ultracluster.catalog import instance_types
from ultracluster.catalog.health import JOIN_MINUTES, MINUTES, floors
from ultracluster.config.health import Health
from ultracluster.nodes import health_programs
from ultracluster.nodes.health import admit_steps, check_steps, facts, health_settings, login_steps
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.programs import check_node
from ultracluster.telemetry.records import records
from ultracluster.telemetry.xids import XIDS, nvlink5_units, verdict

FACTS = ("type=p5.48xlarge", "gpus=2", "nvlink=1", "efa=2", "lustre=/fsx", "lustre_efa=1")

GPU = """
  <gpu id="00000000:{bus}:00.0">
    <product_name>NVIDIA H100 80GB HBM3</product_name>
    <gpu_recovery_action>None</gpu_recovery_action>
    <ecc_errors><volatile><sram_uncorrectable_parity>0</sram_uncorrectable_parity>
      <sram_uncorrectable_secded>0</sram_uncorrectable_secded><dram_uncorrectable>0</dram_uncorrectable></volatile></ecc_errors>
    <remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>0</remapped_row_unc>
      <remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
    <clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
      <clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown>
      <clocks_event_reason_hw_power_brake_slowdown>Not Active</clocks_event_reason_hw_power_brake_slowdown>
    </clocks_event_reasons>
    <fabric><state>Completed</state><status>Success</status></fabric>
  </gpu>"""
SMI = "<nvidia_smi_log><driver_version>580.159.03</driver_version>{}</nvidia_smi_log>".format(
    GPU.format(bus="53") + GPU.format(bus="64")
)
"""What nvidia-smi -q -x prints for two H100, without what the checks do not read."""

LINKS = "".join(
    f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu})\n" + "".join(f"\t Link {n}: 26.562 GB/s\n" for n in range(18))
    for gpu in range(2)
)
NET = "net:\n    - net type: efa\n      local NI(s):\n        - nid: 10.0.0.1@efa\n          status: up\n"
XID_154 = "4,9,7,-;NVRM: Xid (PCI:0000:53:00): 154, GPU recovery action changed from 0x0 (None) to {}"
NVLINK5 = "4,9,7,-;NVRM: Xid (PCI:0000:53:00): {}, {} XC0 i0 Link 08 {}"
XID_79 = "3,1200,5000000,-;NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


class Node:
    """A node whose files lie under a folder, with commands that print what a test says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.facts = list(FACTS)
        self.environment = {"PATH": f"{root}/bin:/usr/bin:/bin", "CHECK_NODE_ROOT": str(root)}
        for device in range(2):
            self.write(f"sys/class/infiniband/efa_{device}/ports/1/state", "4: ACTIVE\n")
            (root / "drivers/efa").mkdir(parents=True, exist_ok=True)
            folder = root / f"sys/class/infiniband/efa_{device}/device"
            folder.mkdir()
            (folder / "driver").symlink_to(root / "drivers/efa")
        self.write("proc/mounts", "10.0.0.9@tcp:/abc /fsx lustre rw 0 0\n")
        self.kernel_log("6,1,100,-;Linux version 6.12")
        self.smi(SMI)
        self.command("lnetctl", NET)
        self.command("stat", "lustre\n")
        self.command("systemctl", "")

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def kernel_log(self, *lines: str) -> None:
        self.write("dev/kmsg", "".join(f"{line}\n" for line in lines))

    def command(self, name: str, says: str, *, status: int = 0, body: str = "") -> None:
        said = self.write(f"said/{name}", says)
        called = f'echo "{name} $*" >> {self.root}/called'
        file = self.write(f"bin/{name}", f"#!/bin/bash\n{called}\n{body}\ncat {said}\nexit {status}\n")
        file.chmod(0o755)

    def smi(self, xml: str, links: str = LINKS) -> None:
        other = self.write("said/links", links)
        self.command("nvidia-smi", xml, body=f'[ "$1" != nvlink ] || {{ cat {other}; exit; }}')

    @property
    def called(self) -> list[str]:
        file = self.root / "called"
        return file.read_text().splitlines() if file.exists() else []

    def prepare(self, **constants: str) -> None:
        """Writes the program, with other values of its constants, its tables and the facts."""
        self.write("tables.json", health_programs.tables())
        self.write("etc/ultracluster/health.conf", "".join(f"{fact}\n" for fact in self.facts))
        text = health_programs.program("check_node")
        for name, value in constants.items():
            text, found = re.subn(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
            assert found == 1
        self.write("check-node", text)

    def words(self, level: str) -> list[str]:
        """The command of the checks."""
        return [sys.executable, "-IS", str(self.root / "check-node"), level]

    def check(self, level: str = "fast", **constants: str) -> tuple[int, str]:
        """Status and output of the checks."""
        self.prepare(**constants)
        ran = subprocess.run(self.words(level), env=self.environment, capture_output=True, text=True, timeout=300)
        assert not ran.stderr, ran.stderr
        return ran.returncode, ran.stdout.strip()

    def log(self) -> list[dict[str, str]]:
        file = self.root / "var/log/ultracluster/health.log"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def metric(self, check: str, level: str = "fast") -> float:
        lines = (self.root / f"var/lib/node_exporter/textfile/health-{level}.prom").read_text().splitlines()
        series = f'node_health_verdict{{level="{level}",check="{check}"}} '
        [value] = [line.removeprefix(series) for line in lines if line.startswith(series)]
        return float(value)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_a_healthy_node_may_take_jobs(node):
    assert node.check() == (0, "")
    assert node.log() == []
    assert node.metric("gpus") == node.metric("efa") == 0


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("_pending>No<", "_pending>Yes<", "reset: memory: a row waits to be remapped"),
        ("_failure>No<", "_failure>Yes<", "replace: memory: remapping a row failed"),
        ("action>None<", "action>Reset<", "reset: gpus: the driver asks for Reset"),
        ("action>None<", "action>Reboot<", "reboot: gpus: the driver asks for Reboot"),
        ("action>None<", "action>Drain P2P<", "isolate: gpus: the driver asks for Drain P2P"),
        ("state>Completed<", "state>In Progress<", "reboot: fabric: the NVLink fabric is In Progress"),
        ("status>Success<", "status>Failure<", "replace: fabric: the NVLink fabric says Failure"),
        ("thermal_slowdown>Not Active", "thermal_slowdown>Active", "isolate: clocks: hw thermal slowdown"),
        ("brake_slowdown>Not Active", "brake_slowdown>Active", "isolate: clocks: hw power brake slowdown"),
    ],
)
def test_what_nvidia_smi_says_of_a_gpu(node, old, new, reason):
    node.smi(SMI.replace(old, new, 1))
    status, found = node.check()
    assert (status, found.replace("GPU 00000000:53:00.0: ", "")) == (1, f"health: {reason}")


def test_a_slowdown_of_one_sample_takes_no_node_out(node):
    slow = node.write("said/slow", SMI.replace("brake_slowdown>Not Active", "brake_slowdown>Active", 1))
    links = node.root / "said/links"
    once = f'[ "$1" = nvlink ] || ! mkdir {node.root}/once 2> /dev/null || {{ cat {slow}; exit; }}'
    node.command("nvidia-smi", SMI, body=f'{once}\n[ "$1" != nvlink ] || {{ cat {links}; exit; }}')
    assert node.check(SAMPLE_SECONDS="0") == (0, "")
    assert (node.root / "once").exists()


def test_drivers_that_know_no_recovery_action_and_gpus_without_a_fabric_pass(node):
    without = SMI.replace("<gpu_recovery_action>None</gpu_recovery_action>", "")
    node.smi(without.replace("Completed", "N/A").replace("Success", "N/A"))
    assert node.check() == (0, "")


def test_a_gpu_that_is_missing_and_a_driver_that_fails(node):
    node.smi(SMI.replace(GPU.format(bus="64"), ""))
    assert node.check() == (1, "health: reboot: gpus: 1 of 2 GPUs answer")
    node.command("nvidia-smi", "Unable to determine the device handle", status=15)
    status, reason = node.check()
    assert status == 1
    assert reason.startswith("health: reboot: gpus: nvidia-smi fails")


def test_a_driver_that_does_not_answer_is_not_waited_for(node):
    node.command("nvidia-smi", "", body="exec sleep 600")
    assert node.check(SMI_SECONDS="1") == (1, "health: reboot: gpus: nvidia-smi does not answer in 1 s")


def test_a_driver_that_the_kernel_does_not_let_go_is_not_waited_for(node):
    node.command("nvidia-smi", "", body=f"echo $$ >> {node.root}/left; exec sleep 600")
    node.prepare(SMI_SECONDS="1")
    program = node.root / "check-node"
    # a signal does not end a process that waits in the kernel
    program.write_text(program.read_text().replace("os.killpg(process.pid, signal.SIGKILL)", "pass"))
    ran = subprocess.run(node.words("fast"), env=node.environment, capture_output=True, text=True, timeout=300)
    assert ran.stdout == "health: reboot: gpus: nvidia-smi does not answer in 1 s\n"
    for left in (node.root / "left").read_text().split():
        os.kill(int(left), signal.SIGKILL)  # it has not ended


@pytest.mark.parametrize("slow", ["nvidia-smi", "stat", "lnetctl"])
def test_the_fast_checks_end_together_whatever_is_slow(node, slow):
    node.kernel_log(XID_154.format("0x1 (GPU Reset Required)"))
    node.command(slow, "", body="exec sleep 600")
    assert node.check(FAST_SECONDS="2") == (1, "health: reboot: limit: the checks do not end in 2 s")
    assert {found["check"] for found in node.log()} == {"xids", "limit"}


@pytest.mark.parametrize("command", ["nvidia-smi", "lnetctl"])
@pytest.mark.parametrize(
    "body",
    [
        "head -c 4000 /dev/urandom; exit 0",
        "printf 'Ger\\xe4t nicht verf\\xfcgbar\\n'; exit 0",
        "exec yes",
        "exit 0",
        "echo '<nvidia_smi_log><gpu id=1></nvidia_smi_log>'; exit 0",
        "kill -SEGV $$",
    ],
)
def test_odd_output_has_a_verdict_of_one_plain_line(node, command, body):
    node.command(command, "", body=body)
    node.environment |= {"LC_ALL": "de_DE.ISO-8859-1", "PYTHONIOENCODING": "ascii"}
    status, reason = node.check()
    assert (status, reason.isascii(), len(reason.splitlines())) == (1, True, 1)
    check = "gpus" if command == "nvidia-smi" else "lustre"
    assert reason.startswith(f"health: reboot: {check}: ")
    assert all(found["verdict"] in ("reboot", "replace") for found in node.log())


def test_a_tool_that_is_missing_has_a_verdict(node):
    (node.root / "bin/nvidia-smi").unlink()
    assert node.check() == (1, "health: reboot: gpus: nvidia-smi fails: No such file or directory")


def test_a_command_is_asked_in_english_and_what_it_says_last_is_told(node):
    node.environment["LC_ALL"] = "de_DE.UTF-8"
    node.command("nvidia-smi", "", body='echo "first"; echo "locale $LC_ALL"; exit 9')
    assert node.check() == (1, "health: reboot: gpus: nvidia-smi fails with 9: locale C")


def test_warnings_beside_the_report_of_nvidia_smi_do_not_matter(node):
    node.smi(f"WARNING: infoROM is corrupted at gpu 0000:53:00.0\n{SMI}\nWARNING: & <more>\n")
    assert node.check() == (0, "")


def test_checks_that_cannot_read_what_they_see_are_a_finding_and_others_go_on(node):
    node.prepare()
    node.write("tables.json", "{}")
    node.kernel_log(XID_79)
    node.write("proc/mounts", "")
    ran = subprocess.run(node.words("fast"), env=node.environment, capture_output=True, text=True, timeout=300)
    assert (ran.stdout, ran.stderr) == ("health: isolate: limit: a check fails: KeyError('xids')\n", "")
    assert {found["check"] for found in node.log()} == {"limit", "lustre"}


@pytest.mark.parametrize("down", ["<inactive>", "0 GB/s"])
def test_an_nvlink_that_is_down(node, down):
    node.smi(SMI, LINKS.replace("Link 7: 26.562 GB/s", f"Link 7: {down}", 1))
    assert node.check() == (1, "health: replace: nvlink: GPU 0: 1 of 18 NVLinks are down")
    node.smi(SMI, LINKS.partition("GPU 1")[0])
    assert node.check() == (1, "health: reboot: nvlink: nvidia-smi tells the NVLinks of 1 of 2 GPUs")


def test_gpus_that_nothing_joins_need_no_fabric(node):
    node.facts[2] = "nvlink=0"
    node.smi(SMI.replace("Completed", "In Progress"), "NVML: Unable to retrieve NVLink information")
    assert node.check() == (0, "")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (XID_79, "replace: xids: XID 79 of GPU 0000:53:00"),
        ("4,9,7,-;NVRM: Xid (PCI:0000:53:00): 48, DBE", "reset: xids: XID 48"),
        (XID_154.format("0x2 (Node Reboot Required)"), "reboot: xids: XID 154"),
        (XID_154.format("0x1 (GPU Reset Required)"), "reset: xids: XID 154"),
        (XID_154.format("0x1 (PF FLR)"), "reset: xids: XID 154"),
        (XID_154.format("0x2 (OS Reboot)"), "reboot: xids: XID 154"),
        ("4,9,7,-;NVRM: Xid (PCI:0000:53:00): 145, RLW_REMAP", "isolate: xids: XID 145"),
        (NVLINK5.format(149, "NETIR_LINK_EVT  Fatal  ", "(0x004505c6 0x00000000 0x00000000)"), "reset: xids: XID 149"),
        (NVLINK5.format(149, "NETIR_LINK_DOWN Fatal", "(0x02a00011 0x00000000)"), "reset: xids: XID 149"),
        (NVLINK5.format(149, "NETIR_LINK_EVT Fatal", "[0x0000000a]"), "isolate: xids: XID 149"),  # before R575
        (NVLINK5.format(149, "NETIR_LINK_DOWN Fatal", "(0x03f00011 0x00000000)"), "isolate: xids: XID 149"),
        (NVLINK5.format(144, "SAW_MVB Fatal", "(0x00000001 0x00000003)"), "reset: xids: XID 144"),
        (NVLINK5.format(145, "RLW_RXPIPE Fatal", "(0x000004c2 0x00000001)"), "reset: xids: XID 145"),
        (NVLINK5.format(145, "RLW_RXPIPE Fatal", "(0x00000086 0x00000001)"), "reset: xids: XID 145"),
        (NVLINK5.format(145, "RLW_REMAP Nonfatal", "(0x00000004 0x00000400)"), "isolate: xids: XID 145"),
        (NVLINK5.format(145, "RLW_NEW Nonfatal", "(0x00000004 0x00000001)"), "isolate: xids: XID 145"),
        (NVLINK5.format(150, "MSE_WATCHDOG Fatal", "(0x00000000 0x00000000)"), "reset: xids: XID 150"),
    ],
)  # fmt: skip
def test_xids_that_take_a_node_out(node, line, found):
    node.kernel_log("6,1,1,-;start", line)
    status, reason = node.check()
    assert status == 1
    assert reason.startswith(f"health: {found}")


@pytest.mark.parametrize(
    "line",
    [
        NVLINK5.format(145, "RLW_RXPIPE Nonfatal", "(0x000000c2 0x00000004)"),
        NVLINK5.format(145, "RLW_RXPIPE Nonfatal", "(0x00000006 0x00000001)"),
        NVLINK5.format(145, "RLW_REMAP Nonfatal", "(0x00000004 0x00000001)"),  # an XID 154 says what to do
        NVLINK5.format(146, "TLW_RX_PIPE1 Nonfatal", "(0x0000000b 0x00000003)"),
        NVLINK5.format(149, "NETIR_BER_EVENT Nonfatal", "(0x00000013 0x00000002)"),
        NVLINK5.format(149, "NETIR_LINK_DOWN Fatal", "(0x02600011 0x00000000)"),
    ],
)
def test_errors_of_nvlink_5_that_nvidia_ignores_take_no_node_out(node, line):
    node.kernel_log(line)
    assert node.check() == (0, "")
    assert [(found["check"], found["verdict"]) for found in node.log()] == [("xids", "monitor")]


def test_a_later_error_of_nvlink_5_does_not_hide_a_worse_one(node):
    worse = NVLINK5.format(145, "RLW_REMAP Fatal", "(0x00000004 0x00000040)")
    node.kernel_log(worse, NVLINK5.format(145, "RLW_RXPIPE Nonfatal", "(0x00000006 0x00000001)"))
    assert node.check()[1].startswith("health: reset: xids: XID 145")


@pytest.mark.parametrize("code", [13, 31, 43, 63, 94, 99999])
def test_errors_of_applications_and_unknown_xids_are_recorded_and_take_no_node_out(node, code):
    node.kernel_log(f"4,9,7,-;NVRM: Xid (PCI:0000:53:00): {code}, pid=7")
    assert node.check() == (0, "")
    assert [(found["check"], found["verdict"]) for found in node.log()] == [("xids", "monitor")]
    assert node.metric("xids") == 1


def test_xids_from_before_a_reset_that_was_cleared_do_not_count(node):
    node.kernel_log("6,1,1,-;start", XID_79)
    assert node.check()[0] == 1
    assert node.check("clear") == (0, "")
    assert node.check() == (0, "")
    later = XID_79.replace(",5000000,", ",999999999999999,")
    node.kernel_log(XID_79, later)
    assert node.check()[0] == 1


def test_a_node_that_was_not_accepted_and_is_repaired_takes_jobs(node):
    told = node.write("run/ultracluster/not-accepted", "health: reset: memory: a row waits to be remapped\n")
    assert node.check("fast") == (0, "")
    assert told.exists()
    assert node.check("clear") == (0, "")
    assert not told.exists()
    assert node.check("clear") == (0, "")
    with_tools(node)
    node.write("run/ultracluster/not-accepted", "again\n")
    assert node.check("quarantine") == (0, "")
    assert not told.exists()


def test_efa_devices_that_are_missing_or_down(node):
    node.write("sys/class/infiniband/efa_1/ports/1/state", "1: DOWN\n")
    assert node.check() == (1, "health: replace: efa: 1 of 2 EFA devices are active")


def test_a_file_system_that_is_not_mounted_or_not_over_efa(node):
    node.write("proc/mounts", "/dev/root / ext4 rw 0 0\n")
    assert node.check() == (1, "health: reboot: lustre: /fsx is not mounted")
    node.write("proc/mounts", "10.0.0.9@tcp:/abc /fsx lustre rw 0 0\n")
    node.command("lnetctl", NET.replace("up", "down"))
    assert node.check() == (1, "health: reboot: lustre: LNet has no network over EFA that is up")


def test_the_worst_verdict_is_the_reason_and_all_findings_are_recorded(node):
    node.smi(SMI.replace("_pending>No<", "_pending>Yes<", 1))
    node.kernel_log(XID_79)
    assert node.check()[1].startswith("health: replace: xids")
    assert {found["verdict"] for found in node.log()} == {"reset", "replace"}
    assert (node.metric("memory"), node.metric("xids")) == (2, 5)


def diagnostics(status="Pass", severity=2, warning="test failed"):
    result = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 1, "status": status}
    if status == "Fail":
        result["warnings"] = [{"error_category": 7, "error_id": 31, "error_severity": severity, "warning": warning}]
    test = {"name": "memory", "results": [result], "test_summary": {"status": status}}
    return json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [test]}]}})


NCCL = """# nThread 1 nGpus 8 minBytes 8589934592
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
  8589934592    2147483648     float     sum      -1    31234  275.02  {bus}      0    31200  275.32  {bus}      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : {bus}
"""


def with_tools(node, *, bus="481.3", report=None):
    node.command("dcgmi", report or diagnostics())
    program = f"#!/bin/bash\ncat <<'T'\n{NCCL.format(bus=bus)}T\n"
    file = node.write("usr/local/cuda-13.0/efa/test-cuda-13.0/all_reduce_perf", program)
    file.chmod(0o755)


def test_full_checks_run_dcgm_level_by_level_with_a_floor_of_memory_bandwidth_and_nccl(node):
    with_tools(node)
    assert node.check("full") == (0, "")
    ran = [call for call in node.called if call.startswith(("dcgmi", "systemctl"))]
    assert ran == [
        "systemctl stop dcgm-exporter.service",
        "systemctl start nvidia-dcgm.service",
        "dcgmi diag -r 1 -j",
        "dcgmi diag -r 2 -j",
        "dcgmi diag -r memory_bandwidth -j -p memory_bandwidth.minimum_bandwidth=2680000",
        "systemctl start dcgm-exporter.service",
    ]
    assert [(found["level"], found["verdict"]) for found in node.log()] == [("full", "ok")]
    with_tools(node)
    node.check("quarantine")
    assert [call.split()[3] for call in node.called if call.startswith("dcgmi")][-2:] == ["3", "4"]


@pytest.mark.parametrize(
    ("severity", "found"),
    [(2, "isolate"), (6, "reset"), (3, "isolate"), (4, "isolate"), (1, None), (5, None)],
)
def test_a_diagnostic_that_fails_ends_the_levels_by_dcgms_severity(node, severity, found):
    with_tools(node, report=diagnostics("Fail", severity))
    status, reason = node.check("full")
    levels = [call.split()[3] for call in node.called if call.startswith("dcgmi")]
    if found:
        assert (status, reason) == (1, f"health: {found}: dcgm: memory on GPU 1: test failed")
        assert levels == ["1"]
    else:
        assert (status, levels[:2]) == (0, ["1", "2"])
    assert node.called[-1] == "systemctl start dcgm-exporter.service"


def test_nccl_below_the_floor_isolates_and_a_type_without_one_is_only_measured(node):
    with_tools(node, bus="371.2")
    assert node.check("full") == (1, "health: isolate: nccl: all-reduce 371.2 GB/s is below the floor of 380.0 GB/s")
    node.facts[0] = "type=p6-b200.48xlarge"
    assert node.check("full") == (0, "")
    assert node.log()[-1]["detail"] == "all-reduce 371.2 GB/s; no floor is known for this type"


def test_an_image_without_the_tools_is_not_taken_for_a_fault(node):
    assert node.check("full") == (0, "")
    assert {(found["check"], found["verdict"]) for found in node.log()} == {("dcgm", "monitor"), ("nccl", "monitor")}


def test_a_quarantine_without_diagnostics_is_not_passed(node):
    assert node.check("quarantine") == (1, "health: isolate: dcgm: no dcgmi, so DCGM's diagnostics did not run")
    with_tools(node, report="error: unable to connect to the host engine")
    status, reason = node.check("quarantine")
    assert (status, reason) == (
        1,
        "health: isolate: dcgm: dcgmi diag -r 1 gave no result: error: unable to connect to the host engine",
    )


def test_what_diagnostics_were_stopped_for_is_started_again_when_the_time_is_up(node):
    with_tools(node)
    # the time is up when timeout, which is the parent of the checks, gets the signal of its clock
    node.command("dcgmi", "", body="read -r _ _ _ timeout _ < /proc/$PPID/stat; kill -ALRM $timeout; exec sleep 600")
    node.prepare()
    ran = subprocess.run(["timeout", "600", *node.words("full")], env=node.environment, check=False, timeout=300)
    assert ran.returncode == 124
    assert node.called[-1] == "systemctl start dcgm-exporter.service"


@pytest.mark.parametrize("call", ["stop dcgm-exporter.service", "start nvidia-dcgm.service"])
def test_a_time_that_is_up_before_the_diagnostics_begin_leaves_nothing_stopped(node, call):
    with_tools(node)
    node.command("systemctl", "", body=f'[ "$*" != "{call}" ] || {{ kill $PPID; exec sleep 30; }}')
    node.prepare()
    ran = subprocess.run(node.words("full"), env=node.environment, check=False, timeout=300)
    assert ran.returncode == 1
    assert node.called[-1] == "systemctl start dcgm-exporter.service"


def test_a_time_that_is_up_while_it_starts_again_does_not_keep_it_from_that(node):
    with_tools(node)
    body = f'kill $PPID; sleep 1; echo "$* has ended" >> {node.root}/called'
    node.command("systemctl", "", body=f'[ "$*" != "start dcgm-exporter.service" ] || {{ {body}; }}')
    assert node.check("full") == (0, "")
    assert node.called[-1] == "start dcgm-exporter.service has ended"


def test_a_second_signal_does_not_keep_it_from_starting_again(node):
    with_tools(node)
    node.command("dcgmi", "", body="exec sleep 600")
    # the signal of timeout can reach a command that is starting, too
    node.command("systemctl", "", body=f'kill -TERM $$; sleep 1; echo "$* has ended" >> {node.root}/called')
    node.prepare()
    with subprocess.Popen(node.words("full"), env=node.environment) as ran:
        while not any(call.startswith("dcgmi") for call in node.called):
            assert ran.poll() is None
            time.sleep(0.1)
        ran.terminate()
        time.sleep(0.5)
        ran.terminate()
        assert ran.wait(300) == 1
    assert node.called[-1] == "start dcgm-exporter.service has ended"


def test_an_xid_that_diagnostics_bring_out_counts(node):
    with_tools(node)
    node.command("dcgmi", diagnostics(), body=f"echo '{XID_79.replace(chr(39), '')}' >> {node.root}/dev/kmsg")
    assert node.check("full")[1].startswith("health: replace: xids: XID 79")


def test_gpus_that_do_not_answer_are_not_diagnosed(node):
    with_tools(node)
    node.smi(SMI.replace(GPU.format(bus="64"), ""))
    assert node.check("quarantine")[0] == 1
    assert not [call for call in node.called if call.startswith("dcgmi")]


def test_gpus_that_are_divided_are_not_diagnosed(node):
    with_tools(node)
    node.facts.append("mig=1")
    assert node.check("full") == (0, "")
    reason = "health: isolate: dcgm: GPUs are divided (MIG), so DCGM's diagnostics did not run"
    assert node.check("quarantine") == (1, reason)
    assert not [call for call in node.called if call.startswith("dcgmi")]
    divided = group().model_copy(update={"slurm_settings": {"Gres": "gpu:1g.10gb:56"}})
    assert "mig=1" in facts(divided)


def test_an_xid_of_the_past_does_not_keep_the_quarantine_from_diagnosing(node):
    with_tools(node)
    node.kernel_log(XID_79)
    assert node.check("quarantine")[1].startswith("health: replace: xids")
    assert len([call for call in node.called if call.startswith("dcgmi")]) == 5


def test_a_node_without_gpus_is_checked_for_efa_and_lustre_alone(node):
    node.facts = ["gpus=0", "efa=2", "lustre=/fsx"]
    (node.root / "bin/nvidia-smi").unlink()
    node.kernel_log(XID_79)
    assert node.check() == (0, "")


def test_each_xid_that_nvidia_decodes_by_its_registers_has_a_table():
    decoded = {each.code for each in XIDS.values() if each.nvidia_action == "WORKFLOW_NVLINK5_ERR"}
    assert {entry["code"] for entry in records("xids")["nvlink5"]} == decoded == set(map(int, check_node.NVLINK5))
    assert {"RLW_RXPIPE", "NETIR_LINK_EVT", "NETIR_LINK_DOWN"} <= nvlink5_units().keys()


def test_each_xid_has_a_verdict_that_agrees_with_what_the_alerts_and_eks_do():
    assert verdict(XIDS[79]) == verdict(XIDS[64]) == "replace"
    assert {each.code for each in XIDS.values() if verdict(each) == "replace"} == {
        each.code for each in XIDS.values() if each.action == "replace"
    }
    assert all(verdict(each) in ("reset", "reboot") for each in XIDS.values() if each.action == "reset")
    assert verdict(XIDS[63]) == verdict(XIDS[31]) == "monitor"
    assert verdict(XIDS[61]) == "isolate"


def test_facts_are_those_of_the_type():
    mounts = [LustreMount("fs", "abc", "/fsx", efa=True)]
    found = facts(group("p5.48xlarge"), mounts)
    assert found == ["type=p5.48xlarge", "gpus=8", "nvlink=1", "efa=32", "lustre=/fsx", "lustre_efa=1"]
    assert "nvlink=0" in facts(group("p5.4xlarge"))
    b300 = facts(group("p6-b300.48xlarge"))
    assert "efa=16" in b300


def test_steps_of_each_choice():
    mounts = []
    assert check_steps(Health(accept="none", prolog="none", periodic="none"), group(), mounts) == []
    [step] = check_steps(Health(prolog="none"), group(), mounts)
    assert {"prolog=none", "quarantine=full"} <= {*step.arguments}
    assert [step.name for step in admit_steps(Health())] == ["admit-jobs", "drain-unaccepted"]
    [admit] = admit_steps(Health(accept="full", on_failure="replace"))
    assert (admit.arguments, admit.required, admit.frequency) == (("full", "replace"), True, "every_boot")
    assert admit_steps(Health(accept="none"))[0].arguments == ()


def test_slurm_finds_its_health_check_on_login_nodes_too_where_it_checks_nothing(node):
    [step] = login_steps(Health())
    assert (step.name, step.required) == ("write-health-checks", False)
    assert login_steps(Health(periodic="none")) == []
    node.facts = list(step.arguments)
    (node.root / "bin/nvidia-smi").unlink()
    node.write("proc/mounts", "")
    assert node.check() == (0, "")


def test_the_users_health_check_wins():
    assert health_settings({"HealthCheckProgram": "/opt/own"}, Health()) == {"HealthCheckProgram": "/opt/own"}
    assert health_settings({}, Health(periodic="none")) == {}
    found = health_settings({"HealthCheckInterval": 600}, Health())
    assert found["HealthCheckProgram"] == "/opt/ultracluster/health/health-check"
    assert (found["HealthCheckInterval"], found["HealthCheckNodeState"]) == (600, "ANY,CYCLE")


def test_full_acceptance_ends_before_pcs_gives_the_node_up():
    assert MINUTES["full"][1] < JOIN_MINUTES


def test_floors_are_shares_of_published_figures():
    h100, b200 = floors(instance_types["p5.48xlarge"]), floors(instance_types["p6-b200.48xlarge"])
    assert (h100.memory_mb_per_s, h100.nccl_gb_per_s) == (2_680_000, 380)
    assert (b200.memory_mb_per_s, b200.nccl_gb_per_s) == (6_400_000, None)
    assert not any(floors(instance_types["g6.xlarge"]))


def test_the_program_needs_nothing_beyond_python_3_9():
    ast.parse(health_programs.program("check_node"), feature_version=(3, 9))
