"""Series of Slurm and of training jobs."""

from collections.abc import Callable, Iterator

from scripts.observe.course import counter, gauge, steps
from scripts.observe.fleet import CHECKPOINT_EVERY, CLUSTER, STRAGGLER, Node, Part, Series, noise_at


class Slurm(Part):
    """What slurmctld reports."""

    def series(self) -> Iterator[Series]:
        """Every series."""
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


class Training(Part):
    """What jobs and NCCL Inspector report."""

    def series(self) -> Iterator[Series]:
        """Every series."""
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
