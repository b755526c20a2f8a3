"""Sixteen p5en.48xlarge nodes under Slurm, with a day of work and faults.

The faults: a straggler (train-5, GPU 3 throttles from -5 h), an ECC storm (train-16, GPU 2 from -6 h, drained at -3 h),
a GPU that falls off the bus (train-14, GPU 6 at -1.2 h), a job that hangs (4720 from -1.5 h), a file system that fills,
and packet loss of one EFA device (train-3 at -4 h).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from scripts.observe.course import Day, Values, counter, gauge, noise, ramp, steps
from ultracluster.catalog import catalog

Labels = dict[str, str]
Series = tuple[Labels, Values]
State = Literal["idle", "held", "train", "hung"]

HARDWARE = catalog["p5en.48xlarge"]
CLUSTER = {"cluster": "prod-cluster", "environment": "prod"}
FILE_SYSTEM = "fs-0123456789abcdef0"
TERABYTE = 1e12
SPACE = 105.6 * TERABYTE
CHECKPOINT_EVERY = 1800

STRAGGLER, ECC, LOST, LOSSY = "train-5", "train-16", "train-14", "train-3"


@dataclass(frozen=True)
class Work:
    """What a node's GPUs do between two times."""

    start: int
    end: int
    state: State
    team: str = ""
    workload: str = ""
    tensor: float = 0.0


@dataclass(frozen=True)
class Node:
    """A node, and its work from the first sample to the last."""

    name: str
    work: tuple[Work, ...]

    @property
    def labels(self) -> Labels:
        """Labels that all series of the node have."""
        return {**CLUSTER, "node": self.name, "instance_type": HARDWARE.name, "node_group": "train"}

    def at(self, time: int) -> Work:
        """What the node does at a time."""
        return next(work for work in self.work if work.start <= time < work.end)


