"""Metrics and logs of PCS nodes: steps that run exporters, collectors, and the agents that send them to AWS.

Every one of them is optional: a node without metrics takes jobs. Agents are installed after the node has booted.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ultracluster.catalog.agents import IMAGES
from ultracluster.catalog.software import mirrored_image
from ultracluster.nodes import metrics_configuration
from ultracluster.nodes.collectors import collector_steps
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.steps import Step
from ultracluster.telemetry.agent import SLURM_INTERVAL_SECONDS, slurm_paths

LOGIN = "login"
"""Name of the group of login nodes."""

COLLECTION_SECONDS = 15
"""Longest interval of the collectors: half of the default scrape interval, so that no scrape sees a counter twice."""

ARGUMENT_LENGTH = 256
"""Characters of an argument of a node lifecycle script (API model of PCS, NodeLifecycleScriptArgument, 2026)."""


@dataclass(frozen=True)
class Telemetry:
    """Where nodes send their metrics and logs, and under which labels. Strings may be tokens.

    `interval` is that of scrapes in seconds. Images come from `mirror`, an `oci://` prefix, or from their own
    registries. With `slurm` the controller serves metrics, which login nodes read. `drop` are groups of metrics that
    are not sent. Without `remote_write_url` nodes collect no metrics and send logs only.
    """

    remote_write_url: str | None
    log_group: str
    region: str
    cluster: str
    environment: str
    interval: int
    mirror: str | None = None
    slurm: bool = False
    drop: tuple[str, ...] = ()


def telemetry_steps(
    telemetry: Telemetry | None,
    *,
    instance_type: str,
    node_group: str,
    gpus: bool,
    efa: bool,
    mounts: Sequence[LustreMount],
) -> list[Step]:
    """Steps of a node; none without telemetry. `instance_type` is `auto` where nodes of several types run them.

    Nodes of the group `login` read the metrics of Slurm.
    """
    if telemetry is None:
        return []
    logs = Step("ship-logs", (telemetry.region, telemetry.log_group), required=False)
    if telemetry.remote_write_url is None:
        return [logs]
    used = ("prometheus", "node_exporter", "dcgm_exporter") if gpus else ("prometheus", "node_exporter")
    images = (mirrored_image(IMAGES[name], telemetry.mirror) if telemetry.mirror else IMAGES[name] for name in used)
    labels = (telemetry.remote_write_url, telemetry.region, telemetry.cluster, telemetry.environment)
    intervals = (str(telemetry.interval), str(max(telemetry.interval, SLURM_INTERVAL_SECONDS)))
    # several groups share an argument: PCS takes 20 of 256 characters
    drop = textwrap.wrap(" ".join(telemetry.drop), ARGUMENT_LENGTH, break_on_hyphens=False)
    kind = ("gpus" if gpus else "cpu",) if gpus or drop else ()
    configuration = (*labels, *intervals, instance_type, node_group, *kind, *drop)
    collectors = collector_steps(
        efa=efa,
        lustre=bool(mounts),
        seconds=min(COLLECTION_SECONDS, telemetry.interval),
        mounts=[(mount.path, mount.mount_name) for mount in mounts],
    )
    # once the node has joined: PCS runs at most 20 scripts before
    steps = [
        *(replace(step, stage="ready") for step in collectors),
        Step(metrics_configuration.NAME, configuration, required=False),
        Step("run-exporters", tuple(images), required=False),
        *([Step("serve-job-metrics", required=False)] if gpus else []),
        logs,
    ]
    if node_group == LOGIN and telemetry.slurm:
        steps.append(Step("find-slurm-controller", slurm_paths(), stage="ready", required=False))
    return steps
