"""Alerts on nodes, EFA and Lustre."""

from tests.telemetry.rules.case import Case
from tests.telemetry.rules.series import (
    CLUSTER,
    GPU,
    JOB,
    NODE,
    Series,
    absent,
    burst,
    fault,
    gone,
    of_cluster,
    on_gpu,
    on_node,
    rising,
    series,
    steady,
    then,
)

_N1 = "n1 (p5.48xlarge)"
_CPU_NODE = {**NODE, "node_group": "prep", "instance_type": "c7i.48xlarge"}
"""A node of a CPU group, whose type could have EFA."""
_MINUTES = 200


def _up(job: str, values: str, **more: str) -> dict[str, str]:
    return on_node("up", values, job=job, **more)


def _gpus(count: int, values: str, first: int = 0) -> dict[str, str]:
    named = {f"gpu{number}": (str(number), f"GPU-{number}") for number in range(first, first + count)}
    return {series("DCGM_FI_DEV_GPU_TEMP", NODE, gpu=gpu, UUID=uuid): values for gpu, uuid in named.values()}


def _efa(metric: str, count: int, values: str, first: int = 0) -> dict[str, str]:
    return {
        series(f"node_amazonefa_{metric}", NODE, device=f"rdmap{number}", port="1"): values
        for number in range(first, first + count)
    }


def _written(file: str, minutes: int = 300, node: str = "n1") -> dict[str, str]:
    """The collector writes the file each minute."""
    return {
        series("node_textfile_mtime_seconds", {**NODE, "node": node}, file=f"/host/textfile/{file}.prom"): rising(
            0, 60, minutes
        )
    }


def _gauge(alert: str, metric: str, good: float, bad: float, fires: int, summary: str, **labels: str) -> Case:
    alike = {"healthy": on_node(metric, steady(good, 120), **labels)}
    if fires > 13:
        alike["one bad sample"] = on_node(metric, fault(good, bad, minutes=1), **labels)
    kept = {name: value for name, value in labels.items() if name in _KEPT.get(alert, ())}
    return Case(alert, on_node(metric, fault(good, bad), **labels), fires, 120, ({**NODE, **kept},), summary, alike)


_KEPT = {
    "NodeFileSystemReadOnly": ("mountpoint",),
    "LustreServerDisconnected": ("target",),
}


def _efa_errors(alert: str, counter: str, step: float, small: float, text: str) -> Case:
    metric = f"node_amazonefa_{counter}"
    device = {"device": "rdmap0", "port": "1"}
    return Case(
        alert,
        on_node(metric, burst(step), **device),
        fires=25,
        clears=120,
        labels=(NODE,),
        summary=f"{text} in five minutes on {_N1}",
        look_alikes={
            "a large count since boot": on_node(metric, steady(4e9, 120), **device),
            "a few": on_node(metric, burst(small, minutes=100), **device),
            "a short burst": on_node(metric, burst(step, minutes=2), **device),
            "the driver was loaded again": on_node(metric, then(steady(5e6, 30), steady(10, 90)), **device),
        },
    )


_BOOTED = on_node("node_boot_time_seconds", steady(0, _MINUTES))
_LEFT = {
    series("DCGM_FI_DEV_GPU_UTIL", {**GPU, "node": "n2", "UUID": "GPU-9"}, **JOB): steady(99, 190),
    series("up", {**NODE, "node": "n2"}, job="node"): steady(1, 190),
}
"""Another node of the job, which works on."""


def _vanishing(idle: int = 0) -> dict[str, str]:
    """A node that ends at minute 30; its job left it `idle` minutes before."""
    return {
        **_up("node", then(steady(1, 30), gone(100))),
        **on_gpu("DCGM_FI_DEV_GPU_UTIL", then(steady(99, 30 - idle), gone(100 + idle)), **JOB),
        **(
            on_gpu("DCGM_FI_DEV_GPU_UTIL", then(absent(30 - idle), steady(0, idle), gone(100)), team="", workload="")
            if idle
            else {}
        ),
    }


def _tainted(key: str) -> dict[str, str]:
    return {
        series("kube_node_spec_taint", CLUSTER, node="n1", key=key, effect="NoSchedule"): then(
            absent(28), steady(1, 2), gone(100)
        )
    }


