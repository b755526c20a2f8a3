"""Contents of a cluster: what helm, kubectl and the API server accept and refuse."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from localaws.services.kubernetes import (
    ADD_ONS,
    BUILT_IN_GROUPS,
    CHART_GROUPS,
    MAX_ANNOTATION_BYTES,
    Kubernetes,
    Manifest,
    Rejected,
    Release,
    parse_manifests,
)

CRDS = Path(__file__).parents[2] / "scripts" / "crds.sh"
"""Program of the checkout that prints a folder with upstream CRDs."""


def thing(kind: str = "ConfigMap", name: str = "x", namespace: str = "", api: str = "v1", **more: Any) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **more.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def release(chart: str = "kueue", namespace: str = "kueue-system", **changes: Any) -> Release:
    fixed: dict[str, Any] = {
        "name": chart,
        "namespace": namespace,
        "chart": chart,
        "repository": "https://charts.invalid",
        "version": "1.0.0",
        "values": {},
        "wait": False,
        "timeout_seconds": None,
        "atomic": False,
        "create_namespace": True,
        "skip_crds": False,
        "stack": "s",
        "logical_id": "l",
        "groups": tuple(CHART_GROUPS.get(chart, ())),
    }
    return Release(**{**fixed, **changes})


def names(kubernetes: Kubernetes) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in kubernetes.view()["objects"]]


def test_objects_are_stored_unchanged_and_deleted() -> None:
    kubernetes, manifest = Kubernetes(), thing(data={"a": "1"})
    kubernetes.create([manifest])
    assert kubernetes.view()["objects"] == [manifest]
    kubernetes.apply([{**manifest, "data": {"a": "2"}}])
    assert kubernetes.view()["objects"] == [{**manifest, "data": {"a": "2"}}]
    kubernetes.delete([manifest, thing(name="never made")])
    assert kubernetes.view()["objects"] == []


def test_an_object_is_created_once() -> None:
    kubernetes = Kubernetes()
    kubernetes.create([thing()])
    with pytest.raises(Rejected, match=r'\(AlreadyExists\): ConfigMap "x" already exists'):
        kubernetes.create([thing(name="y"), thing(namespace="default")])
    assert names(kubernetes) == ["x"]


def test_a_release_needs_an_existing_namespace() -> None:
    kubernetes = Kubernetes()
    kubernetes.install(release())
    with pytest.raises(Rejected, match='Namespace "kueue-system" already exists'):
        kubernetes.create([thing("Namespace", "kueue-system")])
    kubernetes.apply([thing("Namespace", "kueue-system")])
    with pytest.raises(Rejected, match='Namespace "kube-system" already exists'):
        kubernetes.create([thing("Namespace", "kube-system")])


def test_a_namespace_must_precede_its_objects() -> None:
    kubernetes = Kubernetes()
    with pytest.raises(Rejected, match='namespaces "team" not found'):
        kubernetes.create([thing(namespace="team")])
    with pytest.raises(Rejected, match='namespaces "team" not found'):
        kubernetes.create([thing(namespace="team"), thing("Namespace", "team")])
    kubernetes.create([thing("Namespace", "team"), thing(namespace="team")])
    kubernetes.create([thing(name="y", namespace="kube-system")])
    assert names(kubernetes) == ["team", "x", "y"]


def test_deleting_a_namespace_deletes_its_contents() -> None:
    kubernetes = Kubernetes()
    kubernetes.create([thing("Namespace", "team"), thing(namespace="team"), thing()])
    kubernetes.install(release("jobset", "team"))
    kubernetes.delete([thing("Namespace", "team")])
    assert names(kubernetes) == ["x"]
    assert kubernetes.view()["releases"] == []
    with pytest.raises(Rejected, match='namespaces "team" not found'):
        kubernetes.apply([thing(namespace="team")])


def test_a_custom_resource_needs_the_chart_that_defines_it() -> None:
    kubernetes, queue = Kubernetes(), thing("ClusterQueue", "q", api="kueue.x-k8s.io/v1beta2")
    words = 'no matches for kind "ClusterQueue" in version "kueue.x-k8s.io/v1beta2"'
    with pytest.raises(Rejected, match=words):
        kubernetes.create([queue])
    kubernetes.install(release("jobset", "jobset-system"))
    with pytest.raises(Rejected, match=words):
        kubernetes.create([queue])
    kubernetes.install(release())
    kubernetes.create([queue])


def test_a_custom_resource_may_be_defined_by_a_manifest_or_an_add_on() -> None:
    kubernetes = Kubernetes()
    definition = thing("CustomResourceDefinition", "a.b.io", api="apiextensions.k8s.io/v1", spec={"group": "b.io"})
    kubernetes.create([definition, thing("A", api="b.io/v1")])
    kubernetes.create([thing("A", "y", api="b.io/v1")])
    issuer = thing("Issuer", api="cert-manager.io/v1")
    with pytest.raises(Rejected, match="ensure CRDs are installed first"):
        kubernetes.create([issuer])
    kubernetes.add_on("cert-manager", "cert-manager")
    kubernetes.create([issuer])


def test_built_in_kinds_need_nothing() -> None:
    kubernetes = Kubernetes()
    kubernetes.create([thing("DaemonSet", api="apps/v1"), thing("Job", api="batch/v1"), thing("Secret")])
    kubernetes.create([thing("ClusterRole", api="rbac.authorization.k8s.io/v1")])
    kubernetes.create([thing("ResourceClaimTemplate", api="resource.k8s.io/v1")])


def test_an_object_larger_than_its_annotations_is_refused() -> None:
    kubernetes, empty = Kubernetes(), thing(data={"a": ""})
    room = MAX_ANNOTATION_BYTES - len(json.dumps(empty, separators=(",", ":")))
    kubernetes.create([thing(data={"a": "x" * room})])
    with pytest.raises(Rejected, match="Too long: must have at most 262144 bytes"):
        kubernetes.create([thing(name="y", data={"a": "x" * (room + 1)})])


def test_pruning_removes_dropped_objects_except_custom_resources() -> None:
    kubernetes, labels = Kubernetes(), {"labels": {"prune/1": ""}}
    kubernetes.install(release())
    kept = thing(metadata=labels)
    gone, other = thing(name="gone", metadata=labels), thing(name="other", metadata={"labels": {"prune/2": ""}})
    queue = thing("ClusterQueue", "q", api="kueue.x-k8s.io/v1beta2", metadata=labels)
    kubernetes.create([kept, gone, other, queue])
    kubernetes.apply([kept])
    assert names(kubernetes) == ["x", "gone", "other", "q"]
    kubernetes.apply([kept], "prune/1")
    assert names(kubernetes) == ["x", "other", "q"]


def test_a_release_is_upgraded_by_revisions() -> None:
    kubernetes = Kubernetes()
    kubernetes.install(release(values={"a": 1}))
    kubernetes.install(release(values={"a": 2}))
    (found,) = kubernetes.view()["releases"]
    assert (found["revision"], found["values"]) == (2, {"a": 2})
    kubernetes.uninstall("kueue-system", "kueue")
    assert kubernetes.view()["releases"] == []
    assert "kueue-system" in kubernetes.namespaces  # helm leaves it


def test_a_release_needs_an_existing_or_created_namespace() -> None:
    kubernetes = Kubernetes()
    with pytest.raises(Rejected, match='namespaces "kueue-system" not found'):
        kubernetes.install(release(create_namespace=False))
    kubernetes.create([thing("Namespace", "kueue-system")])
    kubernetes.install(release(create_namespace=False))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("{}", "not a JSON list"),
        ("[1]", "item 0 of Manifest is not an object"),
        ('[{"kind": "A"}]', "item 0 of Manifest lacks apiVersion, metadata.name"),
        ('[{"apiVersion": "v1", "kind": "A", "metadata": []}]', "lacks metadata.name"),
        ('[{"apiVersion": "v1", "metadata": {"name": "a"}}]', "lacks kind"),
    ],
)
def test_a_manifest_is_a_json_list_of_objects(text: str, words: str) -> None:
    with pytest.raises(Rejected, match=words):
        parse_manifests(text)


def test_add_ons_have_a_namespace() -> None:
    assert all(about["namespaces"] for about in ADD_ONS.values())


def test_every_custom_resource_of_the_platform_comes_with_a_chart() -> None:
    taken = subprocess.run([CRDS], text=True, capture_output=True)
    if taken.returncode:
        pytest.skip(f"no CRDs: {taken.stderr.strip().splitlines()[-1]}")
    of_charts = {group for groups in CHART_GROUPS.values() for group in groups}
    upstream = {path.name.partition("_")[0] for path in Path(taken.stdout.strip()).glob("*.yaml")}
    assert upstream
    assert upstream <= of_charts
    assert not of_charts & BUILT_IN_GROUPS


@pytest.mark.parametrize(
    ("manifest", "changed", "reason"),
    [
        (
            thing("PersistentVolume", spec={"csi": {"driver": "d", "volumeHandle": "a"}, "mountOptions": ["ro"]}),
            {"csi": {"driver": "d", "volumeHandle": "b"}},
            "spec.persistentvolumesource is immutable",
        ),
        (
            thing("PersistentVolumeClaim", spec={"volumeName": "a"}),
            {"volumeName": "b"},
            "spec is immutable after creation",
        ),
        (
            thing("Job", api="batch/v1", spec={"template": {"spec": {"restartPolicy": "Never"}}}),
            {"template": {"spec": {"restartPolicy": "OnFailure"}}},
            "field is immutable",
        ),
    ],
)
def test_fields_that_the_api_server_keeps_are_not_changed(
    manifest: Manifest, changed: dict[str, Any], reason: str
) -> None:
    kubernetes = Kubernetes()
    kubernetes.apply([manifest])
    with pytest.raises(Rejected, match=reason):
        kubernetes.apply([{**manifest, "spec": {**manifest["spec"], **changed}}])
    assert kubernetes.view()["objects"] == [manifest]
    other = {**manifest, "spec": {**manifest["spec"], "mountOptions": ["rw"]}}
    kubernetes.apply([other])
    assert kubernetes.view()["objects"] == [other]
    kubernetes.delete([manifest])
    kubernetes.apply([{**manifest, "spec": changed}])
