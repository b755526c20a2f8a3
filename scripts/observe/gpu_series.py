"""Series of GPUs: work, heat, errors and XIDs."""

from collections.abc import Callable, Iterator, Sequence

from scripts.observe.course import Values, counter, noise, ramp, steps
from scripts.observe.fleet import (
    CHECKPOINT_EVERY,
    ECC,
    HARDWARE,
    LOST,
    STRAGGLER,
    Labels,
    Node,
    Part,
    Series,
    State,
    hash_of,
)

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


class Gpus(Part):
    """What DCGM exporter reports."""

    def series(self) -> Iterator[Series]:
        """Every series."""
        for node in self.nodes:
            yield {"__name__": "up", "job": "dcgm", **node.labels}, [1.0] * len(self.times)
            yield from self._gpus(node)

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