VISIBILITY = (
    Case(
        "GpuMissing",
        {**_gpus(7, steady(50, _MINUTES)), **_gpus(1, then(steady(50, 10), gone(60), steady(50, 120)), first=7)},
        fires=28,
        clears=100,
        labels=(NODE,),
        summary=f"Only 7 GPUs on {_N1}",
        look_alikes={
            "all GPUs": _gpus(8, steady(50, 100)),
            "the node boots": {**_gpus(7, steady(50, 100)), **_gpus(1, then(absent(6), steady(50, 94)), first=7)},
            "a type that is not in the catalogue": {
                series("DCGM_FI_DEV_GPU_TEMP", {**NODE, "instance_type": "g5.xlarge"}, gpu="0", UUID="G"): steady(
                    50, 100
                )
            },
            "the node is terminated": _gpus(8, then(steady(50, 10), gone(90))),
        },
    ),
    Case(
        "GpuVanished",
        {**_gpus(7, steady(50, _MINUTES)), **_gpus(1, then(steady(61, 30), gone(170)), first=7)},
        fires=36,
        clears=120,
        labels=({**NODE, "gpu": "7", "UUID": "GPU-7"},),
        summary=f"GPU 7 (GPU-7) vanished from {_N1}",
        look_alikes={
            "the node is terminated": _gpus(8, then(steady(50, 30), gone(90))),
            "PCS launches a new instance under the name of the node": {
                **_gpus(8, then(steady(50, 30), gone(90))),
                **_gpus(8, then(absent(36), steady(45, 84)), first=10),
            },
            "a scrape failed": {
                **_gpus(7, steady(50, 120)),
                **_gpus(1, then(steady(50, 30), absent(2), steady(50, 88)), first=7),
            },
        },
    ),
    Case(
        "GpuExporterSilent",
        {**_up("node", steady(1, _MINUTES)), **_up("dcgm", fault(1, 0)), **_BOOTED},
        fires=32,
        clears=100,
        labels=(NODE,),
        summary=f"No GPU metrics from {_N1}",
        look_alikes={
            "both answer": {**_up("node", steady(1, 100)), **_up("dcgm", steady(1, 100)), **_BOOTED},
            "many nodes start: DCGM takes its time": {
                **_up("node", then(absent(40), steady(1, 60))),
                **_up("dcgm", then(absent(40), steady(0, 19), steady(1, 41))),
                **on_node("node_boot_time_seconds", then(absent(40), steady(40 * 60, 60))),
            },
            "a node without GPUs": {
                series("up", {**NODE, "instance_type": "m7i.2xlarge"}, job="node"): steady(1, 100),
                **_BOOTED,
            },
            "a CPU group": {series("up", _CPU_NODE, job="node"): steady(1, 100), **_BOOTED},
            "the node is down": {**_up("node", fault(1, 0)), **_up("dcgm", fault(1, 0)), **_BOOTED},
            "a restart": {**_up("node", steady(1, 100)), **_up("dcgm", fault(1, 0, after=40, minutes=5)), **_BOOTED},
        },
    ),
    Case(
        "NodeExporterSilent",
        _up("node", fault(1, 0)),
        fires=28,
        clears=100,
        labels=(NODE,),
        summary=f"No node metrics from {_N1}",
        look_alikes={
            "a restart": _up("node", fault(1, 0, minutes=5)),
            "the node is terminated": _up("node", then(steady(1, 10), gone(90))),
        },
    ),
    Case(
        "NodeVanished",
        {
            **_up("node", then(steady(1, 30), gone(100), steady(1, 60))),
            **on_gpu("DCGM_FI_DEV_GPU_UTIL", then(steady(99, 30), gone(100), steady(99, 60)), **JOB),
            **_LEFT,
        },
        fires=36,
        clears=100,
        labels=({**NODE, **JOB},),
        summary=f"{_N1} vanished during job 42 of vision",
        look_alikes={
            "the job was requeued onto another node, and PCS ends the idle one": {**_vanishing(idle=3), **_LEFT},
            "another team's job of the same name goes on": {
                **_vanishing(),
                series("DCGM_FI_DEV_GPU_UTIL", {**GPU, "node": "n2"}, team="speech", workload="42"): steady(99, 130),
                series("up", {**NODE, "node": "n2"}, job="node"): steady(1, 130),
            },
            "the job ended and the node went": {
                **_up("node", then(steady(1, 30), gone(100))),
                **on_gpu("DCGM_FI_DEV_GPU_UTIL", then(steady(99, 30), gone(100)), **JOB),
            },
            "only the exporter of GPUs restarted": {
                **_up("node", steady(1, 120)),
                **on_gpu("DCGM_FI_DEV_GPU_UTIL", then(steady(99, 30), gone(20), steady(99, 70)), **JOB),
                series("DCGM_FI_DEV_GPU_UTIL", {**GPU, "node": "n2"}, **JOB): steady(99, 120),
                series("up", {**NODE, "node": "n2"}, job="node"): steady(1, 120),
            },
        },
    ),
    Case(
        "NodeVanished",
        {**_vanishing(), **_LEFT},
        fires=36,
        clears=100,
        labels=({**NODE, **JOB},),
        summary=f"{_N1} vanished during job 42 of vision",
        look_alikes={
            "an inference fleet shrinks, and Karpenter ends the empty node": {**_vanishing(idle=10), **_LEFT},
            "Karpenter replaces a node with pods": {**_vanishing(), **_LEFT, **_tainted("karpenter.sh/disrupted")},
            "somebody drained the node": {**_vanishing(), **_LEFT, **_tainted("node.kubernetes.io/unschedulable")},
        },
        plane="eks",
    ),
    Case(
        "NodeCollectorMissing",
        {
            **_up("node", steady(1, _MINUTES)),
            **on_node(
                "node_textfile_mtime_seconds",
                then(rising(0, 60, 10), gone(60), rising(70 * 60, 60, 130)),
                file="/host/textfile/efa.prom",
            ),
            **_written("lustre"),
        },
        fires=40,
        clears=100,
        labels=({**NODE, "file": "efa.prom"},),
        summary=f"{_N1} sends no efa.prom",
        look_alikes={
            "both files": {**_up("node", steady(1, 100)), **_written("efa"), **_written("lustre")},
            "the node boots": {
                **_up("node", steady(1, 100)),
                **on_node("node_textfile_mtime_seconds", then(absent(10), rising(600, 60, 90)), file="efa.prom"),
                **on_node("node_textfile_mtime_seconds", then(absent(10), rising(600, 60, 90)), file="lustre.prom"),
            },
            "a login node": {series("up", {**NODE, "node_group": "login"}, job="node"): steady(1, 100)},
            "a CPU group without EFA": {series("up", _CPU_NODE, job="node"): steady(1, 100), **_written("lustre")},
            "the node is down": _up("node", steady(0, 100)),
        },
    ),
    Case(
        "NodeCollectorStale",
        on_node(
            "node_textfile_mtime_seconds",
            then(rising(0, 60, 30), steady(1740, 60), rising(5400, 60, 60)),
            file="/textfile/efa.prom",
        ),
        fires=60,
        clears=100,
        labels=({**NODE, "file": "/textfile/efa.prom"},),
        summary=f"/textfile/efa.prom of {_N1} is old",
        look_alikes={
            "a file that a job left": on_node(
                "node_textfile_mtime_seconds", steady(60, 120), file="/textfile/training.prom"
            ),
            "written each minute": on_node(
                "node_textfile_mtime_seconds", rising(0, 60, 120), file="/textfile/efa.prom"
            ),
        },
    ),
)

