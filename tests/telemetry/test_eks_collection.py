"""The scraper's configuration in a real Prometheus, which discovers a fake cluster and scrapes its exporters."""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.kubernetes.environments import SCHEDULERS, eks_environment
from tests.telemetry.engines import Engines
from tests.telemetry.fake_exporter import exposition
from ultracluster.config.eks import Team
from ultracluster.kubernetes.exporters import EVERYWHERE
from ultracluster.kubernetes.labels import DEVICE_STACK, NODE_GROUP
from ultracluster.kubernetes.relay import relay_configuration
from ultracluster.kubernetes.scrape import MONITORING, SCRAPER_PORTS, relayed, scrape_configuration
from ultracluster.telemetry.budget import AMP, SERIES_BYTES
from ultracluster.telemetry.labels import DROPPED, NODE_JOBS
from ultracluster.telemetry.scrape import SAMPLE_LIMIT, job_metrics

# a loopback network of its own for each process: ports of exporters are fixed
NETWORK = f"127.{20 + os.getpid() % 200}.{os.getpid() // 200 % 250}"
GPU_NODE, CPU_NODE, STATE, TEAMS, RELAY, KARPENTER, SCHEDULER, CONTROLLER, SERVING, OTHER = (
    f"{NETWORK}.{number}" for number in range(1, 11)
)
POD = {"pod": "llm-node-0-0-x7k2p", "namespace": "research", "container": "node"}
JOB = {"jobset_sigs_k8s_io_jobset_name": "llm", "batch_kubernetes_io_job_name": "llm-node-0"}
JUNK = "# TYPE go_goroutines gauge\ngo_goroutines 12\n"


def node(name: str, address: str, group: str, instance_type: str, **labels: str) -> dict[str, Any]:
    known = {NODE_GROUP: group, "node.kubernetes.io/instance-type": instance_type, "kubernetes.io/os": "linux"}
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {**known, **labels}},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }


