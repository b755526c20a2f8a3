"""Dashboards of an environment, ready for Grafana."""

from typing import NamedTuple

from ultracluster.config.environment import Environment
from ultracluster.telemetry.dashboards.boards import boards


class Dashboard(NamedTuple):
    """A dashboard to create in Grafana. The uid stays the same for the life of the environment."""

    uid: str
    title: str
    text: str
    """Its JSON, as Grafana's API and its import form take it."""


def metrics_source_uid(environment: Environment) -> str:
    """Uid of the data source for AMP that the dashboards name; its type is `grafana-amazonprometheus-datasource`."""
    return f"{environment.name}-metrics"


def cloudwatch_source_uid(environment: Environment) -> str:
    """Uid of the data source for CloudWatch that the dashboards name."""
    return f"{environment.name}-cloudwatch"


def dashboards(environment: Environment) -> tuple[Dashboard, ...]:
    """The dashboards of an environment, for its control plane and what it has."""
    from ultracluster.telemetry.dashboards.grafana import Sources, dashboard_json

    chosen = boards(environment)
    uids = {board.slug: f"{environment.name}-{board.slug}" for board in chosen}
    sources = Sources(metrics_source_uid(environment), cloudwatch_source_uid(environment))
    return tuple(
        Dashboard(uids[board.slug], board.title, dashboard_json(board, uids, sources, environment.name))
        for board in chosen
    )