_DISK = {"fstype": "xfs", "device": "/dev/nvme0n1p1", "mountpoint": "/"}


def _unit(name: str, values: str) -> dict[str, str]:
    return on_node("node_systemd_unit_state", values, name=name, state="failed")


HOST = (
    Case(
        "NodeDiskFull",
        {
            **on_node("node_filesystem_avail_bytes", fault(50, 5), **_DISK),
            **on_node("node_filesystem_size_bytes", steady(100, 190), **_DISK),
        },
        fires=28,
        clears=100,
        labels=({**NODE, "mountpoint": "/"},),
        summary=f"/ of {_N1} is 95% full",
        look_alikes={
            "a full tmpfs": {
                **on_node("node_filesystem_avail_bytes", steady(0, 100), fstype="tmpfs", mountpoint="/run"),
                **on_node("node_filesystem_size_bytes", steady(100, 100), fstype="tmpfs", mountpoint="/run"),
            },
            "85 % full": {
                **on_node("node_filesystem_avail_bytes", steady(15, 100), **_DISK),
                **on_node("node_filesystem_size_bytes", steady(100, 100), **_DISK),
            },
        },
    ),
    _gauge("NodeFileSystemReadOnly", "node_filesystem_readonly", 0, 1, 15, f"/ of {_N1} is read-only", **_DISK),
    _gauge("NodeDiskFailed", "node_md_disks", 0, 1, 15, f"1 disks failed on {_N1}", state="failed", device="md0"),
    Case(
        "NodeUnhealthy",
        on_node("node_health_verdict", fault(0, 5), level="fast", check="memory"),
        fires=25,
        clears=120,
        labels=({**NODE, "check": "memory"},),
        summary=f"The health check memory fails on {_N1}",
        look_alikes={
            "healthy": on_node("node_health_verdict", steady(0, 120), level="fast", check="memory"),
            "a field that the driver lacks": on_node("node_health_verdict", steady(1, 120), level="fast", check="gpus"),
            "diagnostics of a drained node": on_node("node_health_verdict", steady(4, 120), level="full", check="dcgm"),
        },
    ),
    Case(
        "NodeMemoryErrors",
        on_node("node_edac_uncorrectable_errors_total", then(steady(0, 30), steady(2, 170)), controller="0"),
        fires=35,
        clears=100,
        labels=(NODE,),
        summary=f"Uncorrectable errors of host memory on {_N1}",
        look_alikes={
            "old errors": on_node("node_edac_uncorrectable_errors_total", steady(2, 100), controller="0"),
            "corrected errors": on_node("node_edac_correctable_errors_total", rising(0, 5, 100), controller="0"),
        },
    ),
    Case(
        "NodeUnitFailed",
        _unit("nvidia-fabricmanager.service", fault(0, 1)),
        fires=25,
        clears=120,
        labels=({**NODE, "unit": "nvidia-fabricmanager.service"},),
        summary=f"Unit nvidia-fabricmanager.service failed on {_N1}",
        look_alikes={
            "healthy": _unit("nvidia-fabricmanager.service", steady(0, 120)),
            "one bad sample": _unit("nvidia-fabricmanager.service", fault(0, 1, minutes=1)),
            "interfaces of EFA get no address": _unit("systemd-networkd-wait-online.service", steady(1, 120)),
            "what a user ran": {
                **_unit("run-u42.service", steady(1, 120)),
                **_unit("user@1000.service", steady(1, 120)),
            },
        },
    ),
    _gauge("NodeClockOff", "node_timex_sync_status", 1, 0, 25, f"The clock of {_N1} is not synchronised"),
    Case(
        "NodeOutOfMemory",
        on_node("node_vmstat_oom_kill", then(steady(3, 30), steady(4, 170))),
        fires=35,
        clears=70,
        labels=(NODE,),
        summary=f"The kernel killed processes of {_N1} for memory",
        look_alikes={"long ago": on_node("node_vmstat_oom_kill", steady(7, 100))},
    ),
    Case(
        "NodeNetworkAllowanceExceeded",
        on_node("node_ethtool_conntrack_allowance_exceeded", burst(600), device="ens5"),
        fires=35,
        clears=100,
        labels=(NODE,),
        summary=f"EC2 drops packets of {_N1}",
        look_alikes={
            "a few": on_node("node_ethtool_conntrack_allowance_exceeded", rising(0, 10, 100), device="ens5"),
            "bandwidth is at its limit, as in training": on_node(
                "node_ethtool_bw_out_allowance_exceeded", rising(0, 9000, 100), device="ens5"
            ),
        },
    ),
)

