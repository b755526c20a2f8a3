"""Device stacks: what advertises the GPUs and EFA devices of each node."""

from itertools import product

import pytest

from tests.kubernetes.environments import GB200, P5, STACKS, eks_environment
from tests.kubernetes.fleet import fleet
from tests.kubernetes.schemas import check
from ultracluster.kubernetes.devices import (
    GPU_OPERATOR,
    device_plugin_values,
    device_releases,
    feature_discovery_values,
)
from ultracluster.kubernetes.exporters import dcgm_exporter_values
from ultracluster.kubernetes.labels import DEVICE_STACK, GPU_TAINT, OPERANDS, node_labels
from ultracluster.kubernetes.parts import Release

GPU_PLUGINS = ("gpu-operator", "nvidia-device-plugin")
MIXED = {**P5, **GB200}


def made(groups=P5, **settings) -> dict[str, Release]:
    return {release.name: release for release in device_releases(eks_environment(groups, **settings))}


def pod(spec):
    containers = [{"name": "main", "image": "registry.example/main:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "main"}, "spec": {"containers": containers, **spec}}


def tolerates(spec, taint) -> bool:
    return any(
        t.get("key") in (None, taint["key"])
        and t.get("effect") in (None, taint["effect"])
        and (t.get("operator") == "Exists" or t.get("value") == taint["value"])
        for t in spec["tolerations"]
    )


def selects(spec, labels) -> bool:
    """Whether `spec` schedules pods on nodes with `labels`, by its node selector or required node affinity."""
    if any(labels.get(name) != value for name, value in spec.get("nodeSelector", {}).items()):
        return False
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(
        all(labels.get(rule["key"]) in rule["values"] for rule in term["matchExpressions"])
        for term in required["nodeSelectorTerms"]
    )


def gpu_releases(releases: dict[str, Release], labels: dict[str, str]) -> list[str]:
    """Releases that advertise GPUs of a node with `labels`."""
    shows = []
    if "gpu-operator" in releases and labels.get(OPERANDS) != "false":
        shows.append("gpu-operator")
    if "nvidia-device-plugin" in releases and selects(releases["nvidia-device-plugin"].values, labels):
        shows.append("nvidia-device-plugin")
    driver = releases.get("dra-driver-nvidia-gpu")
    if driver and driver.values["resources"]["gpus"]["enabled"] and selects(driver.values["kubeletPlugin"], labels):
        shows.append("dra-driver-nvidia-gpu")
    return shows


def efa_releases(releases: dict[str, Release], labels: dict[str, str]) -> list[str]:
    charts = ("aws-efa-k8s-device-plugin", "aws-dranet")
    return [name for name in charts if name in releases and selects(releases[name].values, labels)]


ONE = [(P5, stack) for stack in STACKS]
SEVERAL = [(MIXED, {plugin: ["train"], "dra": ["nvl"]}) for plugin in ("gpu_operator", "device_plugin")]
ULTRASERVERS = [(GB200, stack) for stack in STACKS]


@pytest.mark.parametrize(("groups", "stack"), ONE + SEVERAL + ULTRASERVERS)
def test_exactly_one_release_advertises_gpus_and_one_efa_devices_of_a_node(groups, stack):
    releases = made(groups, device_stack=stack)
    settings = eks_environment(groups, device_stack=stack).settings
    for name in groups:
        labels = node_labels(name, settings)
        assert len(gpu_releases(releases, labels)) == 1
        assert len(efa_releases(releases, labels)) == 1


@pytest.mark.parametrize(("groups", "stack"), ONE + SEVERAL + ULTRASERVERS)
def test_node_feature_discovery_is_installed_once(groups, stack):
    releases = made(groups, device_stack=stack)
    brings = [name for name, release in releases.items() if release.values.get("nfd", {}).get("enabled")]
    assert len(brings) == 1


@pytest.mark.parametrize(("groups", "stack"), ONE + SEVERAL + ULTRASERVERS)
def test_gpu_feature_discovery_labels_the_nodes_of_every_stack(groups, stack):
    releases = made(groups, device_stack=stack)
    settings = eks_environment(groups, device_stack=stack).settings
    for name in groups:
        labels = node_labels(name, settings)
        labelled = [
            release.name
            for release in releases.values()
            if release.values.get("gfd", {}).get("enabled")
            and (labels.get(OPERANDS) != "false" if release.name == "gpu-operator" else selects(release.values, labels))
        ]
        assert len(labelled) == 1


def test_software_on_gpu_nodes_tolerates_their_taint():
    for groups, stack in ONE + SEVERAL:
        for release in made(groups, device_stack=stack).values():
            values = release.values
            specs = [values.get("daemonsets", {}), values.get("kubeletPlugin", {}), values]
            specs += [values.get(name, {}).get("worker", {}) for name in ("node-feature-discovery", "nfd")]
            tolerant = [spec for spec in specs if "tolerations" in spec]
            assert tolerant
            assert all(tolerates(spec, GPU_TAINT) for spec in tolerant)


def test_selectors_affinities_and_tolerations_follow_the_schema_of_kubernetes():
    for groups, stack in ONE + SEVERAL + ULTRASERVERS:
        for release in made(groups, device_stack=stack).values():
            for part in (release.values, release.values.get("kubeletPlugin", {}), release.values.get("daemonsets", {})):
                names = ("nodeSelector", "affinity", "tolerations")
                check(pod({name: part[name] for name in names if name in part}), "1.37")


def test_helm_does_not_wait_for_software_on_gpu_nodes():
    for groups, stack in ONE + SEVERAL:
        assert not any(release.waits for release in made(groups, device_stack=stack).values())


def test_the_operator_installs_neither_driver_nor_toolkit():
    values = made()["gpu-operator"].values
    assert values["driver"] == values["toolkit"] == {"enabled": False}


def test_the_operators_cluster_policy_follows_its_crd():
    values = made()["gpu-operator"].values
    # of `operator`, the chart takes the operator's own place
    chart_alone = {"nfd", "clusterPolicy", "gpuCluster", "node-feature-discovery", "operator"}
    spec = {name: value for name, value in values.items() if name not in chart_alone}
    required = {"operator": {}, "nodeStatusExporter": {"enabled": False}}
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}
    check({**policy, "spec": {**required, **spec}})


def test_the_operator_gets_either_a_cluster_policy_or_a_gpu_cluster():
    values = made()["gpu-operator"].values
    assert values["clusterPolicy"]["deployCR"] is not values["gpuCluster"]["deployCR"]


def test_no_device_plugin_takes_rdma_devices_of_efa():
    operator = made()["gpu-operator"].values["devicePlugin"]["env"]
    assert {"name": "MOFED_ENABLED", "value": "false"} in operator
    assert made(device_stack="device_plugin")["nvidia-device-plugin"].values["mofedEnabled"] is False


def test_operands_of_the_operator_do_not_run_on_nodes_of_other_stacks():
    settings = eks_environment(MIXED, device_stack={"gpu_operator": ["train"], "dra": ["nvl"]}).settings
    assert OPERANDS not in node_labels("train", settings)
    assert node_labels("nvl", settings)[OPERANDS] == "false"


def test_nodes_are_labelled_with_their_device_stack():
    for stack in STACKS:
        settings = eks_environment(device_stack=stack).settings
        assert node_labels("train", settings)[DEVICE_STACK] == stack


@pytest.mark.parametrize("stack", ["gpu_operator", "device_plugin"])
def test_ultraservers_get_compute_domains_while_a_device_plugin_serves_their_gpus(stack):
    driver = made(GB200, device_stack=stack)["dra-driver-nvidia-gpu"].values
    assert driver["resources"] == {"gpus": {"enabled": False}, "computeDomains": {"enabled": True}}


def test_the_dra_driver_runs_only_on_ultraservers_if_other_groups_have_a_device_plugin():
    settings = eks_environment(MIXED).settings
    driver = made(MIXED)["dra-driver-nvidia-gpu"].values["kubeletPlugin"]
    assert selects(driver, node_labels("nvl", settings))
    assert not selects(driver, node_labels("train", settings))


def test_the_dra_driver_serves_gpus_only_with_the_charts_override():
    for groups, stack in product((P5, GB200), STACKS):
        driver = made(groups, device_stack=stack).get("dra-driver-nvidia-gpu")
        if driver:
            assert driver.values["gpuResourcesEnabledOverride"] is driver.values["resources"]["gpus"]["enabled"]


def test_dra_without_ultraservers_has_no_compute_domains():
    driver = made(device_stack="dra")["dra-driver-nvidia-gpu"].values
    assert driver["resources"] == {"gpus": {"enabled": True}, "computeDomains": {"enabled": False}}


def test_no_dra_driver_without_dra_or_ultraservers():
    assert "dra-driver-nvidia-gpu" not in made()
    assert "aws-dranet" not in made()


def test_dra_nodes_have_feature_discovery_without_a_device_plugin():
    releases = made(device_stack="dra")
    assert not set(GPU_PLUGINS) & set(releases)
    assert releases["gpu-feature-discovery"].values["devicePlugin"] == {"enabled": False}


def test_gpus_are_handed_out_in_a_form_that_nodes_take():
    """Nodes ignore NVIDIA_VISIBLE_DEVICES of containers that are not privileged, the plugin's default."""
    assert "volume-mounts" in device_plugin_values()["deviceListStrategy"].split(",")
    # by it the chart makes the pods of feature discovery privileged for the toolkit
    assert "volume-mounts" in feature_discovery_values(with_nfd=True)["deviceListStrategy"].split(",")
    assert GPU_OPERATOR["cdi"]["enabled"] is True


def test_the_exporter_sees_all_gpus_by_a_mount():
    values = dcgm_exporter_values(fleet())
    (volume,), (mount,) = values["extraHostVolumes"], values["extraVolumeMounts"]
    assert volume == {"name": mount["name"], "hostPath": "/dev/null"}
    assert mount["mountPath"] == "/var/run/nvidia-container-devices/all"
