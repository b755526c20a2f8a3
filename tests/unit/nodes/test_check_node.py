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
from ultracluster.catalog.health import FULL_SECONDS, JOIN_MINUTES, LIMIT_SECONDS, MINUTES, floors
from ultracluster.config.acceptance import Acceptance
from ultracluster.config.health import Health
from ultracluster.config.node_groups import Scale
from ultracluster.nodes import health_programs
from ultracluster.nodes.health import admit_steps, check_steps, facts, health_settings, login_steps
from ultracluster.nodes.lustre import LustreMount

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
        self.smi(SMI)
        self.command("lnetctl", NET)
        self.command("stat", "lustre\n")
        self.command("systemctl", "")

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

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

    def prepare(self, limits: dict[str, float] | None = None, **constants: str) -> None:
        """Writes the program, with other values of its constants and time limits, its tables and the facts."""
        tables = json.loads(health_programs.tables())
        for name, seconds in (limits or {}).items():
            tables["seconds"][name][1] = seconds
        self.write("tables.json", json.dumps(tables))
        self.write("etc/ultracluster/health.conf", "".join(f"{fact}\n" for fact in self.facts))
        text = health_programs.program("check_node")
        for name, value in constants.items():
            text, found = re.subn(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
            assert found == 1
        self.write("check-node", text)

    def words(self, level: str) -> list[str]:
        """The command of the checks."""
        return [sys.executable, "-IS", str(self.root / "check-node"), level]

    def check(self, level: str = "fast", limits: dict[str, float] | None = None, **constants: str) -> tuple[int, str]:
        """Status and output of the checks."""
        self.prepare(limits, **constants)
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


@pytest.mark.parametrize(
    ("field", "name"),
    [
        (r"<gpu_recovery_action>.*?</gpu_recovery_action>", "gpu_recovery_action"),
        (r"<remapped_rows>.*?</remapped_rows>", "remapped_rows"),
        (r"<clocks_event_reasons>.*?</clocks_event_reasons>", "clocks_event_reasons"),
        (r"<fabric>.*?</fabric>", "fabric"),
    ],
)
def test_a_field_that_an_older_driver_lacks_is_reported_and_skipped(node, field, name):
    node.smi(re.sub(field, "", SMI, flags=re.DOTALL))
    assert node.check() == (0, "")
    told = f"this driver does not report {name}, so it is not checked"
    assert [(found["verdict"], found["detail"]) for found in node.log()] == [("monitor", told)]


def test_values_that_a_gpu_does_not_have_are_no_fault(node):
    without = SMI.replace("<gpu_recovery_action>None", "<gpu_recovery_action>N/A")
    node.smi(without.replace("Completed", "N/A").replace("Success", "N/A"))
    assert node.check() == (0, "")
    assert node.log() == []


def test_an_ultraserver_without_imex_is_a_fault_that_says_so(node):
    node.facts.append("imex=1")
    assert node.check() == (0, "")
    node.command("systemctl", "No files found for nvidia-imex.service.", status=1)
    found = "the image has no nvidia-imex.service, so jobs get no NVLink between instances"
    assert node.check() == (1, f"health: isolate: fabric: {found}")
    assert "imex=1" in facts(group("p6e-gb200.36xlarge"))
    assert "imex=1" not in facts(group())


def test_no_text_in_the_kernel_log_takes_a_node_out(node):
    """A user can write any text there: the log of a crash has the name of a mapped file."""
    xid = "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    crash = f"x[7]: segfault at 0 error 4 in {xid}[400000+1000]"
    node.write("dev/kmsg", f"3,1200,5000000,-;{xid}\n6,1201,5000001,-;{crash}\n")
    assert node.check() == (0, "")
    assert node.log() == []


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
    node.write("sys/class/infiniband/efa_1/ports/1/state", "1: DOWN\n")
    node.command(slow, "", body="exec sleep 600")
    assert node.check(limits={"fast": 2}) == (1, "health: replace: efa: 1 of 2 EFA devices are active")
    assert {found["detail"] for found in node.log() if found["check"] == "limit"} == {"the checks do not end in 2 s"}


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
    node.facts[1] = "gpus=two"
    node.write("proc/mounts", "")
    status, reason = node.check()
    assert (status, reason.partition("(")[0]) == (1, "health: isolate: limit: a check fails: ValueError")
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


def test_a_node_that_was_not_accepted_takes_jobs_once_it_passes_the_full_checks(node):
    told = node.write("run/ultracluster/not-accepted", "health: reset: memory: a row waits to be remapped\n")
    with_tools(node)
    assert node.check("fast") == (0, "")
    assert told.exists()
    assert node.check("full") == (0, "")
    assert not told.exists()
    assert node.check("full") == (0, "")


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
    node.smi(SMI.replace("_pending>No<", "_pending>Yes<", 1).replace("status>Success<", "status>Failure<", 1))
    assert node.check()[1].startswith("health: replace: fabric")
    assert {found["verdict"] for found in node.log()} == {"reset", "replace"}
    assert (node.metric("memory"), node.metric("fabric")) == (2, 5)


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


def watched(overall="Healthy", error=""):
    """What `dcgmi health -c -j` prints, with an incident of a GPU if there is an error."""
    body = {"Overall Health": {"value": overall}}
    if error:
        system = {"PCIe system": {"overflow": [error], "value": overall}}
        body["GPU"] = {"children": {"1": {"children": {"Errors": {"children": system}}, "value": overall}}}
    return json.dumps({"body": body, "header": ["Health Monitor Report"]}, indent=2)


def with_tools(node, *, bus="481.3", report=None, health=None):
    said = node.write("said/health", health or watched())
    node.command("dcgmi", report or diagnostics(), body=f'[ "$1" != health ] || {{ cat {said}; exit; }}')
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
        "dcgmi health -s a",
        "dcgmi diag -r 2 -j",
        "dcgmi diag -r memory_bandwidth -j -p memory_bandwidth.minimum_bandwidth=2680000",
        "dcgmi health -c -j",
        "systemctl start dcgm-exporter.service",
    ]
    assert [(found["level"], found["verdict"]) for found in node.log()] == [("full", "ok")]


