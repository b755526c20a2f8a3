"""Collectors: steps that write metrics which no exporter has to the folder of node exporter's textfile collector.

Nodes of both control planes run them. Their metrics are those of `ultracluster.telemetry`: exporters efa and lustre.
"""

from collections.abc import Sequence

from ultracluster.nodes.steps import Step

TEXTFILE_FOLDER = "/var/lib/node_exporter/textfile"
"""Folder of a node whose *.prom files node exporter serves."""


def collector_steps(*, efa: bool, lustre: bool, seconds: int, mounts: Sequence[tuple[str, str]] = ()) -> list[Step]:
    """Steps that collect every `seconds`, of a node with EFA devices and of one with a Lustre client.

    `mounts` are the file systems that the node mounts itself, each with its mount point and its mount name, which may
    be a token: a metric says whether each is mounted. A node on which a collector fails takes jobs nevertheless.
    """
    interval = str(seconds)
    steps = []
    if efa:
        steps.append(Step("collect-efa", (interval,), required=False))
    if lustre:
        steps.append(Step("collect-lustre", (interval, *(word for mount in mounts for word in mount)), required=False))
    return steps
