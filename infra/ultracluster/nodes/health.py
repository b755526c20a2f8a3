"""Health of PCS nodes: the step that writes the checks, and the one that accepts a node before its first job.

The programs are the same on both control planes: `nodes/programs/check_node.py`, with time limits and floors. Slurm
runs them in the prolog and as HealthCheckProgram. Either drains a node with a fault: running jobs end by themselves. A
node of a static group stays for inspection, one of a dynamic group is replaced.

Source: slurm.conf man page, HealthCheckProgram, Prolog (26.05); AWS PCS User Guide, "Run custom scripts with node
lifecycle actions" (2026).
"""

from collections.abc import Mapping, Sequence

from ultracluster.catalog import efa_devices
from ultracluster.catalog.health import FULL_SECONDS, LIMIT_SECONDS
from ultracluster.catalog.pcs import HEALTH_CHECK_TIMEOUT_SECONDS
from ultracluster.config.acceptance import Acceptance
from ultracluster.config.health import Health
from ultracluster.config.node_groups import NodeGroup
from ultracluster.nodes.health_programs import HEALTH_CHECK, NAME
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.steps import Step

INTERVAL_SECONDS = 5 * HEALTH_CHECK_TIMEOUT_SECONDS
"""HealthCheckInterval: well above the time that a check may take."""


def facts(group: NodeGroup, mounts: Sequence[LustreMount] = ()) -> list[str]:
    """Lines of health.conf for nodes of `group`, NAME=VALUE: type, GPUs, NVLink, EFA devices, Lustre mounts.

    `dynamic` nodes are launched for jobs, so PCS replaces one that powers down. Nodes with `imex` start IMEX for jobs.
    """
    hardware = group.hardware
    over_efa = group.lustre_over_efa and any(mount.efa for mount in mounts)
    counts = {"gpus": hardware.gpu_count, "nvlink": int(hardware.has_nvlink), "efa": efa_devices(group.layout("pcs"))}
    words = [f"type={group.one_type}"] if group.one_type else []
    words += ["dynamic=1"] if group.min_count < group.max_count else []
    words += ["imex=1"] if hardware.ultraserver_only else []
    words += [f"{name}={count}" for name, count in counts.items()]
    return [*words, *(f"lustre={mount.path}" for mount in mounts), f"lustre_efa={int(over_efa)}"]


def check_steps(health: Health, group: NodeGroup, mounts: Sequence[LustreMount]) -> list[Step]:
    """The step that writes the checks; none if `health` disables them all."""
    if not health.checks_nodes:
        return []
    return [Step(NAME, (*facts(group, mounts), f"prolog={health.prolog}"))]


def admit_steps(acceptance: Acceptance | None) -> list[Step]:
    """The step that checks a node before it takes jobs; with on_failure: drain, also the step that drains it."""
    if acceptance is None:
        return [Step("admit-jobs", frequency="every_boot")]
    _, repeat = FULL_SECONDS["repeat"]
    words = (acceptance.level, acceptance.on_failure, str(repeat), str(LIMIT_SECONDS))
    admit = Step("admit-jobs", words, "every_boot")
    drain = Step("drain-unaccepted", frequency="every_boot", stage="ready", required=False)
    return [admit] if acceptance.replaces else [admit, drain]


def login_steps(health: Health) -> list[Step]:
    """Steps of login nodes: checks, because Slurm runs HealthCheckProgram there too, and spare nodes."""
    nothing = ("gpus=0", "efa=0", "prolog=none")
    checks = [Step(NAME, nothing, required=False)] if health.periodic != "none" else []
    return [*checks, *spare_steps(health)]


def spare_steps(health: Health) -> list[Step]:
    """The step of login nodes that reserves spare nodes; none without spares."""
    spares = [f"{group}={count}" for group, count in health.spares.items()]
    return [Step("keep-spares", tuple(spares), stage="ready", required=False)] if spares else []


def health_settings(settings: Mapping[str, str | int], health: Health) -> dict[str, str | int]:
    """`slurm_settings` of a cluster, with Slurm's health check unless the user has one."""
    if health.periodic == "none" or "HealthCheckProgram" in settings:
        return dict(settings)
    defaults: dict[str, str | int] = {
        "HealthCheckProgram": HEALTH_CHECK,
        "HealthCheckInterval": INTERVAL_SECONDS,
        "HealthCheckNodeState": "ANY,CYCLE",
    }
    return {**defaults, **settings}
