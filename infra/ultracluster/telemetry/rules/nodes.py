"""Alerts on nodes: GPUs and exporters that are not there, disks, clocks, memory and units."""

from collections.abc import Iterator

from ultracluster.telemetry.rules.catalogue import GPUS
from ultracluster.telemetry.rules.expressions import COLLECTED_SECONDS, worst
from ultracluster.telemetry.rules.model import CLUSTER, JOB, NODE, OF_JOB, Alert, Group, Recording
from ultracluster.telemetry.rules.site import Site
from ultracluster.telemetry.thresholds import CLOCK_OFFSET, DISK_FULL

_WHERE = "{{ $labels.node }} ({{ $labels.instance_type }})"
_COLLECTED = 'file=~"(.*/)?(efa|lustre)[.]prom"'
"""Files of our collectors; those of a job stay when the job ends."""
_UP = f'max by ({NODE}) (up{{job="node"}}) == 1'
STARTS_SECONDS = 1200
"""Time after a boot in which DCGM exporter may still start: its image is pulled, and DCGM takes minutes on 8 GPUs."""
_ENDS_ON_PURPOSE = "karpenter[.]sh/disrupted|node[.]kubernetes[.]io/unschedulable"
"""Taints of a node that Karpenter or an administrator is about to terminate."""
_IGNORED_UNITS = "|".join(("run-.+", "user@.+", ".*-wait-online[.]service"))
"""Units whose failure is no fault of the node: those of systemd-run and of sessions, which end with a user's program,
and those that wait at boot for network interfaces, of which EFA's never get an address."""


def group(site: Site) -> Group:
    """Recorded counts, and alerts."""
    return Group("nodes", (_gpus(), *_visibility(), _vanished(site), *_collectors(site), *_host(site)))


def _gpus() -> Recording:
    return Recording("node:gpus:count", f"count by ({NODE}) ({worst('DCGM_FI_DEV_GPU_TEMP')})")


def _visibility() -> Iterator[Alert]:
    yield Alert(
        name="GpuMissing",
        expr=f"node:gpus:count\n< on (instance_type) group_left ()\n{GPUS}",
        severity="critical",
        component="gpu",
        scope="node",
        sustained="10m",
        keep="10m",
        repair="reset",
        summary=f"Only {{{{ $value }}}} GPUs on {_WHERE}",
        description="DCGM reports fewer GPUs than the instance type has. A GPU fell off the bus or failed to start.",
        action="Drain the node and reboot it; replace the instance when the GPU stays away.",
    )
    # a new instance under the name of an old one, as PCS launches it, has other GPUs, and as many of them
    gone = f"{worst('DCGM_FI_DEV_GPU_TEMP offset 15m')}"
    yield Alert(
        name="GpuVanished",
        expr=f"({gone}\nunless on ({CLUSTER}, node, UUID)\n{worst('DCGM_FI_DEV_GPU_TEMP')})\n"
        f"and on ({CLUSTER}, node)\n(node:gpus:count < node:gpus:count offset 15m)",
        severity="critical",
        component="gpu",
        scope="gpu",
        sustained="2m",
        keep="30m",
        repair="reset",
        summary=f"GPU {{{{ $labels.gpu }}}} ({{{{ $labels.UUID }}}}) vanished from {_WHERE}",
        description="DCGM reported the GPU 15 minutes ago and does not any more, while it reports other GPUs of the "
        "node, fewer than before. Its last temperature was {{ $value }} degrees Celsius.",
        action="Drain the node and reboot it; replace the instance when the GPU stays away.",
    )
    accelerated = f"and on (instance_type)\n{GPUS}"
    started = (
        f"and on ({CLUSTER}, node)\n(time() - max by ({CLUSTER}, node) (node_boot_time_seconds) > {STARTS_SECONDS})"
    )
    yield Alert(
        name="GpuExporterSilent",
        expr=f'(({_UP})\nunless on ({CLUSTER}, node)\n(max by ({NODE}) (up{{job="dcgm"}}) == 1))\n{accelerated}\n'
        f"{started}",
        severity="critical",
        component="telemetry",
        scope="node",
        sustained="10m",
        keep="5m",
        summary=f"No GPU metrics from {_WHERE}",
        description="The node answers, and its DCGM exporter does not. Faults of its GPUs raise no alert. In the "
        f"first {STARTS_SECONDS // 60} minutes after a boot the exporter may still start.",
        action="Restart DCGM exporter; a driver that hangs needs a reboot of the node.",
    )
    yield Alert(
        name="NodeExporterSilent",
        expr=f'(max by ({NODE}) (up{{job="node"}}) == 0)',
        severity="warning",
        component="telemetry",
        scope="node",
        sustained="10m",
        keep="5m",
        summary=f"No node metrics from {_WHERE}",
        description="Node exporter does not answer, so EFA, Lustre and the host are not watched. The node may be down.",
        action="Check whether the scheduler sees the node, then restart node exporter.",
    )


