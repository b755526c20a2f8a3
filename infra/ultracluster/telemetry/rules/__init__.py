"""Recording and alert rules of an environment, as files for Amazon Managed Service for Prometheus."""

from collections.abc import Callable

from ultracluster.config.environment import Environment
from ultracluster.telemetry.promql import matching
from ultracluster.telemetry.rules import (
    catalogue,
    efa,
    gpu_health,
    gpu_performance,
    jobs,
    kubernetes,
    lustre,
    meta,
    nodes,
    slurm,
    training,
    usage,
)
from ultracluster.telemetry.rules.model import Alert, Group, Recording, Style, rule_file
from ultracluster.telemetry.rules.site import Site, site

RUNBOOKS = "docs/runbooks"
"""Where the pages of the alerts are in this project."""

__all__ = ["RUNBOOKS", "Alert", "Group", "Recording", "alerts", "groups", "rule_files"]


def rule_files(environment: Environment) -> dict[str, str]:
    """Rules files of `environment`: YAML by name of the rule groups namespace.

    In an existing workspace, which may have series of other environments, rules read those of `environment` only.
    """
    receivers = environment.observability.alerts
    runbooks = receivers.runbooks_url if receivers and receivers.runbooks_url else RUNBOOKS
    own = _own_series(environment.name) if environment.observability.existing_workspace else str
    style = Style(runbooks, {"environment": environment.name}, own)
    return {group.name: rule_file([group], style) for group in groups(environment)}


def groups(environment: Environment) -> tuple[Group, ...]:
    """Rule groups of `environment`."""
    facts = site(environment)
    found = tuple(_groups(facts))
    return (*found, meta.group(facts, _alerts(found)))


def alerts(environment: Environment) -> tuple[Alert, ...]:
    """All alerts of `environment`."""
    return _alerts(groups(environment))


def _groups(facts: Site) -> list[Group]:
    found = [
        catalogue.group(facts),
        usage.group(),
        gpu_health.group(),
        gpu_performance.group(),
        nodes.group(facts),
        efa.group(facts),
        jobs.group(facts),
        training.group(facts),
    ]
    if facts.lustre:
        found.append(lustre.group(facts))
    found.append(slurm.group(facts) if facts.plane == "pcs" else kubernetes.group(facts))
    return found


def _alerts(found: tuple[Group, ...]) -> tuple[Alert, ...]:
    return tuple(rule for group in found for rule in group.rules if isinstance(rule, Alert))


def _own_series(environment: str) -> Callable[[str], str]:
    """Restricts an expression to series of one environment. Figures of the catalogue are those of all."""

    def restricted(expr: str) -> str:
        return matching(expr, f'environment="{environment}"', lambda name: not name.startswith("instance_type:"))

    return restricted
