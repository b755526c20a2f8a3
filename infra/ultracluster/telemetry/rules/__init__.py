"""Recording and alert rules of an environment, as files for Amazon Managed Service for Prometheus."""

from ultracluster.config.environment import Environment
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
from ultracluster.telemetry.rules.model import Alert, Group, Recording, rule_file
from ultracluster.telemetry.rules.site import Site, site

RUNBOOKS = "docs/runbooks"
"""Where the pages of the alerts are in this project."""

__all__ = ["RUNBOOKS", "Alert", "Group", "Recording", "alerts", "groups", "rule_files"]


def rule_files(environment: Environment) -> dict[str, str]:
    """Rules files of `environment`: YAML by name of the rule groups namespace."""
    receivers = environment.observability.alerts
    runbooks = receivers.runbooks_url if receivers and receivers.runbooks_url else RUNBOOKS
    labels = {"environment": environment.name}
    return {group.name: rule_file([group], runbooks=runbooks, labels=labels) for group in groups(environment)}


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
        catalogue.group(),
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
