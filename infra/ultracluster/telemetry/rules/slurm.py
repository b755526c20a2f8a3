"""Slurm: the controller, its nodes and its queue. The metrics are those of slurmctld 25.11."""

from collections.abc import Iterator

from ultracluster.telemetry.rules.model import CLUSTER, Alert, Component, Group, Recording, Severity
from ultracluster.telemetry.rules.site import Site
from ultracluster.telemetry.thresholds import (
    PENDING_WITH_IDLE,
    SLURM_CYCLE,
    SLURM_DBD_QUEUE,
    SLURM_DOWN,
    SLURM_DRAINED,
    SLURM_THREADS,
    SLURM_TOGETHER,
)

_SLURM: Component = "slurm"
_PARTITION = f"{CLUSTER}, partition"
_OF = "of {{ $labels.environment }}"
_DOWN, _DRAINED = "cluster:slurm_nodes_down:ratio", "cluster:slurm_nodes_drained:ratio"
_REPLACED = "20m"
"""Longest time in which PCS replaces a login node; our judgement."""


def group(site: Site) -> Group:
    """Recorded counts, and alerts. A controller that serves no metrics cannot fall silent."""
    silent = (_silent(site),) if site.slurm_metrics else ()
    return Group("slurm", (*_recordings(), *silent, *_nodes(), _unwatched(), *_jobs(), *_controller()))


def _recordings() -> Iterator[Recording]:
    def nodes(state: str) -> str:
        return f"max by ({_PARTITION}) (slurm_partition_nodes_{state})"

    # Slurm counts an idle node that is drained or powered down as idle too (slurmctld/statistics.c)
    unusable = (f"({nodes(state)} or {nodes('idle')} * 0)" for state in ("powered_down", "drained"))
    yield Recording("partition:slurm_nodes_idle:count", "\n- ".join((nodes("idle"), *unusable)))
    yield Recording(
        "partition:slurm_nodes_usable:count",
        f"max by ({_PARTITION}) (slurm_partition_nodes)\n- {nodes('down')}\n- {nodes('drain')}",
    )
    # of the nodes that are not powered down; a node may be down or drained, and powered down
    up = f"({_total('nodes')} - ({_total('nodes_powered_down')} or {_total('nodes')} * 0))"
    for ratio, state in ((_DOWN, "down"), (_DRAINED, "drained")):
        yield Recording(ratio, f"clamp_max({_total(f'nodes_{state}')}\n/ ({up} > 0), 1)")


def _total(metric: str) -> str:
    return f"max by ({CLUSTER}) (slurm_{metric})"


def _silent(site: Site) -> Alert:
    """Login nodes ask slurmctld, so no sample at all is a login node that is being replaced, for `_REPLACED`."""
    asked = f'up{{job="slurm", environment="{site.environment}"}}'
    return Alert(
        name="SlurmControllerSilent",
        expr=f"max({asked}) == 0\nor\nmax(absent_over_time({asked}[{_REPLACED}]))",
        severity="critical",
        component=_SLURM,
        scope="cluster",
        sustained="5m",
        keep="5m",
        summary=f"slurmctld of {site.environment} does not answer",
        description="Metrics of the Slurm controller cannot be read: it gives no answer, or no login node has asked "
        f"for {_REPLACED}. No job starts while the controller is down.",
        action="Run `scontrol ping` on a login node, and look at the PCS cluster in the AWS console.",
    )


def _alert(
    name: str, expr: str, severity: Severity, sustained: str, texts: tuple[str, str, str], keep: str = "5m"
) -> Alert:
    summary, description, action = texts
    return Alert(name, expr, severity, _SLURM, "cluster", summary, description, action, sustained, keep)


def _nodes() -> Iterator[Alert]:
    down, drained = _total("nodes_down"), _total("nodes_drained")
    many_down = f"{_DOWN} > {SLURM_DOWN.value}\nand\n{down} >= {SLURM_TOGETHER.value}"
    many_drained = f"{drained} >= {SLURM_TOGETHER.value}\nand\n{_DRAINED} > {SLURM_DRAINED.value}"
    yield _alert(
        "SlurmNodesDown",
        f"{down} > 0\nunless\n({many_down})",
        "warning",
        "10m",
        (
            f"{{{{ $value }}}} nodes {_OF} are down",
            "Slurm lost contact with the nodes, or an administrator set them down. Their jobs were requeued or ended.",
            "Run `sinfo -R` for the reason, and check the instances in EC2.",
        ),
    )
    yield _alert(
        "SlurmManyNodesDown",
        many_down,
        "critical",
        "5m",
        (
            f"{{{{ $value | humanizePercentage }}}} of the nodes {_OF} are down",
            "Nodes that are powered down do not count. A common cause is likely: the network, the file system, an "
            "image or the end of a capacity reservation.",
            "Run `sinfo -R` and compare the reasons before you resume nodes.",
        ),
    )
    yield _alert(
        "SlurmManyNodesDrained",
        many_drained,
        "critical",
        "10m",
        (
            f"{{{{ $value }}}} nodes {_OF} are drained at once",
            "More than a quarter of the nodes take no jobs. A prolog or a health check that fails everywhere drains "
            "one node after another.",
            "Run `sinfo -R` and compare the reasons; correct the common cause before you resume nodes.",
        ),
    )
    yield _alert(
        "SlurmNodesDrained",
        f"{drained} > 0\nunless\n({many_drained})",
        "warning",
        "1h",
        (
            f"{{{{ $value }}}} nodes {_OF} are drained",
            "The nodes take no jobs, and nobody has repaired or replaced them for an hour. They cost as much as "
            "working nodes.",
            "Run `sinfo -R`; repair or replace the nodes, then resume them.",
        ),
    )
    yield _alert(
        "SlurmNodesInvalid",
        f"{_total('nodes_invalid_reg')} > 0",
        "warning",
        "5m",
        (
            f"{{{{ $value }}}} nodes {_OF} registered with less than configured",
            "Slurm found fewer GPUs, CPUs or less memory than slurm.conf names, so it gives the nodes no job.",
            "Run `scontrol show node`; a missing GPU is the usual cause.",
        ),
    )


