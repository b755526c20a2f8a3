"""Scrape configuration of the AMP managed scraper: what it reads from an EKS cluster, and under which labels.

The scraper supports a subset of Prometheus' configuration, an interval of at least 30 s, and no host name but that of
the API server. So exporters of nodes are discovered with their nodes, which brings the labels of the nodes too, and
everything else with its pods. Only metrics of `ultracluster.telemetry` are stored. The user guide allows the section
`scrape_config` with all its options, `params` and `sample_limit` among them, but no `tls_config`; it restricts the
interval, names of hosts and the authorization.

Source: AMP User Guide, "Set up managed collectors for Amazon EKS", Scraper configuration (2026); Prometheus 3.5,
"Configuration"; labels of Volcano's and KAI's pods: their charts and KAI's operator at the catalogue's versions.
"""

from collections.abc import Collection, Sequence
from typing import Any

import yaml

from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import DEVICE_STACK, NODE_GROUP
from ultracluster.kubernetes.workloads import WORKLOAD_LABELS, label_name
from ultracluster.telemetry.labels import ScrapeJob
from ultracluster.telemetry.scrape import SAMPLE_LIMIT, UP, job_metrics, metric_relabel_configs

Rule = dict[str, Any]

MONITORING = "monitoring"
"""Namespace of the exporters."""

NODE_EXPORTER_PORT = 9100
DCGM_PORT = 9400
METRICS_PORT = 8080
"""Port of kube-state-metrics, Volcano's scheduler, KAI's controllers and Karpenter."""
VOLCANO_CONTROLLER_PORT = 8081
RELAY_PORT = 9090
"""Port of the relay for metrics that are served with TLS and authorization only (`ultracluster.kubernetes.relay`)."""
POD_PORTS = (8000, 8080, 9090, 30000)
"""Ports on which annotated pods of teams are scraped: those of vLLM and SGLang, and two that exporters often use."""

SCRAPER_PORTS = tuple(
    sorted({NODE_EXPORTER_PORT, DCGM_PORT, METRICS_PORT, VOLCANO_CONTROLLER_PORT, RELAY_PORT, *POD_PORTS})
)
"""Ports of nodes and pods that the scraper connects to; the security group of the nodes allows no others."""

META = "__meta_kubernetes_"


def scrape_configuration(environment: EksEnvironment, *, cluster: str) -> str:
    """The configuration as YAML. `cluster` is the cluster's name, which may be a token."""
    configuration = {
        "global": {
            "scrape_interval": f"{environment.observability.scrape_interval_seconds}s",
            "external_labels": {"cluster": cluster, "environment": environment.name},
        },
        "scrape_configs": scrape_jobs(environment),
    }
    return yaml.dump(configuration, Dumper=yaml.CSafeDumper, sort_keys=False, width=1000)


def scrape_jobs(environment: EksEnvironment) -> list[dict[str, Any]]:
    """Entries of `scrape_configs`, one for each scrape job of the software that the environment installs."""
    teams, drop = [team.name for team in environment.teams], environment.observability.drop
    jobs = [_node_job(drop), _dcgm_job(teams, drop), _state_job(teams, drop)]
    if relayed(environment):
        jobs.append(_relay_job(relayed(environment), drop))
    software = {environment.queue_manager, environment.gang_scheduler}
    if "volcano" in software:
        rules = [
            _keep("pod_label_app", "volcano-scheduler|volcano-controller"),
            _address("pod_ip", METRICS_PORT),
            {**_address("pod_ip", VOLCANO_CONTROLLER_PORT, "volcano-controller;"), "source_labels": _APP_AND_IP},
        ]
        jobs.append(_pod_job("volcano", "volcano-system", drop, rules, [_team("queue_name", teams)]))
    if "kai" in software:
        rules = [
            _keep("pod_label_app", "(kai-)?scheduler.*|queue-?controller|binder"),
            _address("pod_ip", METRICS_PORT),
        ]
        jobs.append(_pod_job("kai", "kai-scheduler", drop, rules, [_team("queue_name", teams)]))
    if environment.settings.karpenter:
        rules = [_keep("pod_label_app_kubernetes_io_name", "karpenter"), _address("pod_ip", METRICS_PORT)]
        jobs.append(_pod_job("karpenter", "kube-system", drop, rules))
    jobs.append(_annotated_pods_job(teams, drop))
    return jobs


