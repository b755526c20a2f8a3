"""Everything that the environment installs tolerates the taint of system nodes, and team pods do not."""

import pytest

from tests.kubernetes.environments import GB200, OPERATORS, P5, SCHEDULERS, STACKS, eks_environment
from tests.kubernetes.fleet import fleet_file
from tests.kubernetes.test_order import DEPLOYED
from ultracluster.catalog.software import addons, charts
from ultracluster.config.storage import Storage
from ultracluster.kubernetes.addons import cluster_addons
from ultracluster.kubernetes.jobs import example_job
from ultracluster.kubernetes.labels import SYSTEM_TAINT
from ultracluster.kubernetes.order import ordered_parts
from ultracluster.kubernetes.parts import Objects, Release

PLACES = {
    "gpu-operator": ("operator", "node-feature-discovery.master", "node-feature-discovery.gc"),
    "nvidia-device-plugin": ("nfd.master", "nfd.gc"),
    "dra-driver-nvidia-gpu": ("controller",),
    "kueue": ("controllerManager",),
    "volcano": ("custom",),
    "kai-scheduler": ("global",),
    "kubeflow-trainer": ("manager",),
    "jobset": ("controller",),
    "lws": ("",),
    "kuberay-operator": ("",),
    "karpenter": ("",),
    "aws-efa-k8s-device-plugin": (),
    "aws-dranet": (),
    "dcgm-exporter": (),
    "prometheus-node-exporter": (),
    "kube-state-metrics": ("",),
    "fluent-bit": (),
}
"""Values of each chart that place its Deployments and Jobs, hooks included. The others have only a DaemonSet.

Read from the templates of the charts at the pinned versions, and checked by rendering them (2026-11-21).
"""

KEYS = {"volcano": ("default_ns", "default_tolerations")}
BY_DEFAULT = {"aws-fsx-csi-driver", "aws-ebs-csi-driver"}
"""Add-ons whose controller tolerates CriticalAddonsOnly by default: values.yaml of their charts, 1.17.0 and 2.66.0."""
AGENTS = {"vpc-cni", "kube-proxy", "eks-pod-identity-agent", "eks-node-monitoring-agent"}
"""Add-ons with a pod on each node, which tolerate every taint."""


def tolerates(tolerations):
    return any(entry["key"] == SYSTEM_TAINT["key"] and entry["operator"] == "Exists" for entry in tolerations)


def at(values, path):
    for name in filter(None, path.split(".")):
        values = values[name]
    return values


def environments():
    for scheduler in SCHEDULERS:
        for stack in STACKS:
            for groups in (P5, GB200):
                elastic = stack != "dra" and groups is P5
                yield eks_environment(
                    groups,
                    scheduler=scheduler,
                    device_stack=stack,
                    jobs=OPERATORS,
                    karpenter=elastic,
                    lustre=True,
                    buckets=["datasets"],
                )


def test_every_release_runs_on_system_nodes():
    seen = set()
    for environment in environments():
        for part in ordered_parts(environment, DEPLOYED):
            if not isinstance(part, Release):
                continue
            selector, tolerations = KEYS.get(part.chart.name, ("nodeSelector", "tolerations"))
            for place in PLACES[part.chart.name]:
                if place.startswith("nfd") and not part.values["nfd"]["enabled"]:
                    continue
                values = at(part.values, place)
                assert tolerates(values[tolerations]), f"{part.name}: {place}"
                assert values[selector] == {"ultracluster/node-group": "system"}
                seen.add((part.chart.name, place))
    assert seen == {(chart, place) for chart, places in PLACES.items() for place in places}
    assert PLACES.keys() == charts.keys()


def test_every_pod_in_our_own_objects_runs_on_system_nodes():
    pods = []
    for environment in environments():
        for part in ordered_parts(environment, DEPLOYED):
            objects = part.items if isinstance(part, Objects) else ()
            pods += [obj["spec"]["template"]["spec"] for obj in objects if obj["kind"] in {"Job", "Deployment"}]
    assert pods
    assert all(tolerates(pod["tolerations"]) for pod in pods)


def test_every_add_on_tolerates_the_taint_by_its_configuration_or_by_default():
    storage = Storage.model_validate(
        {"lustre": {"capacity_gib": 1200, "throughput_mbps_per_tib": 125}, "buckets": {"a": {}}}
    )
    found = {entry.addon.name: entry.configuration for entry in cluster_addons(storage, environment="test")}
    assert found.keys() <= addons.keys()
    for name, configuration in found.items():
        if name in AGENTS | BY_DEFAULT:
            continue
        controller = configuration.get("controller", configuration)
        assert tolerates(controller["tolerations"]), name
    assert found["aws-mountpoint-s3-csi-driver"]["node"] == {"tolerateAllTaints": True}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_printed_job_does_not_tolerate_the_taint(scheduler):
    for obj in example_job(fleet_file(scheduler=scheduler), "pretrain", 64):
        assert SYSTEM_TAINT["key"] not in str(obj)
