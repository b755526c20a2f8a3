"""Alerts on the collection of metrics itself, and the alert that always fires."""

from collections.abc import Iterable, Iterator

from ultracluster.telemetry.rules.model import CLUSTER, Alert, Group, Recording, fleet_alerts
from ultracluster.telemetry.rules.site import Site
from ultracluster.telemetry.thresholds import TARGETS_DOWN

_CLUSTER_JOBS = ("kube-state-metrics", "kueue", "volcano", "kai", "jobset", "karpenter")
"""Scrape jobs with few targets, about the cluster instead of a node."""

_COLLECTED, _EVALUATED = "environment:nodes_collected:count", "environment:rules_evaluated:bool"
FIRST_HOURS = 6
"""Hours in which an environment may send its first metrics; our judgement: a first deployment takes one to two."""

_TARGETS = 'up{job!="pods"}'
"""Targets of the platform: pods of teams may come and go."""


def group(site: Site, alerts: Iterable[Alert]) -> Group:
    """The watchdog, alerts on silence, and those that replace `alerts` on many GPUs or nodes."""
    return Group("telemetry", (*_recordings(site), *_alerts(site), *fleet_alerts(alerts)))


def _recordings(site: Site) -> Iterator[Recording]:
    """Whether metrics arrived and rules were evaluated: one series each, so that a rule can look back a month."""
    collected = f'count by (environment) (up{{job=~"dcgm|node", environment="{site.environment}"}} == 1)'
    yield Recording(_COLLECTED, collected)
    yield Recording(_EVALUATED, "vector(1)", {"environment": site.environment})


def _alerts(site: Site) -> Iterator[Alert]:
    own = f'environment="{site.environment}"'
    yield Alert(
        name="Watchdog",
        expr="vector(1)",
        severity="info",
        component="telemetry",
        scope="cluster",
        summary=f"Alerts of {site.environment} work",
        description="This alert always fires. When it does not, rules are not evaluated or the alert manager is down.",
        action="Nothing. A CloudWatch alarm tells when it is missing.",
    )
    yield Alert(
        name="CollectionSilent",
        expr=f'absent(up{{job=~"dcgm|node", {own}}} == 1)\nand on ()\n'
        f"(max_over_time({_COLLECTED}{{{own}}}[30d])\nor\n"
        f"count_over_time({_EVALUATED}{{{own}}}[1d]) >= {60 * FIRST_HOURS})",
        severity="critical",
        component="telemetry",
        scope="cluster",
        sustained="15m",
        keep="5m",
        summary=f"No node of {site.environment} sends metrics",
        description="No exporter of any node can be read, so no fault raises an alert. Before the first metrics of an "
        f"environment the alert waits for {FIRST_HOURS} hours.",
        action="Check that nodes run, then the scraper or the agents, and the alarms on AMP.",
    )
    yield Alert(
        name="TargetsDown",
        expr=f"avg by ({CLUSTER}, job) (1 - {_TARGETS})\n> {TARGETS_DOWN.value}\n"
        f"and\ncount by ({CLUSTER}, job) ({_TARGETS}) >= 10",
        severity="warning",
        component="telemetry",
        scope="cluster",
        sustained="15m",
        keep="5m",
        summary="{{ $value | humanizePercentage }} of the targets {{ $labels.job }} of {{ $labels.environment }} are "
        "down",
        description="Many exporters of the same kind do not answer.",
        action="Look for a change of images, security groups or the exporter.",
    )
    if site.plane == "eks":
        jobs = "|".join(_CLUSTER_JOBS)
        yield Alert(
            name="ControllerSilent",
            expr=f'max by ({CLUSTER}, job) (up{{job=~"{jobs}"}})\n== 0\nor\n{_without_target(site)}',
            severity="critical",
            component="kubernetes",
            scope="cluster",
            sustained="10m",
            keep="5m",
            summary="{{ $labels.job }} of {{ $labels.environment }} does not answer",
            description="Metrics of the controller cannot be read, or it has no pod. Without its controller, the queue "
            "or the jobs stand still.",
            action="Look at the controller's pods and their logs; for kueue and jobset also at those of metrics-relay.",
        )


def _cluster_jobs(site: Site) -> Iterator[str]:
    """Those of `_CLUSTER_JOBS` whose software the environment has."""
    yield "kube-state-metrics"
    yield from (name for name in ("kueue", "volcano", "kai") if name in site.scheduler)
    if site.jobset:
        yield "jobset"
    if site.karpenter:
        yield "karpenter"


def _without_target(site: Site) -> str:
    """Expression: the nodes are scraped and the software of the cluster is not, because it has no pod.

    A pod that waits for a node has no address, so discovery finds no target and there is no `up` at all. Before the
    first scrape, and when collection fails as a whole, the expression is empty: CollectionSilent covers that.
    """
    own = f'environment="{site.environment}"'
    absent = "\nor\n".join(f'absent(up{{job="{job}", {own}}})' for job in _cluster_jobs(site))
    return f'(({absent})\nand on (environment)\ncount by (environment) (up{{job="node", {own}}} == 1))'