_EFA_UP = _up("node", steady(1, _MINUTES))

EFA = (
    Case(
        "EfaDeviceMissing",
        {
            **_EFA_UP,
            **_efa("port_state", 31, steady(4, _MINUTES)),
            **_efa("port_state", 1, fault(4, 1), first=31),
            **_written("efa"),
        },
        fires=28,
        clears=100,
        labels=(NODE,),
        summary=f"Only 31 active EFA devices on {_N1}",
        look_alikes={
            "all devices": {**_EFA_UP, **_efa("port_state", 32, steady(4, 100)), **_written("efa")},
            "the collector never ran": {**_EFA_UP, **_written("lustre")},
            "the collector stopped while a device was reset": {
                **_EFA_UP,
                **_efa("port_state", 31, steady(4, 100)),
                **on_node("node_textfile_mtime_seconds", steady(0, 100), file="/host/textfile/efa.prom"),
            },
            "a pool of Karpenter, whose nodes may have none": {
                series("up", {**NODE, "node_group": "karpenter-p5"}, job="node"): steady(1, 100),
                **_written("efa"),
            },
            "a CPU group without EFA": {series("up", _CPU_NODE, job="node"): steady(1, 100), **_written("efa")},
            "a node without EFA": {
                series("up", {**NODE, "instance_type": "m7i.large"}, job="node"): steady(1, 100),
                **_written("efa"),
            },
        },
    ),
    Case(
        "EfaDeviceMissing",
        {
            **_EFA_UP,
            **_efa("port_state", 32, then(steady(4, 10), gone(60), steady(4, 100))),
            **_written("efa"),
        },
        fires=28,
        clears=100,
        labels=(NODE,),
        summary=f"Only 0 active EFA devices on {_N1}",
        look_alikes={},
    ),
    _efa_errors("EfaRetransmitTimeouts", "retrans_timeout_events", 60, 5, "300 retransmission timeouts"),
    _efa_errors(
        "EfaUnresponsiveRemote", "unresponsive_remote_events", 60, 5, "300 times without an answer of a remote node"
    ),
    _efa_errors("EfaImpairedConnections", "impaired_remote_conn_events", 60, 5, "300 impaired connections"),
    _efa_errors("EfaReceiveDrops", "rx_drops", 60, 5, "300 dropped packets"),
    _efa_errors("EfaRdmaErrors", "rdma_write_wr_err", 60, 5, "300 failed RDMA requests"),
    _efa_errors("EfaRetransmits", "retrans_pkts", 600, 60, "3k retransmitted packets"),
)


