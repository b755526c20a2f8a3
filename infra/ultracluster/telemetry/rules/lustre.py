"""FSx for Lustre as clients see it: capacity, traffic, mounts and networks. What only FSx knows is in CloudWatch."""

from collections.abc import Iterator

from ultracluster.telemetry.rules.catalogue import EFA_DEVICES
from ultracluster.telemetry.rules.expressions import collected
from ultracluster.telemetry.rules.model import CLUSTER, NODE, Alert, Group, Recording, Severity
from ultracluster.telemetry.rules.site import Site
from ultracluster.telemetry.thresholds import LUSTRE_ALMOST_FULL, LUSTRE_FULL, LUSTRE_SATURATED, Threshold

_TARGET = f"{CLUSTER}, target"
_WHERE = "{{ $labels.node }} ({{ $labels.instance_type }})"
_USED, _AVAILABLE = "filesystem:lustre_used:ratio", "filesystem:lustre_available_bytes:min"
_WRITTEN = "filesystem:lustre_write_bytes:rate"


def group(site: Site) -> Group:
    """Recorded capacity and traffic, and alerts."""
    return Group("lustre", (*_recordings(site), *_capacity(), *_throughput(site), *_clients(site)))


def _recordings(site: Site) -> Iterator[Recording]:
    available, capacity = (
        f"({each} ({_TARGET}) (lustre_{of}_kibibytes))"
        for each, of in (("min by", "available"), ("max by", "capacity"))
    )
    yield Recording(_USED, f"1 - {available} / ({capacity} > 0)")
    yield Recording(_AVAILABLE, f"1024 * {available}")
    for way in ("read", "write"):
        rate = f"sum by ({{}}) (rate(lustre_{way}_bytes_total[{site.window(5)}]))"
        yield Recording(f"filesystem:lustre_{way}_bytes:rate", rate.format(_TARGET))
        yield Recording(f"node:lustre_{way}_bytes:rate", rate.format(f"{NODE}, target"))


def _capacity() -> Iterator[Alert]:
    yield _full("LustreFull", LUSTRE_FULL, "warning", f" < {LUSTRE_ALMOST_FULL.value}")
    yield _full("LustreAlmostFull", LUSTRE_ALMOST_FULL, "critical", "")
    yield Alert(
        name="LustreFullWithinADay",
        expr=f"predict_linear({_AVAILABLE}[6h], 24 * 3600)\n< 0\nand\n{_USED}\n> 0.5",
        severity="warning",
        component="lustre",
        scope="cluster",
        sustained="1h",
        keep="1h",
        summary="{{ $labels.target }} of {{ $labels.environment }} will be full within a day",
        description="The file system fills as fast as in the last six hours would leave no space in 24 hours.",
        action="Find who writes with `lfs quota`, and remove or release files.",
    )
    yield Alert(
        name="LustreFewInodes",
        expr=f"min by ({_TARGET}) (lustre_inodes_free)\n/ (max by ({_TARGET}) (lustre_inodes_maximum) > 0)\n< 0.05",
        severity="warning",
        component="lustre",
        scope="cluster",
        sustained="30m",
        summary="{{ $labels.target }} of {{ $labels.environment }} has {{ $value | humanizePercentage }} of its inodes "
        "left",
        description="Without a free inode no file can be created, whatever the free space.",
        action="Remove small files, or pack them into archives.",
    )


def _full(name: str, limit: Threshold, severity: Severity, below: str) -> Alert:
    return Alert(
        name=name,
        expr=f"{_USED}\n>= {limit.value}{below}",
        severity=severity,
        component="lustre",
        scope="cluster",
        sustained="10m",
        keep="10m",
        summary="{{ $labels.target }} of {{ $labels.environment }} is {{ $value | humanizePercentage }} full",
        description="Checkpoints fail when the file system is full, and writes slow down before that.",
        action="Release files that are in S3, remove old checkpoints, or raise capacity_gib.",
    )


def _throughput(site: Site) -> Iterator[Alert]:
    if site.lustre_mb_per_s is None:
        return
    yield Alert(
        name="LustreWritesSaturated",
        expr=f"{_WRITTEN} / ({site.lustre_mb_per_s} * 1e6)\n> {LUSTRE_SATURATED.value}",
        severity="warning",
        component="lustre",
        scope="cluster",
        sustained="15m",
        keep="10m",
        summary="{{ $labels.target }} of {{ $labels.environment }} writes at {{ $value | humanizePercentage }} of its "
        "throughput",
        description=f"Clients write as fast as the disks of the file system can, {site.lustre_mb_per_s} MB/s, so jobs "
        "wait. A checkpoint that lasts minutes does not raise this alert.",
        action="Raise throughput_mbps_per_tib or capacity_gib, or write checkpoints of fewer ranks at a time.",
    )


def _clients(site: Site) -> Iterator[Alert]:
    yield Alert(
        name="LustreNotMounted",
        expr=f"min by ({NODE}, target, mountpoint) (lustre_mounted)\n== 0\n"
        f"and on ({CLUSTER}, node)\n{collected('lustre')}",
        severity="critical",
        component="lustre",
        scope="node",
        sustained="5m",
        keep="5m",
        repair="reset",
        summary=f"{{{{ $labels.mountpoint }}}} is not mounted on {_WHERE}",
        description="Jobs on the node do not find their data, or write to the node's own disk.",
        action="Drain the node, look at the unit of the mount, and mount it.",
    )
    yield Alert(
        name="LustreServerDisconnected",
        expr=f"count by ({NODE}, target) (lustre_import_full == 0)",
        severity="warning",
        component="lustre",
        scope="node",
        sustained="10m",
        keep="5m",
        summary=f"{_WHERE} lost {{{{ $value }}}} servers of {{{{ $labels.target }}}}",
        description="The client has no connection to object or metadata servers. Processes that use their files hang.",
        action="Check security groups and LNet with `lctl ping`; many nodes point to the file system.",
    )
    if site.lustre_efa:
        others = f', node_group!~"{"|".join(site.lustre_tcp_groups)}"' if site.lustre_tcp_groups else ""
        yield Alert(
            name="LustreOverTcp",
            expr=f'count by ({NODE}, target) (lustre_import_network{{network="tcp"{others}}} == 1)\n'
            f"and on (instance_type)\n{EFA_DEVICES}",
            severity="warning",
            component="lustre",
            scope="node",
            sustained="15m",
            keep="5m",
            summary=f"{_WHERE} uses TCP to {{{{ $value }}}} servers of {{{{ $labels.target }}}}",
            description="The file system has EFA enabled, but the client fell back to TCP, which is limited to 100 "
            "Gbps per client and 5 Gbps per server, without GPUDirect Storage.",
            action="Run the EFA set-up of the Lustre client again when the job has ended, and remount.",
        )
