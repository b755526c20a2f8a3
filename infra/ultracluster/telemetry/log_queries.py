"""Queries of CloudWatch Logs Insights that every environment saves, for the logs of its control plane.

In the queries, replace JOB by the id of a Slurm job or the name of a Kubernetes job, and NODE by the name of a node.

Source: CloudWatch Logs User Guide, "CloudWatch Logs Insights language query syntax" (2026); the formats of
`nodes/scripts/ship-logs.sh`, `kubernetes/logs.py` and AWS PCS's scaling logs.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

Source = Literal["nodes", "pods", "scheduler"]
"""Logs of nodes, of pods, or of AWS PCS's scheduler and scaling."""


class LogQuery(NamedTuple):
    """A saved query. `source` names the logs that it searches."""

    name: str
    source: Source
    text: str


XID = r"/NVRM: Xid \((?<device>[^)]+)\): (?<xid>\d+)/"
FAULT = r"/(?i)(traceback|error|exception|nccl warn|out of memory|segmentation fault)/"
LUSTRE = r"/(LustreError|LNetError|evicted|Connection to .* was lost)/"


def slurm_queries() -> Iterator[LogQuery]:
    """Queries for PCS: streams of nodes are INSTANCE/KIND, and jobs are records in JSON."""
    stream = 'parse @logStream "*/*" as instance, kind'
    yield LogQuery(
        "Output of a job",
        "nodes",
        'fields @timestamp, restart, file, text\n| filter job = JOB and event = "output"\n| sort @timestamp asc\n'
        "| limit 10000",
    )
    yield LogQuery(
        "Jobs that failed",
        "nodes",
        'filter event = "ended" and exit not like /^0:0/\n'
        "| stats count(*) as ends, latest(exit) as exit_code by job, user, account, queue, nodes\n| sort ends desc",
    )
    yield LogQuery(
        "XIDs by node",
        "nodes",
        f'{stream}\n| filter kind = "kernel"\n| parse @message {XID}\n| filter ispresent(xid)\n'
        "| stats count(*) as events, max(@timestamp) as latest by instance, device, xid\n| sort events desc",
    )
    yield LogQuery(
        "Lustre errors over time",
        "nodes",
        f'{stream}\n| filter kind = "kernel" and @message like {LUSTRE}\n'
        "| stats count(*) as messages by bin(5m), instance",
    )
    yield LogQuery(
        "Errors while nodes boot",
        "nodes",
        f'{stream}\n| filter kind in ["cloud-init", "pcs", "boot-steps"]\n| filter @message like /(?i)(error|fail)/\n'
        f"{_LATEST}",
    )
    slurmd = 'filter kind in ["slurmd", "slurmd-journal"] and @message like /NODE/'
    yield LogQuery("A node's slurmd", "nodes", f"{stream}\n| {slurmd}\n{_LATEST}")
    yield LogQuery(
        "Why PCS replaces nodes",
        "scheduler",
        "filter ispresent(reason_code)\n"
        "| stats count(*) as nodes, max(@timestamp) as latest by reason_code, compute_node_group_id\n| sort nodes desc",
    )
    yield LogQuery("A job in the scheduler's logs", "scheduler", f"filter @message like /JOB/\n{_LATEST}")


def kubernetes_queries() -> Iterator[LogQuery]:
    """Queries for EKS: events are JSON with workload, team, pod, rank, container and node."""
    yield LogQuery(
        "Output of a job",
        "pods",
        'fields @timestamp, rank, pod, container, node, log\n| filter workload = "JOB"\n| sort @timestamp asc\n'
        "| limit 10000",
    )
    yield LogQuery(
        "First fault of each rank of a job",
        "pods",
        f'filter workload = "JOB" and log like {FAULT}\n'
        "| stats min(@timestamp) as first, earliest(log) as fault by rank, pod, node\n| sort first asc",
    )
    yield LogQuery(
        "Faults by job and node",
        "pods",
        f"filter log like {FAULT}\n| stats count(*) as messages by team, workload, node\n| sort messages desc",
    )
    yield LogQuery(
        "XIDs by node",
        "nodes",
        f"parse log {XID}\n| filter ispresent(xid)\n"
        "| stats count(*) as events, max(@timestamp) as latest by node, device, xid\n| sort events desc",
    )
    yield LogQuery(
        "Lustre errors over time",
        "nodes",
        f"filter log like {LUSTRE}\n| stats count(*) as messages by bin(5m), node",
    )
    yield LogQuery(
        "Everything about a node", "nodes", f'fields @timestamp, unit, log\n| filter node = "NODE"\n{_LATEST}'
    )


_LATEST = "| sort @timestamp desc\n| limit 1000"