@pytest.mark.parametrize(
    ("severity", "found"),
    [(2, "isolate"), (6, "reset"), (3, "isolate"), (4, "isolate"), (1, None), (5, None)],
)
def test_a_diagnostic_that_fails_ends_the_levels_by_dcgms_severity(node, severity, found):
    with_tools(node, report=diagnostics("Fail", severity))
    status, reason = node.check("full")
    levels = [call.split()[3] for call in node.called if call.startswith("dcgmi diag")]
    if found:
        assert (status, reason) == (1, f"health: {found}: dcgm: memory on GPU 1: test failed")
        assert levels == ["2"]
    else:
        assert (status, levels) == (0, ["2", "memory_bandwidth"])
    assert node.called[-1] == "systemctl start dcgm-exporter.service"


def test_nccl_below_the_floor_isolates_and_a_type_without_one_is_only_measured(node):
    with_tools(node, bus="371.2")
    assert node.check("full") == (1, "health: isolate: nccl: all-reduce 371.2 GB/s is below the floor of 380.0 GB/s")
    node.facts[0] = "type=p6-b200.48xlarge"
    assert node.check("full") == (0, "")
    assert node.log()[-1]["detail"] == "all-reduce 371.2 GB/s; no floor is known for this type"


@pytest.mark.parametrize(("overall", "status"), [("Healthy", 0), ("Warning", 0), ("Failure", 1), ("Internal error", 1)])
def test_what_dcgm_noticed_during_the_diagnostics_counts(node, overall, status):
    with_tools(node, health=watched(overall, "" if overall == "Healthy" else "PCIe replays at a rate of 9 per minute"))
    found, reason = node.check("full")
    assert found == status
    assert node.metric("dcgm", "full") == {"Healthy": 0, "Warning": 1}.get(overall, 4)
    if status:
        assert reason.startswith(f"health: isolate: dcgm: dcgmi health: {overall}: ")
        assert "PCIe replays" in reason


def test_a_tool_that_is_absent_fails_full_checks(node):
    assert node.check("full") == (1, "health: isolate: dcgm: no dcgmi, so DCGM's diagnostics did not run")
    with_tools(node)
    (node.root / "usr/local/cuda-13.0/efa/test-cuda-13.0/all_reduce_perf").unlink()
    assert node.check("full") == (1, "health: isolate: nccl: no all_reduce_perf, so NCCL was not measured")
    assert node.called[-1] == "systemctl start dcgm-exporter.service"


