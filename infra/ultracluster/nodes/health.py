"""Health of PCS nodes: the step that writes the checks, and the one that accepts a node before its first job.

The programs are the same on both control planes: `nodes/programs/check_node.py`, with tables of NVIDIA's XIDs and of
floors. Slurm runs them in the prolog and as HealthCheckProgram. Either drains a node with a fault: running jobs end by
themselves.

Source: slurm.conf man page, HealthCheckProgram, Prolog (26.05); AWS PCS User Guide, "Run custom scripts with node
lifecycle actions" (2026).
"""

from collections.abc import Mapping, Sequence

from ultracluster.catalog import efa_devices
from ultracluster.catalog.pcs import HEALTH_CHECK_TIMEOUT_SECONDS
from ultracluster.config.health import Health, uses_mig
from ultracluster.config.node_groups import NodeGroup
from ultracluster.nodes.health_programs import HEALTH_CHECK, NAME
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.steps import Step

INTERVAL_SECONDS = 5 * HEALTH_CHECK_TIMEOUT_SECONDS
"""HealthCheckInterval: well above the time that a check may take."""


def facts(group: NodeGroup, mounts: Sequence[LustreMount] = ()) -> list[str]:
    """Lines of health.conf for nodes of `group`, NAME=VALUE: type, GPUs, NVLink, EFA devices, Lustre mounts."""
    hardware = group.hardware
    over_efa = group.lustre_over_efa and any(mount.efa for mount in mounts)
    counts = {"gpus": hardware.gpu_count, "nvlink": int(hardware.has_nvlink), "efa": efa_devices(group.layout("pcs"))}
    words = [f"type={group.one_type}"] if group.one_type else []
    words += ["mig=1"] if uses_mig(group) else []
    words += [f"{name}={count}" for name, count in counts.items()]
    return [*words, *(f"lustre={mount.path}" for mount in mounts), f"lustre_efa={int(over_efa)}"]


def check_steps(health: Health, group: NodeGroup, mounts: Sequence[LustreMount]) -> list[Step]:
    """The step that writes the checks; none if `health` disables them all."""
    if not health.checks_nodes:
        return []
    return [Step(NAME, (*facts(group, mounts), f"prolog={health.prolog}", f"quarantine={health.quarantine}"))]


def admit_steps(health: Health) -> list[Step]:
    """The step that checks a node before it takes jobs; with on_failure: drain, also the step that drains it."""
    if health.accept == "none":
        return [Step("admit-jobs", frequency="every_boot")]
    admit = Step("admit-jobs", (health.accept, health.on_failure), "every_boot")
    drain = Step("drain-unaccepted", frequency="every_boot", stage="ready", required=False)
    return [admit] if health.on_failure == "replace" else [admit, drain]


def login_steps(health: Health) -> list[Step]:
    """Steps of login nodes: checks, because Slurm runs HealthCheckProgram there too, and spare nodes."""
    nothing = ("gpus=0", "efa=0", "prolog=none", "quarantine=none")
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
