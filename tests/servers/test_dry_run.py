"""A real API server accepts every object that the project generates, with the webhooks of Kueue and JobSet."""

from collections import Counter

import pytest

from tests.servers.api import Api, Denied, Object, until
from tests.servers.generated import objects, pods_of

FEWEST = 500
"""Objects that the environments have at least, so that an empty list does not pass."""


@pytest.fixture(scope="module")
def generated() -> list[tuple[str, Object]]:
    """Objects with the name of an environment that has them."""
    return list(objects().values())


@pytest.fixture(scope="module")
def namespaces(servers: Api, generated: list[tuple[str, Object]]) -> None:
    """The namespaces of all objects: a team's as it is generated, with its labels, others plain."""
    names = {obj["metadata"]["namespace"] for _, obj in generated if "namespace" in obj["metadata"]}
    made = {name: {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names}
    made |= {obj["metadata"]["name"]: obj for _, obj in generated if obj["kind"] == "Namespace"}
    missing = made.keys() - {found["metadata"]["name"] for found in servers.list("v1", "Namespace")}
    for name in missing:
        servers.create(made[name])
    for name in missing:
        until(lambda name=name: servers.list("v1", "ServiceAccount", name), f"a service account for pods in {name}")


def test_every_object_passes_a_strict_dry_run(servers, generated, namespaces):
    refused = []
    for environment, obj in generated:
        try:
            servers.create(obj, dry_run=True)
        except Denied as denied:
            # the server says so after everything else: decoding, admission, validation
            if "already exists" not in str(denied):
                refused.append(f"{environment}: {obj['kind']} {obj['metadata'].get('name')}: {denied}")
    assert refused == []
    kinds = Counter(obj["kind"] for _, obj in generated)
    assert kinds.total() >= FEWEST, kinds


def test_pods_of_every_workload_pass_the_pod_security_of_their_namespace(servers, generated, namespaces):
    """A namespace refuses pods, not the workloads that make them."""
    refused, judged = [], 0
    for environment, obj in generated:
        for pod in pods_of(obj):
            try:
                servers.create(pod, dry_run=True)
            except Denied as denied:
                refused.append(f"{environment}: pod of {obj['kind']} {obj['metadata']['name']}: {denied}")
            judged += 1
    assert refused == []
    assert judged >= FEWEST // 2


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dato": {}}, 'unknown field "dato"'),
        (
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "ResourceFlavor",
                "metadata": {"name": "a"},
                "spec": {"nodeTaints": [{"key": "a", "effect": "Never"}]},
            },
            "supported taint effect values",
        ),
        (
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "a", "namespace": "pretrain", "labels": {"kueue.x-k8s.io/queue-name": "A_B"}},
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}},
            },
            r'admission webhook "vjob.kb.io" denied',
        ),
        (
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {"name": "a" * 60},
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "nodes",
                            "template": {
                                "spec": {
                                    "template": {
                                        "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}
                                    }
                                }
                            },
                        }
                    ]
                },
            },
            r'admission webhook "validate-jobset-.*" denied',
        ),
        (
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a", "namespace": "pretrain"},
                "spec": {"hostNetwork": True, "containers": [{"name": "a", "image": "a"}]},
            },
            "violates PodSecurity",
        ),
    ],
    ids=["unknown-field", "rule-of-a-crd", "webhook-of-kueue", "webhook-of-jobset", "pod-security"],
)
def test_a_wrong_object_is_refused(servers, namespaces, obj, said):
    with pytest.raises(Denied, match=said):
        servers.create(obj, dry_run=True)