def _fs(metric: str, values: str, **more: str) -> dict[str, str]:
    return on_node(f"lustre_{metric}", values, target="fsx", **more)


def _filled(used: str, minutes: int = 190) -> Series:
    """A file system of 100 KiB of which `used` are left."""
    return {**_fs("available_kibibytes", used), **_fs("capacity_kibibytes", steady(100, minutes))}


def _mounted(values: str) -> dict[str, str]:
    return _fs("mounted", values, mountpoint="/fsx")


_TARGET = ({**CLUSTER, "target": "fsx"},)
_GB = 60e9

LUSTRE = (
    Case(
        "LustreFull",
        _filled(fault(50, 15)),
        fires=28,
        clears=100,
        labels=_TARGET,
        summary="fsx of test is 85% full",
        look_alikes={
            "almost full has its own alert": _filled(steady(5, 100)),
            "79 % full": _filled(steady(21, 100)),
            "full for a moment": _filled(fault(50, 15, minutes=5)),
        },
    ),
    Case(
        "LustreAlmostFull",
        _filled(fault(50, 5)),
        fires=28,
        clears=100,
        labels=_TARGET,
        summary="fsx of test is 95% full",
        look_alikes={"85 % full": _filled(steady(15, 100)), "empty": _filled(steady(100, 100))},
    ),
    Case(
        "LustreFullWithinADay",
        _filled(then(rising(60, -0.1, 500), steady(90, 700)), minutes=1200),
        fires=300,
        clears=900,
        labels=_TARGET,
        summary="fsx of test will be full within a day",
        look_alikes={
            "checkpoints come and go": _filled(
                then(*(part for _ in range(9) for part in (rising(40, -0.1, 50), steady(40, 50)))), 900
            ),
            "slow growth": _filled(rising(45, -0.01, 900), 900),
        },
    ),
    Case(
        "LustreFewInodes",
        {**_fs("inodes_free", fault(50, 3)), **_fs("inodes_maximum", steady(100, 190))},
        fires=45,
        clears=100,
        labels=_TARGET,
        summary="fsx of test has 3% of its inodes left",
        look_alikes={"enough": {**_fs("inodes_free", steady(10, 100)), **_fs("inodes_maximum", steady(100, 100))}},
    ),
    Case(
        "LustreWritesSaturated",
        _fs("write_bytes_total", burst(48 * _GB)),
        fires=35,
        clears=110,
        labels=_TARGET,
        summary="fsx of test writes at 100% of its throughput",
        look_alikes={
            "a checkpoint": _fs("write_bytes_total", burst(48 * _GB, minutes=8)),
            "half the throughput": _fs("write_bytes_total", burst(24 * _GB, minutes=90)),
            "reads from the servers' memory": _fs("read_bytes_total", burst(90 * _GB, minutes=90)),
        },
    ),
    Case(
        "LustreNotMounted",
        {**_mounted(fault(1, 0)), **_written("lustre")},
        fires=18,
        clears=120,
        labels=({**NODE, "target": "fsx", "mountpoint": "/fsx"},),
        summary=f"/fsx is not mounted on {_N1}",
        look_alikes={
            "healthy": {**_mounted(steady(1, 120)), **_written("lustre")},
            "one bad sample": {**_mounted(fault(1, 0, minutes=1)), **_written("lustre")},
            "the collector stopped before the mount": {
                **_mounted(then(absent(20), steady(0, 100))),
                **on_node("node_textfile_mtime_seconds", then(absent(20), steady(0, 100)), file="/x/lustre.prom"),
            },
        },
    ),
    _gauge(
        "LustreServerDisconnected",
        "lustre_import_full",
        1,
        0,
        25,
        f"{_N1} lost 1 servers of fsx",
        target="fsx",
        server="OST0001",
    ),
    Case(
        "LustreOverTcp",
        {
            **_fs("import_network", then(absent(10), steady(1, 60), gone(120)), server="OST0000", network="tcp"),
            **_fs("import_network", then(steady(1, 10), gone(60), steady(1, 120)), server="OST0000", network="efa"),
        },
        fires=35,
        clears=100,
        labels=({**NODE, "target": "fsx"},),
        summary=f"{_N1} uses TCP to 1 servers of fsx",
        look_alikes={
            "over EFA": _fs("import_network", steady(1, 100), server="OST0000", network="efa"),
            "a CPU group, which always uses TCP": {
                series("lustre_import_network", _CPU_NODE, target="fsx", server="OST0000", network="tcp"): steady(
                    1, 100
                )
            },
            "a login node": {
                series(
                    "lustre_import_network",
                    {**NODE, "instance_type": "m7i.large"},
                    target="fsx",
                    server="OST0000",
                    network="tcp",
                ): steady(1, 100)
            },
        },
    ),
)


