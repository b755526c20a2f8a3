"""All Helm releases of an environment, and the chart mirror."""

import json
from itertools import product

import pytest

from tests.kubernetes.environments import GB200, OPERATORS, P5, SCHEDULERS, STACKS, eks_environment
from ultracluster.catalog.eks import older
from ultracluster.catalog.software import charts, manifests, mirrored_image
from ultracluster.kubernetes.deployed import DeployedResources, KarpenterResources, LogGroups
from ultracluster.kubernetes.parts import JobEnd, Objects, Release
from ultracluster.kubernetes.releases import merged, releases

DEPLOYED = DeployedResources("cluster")
RESOURCES = KarpenterResources("queue", "role", "subnet-1", ("subnet-2",), "sg-1", "sg-2")
WITH_KARPENTER = DeployedResources("cluster", karpenter=RESOURCES, logs=LogGroups("/pods", "/nodes", "us-east-2"))
MIRROR = "oci://mirror.example/copies"
PAIRS = tuple(product(STACKS, SCHEDULERS))


def ordered(parts: tuple[Release | Objects, ...]) -> bool:
    seen: set[str] = set()
    for part in parts:
        if not set(part.after) <= seen:
            return False
        seen.add(part.name)
    return len(seen) == len(parts)


@pytest.mark.parametrize(("stack", "scheduler"), PAIRS)
@pytest.mark.parametrize("groups", [P5, GB200], ids=["p5", "gb200"])
def test_every_stack_with_every_scheduler_has_an_order(stack, scheduler, groups):
    environment = eks_environment(groups, device_stack=stack, scheduler=scheduler, jobs=OPERATORS)
    assert ordered(releases(environment, DEPLOYED))


@pytest.mark.parametrize("plugin", ["gpu_operator", "device_plugin"])
def test_two_stacks_in_a_cluster_have_an_order(plugin):
    environment = eks_environment({**P5, **GB200}, device_stack={plugin: ["train"], "dra": ["nvl"]})
    assert ordered(releases(environment, DEPLOYED))


@pytest.mark.parametrize(("stack", "scheduler"), PAIRS)
def test_no_two_releases_install_the_same_crds(stack, scheduler):
    """The GPU Operator's chart also has CRDs of feature discovery and ComputeDomains; Helm keeps existing CRDs."""
    environment = eks_environment(device_stack=stack, scheduler=scheduler, jobs=OPERATORS)
    shared = {"resource.nvidia.com", "nfd.k8s-sigs.io"}
    made = [part for part in releases(environment, DEPLOYED) if isinstance(part, Release)]
    groups = [group for release in made for group in release.chart.api_groups if group not in shared]
    assert len(groups) == len(set(groups))


def test_every_chart_of_the_catalogue_is_used():
    used = {
        part.chart.name if isinstance(part, Release) else part.name
        for stack, scheduler in PAIRS
        for part in releases(
            eks_environment(device_stack=stack, scheduler=scheduler, jobs=OPERATORS, karpenter=stack != "dra"),
            DEPLOYED if stack == "dra" else WITH_KARPENTER,
        )
        if not isinstance(part, JobEnd)
    }
    assert used == {*charts, *manifests}


def test_every_chart_supports_the_oldest_allowed_kubernetes_version():
    for stack, scheduler in PAIRS:
        version = "1.34" if stack == "dra" else "1.33"
        environment = eks_environment(
            device_stack=stack, scheduler=scheduler, jobs=OPERATORS, kubernetes_version=version
        )
        for part in releases(environment, DEPLOYED):
            if isinstance(part, Release):
                assert not older(version, part.chart.minimum_kubernetes), part.name


def test_values_are_json_without_nulls():
    """Templates contain them as JSON, and the CDK drops None."""
    for stack, scheduler in PAIRS:
        environment = eks_environment(device_stack=stack, scheduler=scheduler, jobs=OPERATORS)
        for part in releases(environment, DEPLOYED):
            if isinstance(part, Release):
                assert json.loads(text := json.dumps(part.values)) == part.values
                assert ": null" not in text


def test_without_a_mirror_images_are_the_charts_own():
    for part in releases(eks_environment(jobs=OPERATORS), DEPLOYED):
        if isinstance(part, Release):
            assert "mirror" not in json.dumps(part.values)


def test_every_image_of_every_chart_comes_from_the_mirror():
    for stack, scheduler in PAIRS:
        environment = eks_environment(
            device_stack=stack, scheduler=scheduler, jobs=["trainer", "ray"], chart_mirror=MIRROR
        )
        for part in releases(environment, DEPLOYED):
            assert isinstance(part, Release)
            for path, original in part.chart.images.items():
                value = part.values
                for key in path.split("."):
                    value = value[key]
                assert value == mirrored_image(original, MIRROR)


def test_a_mirror_changes_only_images():
    plain = {p.name: p for p in releases(eks_environment(), DEPLOYED) if isinstance(p, Release)}
    for part in releases(eks_environment(chart_mirror=MIRROR), DEPLOYED):
        assert isinstance(part, Release)
        assert merged(part.values, plain[part.name].values) == part.values


def test_merging_recurses_into_mappings_and_replaces_lists():
    base = {"a": {"x": 1, "y": [1, 2]}, "b": 1}
    assert merged(base, {"a": {"y": [3]}, "c": 2}) == {"a": {"x": 1, "y": [3]}, "b": 1, "c": 2}
