"""The configuration that a PCS node writes, in a real Prometheus agent between fake exporters and a real Prometheus.

Names and labels arrive as the catalogue has them: the rules and dashboards of EKS then read those of PCS too.
"""

import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.telemetry.engines import Engines, Prometheus, free_port
from tests.telemetry.fake_exporter import exposition, serving
from tests.unit.nodes.machine import Machine
from tests.unit.nodes.test_eks import group
from tests.unit.nodes.test_telemetry import MOUNT, TELEMETRY, find_controller, scontrol
from ultracluster.nodes.pcs import compute_node_steps, login_node_steps
from ultracluster.nodes.steps import Step
from ultracluster.telemetry.agent import slurm_paths
from ultracluster.telemetry.labels import DROPPED, ScrapeJob
from ultracluster.telemetry.metrics import metrics_of
from ultracluster.telemetry.scrape import UP, job_metrics

JUNK = "# TYPE go_goroutines gauge\ngo_goroutines 12\n"
OWN = ' {hpc_job="17;research",Hostname="ip-10-1-0-9",device="nvidia3",'
WAIT = 90
"""Seconds until everything has arrived: a scrape interval, the deadline of a batch, and a busy machine."""


def exporters() -> dict[str, Mapping[str, str]]:
    """What each exporter answers by path, with series and labels that are not stored."""
    node = exposition(job_metrics("node"), labels={"mode": ("idle", "user"), "state": ("active", "failed", "dead")})
    dcgm = exposition(metrics_of("dcgm")).replace("{", OWN.strip())
    by_path = defaultdict(tuple)
    for each in metrics_of("slurm"):
        by_path[each.path] += (each,)
    slurm = {path: exposition(metrics, labels={"node": ("train-1", "train-2")}) for path, metrics in by_path.items()}
    return {"node": {"/metrics": node + JUNK}, "dcgm": {"/metrics": dcgm + JUNK}, "slurm": slurm}


@contextmanager
def job_metrics_program(folder: Path) -> Iterator[str]:
    """The program that serves what jobs write, with files of an honest and of a hostile user; yields its address."""
    machine = Machine(folder / "job-metrics")
    assert machine.run(Step("serve-job-metrics")).returncode == 0
    files = folder / "jobs"
    files.mkdir()
    honest = exposition(job_metrics("jobs")).replace("exported_node=", "node=")
    (files / "honest.prom").write_text(honest)
    own = "".join(f"{line} 0\n" for line in ('lustre_mounted{target="x"}', "node_amazonefa_info", "training_made_up"))
    (files / "hostile.prom").write_text(own + 'training_step{workload="9",node="train-9",cluster="prod",team="x"} 1\n')
    os.mkfifo(files / "pipe.prom")
    port = free_port()
    command = ["python3", "-IS", machine.root / "opt/ultracluster/job-metrics", files, str(port)]
    with subprocess.Popen(command) as process:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


