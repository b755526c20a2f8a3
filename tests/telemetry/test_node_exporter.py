"""The list of node exporter's metrics agrees with what a real node exporter serves."""

import re
import subprocess
import time

import pytest

from tests.telemetry.engines import STARTS_IN, ask, free_port
from tests.telemetry.fake_exporter import exposition
from ultracluster.nodes.programs import check_node
from ultracluster.telemetry.metrics import metrics_of

HARDWARE = {"node_edac_correctable_errors_total", "node_edac_uncorrectable_errors_total", "node_md_disks"}
"""Metrics of hardware that this machine may lack; a second exporter reads a made-up /sys and /proc."""

NITRO = {each.name for each in metrics_of("node") if each.group == "allowance"} | {"node_systemd_unit_state"}
"""Metrics that need the ENA driver of an EC2 instance, or a running systemd."""

MDSTAT = """\
Personalities : [raid0]
md0 : active raid0 nvme0n1[0] nvme1n1[1]
      7499750400 blocks super 1.2 512k chunks

unused devices: <none>
"""


@pytest.fixture(scope="module")
def served(engines, tmp_path_factory) -> str:
    """What node exporter answers, with the files of the collectors and of health checks in its textfile folder."""
    folder = tmp_path_factory.mktemp("textfile")
    for name in ("efa", "lustre"):
        (folder / f"{name}.prom").write_text(exposition(metrics_of(name)))
    (folder / "health-fast.prom").write_text(check_node.metrics("fast", []))
    return _ask(engines, "--collector.ethtool", f"--collector.textfile.directory={folder}")


@pytest.fixture(scope="module")
def hardware(engines, tmp_path_factory) -> str:
    """What it answers on a made-up machine with a memory controller and a RAID."""
    folder = tmp_path_factory.mktemp("machine")
    controller = folder / "sys/devices/system/edac/mc/mc0"
    controller.mkdir(parents=True)
    for name in ("ce_count", "ce_noinfo_count", "ue_count", "ue_noinfo_count"):
        (controller / name).write_text("3\n")
    (folder / "proc").mkdir()
    (folder / "proc/mdstat").write_text(MDSTAT)
    paths = (f"--path.procfs={folder / 'proc'}", f"--path.sysfs={folder / 'sys'}")
    return _ask(engines, "--collector.disable-defaults", "--collector.edac", "--collector.mdadm", *paths)


def _ask(engines, *options: str) -> str:
    port = free_port()
    program = engines.programs / "prometheus-node-exporter"
    process = subprocess.Popen(
        [program, f"--web.listen-address=127.0.0.1:{port}", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + STARTS_IN
        while True:
            try:
                return ask(port, "/metrics")[1]
            except ConnectionError:
                assert process.poll() is None, options
                assert time.monotonic() < until
                time.sleep(0.1)
    finally:
        process.terminate()
        process.wait()


def _agrees(each, text: str) -> None:
    stated = re.findall(rf"^# TYPE {each.name} (\S+)$", text, flags=re.MULTILINE)
    assert stated == [each.declared or each.kind]
    series = re.findall(rf"^{each.name}(?:{{(.*)}})? \S+$", text, flags=re.MULTILINE)
    assert {label for labels in series for label in re.findall(r'(\w+)="', labels)} == set(each.labels)


@pytest.mark.parametrize(
    "each", [each for each in metrics_of("node") if each.name not in HARDWARE | NITRO], ids=lambda each: each.name
)
def test_a_metric_has_the_type_and_labels_of_node_exporter(served, each):
    _agrees(each, served)


@pytest.mark.parametrize(
    "each", [each for each in metrics_of("node") if each.name in HARDWARE], ids=lambda each: each.name
)
def test_a_metric_of_hardware_has_the_type_and_labels_of_node_exporter(hardware, each):
    _agrees(each, hardware)


@pytest.mark.parametrize("each", [*metrics_of("efa"), *metrics_of("lustre")], ids=lambda m: m.name)
def test_files_of_the_textfile_folder_are_served_under_their_names(served, each):
    _agrees(each, served)


def test_only_what_a_test_machine_cannot_have_is_left_out():
    assert len(HARDWARE | NITRO) == 9
