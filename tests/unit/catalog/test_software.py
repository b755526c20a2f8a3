"""The software of a cluster is pinned, names its source, and can come from a mirror."""

import re

import pytest

from ultracluster.catalog.eks import KUBERNETES_VERSIONS, older
from ultracluster.catalog.software import addons, charts, manifests, mirrored_image, mirrored_values, release_source

MIRROR = "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror"
ADDON_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)-eksbuild\.\d+")
CHART_VERSION = re.compile(r"v?\d+\.\d+\.\d+")
REGISTRIES = re.compile(
    r"(nvcr\.io|registry\.k8s\.io|docker\.io|quay\.io|ghcr\.io|public\.ecr\.aws|cr\.fluentbit\.io|\d+\.dkr\.ecr\.)"
)


def pinned_addons():
    return [(name, kubernetes) for name, addon in addons.items() for kubernetes in addon.versions]


@pytest.mark.parametrize(("name", "kubernetes"), pinned_addons())
def test_addon_versions_are_builds_for_versions_that_eks_has(name, kubernetes):
    assert kubernetes in KUBERNETES_VERSIONS
    assert ADDON_VERSION.fullmatch(addons[name].versions[kubernetes])


@pytest.mark.parametrize("kubernetes", KUBERNETES_VERSIONS)
def test_kube_proxy_is_of_the_cluster_s_version(kubernetes):
    assert addons["kube-proxy"].versions[kubernetes].startswith(f"v{kubernetes}.")


@pytest.mark.parametrize("version", addons["vpc-cni"].versions.values())
def test_the_network_plugin_supports_efa_only_interfaces(version):
    assert tuple(int(part) for part in ADDON_VERSION.fullmatch(version).groups()) >= (1, 18, 5)


@pytest.mark.parametrize("name", ["vpc-cni", "aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver"])
def test_addons_that_call_aws_have_a_service_account(name):
    assert addons[name].service_account


@pytest.mark.parametrize("name", charts)
def test_a_chart_is_pinned(name):
    assert CHART_VERSION.fullmatch(charts[name].version)
    assert charts[name].repository.startswith(("https://", "oci://"))
    assert not charts[name].repository.endswith("/")


@pytest.mark.parametrize("name", [name for name, chart in charts.items() if chart.oci])
def test_an_oci_reference_ends_with_the_chart(name):
    assert charts[name].repository.endswith(f"/{name}")


@pytest.mark.parametrize("name", charts)
def test_a_chart_runs_on_some_version_that_eks_has(name):
    assert not older(list(KUBERNETES_VERSIONS)[-1], charts[name].minimum_kubernetes)


def test_a_release_comes_from_its_own_repository():
    assert release_source(charts["gpu-operator"]) == (
        "gpu-operator",
        "https://helm.ngc.nvidia.com/nvidia",
        "v26.7.0",
    )


@pytest.mark.parametrize("name", charts)
def test_a_mirror_keeps_names_and_versions(name):
    source = release_source(charts[name], MIRROR)
    assert source == (name, f"{MIRROR}/{name}", charts[name].version)


def test_values_of_a_mirror_are_nested_as_the_chart_has_them():
    assert mirrored_values(charts["kueue"], MIRROR) == {
        "controllerManager": {
            "manager": {"image": {"repository": "111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror/kueue/kueue"}}
        }
    }


def test_two_images_of_one_component_keep_separate_values():
    driver = mirrored_values(charts["gpu-operator"], "oci://registry.example/m")["driver"]
    assert driver == {
        "repository": "registry.example/m/nvidia",
        "manager": {"repository": "registry.example/m/nvidia/cloud-native"},
    }


@pytest.mark.parametrize("name", charts)
def test_a_mirror_replaces_every_registry(name):
    assert charts[name].images
    for original in charts[name].images.values():
        assert REGISTRIES.match(original)
        mirrored = mirrored_image(original, "oci://registry.example/m/")
        assert mirrored.startswith("registry.example/m")
        assert not REGISTRIES.search(mirrored)


def test_a_value_with_only_a_registry_becomes_the_mirror():
    assert mirrored_image("docker.io", MIRROR) == MIRROR.removeprefix("oci://")


@pytest.mark.parametrize("name", manifests)
def test_a_manifest_is_pinned_by_its_commit(name):
    manifest = manifests[name]
    assert re.fullmatch(r"[0-9a-f]{40}", manifest.commit)
    assert manifest.url.startswith("https://")
    assert f"/{manifest.commit}/" in manifest.url
    assert all(":" in image and not image.endswith(":latest") for image in manifest.images)


def test_charts_share_no_crds_but_those_that_exclude_each_other():
    shared = {
        tuple(sorted((a, b)))
        for a in charts
        for b in charts
        if a != b and set(charts[a].api_groups) & set(charts[b].api_groups)
    }
    assert shared == {("gpu-operator", "nvidia-device-plugin"), ("dra-driver-nvidia-gpu", "gpu-operator")}
