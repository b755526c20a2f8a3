"""Exporters: values, and what Helm renders from them."""

import csv
import json
import re
from dataclasses import replace

import pytest
import yaml

from tests.kubernetes.environments import GB200, P5, STACKS, eks_environment
from tests.kubernetes.helm import rendered
from tests.kubernetes.schemas import check
from tests.kubernetes.test_devices import tolerates
from ultracluster.catalog.software import images
from ultracluster.config.eks_fleet import SYSTEM_GROUP
from ultracluster.kubernetes.deployed import DeployedResources
from ultracluster.kubernetes.exporters import exporter_releases
from ultracluster.kubernetes.labels import DEVICE_STACK, DIAGNOSTICS, GPU_TAINT, NODE_GROUP, SYSTEM_TAINT, node_labels
from ultracluster.kubernetes.relay import relay_objects
from ultracluster.kubernetes.releases import releases
from ultracluster.kubernetes.scrape import DCGM_PORT, METRICS_PORT, NODE_EXPORTER_PORT, RELAY_PORT
from ultracluster.kubernetes.workloads import WORKLOAD_LABELS, label_name
from ultracluster.nodes.collectors import TEXTFILE_FOLDER
from ultracluster.telemetry.dcgm import counters
from ultracluster.telemetry.scrape import job_metrics

DEPLOYED = DeployedResources("test-1")
DEPLOYED_MIRROR = "oci://mirror.example/copies"


def made(groups=P5, **settings):
    return {release.name: release for release in exporter_releases(eks_environment(groups, **settings))}


def one(objects, kind):
    (found,) = [each for each in objects if each["kind"] == kind]
    return found