class SlurmFleet:
    """All series of the cluster. `wanted` are names of metrics; others are not made."""

    def __init__(self, day: Day, wanted: set[str]) -> None:
        self.day, self.wanted, self.times = day, wanted, day.times
        self.nodes = _nodes(day)

    def series(self) -> Iterator[Series]:
        """Every series."""
        for node in self.nodes:
            yield from self._up(node)
            yield from self._gpus(node)
            yield from self._efa(node)
            yield from self._host(node)
            yield from self._lustre(node)
        yield from self._slurm()
        yield from self._training()
        yield from self._services()

    def _make(self, name: str, labels: Labels, values: Callable[[], Values]) -> Iterator[Series]:
        if name in self.wanted:
            yield {"__name__": name, **labels}, values()

    def _up(self, node: Node) -> Iterator[Series]:
        for job in ("dcgm", "node"):
            yield {"__name__": "up", "job": job, **node.labels}, [1.0] * len(self.times)

    # --- GPUs

    def _gpus(self, node: Node) -> Iterator[Series]:
        for gpu in range(HARDWARE.gpu_count):
            shape = self._shape(node, gpu)
            own = {
                "job": "dcgm",
                **node.labels,
                "gpu": str(gpu),
                "UUID": f"GPU-{abs(hash_of(node.name, gpu)):08x}-4c1d-7a52-9b1e-{gpu:012d}",
                "modelName": "NVIDIA H200",
                "pci_bus_id": f"00000000:{0x53 + gpu * 0x11:02X}:00.0",
            }
            for name, values in self._gpu_metrics(node, gpu, shape):
                if name not in self.wanted:
                    continue
                made = values()
                for team, workload in dict.fromkeys((work.team, work.workload) for work in node.work):
                    within = [
                        value if (node.at(time).team, node.at(time).workload) == (team, workload) else None
                        for time, value in zip(self.times, made, strict=True)
                    ]
                    if any(value is not None for value in within):
                        yield {"__name__": name, **own, "team": team, "workload": workload}, within
            yield from self._xids(node, gpu, own)

    def _shape(self, node: Node, gpu: int) -> list[tuple[State, float] | None]:
        """State and tensor activity of a GPU at each time; None while the GPU is off the bus."""
        wobble = noise(f"{node.name}{gpu}", len(self.times), 0.03)
        shape: list[tuple[State, float] | None] = []
        for time, extra in zip(self.times, wobble, strict=True):
            work = node.at(time)
            level = work.tensor * (1 + extra)
            if work.workload == "4711" and time >= self.day.ago(5):
                level *= 0.68  # all ranks wait for the straggler
            if work.state == "train" and time % CHECKPOINT_EVERY < self.day.step:
                level *= 0.9  # a checkpoint
            shape.append(None if self._lost(node, gpu, time) else (work.state, level))
        return shape

    def _lost(self, node: Node, gpu: int, time: int) -> bool:
        return node.name == LOST and gpu == 6 and time >= self.day.ago(1.2)

    def _gpu_metrics(
        self, node: Node, gpu: int, shape: Sequence[tuple[State, float] | None]
    ) -> Iterator[tuple[str, Callable[[], Values]]]:
        day, times = self.day, self.times
        slow = node.name == STRAGGLER and gpu == 3
        power = {"idle": 118.0, "held": 124.0, "train": 0.0, "hung": 292.0}
        wobble = noise(f"{node.name}/{gpu}", len(times), 0.012)
        offset = (hash_of(node.name, gpu) % 7) - 3

        def of(value: Callable[[State, float], float], spread: float = 1.0) -> Callable[[], Values]:
            return lambda: [
                None if point is None else max(0.0, value(*point) * (1 + spread * extra))
                for point, extra in zip(shape, wobble, strict=True)
            ]

        def watts(state: State, tensor: float) -> float:
            return 255 + 850 * tensor if state == "train" else power[state]

        def hot(number: int) -> bool:
            return slow and times[number] >= day.ago(5)

        def heat() -> Values:
            return [
                None
                if point is None
                else (88.5 if hot(number) else 27 + offset + 0.06 * watts(*point)) * (1 + 0.4 * extra)
                for number, (point, extra) in enumerate(zip(shape, wobble, strict=True))
            ]

        def clock() -> Values:
            return [
                None if point is None else 1230.0 if hot(number) else 1980.0 if point[0] != "idle" else 345.0
                for number, point in enumerate(shape)
            ]

        def count(rate: Callable[[int], float], start: float = 0.0, spread: float = 0.0) -> Callable[[], Values]:
            alive: Callable[[int], float | None] = lambda time: None if self._lost(node, gpu, time) else rate(time)
            return lambda: counter(f"{node.name}{gpu}{start}", times, alive, start=start, spread=spread)

        def whole(values: Callable[[], Values]) -> Callable[[], Values]:
            return lambda: [None if value is None else float(int(value)) for value in values()]

        def level(rate: Callable[[int], float]) -> Callable[[], Values]:
            return lambda: [None if self._lost(node, gpu, time) else rate(time) for time in times]

        stormy = node.name == ECC and gpu == 2
        tensor = of(lambda _, level: level)
        yield "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", tensor
        active = {"idle": 0.0, "held": 0.004, "hung": 0.006, "train": 0.0}
        yield "DCGM_FI_PROF_SM_ACTIVE", of(lambda s, level: 0.3 + 1.2 * level if s == "train" else active[s])
        yield "DCGM_FI_PROF_SM_OCCUPANCY", of(lambda s, level: 0.1 + 0.4 * level if s == "train" else active[s])
        yield "DCGM_FI_PROF_GR_ENGINE_ACTIVE", of(lambda s, _: 0.97 if s in ("train", "hung") else active[s])
        yield "DCGM_FI_PROF_DRAM_ACTIVE", of(lambda s, level: 0.2 + 0.5 * level if s == "train" else 0.0)
        yield "DCGM_FI_DEV_GPU_UTIL", of(lambda s, _: 98.0 if s == "train" else 100.0 if s == "hung" else 0.0, 0.3)
        yield "DCGM_FI_DEV_POWER_USAGE", of(watts)
        yield "DCGM_FI_DEV_GPU_TEMP", heat
        yield "DCGM_FI_DEV_MEMORY_TEMP", lambda: [None if value is None else value * 1.07 + 4 for value in heat()]
        yield "DCGM_FI_DEV_SM_CLOCK", clock
        yield (
            "DCGM_FI_DEV_FB_USED",
            of(lambda s, _: 500.0 if s == "idle" else 131000.0 if s != "held" else 18000.0, 0.2),
        )
        yield "DCGM_FI_DEV_FB_FREE", of(lambda s, _: 143000.0 if s == "idle" else 12000.0 if s != "held" else 125000.0)
        for name in ("TX", "RX"):
            yield f"DCGM_FI_PROF_NVLINK_{name}_BYTES", of(lambda s, level: 3.4e11 * level if s == "train" else 0.0, 3)
            yield f"DCGM_FI_PROF_PCIE_{name}_BYTES", of(lambda s, level: 5.5e10 * level if s == "train" else 2e6, 3)
        yield (
            "DCGM_FI_DEV_THERMAL_VIOLATION",
            count(lambda time: 3.6e8 if slow and time >= day.ago(5) else 0.0, start=4e9, spread=0.15),
        )
        busy = dict(zip(times, shape, strict=True))
        yield (
            "DCGM_FI_DEV_POWER_VIOLATION",
            count(
                lambda time: 4e7 if (busy[time] or ("idle", 0))[0] == "train" else 0.0, start=9e9 + offset, spread=0.5
            ),
        )
        storm = ramp(day.ago(6), day.ago(3), 0.5 / 3600, 900 / 3600) if stormy else steps(before=0.0)
        yield (
            "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
            count(
                lambda time: storm(time) if time >= day.ago(6) else 0.2 / 3600 if (gpu + offset) % 5 == 0 else 0.0,
                start=float(gpu % 3),
            ),
        )
        yield "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", level(steps((day.ago(3), 1.0)) if stormy else steps())
        yield "DCGM_FI_DEV_ROW_REMAP_PENDING", level(steps((day.ago(3), 1.0)) if stormy else steps())
        yield "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", level(steps((day.ago(3), 1.0)) if stormy else steps())
        rows = 2.0 if node.name == "train-9" and gpu == 1 else 0.0
        yield (
            "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
            level(
                steps((day.ago(5.2), 1.0), (day.ago(4.1), 3.0), (day.ago(3.4), 6.0)) if stormy else steps(before=rows)
            ),
        )
        noisy = node.name == "train-7" and gpu == 5
        yield (
            "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
            count(lambda time: 0.8 if noisy and day.ago(7) <= time < day.ago(6.2) else 0.0, spread=0.4),
        )
        yield (
            "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
            count(lambda time: 0.3 if noisy and day.ago(7) <= time < day.ago(6.2) else 0.0, spread=0.4),
        )
        yield (
            "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
            count(lambda time: 2 / 1800 if node.name == "train-11" and gpu == 0 and time >= day.ago(16) else 0.0),
        )
        for name in _QUIET if gpu == 0 else ():  # one GPU of each node is enough to show that nothing happens
            yield f"DCGM_FI_DEV_{name}", level(steps(before=_QUIET[name]))

    def _xids(self, node: Node, gpu: int, own: Labels) -> Iterator[Series]:
        day = self.day
        errors: dict[tuple[str, int], list[tuple[str, float, int]]] = {
            (ECC, 2): [("48", 3.0, 1), ("63", 3.0, 1), ("94", 5.1, 1)],
            (LOST, 6): [("79", 1.3, 1)],
            ("train-10", 4): [("31", 9.0, 2)],
            ("train-15", 1): [("13", 14.0, 1), ("43", 14.0, 1)],
        }
        for xid, hours, number in errors.get((node.name, gpu), []):
            start = day.ago(hours)
            if start < self.times[0]:
                continue
            values: Values = [
                None
                if self._lost(node, gpu, time)
                else float(number)
                if start <= time < start + 480
                else None
                if time < start
                else 0.0
                for time in self.times
            ]
            work = node.at(start)
            labels = {**own, "team": work.team, "workload": work.workload}
            name = "DCGM_EXP_XID_ERRORS_COUNT"
            yield from self._make(name, {**labels, "xid": xid, "window_size_in_ms": "300000"}, lambda made=values: made)

    # --- EFA and host

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

    # --- Lustre

    def _used(self, time: int) -> float:
        """Share of the file system in use: it fills with checkpoints."""
        start = self.times[0]
        return 0.64 + 0.292 * ((time - start) // CHECKPOINT_EVERY * CHECKPOINT_EVERY) / (self.day.end - start)

    def _lustre(self, node: Node) -> Iterator[Series]:
        labels = {"job": "node", **node.labels, "target": "fsx"}
        size = len(self.times)
        kib = SPACE / 1024
        yield from self._make("lustre_capacity_kibibytes", labels, lambda: [kib] * size)
        for name in ("free", "available"):
            yield from self._make(
                f"lustre_{name}_kibibytes", labels, lambda: [kib * (1 - self._used(time)) for time in self.times]
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

    # --- Slurm

    def _slurm(self) -> Iterator[Series]:
        labels = {"job": "slurm", **CLUSTER}
        yield {"__name__": "up", **labels}, [1.0] * len(self.times)
        states = {time: [node.at(time).state for node in self.nodes] for time in self.times}
        drained = steps((self.day.ago(3), 1.0))
        held = lambda time: float(sum(state != "idle" for state in states[time]))
        pending = lambda time: 3 + 9 * max(0.0, noise_at("pending", time)) + steps((self.day.ago(3.5), 4.0))(time)
        running = lambda time: float(len({node.at(time).workload for node in self.nodes} - {""}))
        levels: dict[str, Callable[[int], float]] = {
            "slurm_nodes": lambda _: 16.0,
            "slurm_nodes_alloc": held,
            "slurm_nodes_mixed": lambda _: 0.0,
            "slurm_nodes_drained": drained,
            "slurm_nodes_drain": drained,
            "slurm_nodes_draining": lambda _: 0.0,
            "slurm_nodes_down": lambda _: 0.0,
            "slurm_nodes_powered_down": lambda _: 0.0,
            "slurm_nodes_idle": lambda time: 16 - held(time) - drained(time),
            "slurm_jobs_running": running,
            "slurm_jobs_pending": lambda time: float(round(pending(time))),
            "slurm_jobs_hold": lambda _: 1.0,
            "slurm_jobs_failed": steps(
                (self.day.ago(14), 2.0), (self.day.ago(13), 0.0), (self.day.ago(9), 1.0), (self.day.ago(8), 0.0)
            ),
            "slurm_jobs_node_failed": steps((self.day.ago(3), 1.0), (self.day.ago(2.6), 0.0)),
            "slurm_jobs_timeout": steps((self.day.ago(18), 1.0), (self.day.ago(17), 0.0)),
            "slurm_jobs_outofmemory": lambda _: 0.0,
            "slurm_jobs_requeued": steps((self.day.ago(3), 1.0), (self.day.ago(2.4), 0.0)),
            "slurm_sched_mean_cycle": lambda time: 3.1e4 + 4e3 * pending(time),
            "slurm_schedule_cycle_last": lambda time: 4e4 + 9e3 * pending(time) * (1 + noise_at("cycle", time)),
            "slurm_bf_cycle_last": lambda time: 1.9e5 + 7e4 * pending(time) * (1 + noise_at("bf", time)),
            "slurm_bf_last_depth": lambda time: float(round(pending(time))),
            "slurm_last_backfilled_jobs": lambda time: float(time % 1800 < 240),
            "slurm_bf_queue_len": lambda time: float(round(pending(time))),
            "slurm_server_thread_cnt": lambda time: 4 + 3 * abs(noise_at("threads", time)),
            "slurm_agent_queue_size": lambda _: 0.0,
            "slurm_slurmdbd_queue_size": lambda time: 2 + 2 * abs(noise_at("dbd", time)),
        }
        for name in sorted(self.wanted):
            if name in levels:
                yield from self._make(name, labels, lambda name=name: [levels[name](time) for time in self.times])
        for node in self.nodes:
            own = {**labels, "node": node.name}
            allocated = lambda node=node: [0.0 if node.at(time).state == "idle" else 8.0 for time in self.times]
            yield from self._make("slurm_node_gpus", own, lambda: [8.0] * len(self.times))
            yield from self._make("slurm_node_gpus_alloc", own, allocated)
        parts: dict[str, Callable[[int], float]] = {
            "slurm_partition_nodes": lambda _: 16.0,
            "slurm_partition_nodes_idle": levels["slurm_nodes_idle"],
            "slurm_partition_nodes_down": lambda _: 0.0,
            "slurm_partition_jobs_running": running,
            "slurm_partition_jobs_pending": levels["slurm_jobs_pending"],
            "slurm_partition_jobs_gpus_alloc": lambda time: 8 * held(time),
        }
        for name, level in parts.items():
            yield from self._make(
                name, {**labels, "partition": "train"}, lambda level=level: [level(time) for time in self.times]
            )

    # --- what jobs report

    def _training(self) -> Iterator[Series]:
        runs = [("4711", "train-1", 0.42, 3.9e6, 1.82), ("4720", "train-9", 0.37, 2.6e6, 2.31)]
        for workload, name, mfu, tokens, loss in runs:
            node = next(node for node in self.nodes if node.name == name)
            yield from self._run(node, workload, mfu, tokens, loss)
        for node in self.nodes[:12]:
            workload = "4711" if node in self.nodes[:8] else "4720"
            yield from self._ranks(node, workload)

    def _pace(self, node: Node, workload: str, time: int) -> float:
        """Speed of a job against its best; 0 while it is not there, or hangs."""
        work = node.at(time)
        if work.workload != workload or work.state != "train":
            return 0.0
        return 0.68 if workload == "4711" and time >= self.day.ago(5) else 1.0

    def _run(self, node: Node, workload: str, mfu: float, tokens: float, loss: float) -> Iterator[Series]:
        labels = {"job": "node", **node.labels, "workload": workload}
        day, times = self.day, self.times
        pace = {time: self._pace(node, workload, time) for time in times}
        alive = {time: node.at(time).workload == workload for time in times}
        began = next((time for time in times if alive[time]), day.end)

        def while_alive(level: Callable[[int], float]) -> Callable[[int], float | None]:
            return lambda time: level(time) if alive[time] else None

        def saved(time: int) -> float:
            moving = [moment for moment in times if moment <= time and pace[moment]]
            return float((moving[-1] if moving else began) // CHECKPOINT_EVERY * CHECKPOINT_EVERY)

        checkpoint = (
            [saved(time) if alive[time] else None for time in times]
            if "training_checkpoint_timestamp_seconds" in self.wanted
            else []
        )
        lost = {
            "checkpoint": lambda time: 0.024 if pace[time] else 0.0,
            "stall": lambda time: 0.0 if pace[time] == 1 else 1.0 if not pace[time] else 0.3,
            "start": lambda time: 0.6 if time < began + 900 else 0.0,
        }
        yield from self._make(
            "training_mfu_ratio",
            labels,
            lambda: gauge(f"mfu{workload}", times, while_alive(lambda time: mfu * pace[time]), spread=0.01),
        )
        yield from self._make(
            "training_loss",
            labels,
            lambda: gauge(
                f"loss{workload}",
                times,
                while_alive(lambda time: loss + 0.5 * 2.7 ** (-(time - began) / 40000)),
                spread=0.006,
            ),
        )
        yield from self._make(
            "training_tokens_total",
            labels,
            lambda: counter(
                f"tok{workload}", times, while_alive(lambda time: tokens * pace[time]), start=3e11, spread=0.01
            ),
        )
        yield from self._make(
            "training_productive_seconds_total",
            labels,
            lambda: counter("", times, while_alive(lambda time: max(0.0, pace[time] - 0.024)), start=8e4),
        )
        for reason, rate in lost.items():
            yield from self._make(
                "training_lost_seconds_total",
                {**labels, "reason": reason},
                lambda rate=rate: counter("", times, while_alive(rate), start=500.0),
            )
        yield from self._make(
            "training_restarts_total", labels, lambda: [2.0 if alive[time] else None for time in times]
        )
        yield from self._make("training_checkpoint_timestamp_seconds", labels, lambda: checkpoint)
        yield from self._make(
            "training_checkpoint_duration_seconds",
            labels,
            lambda: gauge(f"ck{workload}", times, while_alive(lambda _: 46.0), spread=0.05),
        )
        yield from self._make(
            "training_checkpoint_failures_total", labels, lambda: [0.0 if alive[time] else None for time in times]
        )

    def _ranks(self, node: Node, workload: str) -> Iterator[Series]:
        best = 11.8 if workload == "4711" else 6.4
        index = int(node.name.partition("-")[2]) - (1 if workload == "4711" else 9)
        for rank in (8 * index + 3,):  # one rank of each node
            labels = {"job": "node", **node.labels, "workload": workload, "rank": str(rank)}
            slow = node.name == STRAGGLER

            def step(time: int) -> float | None:
                pace = self._pace(node, workload, time)
                return None if not pace else best / pace if slow or pace == 1 else best / pace * 0.985

            def wait(time: int) -> float | None:
                return 0.012 * best if self._pace(node, workload, time) else None

            yield from self._make(
                "training_step_time_seconds",
                labels,
                lambda rank=rank, step=step: gauge(f"st{workload}{rank}", self.times, step, spread=0.008),
            )
            yield from self._make(
                "training_data_wait_seconds",
                labels,
                lambda rank=rank, wait=wait: gauge(f"dw{workload}{rank}", self.times, wait, spread=0.2),
            )
        nccl = {
            "job": "node",
            **node.labels,
            "slurm_job_id": workload,
            "gpu": "0",
            "comm_name": "world",
            "n_nodes": "8",
            "nranks": "64",
            "version": "2.28",
        }
        for collective, gbs, micros in (
            ("AllReduce", 452.0, 5200.0),
            ("AllGather", 388.0, 2900.0),
            ("ReduceScatter", 379.0, 3100.0),
        ):
            own = {**nccl, "collective": collective, "algo_proto": "NVLSTREE_SIMPLE", "message_size": "1GB"}
            speed = lambda time, gbs=gbs: gbs * pace if (pace := self._pace(node, workload, time)) else None
            delay = lambda time, micros=micros: micros / pace if (pace := self._pace(node, workload, time)) else None
            yield from self._make(
                "nccl_bus_bandwidth_gbs",
                own,
                lambda speed=speed, collective=collective: gauge(
                    f"bw{node.name}{collective}", self.times, speed, spread=0.015
                ),
            )
            yield from self._make(
                "nccl_collective_exec_time_microseconds",
                own,
                lambda delay=delay, collective=collective: gauge(
                    f"ex{node.name}{collective}", self.times, delay, spread=0.03
                ),
            )

    # --- CloudWatch, in a series of its own that stands in for the service

    def _services(self) -> Iterator[Series]:
        def cloudwatch(
            namespace: str,
            metric: str,
            statistic: str,
            level: Callable[[int], float | None],
            spread: float = 0.0,
            high: float = 1e18,
            **dimensions: str,
        ) -> Series:
            labels = {
                "__name__": "cloudwatch",
                "namespace": namespace,
                "metric": metric,
                "statistic": statistic,
                **dimensions,
            }
            return labels, gauge(
                "/".join((metric, *dimensions.values(), statistic)), self.times, level, spread=spread, high=high
            )

        system = {"FileSystemId": FILE_SYSTEM}
        targets = 40
        free = lambda time: SPACE / targets * (1 - self._used(time))
        yield cloudwatch("AWS/FSx", "FreeDataStorageCapacity", "Minimum", lambda time: free(time) * 0.82, **system)
        yield cloudwatch("AWS/FSx", "FreeDataStorageCapacity", "Average", free, **system)
        writing = lambda time: time % CHECKPOINT_EVERY < self.day.step
        for number in range(4):
            server = {**system, "FileServer": f"OSS{number:04d}"}
            yield cloudwatch(
                "AWS/FSx",
                "FileServerDiskThroughputUtilization",
                "Maximum",
                lambda time: 88.0 if writing(time) else 31.0,
                0.08,
                100,
                **server,
            )
            yield cloudwatch(
                "AWS/FSx",
                "NetworkThroughputUtilization",
                "Maximum",
                lambda time: 52.0 if writing(time) else 18.0,
                0.1,
                100,
                **server,
            )
        yield cloudwatch(
            "AWS/FSx",
            "CPUUtilization",
            "Maximum",
            lambda time: 44.0 if writing(time) else 17.0,
            0.1,
            100,
            **system,
            FileServer="MDS0000",
        )
        backlog = ramp(self.day.ago(2.2), self.day.end, 60, 2900)
        yield cloudwatch(
            "AWS/FSx",
            "AgeOfOldestQueuedMessage",
            "Maximum",
            lambda time: backlog(time) if time > self.day.ago(2.2) else 260.0 * writing(time) + 20,
            0.15,
            **system,
            Publisher="AutoExport",
        )
        yield cloudwatch(
            "AWS/FSx", "AgeOfOldestQueuedMessage", "Maximum", lambda _: 6.0, 0.5, **system, Publisher="AutoImport"
        )
        yield cloudwatch(
            "AWS/FSx",
            "RepositoryRenameOperations",
            "Sum",
            lambda time: 64.0 if writing(time) else 0.0,
            0.2,
            **system,
            Publisher="AutoExport",
        )
        usage = {
            "Service": "Prometheus",
            "Type": "Resource",
            "Class": "None",
            "ResourceId": "ws-prod",
            "Resource": "ActiveSeries",
        }
        yield cloudwatch("AWS/Usage", "ResourceCount", "Maximum", lambda _: 41200.0, 0.01, **usage)


_QUIET = {
    "ROW_REMAP_FAILURE": 0.0,
    "THRESHOLD_SRM": 0.0,
    "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": 0.0,
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 0.0,
    "PCIE_LINK_WIDTH": 16.0,
    "PCIE_MAX_LINK_WIDTH": 16.0,
    "PCIE_LINK_GEN": 5.0,
    "PCIE_MAX_LINK_GEN": 5.0,
    "FABRIC_MANAGER_STATUS": 3.0,
    "CLOCKS_EVENT_REASONS": 0.0,
    "FABRIC_HEALTH_MASK": 170.0,
}
"""GPU metrics that nothing happens to, without their prefix."""


def hash_of(*parts: object) -> int:
    """The same number for the same parts in every process."""
    from zlib import crc32

    return crc32("/".join(map(str, parts)).encode())


def noise_at(name: str, time: int) -> float:
    """Noise between -1 and 1 that changes every half hour."""
    return (hash_of(name, time // 1800) % 2001) / 1000 - 1


def _nodes(day: Day) -> list[Node]:
    start, end = day.times[0], day.end + day.step

    def whole(work: Work) -> tuple[Work, ...]:
        return (work,)

    made = []
    for number in range(1, 17):
        if number <= 8:
            work = whole(Work(start, end, "train", "pretrain", "4711", 0.46))
        elif number <= 12:
            hung, began = day.ago(1.5), day.ago(20)
            work = (
                Work(start, began, "idle"),
                Work(began, hung, "train", "research", "4720", 0.38),
                Work(hung, end, "hung", "research", "4720"),
            )
        elif number == 13:
            work = (Work(start, day.ago(15), "idle"), Work(day.ago(15), end, "held", "research", "4698"))
        elif number <= 15:
            work = (
                Work(start, day.ago(10), "train", "eval", "4702", 0.29),
                Work(day.ago(10), day.ago(9), "idle"),
                Work(day.ago(9), end, "train", "eval", "4725", 0.33),
            )
        else:
            work = (Work(start, day.ago(3), "train", "eval", "4716", 0.31), Work(day.ago(3), end, "idle"))
        kept = tuple(each for each in work if each.end > start)
        first = kept[0]
        made.append(Node(f"train-{number}", (Work(start, *_rest(first)), *kept[1:])))
    return made


def _rest(work: Work) -> tuple[int, State, str, str, float]:
    return work.end, work.state, work.team, work.workload, work.tensor