@contextmanager
def agent(engines: Engines, folder: Path) -> Iterator[None]:
    """Prometheus as agent, with the credentials that a node has from its role."""
    command = [
        engines.programs / "prometheus",
        "--agent",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.agent.path={folder}/storage",
        f"--web.listen-address=127.0.0.1:{free_port()}",
    ]
    keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "x"}
    with (folder / "agent.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **keys})
        try:
            yield
            assert process.poll() is None, (folder / "agent.log").read_text()[-3000:]
        finally:
            process.terminate()
            process.wait(60)


def configured(tmp_path: Path, url: str, addresses: Mapping[str, str]) -> Path:
    """Folder of the configuration that steps of a compute node and of a login node wrote, with other addresses."""
    machine = Machine(tmp_path / "machine", instance_store=2)
    telemetry = replace(TELEMETRY, remote_write_url=url, interval=10)
    host, _, port = addresses["slurm"].partition(":")
    scontrol(machine, f"echo 'SlurmctldHost[0] = ctl({host})'; echo 'SlurmctldPort = {port}'")
    compute = compute_node_steps(group(), [MOUNT], telemetry=telemetry)
    login = login_node_steps([MOUNT], instance_type="m7i.large", telemetry=telemetry)
    for step in (*compute, *login):
        if step.name == "find-slurm-controller" or (step in compute and step.name == "configure-metrics"):
            assert machine.run(step).returncode == 0
    assert find_controller(machine).returncode == 0
    folder = machine.root / "etc/ultracluster/metrics"
    for name, own in (("node", 9100), ("dcgm", 9400), ("jobs", 9101)):
        file = folder / f"targets/{name}.json"
        file.write_text(file.read_text().replace(f"127.0.0.1:{own}", addresses[name]))
    text = (folder / "prometheus.yml").read_text()
    # the folder in the agent's container, and an interval that a controller of two nodes bears
    text = text.replace(f"{machine.root}/etc/prometheus/targets", f"{folder}/targets")
    (folder / "prometheus.yml").write_text(text.replace("scrape_interval: '60s'", "scrape_interval: '10s'"))
    return folder


def arrived(server: Prometheus) -> list[dict[str, Any]]:
    """Labels of every series that was written, once every job has."""
    until = time.monotonic() + WAIT
    expected = {"node", "dcgm", "jobs", "slurm"}
    while time.monotonic() < until:
        found = [entry["metric"] for entry in server.query('{__name__=~".+"}')]
        paths = {each["instance"] for each in found if each["job"] == "slurm"}
        if {each["job"] for each in found} == expected and len(paths) == len(slurm_paths()):
            return found
        time.sleep(1)
    raise AssertionError(f"after {WAIT} s: {sorted({each['job'] for each in found})}")


@pytest.fixture(scope="module")
def series(engines, tmp_path_factory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("agent")
    with ExitStack() as running:
        addresses = {name: running.enter_context(serving(paths)) for name, paths in exporters().items()}
        addresses["jobs"] = running.enter_context(job_metrics_program(folder))
        server = running.enter_context(engines.prometheus(folder / "server"))
        written = configured(folder, f"{server.url}/api/v1/write", addresses)
        running.enter_context(agent(engines, written))
        return arrived(server)


def names(series, job: ScrapeJob):
    return {each["__name__"] for each in series if each["job"] == job} - set(UP)


@pytest.mark.parametrize("job", ["node", "dcgm", "jobs", "slurm"])
def test_every_metric_arrives_under_the_name_of_the_catalogue_and_nothing_else_does(series, job):
    assert names(series, job) == {name for each in job_metrics(job) for name in each.series_names}


@pytest.mark.parametrize("job", ["node", "dcgm", "jobs"])
def test_every_series_of_a_node_has_the_labels_of_both_control_planes(series, job):
    labels = {
        "cluster": "dev-cluster",
        "environment": "dev",
        "node": "train-1",
        "instance": "train-1",
        "instance_type": "p5en.48xlarge",
        "node_group": "train",
    }
    for each in series:
        if each["job"] == job:
            assert {name: each.get(name) for name in labels} == labels, each


def test_a_gpu_names_its_job_and_account_and_no_label_twice(series):
    gpus = [each for each in series if each["job"] == "dcgm" and each["__name__"].startswith("DCGM")]
    assert {(each["workload"], each["team"]) for each in gpus} == {("17", "research")}
    assert not {"hpc_job", *DROPPED} & {name for each in gpus for name in each}
    assert {each["gpu"] for each in gpus} == {"gpu"}


def test_a_forged_metric_of_a_job_never_arrives(series):
    """test_every_metric_arrives... has the names; here, those that a user wrote beside our own."""
    forged = {"lustre_mounted", "node_amazonefa_info", "training_made_up"}
    assert not [each for each in series if each["job"] == "jobs" and each["__name__"] in forged]
    (hostile,) = [each for each in series if each["__name__"] == "training_step" and each["workload"] == "9"]
    assert (hostile["node"], hostile["exported_node"], hostile["cluster"]) == ("train-1", "train-9", "dev-cluster")
    assert "team" not in hostile


def test_the_node_that_nccl_names_does_not_replace_ours(series):
    found = [each for each in series if each["__name__"] == "nccl_bus_bandwidth_gbs"]
    assert {(each["node"], each["exported_node"]) for each in found} == {("train-1", "exported_node")}


def test_only_the_stored_values_of_a_label_arrive(series):
    assert {each["mode"] for each in series if each["__name__"] == "node_cpu_seconds_total"} == {"idle"}
    states = {each["state"] for each in series if each["__name__"] == "node_systemd_unit_state"}
    assert states == {"active", "failed"}


def test_metrics_of_slurm_carry_the_replica_and_not_the_node_that_read_them(series):
    slurm = [each for each in series if each["job"] == "slurm"]
    assert {each["__replica__"] for each in slurm} == {"train-1"}
    assert {each.get("node") for each in slurm if each["__name__"] == "slurm_node_cpus"} == {"train-1", "train-2"}
    assert not [each for each in slurm if each["__name__"] == "slurm_jobs_running" and "node" in each]
    assert not [each for each in series if each["job"] != "slurm" and "__replica__" in each]


def test_each_path_of_the_controller_is_read_once(series):
    assert len([each for each in series if each["__name__"] == "up" and each["job"] == "slurm"]) == len(slurm_paths())
    assert len([each for each in series if each["__name__"] == "slurm_jobs_running"]) == 1