def _at_once(count: int) -> dict[str, str]:
    written = [_written("lustre", node=f"n{number}") for number in range(count)]
    return {name: values for each in written for name, values in each.items()} | {
        series("lustre_mounted", {**NODE, "node": f"n{number}"}, target="fsx", mountpoint="/fsx"): fault(1, 0)
        for number in range(count)
    }


def xids_of(nodes: int) -> dict[str, str]:
    """Two XIDs on each of the eight GPUs of a node."""
    return {
        series(
            "DCGM_EXP_XID_ERRORS_COUNT",
            {**GPU, "node": f"n{node}", "gpu": str(gpu), "UUID": f"GPU-{node}-{gpu}"},
            xid=xid,
        ): then(absent(10), steady(1, 5), gone(90))
        for node in range(nodes)
        for gpu in range(8)
        for xid in ("64", "79")
    }


def _idle_jobs(count: int) -> dict[str, str]:
    return {
        series(metric, {**GPU, "node": f"n{job}", "UUID": f"GPU-{job}"}, team="vision", workload=str(job)): values
        for job in range(count)
        for metric, values in (
            ("DCGM_FI_DEV_GPU_UTIL", steady(0, 300)),
            ("DCGM_FI_PROF_SM_ACTIVE", then(steady(0, 180), steady(0.5, 120))),
        )
    }