def relayed(environment: EksEnvironment) -> tuple[ScrapeJob, ...]:
    """Scrape jobs of the environment whose software serves metrics with TLS and authorization only."""
    if not environment.observability.collects_metrics:
        return ()
    kueue: tuple[ScrapeJob, ...] = ("kueue",) if environment.queue_manager == "kueue" else ()
    jobset: tuple[ScrapeJob, ...] = ("jobset",) if "jobset" in environment.job_operators else ()
    return kueue + jobset


def stored_series(job: ScrapeJob, drop: Collection[str] = ()) -> tuple[str, ...]:
    """Names of the series that are stored of a scrape job, without those of the groups in `drop`."""
    return tuple(series for each in job_metrics(job, drop) for series in each.series_names)


def _node_job(drop: Collection[str]) -> dict[str, Any]:
    """Node exporter, which also serves the counters of EFA and Lustre. Pods on other nodes than ours have none."""
    return _node_target("node", NODE_EXPORTER_PORT, drop, [], [])


def _dcgm_job(teams: Sequence[str], drop: Collection[str]) -> dict[str, Any]:
    """DCGM exporter on the GPU nodes. Its series have the pod that uses a GPU, and the pod's labels."""
    gpu_nodes = {
        "source_labels": [f"{META}node_labelpresent_{label_name(DEVICE_STACK)}"],
        "action": "keep",
        "regex": "true",
    }
    labels = [label_name(key) for key in WORKLOAD_LABELS]
    rules = [
        *_workload(["pod", *reversed(labels)]),
        _team("namespace", teams),
        {"action": "labeldrop", "regex": "|".join([*labels, "container"])},
    ]
    return _node_target("dcgm", DCGM_PORT, drop, [gpu_nodes], rules)


def _state_job(teams: Sequence[str], drop: Collection[str]) -> dict[str, Any]:
    """kube-state-metrics, whose labels `node`, `namespace` and `pod` are those of the objects."""
    rules = [
        _keep("pod_label_app_kubernetes_io_name", "kube-state-metrics"),
        _address("pod_ip", METRICS_PORT),
    ]
    own = [*_workload(["job_name"]), _team("namespace", teams)]
    job = _pod_job("kube-state-metrics", MONITORING, drop, rules, own)
    return {**job, "honor_labels": True}


def _relay_job(jobs: Sequence[ScrapeJob], drop: Collection[str]) -> dict[str, Any]:
    """What the relay has scraped of Kueue and JobSet, under the names of their scrape jobs."""
    rules = [_keep("pod_label_app_kubernetes_io_name", "metrics-relay"), _address("pod_ip", RELAY_PORT)]
    names = [name for job in jobs for name in stored_series(job, drop)]
    relay = {
        "job_name": "relay",
        "honor_labels": True,
        "metrics_path": "/federate",
        "params": {"match[]": [f'{{job=~"{"|".join(jobs)}"}}']},
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [MONITORING]}}],
        "relabel_configs": rules,
    }
    # a ClusterQueue has the name of its team
    team = [{"source_labels": ["cluster_queue"], "regex": "(.+)", "target_label": "team"}]
    stored = [{"source_labels": ["__name__"], "action": "keep", "regex": "|".join([*names, UP[0]])}]
    return {**relay, "metric_relabel_configs": [*stored, *team]}


