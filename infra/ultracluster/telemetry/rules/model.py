"""Recording and alert rules, and their YAML."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

Severity = Literal["critical", "warning", "info"]
Component = Literal["gpu", "efa", "lustre", "node", "slurm", "kubernetes", "job", "telemetry"]
Repair = Literal["replace", "reset"]
Scope = Literal["gpu", "node", "job", "cluster"]

EVALUATION_SECONDS = 60
"""How often rules are evaluated. AMP's default, its minimum is 30 (AMP User Guide, quotas, 2026)."""

MANY = 12
"""Nodes or jobs with one fault, above which one alert for the cluster replaces their alerts.

AMP's alert manager keeps 1,000 alerts per workspace (AMP User Guide, quotas, 2026). A fault of a switch or an exporter
would exceed that on a large fleet, and hide other alerts. GPUs and XIDs of a node count once: a broken node keeps its
alerts.
"""

FAULT = "fault:condition:active"
"""Recorded conditions of alerts on GPUs, nodes and jobs, before `for`: labels fault, severity, component, repair."""

CLUSTER = "cluster, environment"
NODE = f"{CLUSTER}, node_group, instance_type, node"
GPU = f"{NODE}, gpu, UUID"
JOB = f"{CLUSTER}, team, workload"
_JOB_NAMES = "team, workload, namespace, jobset_name"
"""Labels that tell jobs apart: JobSets have a namespace and a name of their own."""
OF_JOB = "job {{ $labels.workload }} of {{ $labels.team }}"
"""A job in the text of an alert. On Kubernetes two teams may each have a job of the same name."""


@dataclass(frozen=True)
class Recording:
    """A recorded series, named `level:metric:operation`."""

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Alert:
    """An alert rule.

    `expr` keeps the labels that `scope` names. `sustained` is how long the condition holds before the alert fires
    (`for`), `keep` how long it fires after the condition ended (`keep_firing_for`), both Prometheus durations.
    `summary` and `description` are templates. `action` is the first step, one sentence; the runbook has the rest.
    `repair` is what a node needs that must take no further job: a new instance, or a reset (of its GPUs, or a reboot);
    None where the node may go on. `more` are further labels.
    """

    name: str
    expr: str
    severity: Severity
    component: Component
    scope: Scope
    summary: str
    description: str
    action: str
    sustained: str = "0m"
    keep: str = "0m"
    repair: Repair | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def runbook(self) -> str:
        """File name of its page in docs/runbooks."""
        return f"{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '-', self.name).lower()}.md"

    @property
    def labels(self) -> dict[str, str]:
        """Labels that the alert adds to those of its expression."""
        repair = {"repair": self.repair} if self.repair else {}
        return {"severity": self.severity, "component": self.component, **repair, **self.more}

    @property
    def limited(self) -> bool:
        """Whether one alert for the cluster replaces it when many nodes or jobs have the fault."""
        return self.scope != "cluster"


@dataclass(frozen=True)
class Group:
    """Rules that are evaluated one after the other, so a rule may read what an earlier one recorded."""

    name: str
    rules: tuple[Recording | Alert, ...]


@dataclass(frozen=True)
class Style:
    """How rules are written: the start of runbook links, labels of every alert, and a change of every expression."""

    runbooks: str
    labels: Mapping[str, str]
    rewrite: Callable[[str], str] = str


def fleet_alerts(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """The alerts that replace alerts on GPUs, nodes and jobs when many have the same fault."""
    kinds = sorted({(alert.severity, alert.sustained) for alert in alerts if alert.limited})
    return tuple(_fleet_alert(severity, sustained) for severity, sustained in kinds)


def rule_file(groups: Iterable[Group], style: Style) -> str:
    """YAML of a rules file."""
    document = {"groups": [_group(group, style) for group in groups]}
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)


def _fleet_alert(severity: Severity, sustained: str) -> Alert:
    affected = _affected(f'severity="{severity}", sustained="{sustained}"')
    return Alert(
        name="FaultWidespread",
        expr=f"{affected}\n> {MANY}",
        severity=severity,
        component="telemetry",
        scope="cluster",
        sustained=sustained,
        keep="5m",
        more={"sustained": sustained},
        summary="{{ $labels.fault }} on {{ $value }} nodes or jobs of {{ $labels.environment }}",
        description=f"More than {MANY} nodes or jobs have the fault {{{{ $labels.fault }}}} at the same time, so "
        "it has one alert instead of one each. A common cause is likely: a switch, power, an image or an exporter.",
        action="Look for the common cause before you drain or replace nodes.",
    )


def _affected(matchers: str) -> str:
    """Expression: the number of nodes with each fault, and of jobs where the fault is of no node."""
    nodes = f'group by ({CLUSTER}, fault, node) ({FAULT}{{{matchers}, node!=""}})'
    jobs = f'group by ({CLUSTER}, fault, {_JOB_NAMES}) ({FAULT}{{{matchers}, node=""}})'
    return f"count by ({CLUSTER}, fault) ({nodes}\nor\n{jobs})"


def _group(group: Group, style: Style) -> dict[str, Any]:
    rules = [each for rule in group.rules for each in _rules(rule, style)]
    return {"name": group.name, "interval": f"{EVALUATION_SECONDS}s", "rules": rules}


def _rules(rule: Recording | Alert, style: Style) -> list[dict[str, Any]]:
    if isinstance(rule, Recording):
        return [_recording(rule, style)]
    if not rule.limited:
        return [_alert(rule, rule.expr, style)]
    fault = {"fault": rule.name, "sustained": rule.sustained}
    own = f'fault="{rule.name}"'
    few = f"{FAULT}{{{own}}}\nunless on ({CLUSTER})\n({_affected(own)} > {MANY})"
    recorded = Recording(FAULT, rule.expr, {**fault, **rule.labels})
    return [_recording(recorded, style), _alert(rule, few, style)]


def _recording(rule: Recording, style: Style) -> dict[str, Any]:
    labels = {"labels": dict(rule.labels)} if rule.labels else {}
    return {"record": rule.name, "expr": style.rewrite(rule.expr), **labels}


def _alert(rule: Alert, expr: str, style: Style) -> dict[str, Any]:
    return {
        "alert": rule.name,
        "expr": style.rewrite(expr),
        **({"for": rule.sustained} if rule.sustained != "0m" else {}),
        **({"keep_firing_for": rule.keep} if rule.keep != "0m" else {}),
        "labels": {**style.labels, **rule.labels},
        "annotations": {
            "summary": rule.summary,
            "description": rule.description,
            "action": rule.action,
            "runbook_url": f"{style.runbooks}/{rule.runbook}",
        },
    }


class _Dumper(yaml.CSafeDumper):
    """Writes texts of several lines as blocks, as people do."""


def _text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
