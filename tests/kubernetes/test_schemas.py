"""The validation of Kubernetes objects refuses what an API server would refuse."""

import copy

import pytest

from tests.kubernetes.schemas import Refused, check

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "job"},
    "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "train", "image": "image"}]}},
    },
}
CLAIMS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpus"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
    },
}
QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "team", "labels": {"any": "label"}},
    "spec": {
        "cohortName": "fleet",
        "queueingStrategy": "StrictFIFO",
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [{"name": "train", "resources": [{"name": "cpu", "nominalQuota": 4}]}],
            }
        ],
    },
}
NODE_CONFIG = {
    "apiVersion": "node.eks.aws/v1alpha1",
    "kind": "NodeConfig",
    "metadata": {},
    "spec": {
        "instance": {"localStorage": {"strategy": "RAID0"}},
        "kubelet": {"config": {"maxPods": 30, "evictionHard": {"memory.available": "1Gi"}}},
    },
}


@pytest.mark.parametrize("obj", [JOB, CLAIMS, QUEUE, NODE_CONFIG], ids=lambda obj: obj["kind"])
def test_valid_objects_pass(obj):
    check(obj)


@pytest.mark.parametrize(
    ("obj", "path", "value", "said"),
    [
        (JOB, "spec.colour", "red", "colour"),
        (JOB, "spec.template.spec.containers.0.gpus", 8, "gpus"),
        (JOB, "spec.completions", "eight", "eight"),
        (CLAIMS, "spec.spec.devices.requests.0.count", 8, "count"),
        (QUEUE, "spec.cohort", "fleet", "'cohort' was unexpected"),
        (QUEUE, "spec.queueingStrategy", "FIFO", "'FIFO' is not one of"),
        (QUEUE, "spec.resourceGroups.0.flavors.0.resources.0.nominalQuota", 1.5, "1.5"),
        (QUEUE, "spec.resourceGroups.0.flavors.0.resources.0.quota", 1, "'quota' was unexpected"),
        (NODE_CONFIG, "spec.instance.localStorage.strategy", "raid0", "'raid0' is not one of"),
        (NODE_CONFIG, "spec.kubelet.maxPods", 30, "'maxPods' was unexpected"),
    ],
)
def test_invalid_fields_are_refused(obj, path, value, said):
    changed = copy.deepcopy(obj)
    *parents, leaf = path.split(".")
    place = changed
    for parent in parents:
        place = place[int(parent)] if parent.isdigit() else place[parent]
    place[leaf] = value
    with pytest.raises(Refused, match=said):
        check(changed)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("kueue.x-k8s.io/v1alpha1", "ClusterQueue"),
        ("kueue.x-k8s.io/v1beta2", "Queue"),
        ("example.com/v1", "Thing"),
        ("batch/v2", "Job"),
        ("v1", "Thing"),
    ],
)
def test_unknown_kinds_are_refused(api_version, kind):
    with pytest.raises(Refused):
        check({"apiVersion": api_version, "kind": kind, "metadata": {"name": "thing"}})


def test_older_kubernetes_versions_have_no_resource_claims():
    with pytest.raises(Refused):
        check(CLAIMS, "1.33")


def test_metadata_of_custom_kinds_is_not_checked():
    check({**QUEUE, "metadata": {"name": "team", "annotations": {"any": "text"}}})
