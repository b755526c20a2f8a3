"""The pinned modules are of the versions that the catalogue names, so that what judges is what is deployed."""

import re

import pytest

from tests.synthesis import ROOT
from ultracluster.catalog import eks
from ultracluster.catalog.software import charts, manifests

MODULES = ROOT / "tests" / "servers" / "modules"
CHARTS = {
    "sigs.k8s.io/kueue": "kueue",
    "sigs.k8s.io/jobset": "jobset",
    "volcano.sh/volcano": "volcano",
    "sigs.k8s.io/karpenter": "karpenter",
    "github.com/aws/karpenter-provider-aws": "karpenter",
    "github.com/kubeflow/trainer/v2": "kubeflow-trainer",
    "github.com/kubeflow/mpi-operator": "mpi-operator",
}
OLDER = {"sigs.k8s.io/lws", "github.com/ray-project/kuberay/ray-operator"}
"""Modules whose newest version the proxy lacks."""


def required(folder: str) -> dict[str, str]:
    """Versions of modules in a go.mod."""
    return dict(re.findall(r"^\t(\S+) v(\S+)", (MODULES / folder / "go.mod").read_text(), re.MULTILINE))


def crds() -> dict[str, str]:
    lines = (line.split() for line in (MODULES / "crds.txt").read_text().splitlines() if not line.startswith("#"))
    return {module: version.removeprefix("v") for module, version, _ in lines}


def programs() -> dict[str, str]:
    versions = required("kueue")
    return {module: versions[module] for module in ("sigs.k8s.io/kueue", "sigs.k8s.io/jobset")}


@pytest.mark.parametrize("versions", [programs(), crds()], ids=["programs", "crds"])
def test_modules_are_of_the_catalogues_versions(versions):
    known = {**charts, **manifests}
    found = {module: version for module, version in versions.items() if module not in OLDER}
    assert found == {module: known[CHARTS[module]].version.removeprefix("v") for module in found}


def test_every_module_with_crds_is_compared():
    assert crds().keys() == CHARTS.keys() | OLDER


def test_the_api_server_is_that_of_the_node_image_of_its_version():
    version = required("kubernetes")["k8s.io/kubernetes"]
    images = {found.image_release.partition("-")[0] for found in eks.KUBERNETES_VERSIONS.values()}
    assert version in images