def _unwatched() -> Alert:
    """Nodes whose agent never started: agents send their metrics, so such a node has no `up`, not even 0.

    A node in two partitions may be taken off twice while it powers up or down: then the alert comes later, never
    wrongly. Slurm to 26.05 has the nodes that power down under the name slurm_nodes_powering_up; its partitions have
    both right.
    """
    away = (
        *(
            f"max by ({CLUSTER}) (slurm_nodes_{state})"
            for state in ("down", "powered_down", "reboot_issued", "unknown")
        ),
        *(f"sum by ({CLUSTER}) (slurm_partition_nodes_{state})" for state in ("powering_up", "powering_down")),
    )
    nodes, none = _total("nodes"), f"{_total('nodes')} * 0"
    up = f"({nodes}\n" + "\n".join(f"- ({each} or {none})" for each in away) + ")"
    sends = f'count by ({CLUSTER}) (max by ({CLUSTER}, node) (up{{job="node", node_group!="login"}} == 1))'
    return Alert(
        name="SlurmNodesUnwatched",
        expr=f"{up}\n- ({sends}\nor {none})\n> 0",
        severity="warning",
        component="telemetry",
        scope="cluster",
        sustained="30m",
        keep="5m",
        summary=f"{{{{ $value }}}} nodes {_OF} that Slurm has up send no metrics",
        description="Slurm gives jobs to more nodes than metrics come from: the agent or node exporter of the others "
        "has not started. Their faults raise no alert.",
        action="Find the nodes with the query of the runbook, and read `journalctl -u metrics-agent` on one of them.",
    )


def _jobs() -> Iterator[Alert]:
    down = _total("nodes_down")
    yield _alert(
        "SlurmNodesLost",
        f"{down}\n- {_total('nodes_down offset 10m')}\n> 0",
        "warning",
        "0m",
        (
            f"{{{{ $value }}}} nodes {_OF} went down within ten minutes",
            "Slurm lost contact with the nodes, or an administrator set them down. Their jobs were requeued, so they "
            "wait again, or ended.",
            "Run `sinfo -R` for the reason, and check that their jobs start again.",
        ),
        keep="15m",
    )
    failed = _total("jobs_node_failed")
    yield _alert(
        "SlurmJobsLostNodes",
        f"{failed}\n- {_total('jobs_node_failed offset 10m')}\n> 0",
        "warning",
        "0m",
        (
            f"{{{{ $value }}}} jobs {_OF} lost a node",
            "A node failed under a running job, and Slurm did not requeue the job. Requeued jobs wait again at once "
            "and are in no count of Slurm: SlurmNodesLost tells of their node.",
            "Submit the jobs again, and find the nodes with `sacct --state=NF`.",
        ),
        keep="15m",
    )
    idle, usable = "partition:slurm_nodes_idle:count", "partition:slurm_nodes_usable:count"
    held = f"max by ({_PARTITION}) (slurm_partition_jobs_hold)"
    # the largest of the numbers of nodes that pending jobs ask for at least
    largest = f"max by ({_PARTITION}) (slurm_partition_jobs_min_job_nodes_nohold)"
    yield _alert(
        "SlurmPendingWithIdleNodes",
        f"{idle} / ({usable} > 0)\n> {PENDING_WITH_IDLE.value}\nand\n"
        f"max by ({_PARTITION}) (slurm_partition_jobs_pending) - {held} > 0\nand\n{idle} >= {largest}",
        "warning",
        "30m",
        (
            f"Jobs wait in {{{{ $labels.partition }}}} {_OF} while nodes are idle",
            "{{ $value | humanizePercentage }} of the partition's nodes are idle, and the largest job that waits "
            "would fit on them. Limits of accounts, licences, reservations or topology may hold it.",
            "Run `squeue --start` and read the reason of the first jobs.",
        ),
    )


def _controller() -> Iterator[Alert]:
    yield _alert(
        "SlurmSchedulerSlow",
        f"{_total('schedule_cycle_last')} / 1e6\n> {SLURM_CYCLE.value}",
        "warning",
        "10m",
        (
            f"A scheduling cycle {_OF} takes {{{{ $value | humanizeDuration }}}}",
            "slurmctld spends seconds in each scheduling cycle, and answers commands late.",
            "Run `sdiag`; find users with thousands of jobs, and use job arrays.",
        ),
    )
    yield _alert(
        "SlurmThreadsExhausted",
        f"{_total('server_thread_cnt')}\n> {SLURM_THREADS.value}",
        "warning",
        "10m",
        (
            f"slurmctld {_OF} has {{{{ $value }}}} busy threads",
            "slurmctld serves 256 requests at a time. Commands and nodes soon time out.",
            "Run `sdiag` and find who polls squeue or sacct in a loop.",
        ),
    )
    yield _alert(
        "SlurmAccountingBacklog",
        f"{_total('slurmdbd_queue_size')}\n> {SLURM_DBD_QUEUE.value}",
        "warning",
        "10m",
        (
            f"{{{{ $value }}}} accounting messages {_OF} wait",
            "slurmdbd does not take records as fast as slurmctld writes them, or does not answer. When the queue is "
            "full, records are lost.",
            "Check the accounting database of the PCS cluster with `sacctmgr ping`.",
        ),
    )