_CONTROLLERS = {
    name: values
    for job in ("kube-state-metrics", "jobset", "karpenter")
    for name, values in of_cluster("up", steady(1, 190), job=job).items()
}
"""Everything but Kueue that the cluster of these tests has one pod of."""

META = (
    Case(
        "CollectionSilent",
        {**_up("node", fault(1, 0, rest=320)), **_up("dcgm", fault(1, 0, rest=320))},
        fires=35,
        clears=370,
        labels=({},),
        summary="No node of test sends metrics",
        look_alikes={
            "the first deployment takes five hours": _up("node", then(absent(300), steady(1, 60))),
            "one node of many": {
                **_up("node", fault(1, 0)),
                series("up", {**NODE, "node": "n2"}, job="node"): steady(1, 390),
            },
        },
    ),
    Case(
        "CollectionSilent",
        _up("node", then(absent(420), steady(1, 60))),
        fires=380,
        clears=440,
        labels=({},),
        summary="No node of test sends metrics",
        look_alikes={},
    ),
    Case(
        "TargetsDown",
        {
            **{series("up", {**NODE, "node": f"n{number}"}, job="dcgm"): steady(1, 190) for number in range(8)},
            **{series("up", {**NODE, "node": f"n{number}"}, job="dcgm"): fault(1, 0) for number in range(8, 10)},
        },
        fires=35,
        clears=100,
        labels=({**CLUSTER, "job": "dcgm"},),
        summary="20% of the targets dcgm of test are down",
        look_alikes={
            "pods of teams": {
                series("up", {**CLUSTER, "pod": f"p{number}"}, job="pods"): steady(0, 100) for number in range(20)
            },
            "one of two": {
                series("up", {**NODE, "node": "n1"}, job="slurm"): steady(1, 100),
                series("up", {**NODE, "node": "n2"}, job="slurm"): steady(0, 100),
            },
        },
    ),
    Case(
        "FaultWidespread",
        _at_once(30),
        fires=18,
        clears=100,
        labels=({**CLUSTER, "fault": "LustreNotMounted"},),
        sustained="5m",
        also=("lustre",),
        summary="LustreNotMounted on 30 nodes or jobs of test",
        look_alikes={"few nodes": _at_once(12)},
    ),
    Case(
        "FaultWidespread",
        xids_of(13),
        fires=12,
        clears=100,
        labels=({**CLUSTER, "fault": "GpuXidReplace"},),
        sustained="0m",
        also=("gpu-health",),
        summary="GpuXidReplace on 13 nodes or jobs of test",
        look_alikes={"two XIDs on all GPUs of a node": xids_of(1)},
    ),
    Case(
        "FaultWidespread",
        _idle_jobs(13),
        fires=150,
        clears=300,
        labels=({**CLUSTER, "fault": "JobIdle"},),
        sustained="2h",
        also=("jobs",),
        summary="JobIdle on 13 nodes or jobs of test",
        look_alikes={"few jobs": _idle_jobs(12)},
    ),
    Case(
        "ControllerSilent",
        {**of_cluster("up", fault(1, 0), job="kueue"), **_CONTROLLERS, **_up("node", steady(1, 190))},
        fires=28,
        clears=100,
        labels=({**CLUSTER, "job": "kueue"},),
        summary="kueue of test does not answer",
        look_alikes={
            "one of two replicas": {
                **of_cluster("up", steady(0, 100), job="kueue", instance="a"),
                **of_cluster("up", steady(1, 100), job="kueue", instance="b"),
                **_CONTROLLERS,
                **_up("node", steady(1, 100)),
            },
            "nothing is scraped yet": _up("node", steady(0, 100)),
        },
    ),
    Case(
        "ControllerSilent",
        {
            **of_cluster("up", then(steady(1, 10), gone(60), steady(1, 120)), job="kueue"),
            **_CONTROLLERS,
            **_up("node", steady(1, 190)),
        },
        fires=35,
        clears=100,
        labels=({"environment": CLUSTER["environment"], "job": "kueue"},),
        summary="kueue of test does not answer",
    ),
)

CASES = (*VISIBILITY, *HOST, *EFA, *LUSTRE, *META)
