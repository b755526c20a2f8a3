"""Series of nodes: EFA, CPU, memory, disks and the Lustre client."""

from collections.abc import Callable, Iterator

from scripts.observe.course import Values, counter, gauge
from scripts.observe.fleet import CHECKPOINT_EVERY, HARDWARE, LOSSY, SPACE, Node, Part, Series, used


class Hosts(Part):
    """What node exporter reports."""

    def series(self) -> Iterator[Series]:
        """Every series."""
        for node in self.nodes:
            yield {"__name__": "up", "job": "node", **node.labels}, [1.0] * len(self.times)
            yield from self._efa(node)
            yield from self._host(node)
            yield from self._lustre(node)

    def _traffic(self, node: Node, time: int) -> float:
        """Bits per second that the node receives by EFA."""
        work = node.at(time)
        level = 2.9e12 * work.tensor if work.state == "train" else 0.0
        return level * (0.68 if work.workload == "4711" and time >= self.day.ago(5) else 1.0)

    def _efa(self, node: Node) -> Iterator[Series]:
        devices = len(HARDWARE.efa.cards)
        for device in range(devices):
            name = f"rdmap{79 + 2 * device}s0"
            labels = {"job": "node", **node.labels, "device": name, "port": "1"}
            share = 1 / 8 / devices

            def sent(part: float, key: str, node: Node = node, share: float = share) -> Callable[[], Values]:
                rate = lambda time: part * share * self._traffic(node, time)
                return lambda: counter(f"{node.name}{key}", self.times, rate, start=8e13, spread=0.04)

            for counter_name, part in (
                ("rx_bytes", 1.0),
                ("tx_bytes", 1.0),
                ("rdma_write_bytes", 0.93),
                ("rdma_write_recv_bytes", 0.93),
                ("send_bytes", 0.05),
                ("recv_bytes", 0.05),
                ("rdma_read_bytes", 0.02),
                ("rdma_read_resp_bytes", 0.02),
            ):
                yield from self._make(
                    f"node_amazonefa_{counter_name}", labels, sent(part, f"{device}{counter_name[:2]}")
                )
            lossy = node.name == LOSSY and device == 3
            for counter_name, rate in (
                ("retrans_pkts", 42.0),
                ("retrans_bytes", 42.0 * 8192),
                ("retrans_timeout_events", 0.35),
                ("unresponsive_remote_events", 0.02),
                ("impaired_remote_conn_events", 0.004),
                ("rx_drops", 0.9),
                ("rdma_read_wr_err", 0.006),
                ("rdma_write_wr_err", 0.01),
            ):
                burst = lambda time, rate=rate, lossy=lossy: (
                    rate if lossy and self.day.ago(4) <= time < self.day.ago(3.2) else 0.0
                )
                yield from self._make(
                    f"node_amazonefa_{counter_name}", labels, lambda burst=burst: counter("", self.times, burst)
                )
            yield from self._make("node_amazonefa_port_state", labels, lambda: [4.0] * len(self.times))

    def _host(self, node: Node) -> Iterator[Series]:
        labels = {"job": "node", **node.labels}
        size = len(self.times)
        busy = lambda time: 0.16 if node.at(time).state == "train" else 0.02
        for cpu in range(4):
            idle = lambda time: 1 - busy(time)
            yield from self._make(
                "node_cpu_seconds_total",
                {**labels, "cpu": str(cpu), "mode": "idle"},
                lambda cpu=cpu: counter(f"{node.name}{cpu}", self.times, idle, spread=0.02),
            )
        total = HARDWARE.memory_gib * 2**30
        free = lambda time: total * (0.72 if node.at(time).state == "train" else 0.95)
        yield from self._make("node_memory_MemTotal_bytes", labels, lambda: [float(total)] * size)
        yield from self._make(
            "node_memory_MemAvailable_bytes",
            labels,
            lambda: gauge(f"{node.name}m", self.times, free, spread=0.01, high=total),
        )
        yield from self._make("node_boot_time_seconds", labels, lambda: [float(self.day.ago(24 * 9.4))] * size)
        yield from self._make("node_time_seconds", labels, lambda: [float(time) for time in self.times])
        for file in ("efa", "lustre"):
            written = {**labels, "file": f"/host/var/lib/node_exporter/textfile/{file}.prom"}
            yield from self._make("node_textfile_mtime_seconds", written, lambda: [float(time) for time in self.times])
        for mount, share, device in (("/", 0.31, "/dev/nvme0n1p1"), ("/local", 0.18, "/dev/md127")):
            space = {**labels, "mountpoint": mount, "device": device, "fstype": "xfs"}
            yield from self._make("node_filesystem_size_bytes", space, lambda: [3e12] * size)
            yield from self._make(
                "node_filesystem_avail_bytes",
                space,
                lambda share=share: gauge(f"{node.name}{mount}", self.times, lambda _: 3e12 * (1 - share), spread=0.01),
            )
        for disk in range(2):
            for name, rate in (("read", 6e8), ("written", 1.5e8)):
                flow = lambda time, rate=rate: rate if node.at(time).state == "train" else 1e5
                yield from self._make(
                    f"node_disk_{name}_bytes_total",
                    {**labels, "device": f"nvme{disk + 1}n1"},
                    lambda name=name, disk=disk, flow=flow: counter(
                        f"{node.name}{disk}{name}", self.times, flow, spread=0.2
                    ),
                )
        for name in ("bw_in", "bw_out", "pps"):
            yield from self._make(
                f"node_ethtool_{name}_allowance_exceeded", {**labels, "device": "eth0"}, lambda: [0.0] * size
            )

    def _lustre(self, node: Node) -> Iterator[Series]:
        labels = {"job": "node", **node.labels, "target": "fsx"}
        size = len(self.times)
        kib = SPACE / 1024
        yield from self._make("lustre_capacity_kibibytes", labels, lambda: [kib] * size)
        for name in ("free", "available"):
            yield from self._make(
                f"lustre_{name}_kibibytes", labels, lambda: [kib * (1 - used(self.day, time)) for time in self.times]
            )
        works = lambda time: node.at(time).state == "train"
        reads = lambda time: 1.1e9 if works(time) else 2e4
        writes = lambda time: 4.6e9 if works(time) and time % CHECKPOINT_EVERY < self.day.step else 3e6
        yield from self._make(
            "lustre_read_bytes_total",
            labels,
            lambda: counter(f"{node.name}r", self.times, reads, start=4e14, spread=0.2),
        )
        yield from self._make(
            "lustre_write_bytes_total",
            labels,
            lambda: counter(f"{node.name}w", self.times, writes, start=2e14, spread=0.1),
        )
        for operation, rate in (
            ("open", 40.0),
            ("close", 40.0),
            ("getattr", 160.0),
            ("read_bytes", 700.0),
            ("write_bytes", 220.0),
            ("unlink", 2.0),
        ):
            flow = lambda time, rate=rate: rate if works(time) else 0.5
            yield from self._make(
                "lustre_stats_total",
                {**labels, "operation": operation},
                lambda operation=operation, flow=flow: counter(node.name + operation, self.times, flow, spread=0.3),
            )
        yield from self._make("lustre_mounted", {**labels, "mountpoint": "/fsx"}, lambda: [1.0] * size)
        slow = node.name == "train-12"
        for server in range(4):
            server_labels = {**labels, "server": f"fsx-OST{server:04x}"}
            yield from self._make("lustre_import_full", server_labels, lambda: [1.0] * size)
            network = "tcp" if slow else "efa"
            yield from self._make("lustre_import_network", {**server_labels, "network": network}, lambda: [1.0] * size)
        for network, share in (("efa", 0.03 if slow else 0.99), ("tcp", 0.97 if slow else 0.01)):
            net = {"job": "node", **node.labels, "network": network}
            for name, flow in (("receive", reads), ("send", writes)):
                rate = lambda time, flow=flow, share=share: share * flow(time) / 1e6
                yield from self._make(
                    f"lustre_lnet_{name}_messages_total",
                    net,
                    lambda rate=rate, name=name, network=network: counter(
                        f"{node.name}{name}{network}", self.times, rate, spread=0.1
                    ),
                )