def pod(objects, kind="DaemonSet"):
    return one(objects, kind)["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def objects():
    return {name: rendered(release) for name, release in made().items()}


def test_every_object_follows_the_schema_of_kubernetes(objects):
    for found in objects.values():
        for each in found:
            check(each)


def test_helm_waits_for_no_exporter():
    assert not any(release.waits for release in made().values())


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("groups", [P5, GB200], ids=["p5", "gb200"])
def test_one_dcgm_exporter_runs_on_every_gpu_node_and_on_no_other(groups, stack):
    environment = eks_environment(groups, device_stack=stack)
    exporters = [name for name in made(groups, device_stack=stack) if "dcgm" in name]
    assert exporters == ["dcgm-exporter"]
    values = made(groups, device_stack=stack)["dcgm-exporter"].values
    (term,) = values["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    served = {"key": DEVICE_STACK, "operator": "Exists"}
    assert term == {"matchExpressions": [served, {"key": DIAGNOSTICS, "operator": "DoesNotExist"}]}
    for name in groups:
        assert DEVICE_STACK in node_labels(name, environment.settings)
    assert tolerates(values, GPU_TAINT)
    assert not tolerates(values, SYSTEM_TAINT)
    assert values["kubernetesDRA"] == {"enabled": stack == "dra"}


def test_the_gpu_operator_installs_no_second_exporter():
    operator = {part.name: part for part in releases(eks_environment(), DEPLOYED)}["gpu-operator"]
    assert operator.values["dcgmExporter"]["enabled"] is False
    assert operator.values["dcgm"] == {"enabled": False}


def test_the_exporter_reads_the_counters_of_its_own_dcgm(objects):
    dcgm = images["dcgm_exporter"].rpartition(":")[2].partition("-")[0]
    text = one(objects["dcgm-exporter"], "ConfigMap")["data"]["metrics"]
    fields = {row[0]: row[1] for row in csv.reader(text.splitlines()) if row}
    assert fields.keys() >= {each.name for each in counters(dcgm)}
    container = pod(objects["dcgm-exporter"])["containers"][0]
    assert container["image"] == images["dcgm_exporter"]
    # by which the agent of nodes knows that it has left
    (daemon_set,) = (item for item in objects["dcgm-exporter"] if item["kind"] == "DaemonSet")
    assert daemon_set["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] == "dcgm-exporter"
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert "/etc/dcgm-exporter/default-counters.csv" in mounted
    assert container["args"] == ["-f", "/etc/dcgm-exporter/default-counters.csv"]


def test_other_counters_replace_the_pods(monkeypatch):
    before = made()["dcgm-exporter"].values["podAnnotations"]
    monkeypatch.setattr("ultracluster.kubernetes.exporters.counters_csv", lambda dcgm: "DCGM_FI_DEV_GPU_TEMP,gauge,t\n")
    assert made()["dcgm-exporter"].values["podAnnotations"] != before


def test_exporters_of_nodes_listen_on_the_node(objects):
    for name, port in (("dcgm-exporter", DCGM_PORT), ("prometheus-node-exporter", NODE_EXPORTER_PORT)):
        spec = pod(objects[name])
        assert spec["hostNetwork"] is True
        assert [entry["containerPort"] for entry in spec["containers"][0]["ports"]] == [port]
    environment = {entry["name"]: entry.get("value") for entry in pod(objects["dcgm-exporter"])["containers"][0]["env"]}
    assert environment["DCGM_EXPORTER_LISTEN"] == f":{DCGM_PORT}"


def test_the_exporter_names_the_pod_of_a_gpu_with_the_labels_of_its_workload(objects):
    environment = {entry["name"]: entry.get("value") for entry in pod(objects["dcgm-exporter"])["containers"][0]["env"]}
    assert environment["DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"] == "true"
    patterns = environment["DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"].split(",")
    assert len(patterns) == len(WORKLOAD_LABELS)
    (role,) = [each for each in objects["dcgm-exporter"] if each["kind"] == "ClusterRole"]
    assert role["rules"][0]["verbs"] == ["get", "list", "watch"]


def test_label_names_are_those_of_prometheus():
    assert label_name("jobset.sigs.k8s.io/jobset-name") == "jobset_sigs_k8s_io_jobset_name"


def test_node_exporter_serves_the_counters_of_efa_and_lustre(objects):
    spec = pod(objects["prometheus-node-exporter"])
    (volume,) = [each for each in spec["volumes"] if each["name"] == "textfile"]
    assert volume["hostPath"] == {"path": TEXTFILE_FOLDER, "type": "DirectoryOrCreate"}
    container = spec["containers"][0]
    assert f"--collector.textfile.directory={TEXTFILE_FOLDER}" in container["args"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "textfile"]
    assert (mount["mountPath"], mount["readOnly"]) == (TEXTFILE_FOLDER, True)


def test_node_exporter_finds_the_bus_of_systemd_where_its_client_asks(objects):
    """Nothing sets DBUS_SYSTEM_BUS_ADDRESS, so the client of Go (godbus) asks at its default address."""
    spec = pod(objects["prometheus-node-exporter"])
    (container,) = spec["containers"]
    assert "--collector.systemd" in container["args"]
    assert "DBUS_SYSTEM_BUS_ADDRESS" not in {entry["name"] for entry in container.get("env", ())}
    (volume,) = [each for each in spec["volumes"] if each.get("hostPath", {}).get("path") == "/run/dbus"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == volume["name"]]
    assert (mount["mountPath"], mount["readOnly"]) == ("/var/run/dbus", True)


def test_node_exporter_runs_on_every_node(objects):
    spec = pod(objects["prometheus-node-exporter"])
    assert spec["tolerations"] == [{"operator": "Exists", "effect": "NoSchedule"}]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {rule["operator"] for term in required for rule in term["matchExpressions"]} == {"NotIn"}


def test_collectors_that_the_catalogue_needs_are_on(objects):
    args = " ".join(pod(objects["prometheus-node-exporter"])["containers"][0]["args"])
    for collector in ("ethtool", "systemd"):
        assert f"--collector.{collector} " in f"{args} "


STATES = ("kube-state-metrics", "kube-state-metrics-teams")


def arguments(found):
    container = pod(found, "Deployment")["containers"][0]
    assert container["ports"][0]["containerPort"] == METRICS_PORT
    return dict(arg.removeprefix("--").split("=", 1) for arg in container["args"] if "=" in arg)


def test_every_metric_of_objects_is_served_once(objects):
    served = [name for state in STATES for name in arguments(objects[state])["metric-allowlist"].split(",")]
    assert sorted(served) == sorted(name for each in job_metrics("kube-state-metrics") for name in each.series_names)


def test_pods_and_jobs_are_those_of_teams(objects):
    whole, teams = (arguments(objects[state]) for state in STATES)
    assert "namespaces" not in whole
    assert teams["namespaces"] == "research"
    assert "kube_daemonset_status_number_ready" in whole["metric-allowlist"]
    assert "kube_pod_info" in teams["metric-allowlist"]


def test_every_label_of_the_catalogue_is_served(objects):
    """A label that is not allowed is never on a series, and the rules that name it never fire."""
    allowed = ",".join(arguments(objects[state])["metric-labels-allowlist"] for state in STATES)
    known = {label_name(key) for key in re.findall(r"[\w./-]+(?=[,\]])", allowed)}
    for each in job_metrics("kube-state-metrics"):
        for label in each.labels:
            if label.startswith("label_"):
                assert label.removeprefix("label_") in known, f"{each.name}: {label}"


def test_both_releases_have_the_label_by_which_they_are_found(objects):
    for state in STATES:
        labels = one(objects[state], "Deployment")["spec"]["template"]["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "kube-state-metrics"
    names = [each["metadata"]["name"] for state in STATES for each in objects[state] if each["kind"] == "ClusterRole"]
    assert len(set(names)) == 2


def test_every_stored_metric_has_a_collector():
    for state in STATES:
        values = made()[state].values
        for name in values["metricAllowlist"]:
            assert any(name.startswith(f"kube_{collector.removesuffix('s')}") for collector in values["collectors"]), (
                name
            )


def test_state_metrics_may_read_no_secrets(objects):
    (role,) = [each for each in objects["kube-state-metrics"] if each["kind"] == "ClusterRole"]
    read = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert not read & {"secrets", "configmaps"}


def test_the_relay_reads_kueue_and_jobset_and_nothing_else():
    (part,) = relay_objects(eks_environment(jobs=["trainer"]))
    for each in part.items:
        check(each)
    roles = {(each["kind"], each["metadata"].get("namespace")): each["rules"] for each in part.items if "rules" in each}
    assert roles[("ClusterRole", None)] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    assert set(roles) == {("ClusterRole", None), ("Role", "kueue-system"), ("Role", "jobset-system")}
    deployment = one(part.items, "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    assert tolerates(spec, SYSTEM_TAINT)
    assert spec["nodeSelector"] == {NODE_GROUP: SYSTEM_GROUP}
    assert spec["containers"][0]["ports"] == [{"name": "metrics", "containerPort": RELAY_PORT}]
    jobs = yaml.safe_load(one(part.items, "ConfigMap")["data"]["prometheus.yml"])["scrape_configs"]
    assert [job["job_name"] for job in jobs] == ["kueue", "jobset"]
    assert part.after == ("kube-state-metrics", "kueue", "jobset")


def test_without_kueue_and_jobset_there_is_no_relay():
    assert relay_objects(eks_environment(scheduler="volcano")) == ()


def test_the_image_of_the_relay_comes_from_the_mirror():
    (part,) = relay_objects(eks_environment(chart_mirror=DEPLOYED_MIRROR))
    (container,) = one(part.items, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("mirror.example/copies/prometheus/prometheus:")


@pytest.mark.parametrize("name", ["dcgm-exporter", "prometheus-node-exporter", "kube-state-metrics"])
def test_rendered_images_come_from_the_mirror(name):
    environment = eks_environment(chart_mirror=DEPLOYED_MIRROR)
    (release,) = [part for part in releases(environment, DEPLOYED) if part.name == name]
    text = json.dumps(rendered(release))
    images_of = {part.partition('"')[0] for part in text.split('"image": "')[1:]}
    assert images_of
    assert all(image.startswith("mirror.example/copies/") for image in images_of), images_of


def test_a_large_cluster_has_shards_of_kube_state_metrics_that_find_their_part_themselves():
    """The managed scraper reads at most 50 MB of a target."""
    small = eks_environment()
    large = replace(small, node_groups=tuple(each.model_copy(update={"count": 3000}) for each in small.node_groups))
    found = rendered({release.name: release for release in exporter_releases(large)}["kube-state-metrics"])
    assert one(found, "StatefulSet")["spec"]["replicas"] > 1
    assert any("--pod-namespace" in argument for argument in pod(found, "StatefulSet")["containers"][0]["args"])
    assert [each["kind"] for each in rendered(made()["kube-state-metrics"])].count("StatefulSet") == 0
