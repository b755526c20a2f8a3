"""Collectors: steps that write metrics which no exporter has to the folder of node exporter's textfile collector.

Nodes of both control planes run them. Their metrics are those of `ultracluster.telemetry`: exporters efa and lustre.
"""

from ultracluster.nodes.steps import Step

TEXTFILE_FOLDER = "/var/lib/node_exporter/textfile"
"""Folder of a node whose *.prom files node exporter serves."""


def collector_steps(
    *, efa: bool, lustre: bool, seconds: int, mount_path: str | None = None, mount_name: str | None = None
) -> list[Step]:
    """Steps that collect every `seconds`, of a node with EFA devices and of one with a Lustre client.

    With `mount_path` and `mount_name`, which may be a token, the node mounts the file system itself, and a metric says
    whether it is mounted. A node on which a collector fails takes jobs nevertheless.
    """
    interval = str(seconds)
    mount = (mount_path, mount_name) if mount_path and mount_name else ()
    steps = []
    if efa:
        steps.append(Step("collect-efa", (interval,), required=False))
    if lustre:
        steps.append(Step("collect-lustre", (interval, *mount), required=False))
    return steps