def _annotated_pods_job(teams: Sequence[str], drop: Collection[str]) -> dict[str, Any]:
    """Pods of teams that ask for it: training and inference. A pod with too many samples has none stored."""
    annotation = f"{META}pod_annotation_prometheus_io_"
    ports = "|".join(map(str, POD_PORTS))
    rules = [
        {"source_labels": [f"{annotation}scrape"], "action": "keep", "regex": "true"},
        {"source_labels": [f"{META}pod_phase"], "action": "keep", "regex": "Running"},
        {"source_labels": [f"{annotation}port"], "action": "keep", "regex": ports},
        {
            "source_labels": [f"{META}pod_ip", f"{annotation}port"],
            "regex": "(.+);(.+)",
            "target_label": "__address__",
            "replacement": "$1:$2",
        },
        {"source_labels": [f"{annotation}path"], "regex": "(.+)", "target_label": "__metrics_path__"},
        {"source_labels": [f"{META}pod_node_name"], "target_label": "node"},
        {"source_labels": [f"{META}namespace"], "target_label": "namespace"},
        {"source_labels": [f"{META}namespace"], "target_label": "team"},
        {"source_labels": [f"{META}pod_name"], "target_label": "pod"},
        *_workload([f"{META}pod_name", *(f"{META}pod_label_{label_name(key)}" for key in reversed(WORKLOAD_LABELS))]),
    ]
    return {
        "job_name": "pods",
        "sample_limit": SAMPLE_LIMIT,
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": list(teams)}}],
        "relabel_configs": rules,
        "metric_relabel_configs": _stored_of("pods", drop),
    }


def _node_target(
    job: ScrapeJob, port: int, drop: Collection[str], keep: Sequence[Rule], metric_rules: Sequence[Rule]
) -> dict[str, Any]:
    """A job with a target on each node, at a port of the node itself, with the labels of the node."""
    return {
        "job_name": job,
        "kubernetes_sd_configs": [{"role": "node"}],
        "relabel_configs": [
            *keep,
            _address("node_address_InternalIP", port),
            {"source_labels": [f"{META}node_name"], "target_label": "node"},
            _node_label("node.kubernetes.io/instance-type", "instance_type"),
            _node_label(NODE_GROUP, "node_group"),
        ],
        "metric_relabel_configs": [*_stored_of(job, drop), *metric_rules],
    }


def _pod_job(
    job: ScrapeJob,
    namespace: str,
    drop: Collection[str],
    rules: Sequence[Rule],
    metric_rules: Sequence[Rule] = (),
) -> dict[str, Any]:
    """A job with the pods of one namespace that `rules` keep."""
    return {
        "job_name": job,
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [namespace]}}],
        "relabel_configs": list(rules),
        "metric_relabel_configs": [*_stored_of(job, drop), *metric_rules],
    }


def _stored_of(job: ScrapeJob, drop: Collection[str]) -> list[Rule]:
    """Rules that keep what is stored of a job; none for software of which nothing is stored yet."""
    return [dict(step) for step in metric_relabel_configs(job, drop)] if job_metrics(job) else []


def _workload(labels: Sequence[str]) -> list[Rule]:
    """Rules that set `workload` to the last of `labels` that is not empty."""
    return [{"source_labels": [label], "regex": "(.+)", "target_label": "workload"} for label in labels]


def _team(namespace_label: str, teams: Sequence[str]) -> Rule:
    """Sets `team` where the namespace is that of a team."""
    return {"source_labels": [namespace_label], "regex": f"({'|'.join(teams)})", "target_label": "team"}


def _keep(source: str, regex: str) -> Rule:
    return {"source_labels": [f"{META}{source}"], "action": "keep", "regex": regex}


def _address(source: str, port: int, prefix: str = "") -> Rule:
    return {
        "source_labels": [f"{META}{source}"],
        "regex": f"{prefix}(.+)",
        "target_label": "__address__",
        "replacement": f"$1:{port}",
    }


def _node_label(key: str, target: str) -> Rule:
    return {"source_labels": [f"{META}node_label_{label_name(key)}"], "target_label": target}


_APP_AND_IP = [f"{META}pod_label_app", f"{META}pod_ip"]