def _vanished(site: Site) -> Alert:
    """A node that vanished under a job. One that was idle or tainted before was terminated on purpose.

    Where PCS terminates a node sooner after its job than a scrape would see it idle, the two cannot be told apart: then
    the alert is a warning and drains nothing.
    """
    part = f"{CLUSTER}, node_group, instance_type, node, team, workload"
    busy = f'max by ({part}, UUID) (DCGM_FI_DEV_GPU_UTIL{{workload!=""}} offset 10m)'
    idle = f'max by ({CLUSTER}, node, UUID) (max_over_time(DCGM_FI_DEV_GPU_UTIL{{workload=""}}[10m]))'
    here = f'max by ({CLUSTER}, node) (up{{job=~"node|dcgm"}} == 1)'
    tainted = f'max by ({CLUSTER}, node) (max_over_time(kube_node_spec_taint{{key=~"{_ENDS_ON_PURPOSE}"}}[20m]))'
    unless_tainted = f"\nunless on ({CLUSTER}, node)\n{tainted}" if site.plane == "eks" else ""
    still = f'max by ({JOB}) (DCGM_FI_DEV_GPU_UTIL{{workload!=""}})'
    sure = site.idle_seconds is None or site.idle_seconds >= 60 * int(site.window(1)[:-1])
    doubt = "" if sure else " PCS may also have terminated it, since it does so soon after a node's last job."
    return Alert(
        name="NodeVanished",
        expr=f"max by ({part}) ({busy}\nunless on ({CLUSTER}, node)\n{here}\n"
        f"unless on ({CLUSTER}, node, UUID)\n{idle}){unless_tainted}\nand on ({JOB})\n{still}",
        severity="critical" if sure else "warning",
        component="node",
        scope="node",
        sustained="2m",
        keep="30m",
        repair="replace" if sure else None,
        summary=f"{_WHERE} vanished during {OF_JOB}",
        description="The node sent metrics of the job ten minutes ago and sends none now, while other nodes of the job "
        f"do. The instance failed, or its network did.{doubt}",
        action="Check the instance in EC2, and that the job restarts without the node.",
    )


def _collectors(site: Site) -> Iterator[Alert]:
    yield Alert(
        name="NodeCollectorStale",
        expr=f"time() - max by ({NODE}, file) (node_textfile_mtime_seconds{{{_COLLECTED}}})\n> {COLLECTED_SECONDS}",
        severity="warning",
        component="telemetry",
        scope="node",
        sustained="5m",
        summary=f"{{{{ $labels.file }}}} of {_WHERE} is old",
        description="The script that writes the file has not run for {{ $value | humanizeDuration }}. EFA or Lustre "
        "metrics of the node stand still, so their alerts are blind.",
        action="Look at the timer of the collector with `systemctl list-timers`, and at its log with `journalctl`.",
    )
    groups = f'node_group=~"{"|".join(site.groups)}"'
    up = f'max by ({NODE}) (up{{job="node", {groups}}} == 1)'
    with_efa = f'node_group=~"{"|".join(site.efa_groups)}"'
    expected = {"efa.prom": f'max by ({NODE}) (up{{job="node", {with_efa}}} == 1)'} if site.efa_groups else {}
    if site.lustre:
        expected["lustre.prom"] = up
    if not expected:
        return
    without = (
        f"label_replace({nodes}\nunless on ({CLUSTER}, node)\n"
        f'node_textfile_mtime_seconds{{file=~"(.*/)?{file}"}}, "file", "{file}", "", "")'
        for file, nodes in expected.items()
    )
    yield Alert(
        name="NodeCollectorMissing",
        expr="\nor\n".join(without),
        severity="warning",
        component="telemetry",
        scope="node",
        sustained="15m",
        keep="5m",
        summary=f"{_WHERE} sends no {{{{ $labels.file }}}}",
        description="The node answers, but the script that writes the file has never run on it, or node exporter "
        "cannot read the file. Alerts on EFA or Lustre are blind for the node.",
        action="Run `systemctl status` of the collector's timer and service, and read its log with `journalctl`.",
    )