@pytest.mark.parametrize(
    ("call", "limit", "reason"),
    [
        ("health -s", "health", "dcgmi health: dcgmi does not answer in 1 s"),
        ("diag -r 2", "diagnostics", "dcgmi diag -r 2: dcgmi does not answer in 1 s"),
        ("diag -r memory", "bandwidth", "dcgmi diag -r memory_bandwidth: dcgmi does not answer in 1 s"),
        ("health -c", "health", "dcgmi health: dcgmi does not answer in 1 s"),
    ],
)
def test_a_tool_that_hangs_fails_full_checks(node, call, limit, reason):
    with_tools(node)
    said = node.root / "said/health"
    hangs = f'[[ "$*" != "{call}"* ]] || exec sleep 600\n[ "$1" != health ] || {{ cat {said}; exit; }}'
    node.command("dcgmi", diagnostics(), body=hangs)
    assert node.check("full", limits={limit: 1}) == (1, f"health: isolate: dcgm: {reason}")
    assert node.called[-1] == "systemctl start dcgm-exporter.service"


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("error: unable to connect to the host engine", "dcgmi diag -r 2 gave no result: error: unable to connect"),
        ("{}", "dcgmi diag -r 2 gave no result: {}"),
    ],
)
def test_a_tool_without_a_result_fails_full_checks(node, says, reason):
    with_tools(node, report=says)
    status, found = node.check("full")
    assert status == 1
    assert found.startswith(f"health: isolate: dcgm: {reason}")
    with_tools(node, health="Error: Health watches not enabled.")
    assert node.check("full")[1].startswith("health: isolate: dcgm: dcgmi health gave no result: Error: Health watches")


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


def test_gpus_that_do_not_answer_are_not_diagnosed(node):
    with_tools(node)
    node.smi(SMI.replace(GPU.format(bus="64"), ""))
    assert node.check("full")[0] == 1
    assert not [call for call in node.called if call.startswith("dcgmi")]


def test_a_node_without_gpus_is_checked_for_efa_and_lustre_alone(node):
    node.facts = ["gpus=0", "efa=2", "lustre=/fsx"]
    (node.root / "bin/nvidia-smi").unlink()
    assert node.check() == node.check("full") == (0, "")


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
    assert "prolog=none" in step.arguments
    assert "dynamic=1" not in step.arguments
    dynamic = group().model_copy(update={"count": Scale(min=0, max=4)})
    assert "dynamic=1" in check_steps(Health(), dynamic, mounts)[0].arguments
    assert [step.name for step in admit_steps(Health().acceptance("pcs", 8))] == ["admit-jobs", "drain-unaccepted"]
    [admit] = admit_steps(Health(accept="full", on_failure="replace").acceptance("pcs", 8))
    assert (admit.arguments, admit.required) == (("full", "replace", "60", "720"), True)
    assert admit.frequency == "every_boot"
    assert admit_steps(Health(accept="none").acceptance("pcs", 8))[0].arguments == ()


def test_acceptance_is_decided_by_control_plane_and_gpus():
    full = Health(accept="full", on_failure="replace")
    assert full.acceptance("pcs", 8) == Acceptance("full", "boot_step", "replace")
    assert full.acceptance("eks", 8) == Acceptance("full", "agent", "replace")
    # nothing for diagnostics to test, and no taint on EKS
    assert full.acceptance("pcs", 0) == Acceptance("fast", "boot_step", "replace")
    assert full.acceptance("eks", 0) is None
    assert Health(accept="none").acceptance("pcs", 8) is None


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
    assert LIMIT_SECONDS == sum(runs * seconds for runs, seconds in FULL_SECONDS.values()) <= 12 * 60
    assert MINUTES["full"][1] * 60 == LIMIT_SECONDS
    assert LIMIT_SECONDS / 60 < JOIN_MINUTES / 2


def test_each_command_of_the_full_checks_has_a_time_limit_of_the_catalogue(node):
    """What runs is what is added up: as often as the catalogue says, and nothing else."""
    with_tools(node)
    assert node.check("full") == (0, "")
    starts = {
        "health": "dcgmi health",
        "diagnostics": "dcgmi diag -r 2",
        "bandwidth": "dcgmi diag -r memory_bandwidth",
        "services": "systemctl",
    }
    ran = {name: sum(call.startswith(start) for call in node.called) for name, start in starts.items()}
    assert ran == {name: FULL_SECONDS[name][0] for name in starts}
    assert FULL_SECONDS.keys() - starts.keys() == {"repeat", "fast", "nccl"}


def test_floors_are_shares_of_published_figures():
    h100, b200 = floors(instance_types["p5.48xlarge"]), floors(instance_types["p6-b200.48xlarge"])
    assert (h100.memory_mb_per_s, h100.nccl_gb_per_s) == (2_680_000, 380)
    assert (b200.memory_mb_per_s, b200.nccl_gb_per_s) == (6_400_000, None)
    assert not any(floors(instance_types["g6.xlarge"]))


def test_the_program_needs_nothing_beyond_python_3_9():
    ast.parse(health_programs.program("check_node"), feature_version=(3, 9))
