"""The fleets of the tour in a running Prometheus: samples, recorded series and alerts."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from scripts.observe import slurm_fleet
from scripts.observe.course import Day
from scripts.observe.drawing.queries import Json, Look
from scripts.observe.fleet import CLUSTER as ON_SLURM
from scripts.observe.fleet import FILE_SYSTEM
from scripts.observe.kubernetes_fleet import CLUSTER as ON_KUBERNETES
from scripts.observe.kubernetes_fleet import KubernetesFleet
from scripts.observe.replay import Firing, replay
from scripts.observe.server import Prometheus, prometheus
from tests.synthesis import ROOT
from ultracluster import load
from ultracluster.config.environment import Environment
from ultracluster.telemetry.dashboards import dashboards
from ultracluster.telemetry.promql import reading
from ultracluster.telemetry.rules import rule_files

SHOWN = {
    "node_group": ".*",
    "node": "train-16",
    "team": ".*",
    "workload": ".*",
    "model": ".*",
    "file_system": FILE_SYSTEM,
    "gpu_hour": "5",
}
"""Variables of the dashboards in the tour, beside the cluster."""

KUBERNETES_ONLY = ("queues", "inference")
"""Dashboards that the tour shows of the EKS cluster; the others look the same on both control planes."""

_GRAFANA = {"$__rate_interval": "5m", "$__range": "1d", "$gpu_hour": "5"}


@dataclass(frozen=True)
class Picture:
    """A dashboard and what it is looked at with."""

    slug: str
    dashboard: Json
    look: Look


@dataclass(frozen=True)
class Tour:
    """A Prometheus with the day in it, and the dashboards to look at."""

    server: Prometheus
    day: Day
    pictures: tuple[Picture, ...]
    firing: tuple[Firing, ...]
    """Alerts that fire at the end, the most severe first."""


def environments() -> tuple[Environment, Environment]:
    """The environments of the Slurm cluster and of the EKS cluster."""
    return load(ROOT / "environments/prod.yaml"), load(ROOT / "environments/staging.yaml")


def pictures(server: Prometheus, day: Day) -> tuple[Picture, ...]:
    """The dashboards of both clusters."""
    found = []
    for environment, cluster in zip(environments(), (ON_SLURM, ON_KUBERNETES), strict=True):
        values = {**SHOWN, "cluster": cluster["cluster"]}
        names = {name: "All" if value == ".*" else value for name, value in values.items()}
        for made in dashboards(environment):
            slug = made.uid.removeprefix(f"{environment.name}-")
            if (slug in KUBERNETES_ONLY) == (cluster is ON_KUBERNETES):
                found.append(Picture(slug, json.loads(made.text), Look(server, day, values, names)))
    return tuple(found)


def queues(server: Prometheus, day: Day, environment: Environment) -> Picture:
    """The dashboard for the queues of an EKS environment."""
    made = next(each for each in dashboards(environment) if each.uid.endswith("-queues"))
    values = {**SHOWN, "cluster": ON_KUBERNETES["cluster"]}
    return Picture(f"queues-{environment.name}", json.loads(made.text), Look(server, day, values, values))


@contextmanager
def tour(day: Day, program: Sequence[str] | None = None, also: Sequence[Environment] = ()) -> Iterator[Tour]:
    """Fills a Prometheus with the day, and stops it afterwards.

    `program` starts Prometheus; it is searched if not given. Queues of the environments in `also` are added to the
    dashboards, on the data of the EKS cluster.
    """
    files = rules(day)
    with prometheus(day.step, program) as server:
        shown = (*pictures(server, day), *(queues(server, day, environment) for environment in also))
        names = _read(shown, files)
        for fleet in (slurm_fleet.series(day, names), KubernetesFleet(day, names).series()):
            server.write(list(fleet), day.times)
        firing = replay(server, files, day)
        order = ("critical", "warning", "info")
        yield Tour(server, day, shown, tuple(sorted(firing, key=lambda each: (order.index(each.severity), each.name))))


def rules(day: Day) -> list[str]:
    """Rule files of the Slurm cluster, with windows for the tour's samples."""
    slurm, _ = environments()
    observability = slurm.observability.model_copy(update={"scrape_interval_seconds": day.step})
    return list(rule_files(slurm.model_copy(update={"observability": observability})).values())


def expressions(picture: Picture) -> list[str]:
    """The PromQL queries of a dashboard, with Grafana's variables replaced by values."""
    targets = [target for panel in picture.dashboard["panels"] for target in panel.get("targets", ())]
    found = [target["expr"] for target in targets if "expr" in target]
    for name, value in _GRAFANA.items():
        found = [expr.replace(name, value) for expr in found]
    return found


def _read(shown: tuple[Picture, ...], files: list[str]) -> set[str]:
    """Names of the metrics that dashboards and rules read."""
    queries = [expr for picture in shown for expr in expressions(picture)]
    rules = [rule["expr"] for text in files for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    return {name for expr in (*queries, *rules) for name in reading(expr).metrics}