def _host(site: Site) -> Iterator[Alert]:
    local = 'fstype!~"tmpfs|overlay|squashfs"'
    device = f"{NODE}, mountpoint"
    used = (
        f"1 - max by ({device}) (node_filesystem_avail_bytes{{{local}}})\n"
        f"/ max by ({device}) (node_filesystem_size_bytes{{{local}}})"
    )
    yield Alert(
        name="NodeDiskFull",
        expr=f"{used}\n> {DISK_FULL.value}",
        severity="warning",
        component="node",
        scope="node",
        sustained="10m",
        keep="10m",
        summary=f"{{{{ $labels.mountpoint }}}} of {_WHERE} is {{{{ $value | humanizePercentage }}}} full",
        description="A full disk stops containers, logs and checkpoints on local disks.",
        action="Remove images, logs or scratch files of jobs that ended.",
    )
    yield Alert(
        name="NodeFileSystemReadOnly",
        expr=f'max by ({device}) (node_filesystem_readonly{{{local}, device=~"/dev/.*"}})\n== 1',
        severity="critical",
        component="node",
        scope="node",
        sustained="2m",
        keep="10m",
        repair="replace",
        summary=f"{{{{ $labels.mountpoint }}}} of {_WHERE} is read-only",
        description="The kernel mounts a file system read-only after errors of its disk.",
        action="Drain the node and replace its instance.",
    )
    yield Alert(
        name="NodeDiskFailed",
        expr=f'sum by ({NODE}) (node_md_disks{{state="failed"}})\n> 0',
        severity="critical",
        component="node",
        scope="node",
        sustained="2m",
        keep="10m",
        repair="replace",
        summary=f"{{{{ $value }}}} disks failed on {_WHERE}",
        description="A local NVMe disk of the striped scratch volume failed; the data on the volume is lost.",
        action="Drain the node and replace its instance.",
    )
    yield Alert(
        name="NodeUnhealthy",
        expr=f'max by ({NODE}, check) (node_health_verdict{{level="fast"}})\n>= 2',
        severity="warning",
        component="node",
        scope="node",
        sustained="10m",
        keep="5m",
        summary=f"The health check {{{{ $labels.check }}}} fails on {_WHERE}",
        description="The node takes no further job: on Slurm it is drained with the reason, on EKS it keeps its "
        "startup taint. Its jobs run to their end.",
        action="Read the verdict: `sinfo -R`, or on EKS `kubectl get events`, and do what it says.",
    )
    yield Alert(
        name="NodeMemoryErrors",
        expr=f"sum by ({NODE}) (increase(node_edac_uncorrectable_errors_total[{site.window(15)}]))\n> 0",
        severity="critical",
        component="node",
        scope="node",
        keep="30m",
        repair="replace",
        summary=f"Uncorrectable errors of host memory on {_WHERE}",
        description="The host's memory had errors that ECC cannot correct.",
        action="Drain the node and replace its instance.",
    )
    failed = f'node_systemd_unit_state{{state="failed", name!~"{_IGNORED_UNITS}"}}'
    unit = f'label_replace({failed}, "unit", "$1", "name", "(.*)")'
    yield Alert(
        name="NodeUnitFailed",
        expr=f"max by ({NODE}, unit) ({unit})\n== 1",
        severity="warning",
        component="node",
        scope="node",
        sustained="10m",
        keep="5m",
        summary=f"Unit {{{{ $labels.unit }}}} failed on {_WHERE}",
        description="A systemd unit of the node failed and was not restarted.",
        action="Read `systemctl status` and `journalctl -u` of the unit.",
    )
    offset = f"max by ({NODE}) (abs(node_timex_offset_seconds))\n> {CLOCK_OFFSET.value}"
    yield Alert(
        name="NodeClockOff",
        expr=f"{offset}\nor\nmax by ({NODE}) (node_timex_sync_status)\n== 0",
        severity="warning",
        component="node",
        scope="node",
        sustained="10m",
        keep="5m",
        summary=f"The clock of {_WHERE} is not synchronised",
        description="Munge refuses credentials, TLS and SigV4 fail, and logs do not match when clocks differ.",
        action="Check chronyd and its source 169.254.169.123.",
    )
    yield Alert(
        name="NodeOutOfMemory",
        expr=f"max by ({NODE}) (increase(node_vmstat_oom_kill[{site.window(10)}]))\n> 0",
        severity="info",
        component="node",
        scope="node",
        keep="10m",
        summary=f"The kernel killed processes of {_WHERE} for memory",
        description="{{ $value | humanize }} processes were killed within ten minutes. The job usually fails.",
        action="Tell the owner of the job; data loaders with many workers are the usual cause.",
    )
    dropped = (
        f"max by ({NODE}) (rate(node_ethtool_{each}_allowance_exceeded[{site.window(5)}]))\n> 1"
        for each in ("conntrack", "linklocal")
    )
    yield Alert(
        name="NodeNetworkAllowanceExceeded",
        expr="\nor\n".join(dropped),
        severity="warning",
        component="node",
        scope="node",
        sustained="15m",
        keep="5m",
        summary=f"EC2 drops packets of {_WHERE}",
        description="The node tracks too many connections, or asks DNS, IMDS or time sync more often than EC2 allows, "
        "so EC2 drops {{ $value | humanize }} packets per second. Names do not resolve, or credentials cannot be "
        "renewed.",
        action="Find the process with many connections or DNS queries; cache names on the node.",
    )