def pod(
    namespace: str, name: str, address: str, *ports: int, annotations: Mapping[str, str] | None = None, **labels: str
) -> dict[str, Any]:
    containers = [{"name": "main", "image": "main", "ports": [{"containerPort": port} for port in ports]}]
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}
    return {
        "metadata": {**metadata, "labels": labels, "annotations": dict(annotations or {})},
        "spec": {"nodeName": "cpu-1", "containers": containers},
        "status": {"podIP": address, "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def named(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name}


def annotated(port: int) -> dict[str, str]:
    return {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)}


NODES = [
    node("gpu-1", GPU_NODE, "train", "p5.48xlarge", **{DEVICE_STACK: "gpu_operator"}),
    node("cpu-1", CPU_NODE, "system", "m7i.2xlarge"),
]
PODS = [
    pod(MONITORING, "kube-state-metrics-1", STATE, 8080, **named("kube-state-metrics")),
    pod(MONITORING, "kube-state-metrics-teams-1", TEAMS, 8080, **named("kube-state-metrics")),
    pod(MONITORING, "metrics-relay-1", RELAY, 9090, **named("metrics-relay")),
    pod(MONITORING, "fluent-bit-1", OTHER, 2020, **named("fluent-bit")),
    pod("kube-system", "karpenter-1", KARPENTER, 8080, 8081, **named("karpenter")),
    pod("kube-system", "coredns-1", OTHER, 53, **named("coredns")),
    pod("volcano-system", "volcano-scheduler-1", SCHEDULER, app="volcano-scheduler"),
    pod("volcano-system", "volcano-controllers-1", CONTROLLER, app="volcano-controller"),
    pod("volcano-system", "volcano-admission-1", OTHER, app="volcano-admission"),
    pod("kai-scheduler", "kai-scheduler-default-1", SCHEDULER, 8080, app="kai-scheduler-default"),
    pod("kai-scheduler", "queue-controller-1", CONTROLLER, 8080, app="queue-controller"),
    pod("kai-scheduler", "admission-1", OTHER, 8080, app="admission"),
    pod("research", "chat-0", SERVING, annotations=annotated(8000), **{"leaderworkerset.sigs.k8s.io/name": "chat"}),
    pod("research", "quiet-0", OTHER),
    pod("research", "elsewhere-0", OTHER, annotations=annotated(5000)),
]


@contextmanager
def answering(address: str, port: int, paths: Mapping[str, str]) -> Iterator[int]:
    """An HTTP server with texts by path; it keeps watches of the Kubernetes API open."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            text = paths.get(path)
            self.send_response(404 if text is None else 200)
            kind = "application/json" if path.startswith("/api/") else "text/plain; version=0.0.4"
            self.send_header("Content-Type", kind)
            self.end_headers()
            if "sendInitialEvents=true" in query:
                self.wfile.write(events(json.loads(text or "{}")).encode())
            elif "watch=" not in query:
                self.wfile.write((text or "").encode())
            if "watch=" in query:
                stopping.wait(60)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    stopping = threading.Event()
    server = ThreadingHTTPServer((address, port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()


def events(found: dict[str, Any]) -> str:
    """A list as the events with which a watch begins (Kubernetes, "Streaming lists")."""
    kind = {"kind": found["kind"].removesuffix("List"), "apiVersion": "v1"}
    end = {"metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}
    told = [("ADDED", item) for item in found["items"]] + [("BOOKMARK", end)]
    return "".join(json.dumps({"type": what, "object": {**kind, **item}}) + "\n" for what, item in told)


def api() -> dict[str, str]:
    """Lists of the Kubernetes API by path."""
    namespaces = {each["metadata"]["namespace"] for each in PODS}
    lists = {f"/api/v1/namespaces/{name}/pods": ("PodList", _of(name)) for name in namespaces}
    lists["/api/v1/nodes"] = ("NodeList", NODES)
    return {
        path: json.dumps({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
        for path, (kind, items) in lists.items()
    }


def _of(namespace: str) -> list[dict[str, Any]]:
    return [each for each in PODS if each["metadata"]["namespace"] == namespace]


def gpu_text() -> str:
    """What DCGM exporter serves: one GPU in use by a pod of a team, and one idle."""
    extra = {"Hostname": "gpu-1", "device": "nvidia0"}
    lines = []
    for line in exposition(job_metrics("dcgm")).splitlines():
        name, brace, rest = line.partition("{")
        if line.startswith("#"):
            lines.append(line)
        elif brace:
            busy = ",".join(f'{key}="{value}"' for key, value in {**extra, **POD, **JOB}.items())
            idle = ",".join(f'{key}="{value}"' for key, value in extra.items())
            lines += [f"{name}{{{busy},{rest}", f"{name}{{{idle},{rest}".replace('gpu="gpu"', 'gpu="1"')]
    return "\n".join(lines) + "\n" + JUNK


def relay_text() -> str:
    """What the relay's /federate serves: series with the label `job`, `up` among them."""
    lines = []
    for job in ("kueue", "jobset"):
        for line in exposition(job_metrics(job), labels={"cluster_queue": ("research",)}).splitlines():
            name, brace, rest = line.partition("{")
            if not line.startswith("#"):
                value = line.rpartition(" ")[2]
                inner = f"{rest.rpartition('}')[0]}," if brace else ""
                lines.append(
                    f'{name if brace else name.split()[0]}{{{inner}job="{job}",instance="10.0.0.9:8443"}} {value}'
                )
        lines.append(f'up{{job="{job}",instance="10.0.0.9:8443"}} 1')
    return "\n".join(lines) + "\n" + 'go_goroutines{job="kueue",instance="10.0.0.9:8443"} 12\n'


@contextmanager
def cluster() -> Iterator[int]:
    """The exporters of a cluster and its API server, whose port it yields."""
    node_text, states = exposition(job_metrics("node")) + JUNK, job_metrics("kube-state-metrics")
    everywhere = exposition(tuple(each for each in states if each.name.startswith(EVERYWHERE)))
    teams = exposition(tuple(each for each in states if not each.name.startswith(EVERYWHERE)))
    served = {
        (GPU_NODE, 9100): {"/metrics": node_text},
        (CPU_NODE, 9100): {"/metrics": node_text},
        (GPU_NODE, 9400): {"/metrics": gpu_text()},
        (STATE, 8080): {"/metrics": everywhere + JUNK},
        (TEAMS, 8080): {"/metrics": teams + JUNK},
        (RELAY, 9090): {"/federate": relay_text()},
        (KARPENTER, 8080): {"/metrics": exposition(job_metrics("karpenter")) + JUNK},
        (SCHEDULER, 8080): {"/metrics": exposition((*job_metrics("volcano"), *job_metrics("kai"))) + JUNK},
        (CONTROLLER, 8080): {"/metrics": JUNK},
        (CONTROLLER, 8081): {"/metrics": JUNK},
        (SERVING, 8000): {"/metrics": exposition(job_metrics("pods")) + JUNK + FORGED},
    }
    with ExitStack() as stack:
        for (address, port), paths in served.items():
            stack.enter_context(answering(address, port, paths))
        yield stack.enter_context(answering("127.0.0.1", 0, api()))


def configured(environment: Any, port: int) -> str:
    """The scraper's configuration for a Prometheus outside the cluster, which scrapes every second."""
    configuration = yaml.safe_load(scrape_configuration(environment, cluster="train-1"))
    configuration["global"]["scrape_interval"] = "1s"
    for job in configuration["scrape_configs"]:
        for discovery in job["kubernetes_sd_configs"]:
            discovery["api_server"] = f"http://127.0.0.1:{port}"
    return yaml.safe_dump(configuration)


FORGED = "lustre_mounted 0\nnode_amazonefa_info 0\nDCGM_FI_DEV_GPU_TEMP 0\nnode:gpus:count 0\nup 0\n"
"""What a pod could write to have an alert fire that a node needs a repair."""

TARGETS = {
    "kueue": {"node": 2, "dcgm": 1, "kube-state-metrics": 2, "relay": 1, "karpenter": 1, "pods": 1},
    "volcano": {"node": 2, "dcgm": 1, "kube-state-metrics": 2, "relay": 1, "volcano": 2, "pods": 1},
    "kai": {"node": 2, "dcgm": 1, "kube-state-metrics": 2, "relay": 1, "kai": 2, "pods": 1},
}


@pytest.fixture(scope="module", params=TARGETS)
def scheduler(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def scraped(engines: Engines, tmp_path_factory: pytest.TempPathFactory, scheduler: str) -> Iterator[Any]:
    environment = eks_environment(scheduler=scheduler, jobs=["jobset"], karpenter=scheduler == "kueue")
    count = sum(TARGETS[scheduler].values())
    with cluster() as port:
        config, folder = configured(environment, port), tmp_path_factory.mktemp(scheduler)
        with engines.prometheus(folder, config=config) as server:
            server.scraped('{instance!="10.0.0.9:8443"}', count)
            yield server


def test_every_exporter_is_found_once_and_nothing_else(scraped, scheduler):
    found = {}
    for entry in scraped.query('up{instance!="10.0.0.9:8443"}'):
        assert entry["value"][1] == "1", entry
        found[entry["metric"]["job"]] = found.get(entry["metric"]["job"], 0) + 1
    assert found == TARGETS[scheduler]


def test_every_metric_of_the_software_arrives_under_its_name(scraped, scheduler):
    jobs = {"relay": ("jobset", "kueue") if scheduler == "kueue" else ("jobset",)}
    stored = set(scraped.get("label/__name__/values"))
    for target in TARGETS[scheduler]:
        for job in jobs.get(target, (target,)):
            assert {name for each in job_metrics(job) for name in each.series_names} <= stored, job


def test_only_pods_of_users_keep_other_metrics(scraped):
    assert {entry["metric"]["job"] for entry in scraped.query("go_goroutines")} <= {"pods", "volcano", "kai"}


@pytest.mark.parametrize(("name", "job"), [("DCGM_FI_DEV_GPU_TEMP", "dcgm"), ("node_load1", "node")])
def test_series_of_nodes_have_the_labels_of_their_node(scraped, name, job):
    assert job in NODE_JOBS
    series = {entry["metric"]["node"]: entry["metric"] for entry in scraped.query(name)}
    assert series["gpu-1"].items() >= {"instance_type": "p5.48xlarge", "node_group": "train", "job": job}.items()
    if job == "node":
        assert series["cpu-1"].items() >= {"instance_type": "m7i.2xlarge", "node_group": "system"}.items()


def test_a_gpu_names_the_team_and_the_workload_that_use_it(scraped):
    by_gpu = {entry["metric"]["gpu"]: entry["metric"] for entry in scraped.query("DCGM_FI_DEV_GPU_TEMP")}
    assert by_gpu["gpu"].items() >= {"team": "research", "workload": "llm", "pod": POD["pod"]}.items()
    assert not {"team", "workload", "pod"} & by_gpu["1"].keys()
    for labels in by_gpu.values():
        assert not {*DROPPED, *JOB, "container"} & labels.keys()


def test_objects_keep_the_node_that_they_are_about(scraped):
    if job_metrics("kube-state-metrics"):
        (entry,) = scraped.query("kube_node_info")
        assert entry["metric"]["node"] == "node"


def test_relayed_series_have_the_name_of_their_own_job(scraped, scheduler):
    jobs = {entry["metric"]["job"] for entry in scraped.query('up{instance="10.0.0.9:8443"}')}
    assert jobs == {"kueue", "jobset"}
    for entry in scraped.query('{job="kueue",cluster_queue!=""}') if scheduler == "kueue" else ():
        assert entry["metric"]["team"] == "research"


def test_a_forged_metric_of_a_pod_never_arrives(scraped):
    for line in FORGED.splitlines():
        name, value = line.split()
        found = scraped.query(f'{{__name__="{name}", job="pods"}} == {value}')
        assert not found, name


def test_a_pod_of_a_team_is_named_after_its_workload(scraped):
    (entry,) = scraped.query('up{job="pods"}')
    expected = {"team": "research", "workload": "chat", "pod": "chat-0", "node": "cpu-1", "instance": f"{SERVING}:8000"}
    assert entry["metric"].items() >= expected.items()


def test_the_security_group_allows_every_port_that_is_scraped(scraped):
    urls = [target["scrapeUrl"] for target in scraped.get("targets")["activeTargets"]]
    assert {urlsplit(url).port for url in urls} <= set(SCRAPER_PORTS)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_promtool_accepts_the_configurations(engines, tmp_path, scheduler):
    environment = eks_environment(scheduler=scheduler, jobs=["trainer"], karpenter=True)
    file = tmp_path / "prometheus.yml"
    file.write_text(scrape_configuration(environment, cluster="train-1"))
    assert (ran := engines.promtool("check", "config", "--syntax-only", file)).ok, ran.said
    assert relayed(environment)
    file.write_text(yaml.safe_dump(relay_configuration(environment)))
    assert (ran := engines.promtool("check", "config", "--syntax-only", file)).ok, ran.said


def test_external_labels_name_cluster_and_environment():
    text = scrape_configuration(eks_environment(observability={"scrape_interval_seconds": 60}), cluster="train-1")
    expected = {"scrape_interval": "60s", "external_labels": {"cluster": "train-1", "environment": "test"}}
    assert yaml.safe_load(text)["global"] == expected


def test_one_pod_of_a_user_cannot_fill_the_workspace():
    """Of the scrape jobs, only that of users' pods stores what it is given."""
    jobs = yaml.safe_load(scrape_configuration(eks_environment(), cluster="c"))["scrape_configs"]
    unfiltered = {
        job["job_name"]: job.get("sample_limit")
        for job in jobs
        if "keep" not in {rule.get("action") for rule in job["metric_relabel_configs"]}
    }
    assert unfiltered == {"pods": SAMPLE_LIMIT}
    # AMP's quota in bytes of one answer and in series: the limit is reached long before
    assert AMP["scraper_response_bytes"] > SAMPLE_LIMIT * SERIES_BYTES
    assert AMP["active_series"] > SAMPLE_LIMIT * 100


def test_teams_are_matched_as_a_whole():
    """A namespace that only starts like a team is no team's."""
    environment = eks_environment()
    assert [type(team) for team in environment.teams] == [Team]
    jobs = {
        job["job_name"]: job for job in yaml.safe_load(scrape_configuration(environment, cluster="c"))["scrape_configs"]
    }
    (rule,) = [rule for rule in jobs["dcgm"]["metric_relabel_configs"] if rule.get("target_label") == "team"]
    assert rule["regex"] == "(research)"
