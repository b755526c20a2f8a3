"""The recorded contents of an embedded EKS cluster: Helm releases and Kubernetes objects. None of them runs.

Values and manifests are stored unchanged. Errors that helm, kubectl or the API server would raise are raised here.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from moto.backends import get_backend

from localaws.records import records

Manifest = dict[str, Any]

_DATA = records("kubernetes")
ADD_ONS: Mapping[str, dict[str, list[str]]] = _DATA["add_ons"]["by_name"]
ACCESS_POLICIES: tuple[str, ...] = tuple(_DATA["access_policies"]["names"])
CHART_GROUPS: Mapping[str, Sequence[str]] = _DATA["charts"]["groups"]
LATE_WEBHOOKS: Mapping[str, Sequence[str]] = _DATA["late_webhooks"]["by_chart"]
REQUESTS_BEFORE_WEBHOOKS = 2
"""Requests that the webhooks of LATE_WEBHOOKS refuse after their release is installed."""
BUILT_IN_GROUPS = frozenset(_DATA["api_groups"]["built_in"])

BUILT_IN_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
# Kubernetes API server: limit of all annotations of an object, including the one with kubectl's copy of the object.
MAX_ANNOTATION_BYTES = 262_144
# kubectl's default list for --prune, which contains no custom resources.
PRUNED = frozenset(
    {
        *("ConfigMap", "CronJob", "DaemonSet", "Deployment", "Endpoints", "Ingress", "Job", "Namespace"),
        *("PersistentVolume", "PersistentVolumeClaim", "Pod", "ReplicaSet", "ReplicationController", "Secret"),
        *("Service", "StatefulSet"),
    }
)
_CLAIM = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName"
IMMUTABLE: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("v1", "PersistentVolume"): {
        "csi": "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
    },
    ("v1", "PersistentVolumeClaim"): dict.fromkeys(("accessModes", "storageClassName", "volumeName"), _CLAIM),
    ("batch/v1", "Job"): {"template": "spec.template: Invalid value: field is immutable"},
}
"""Fields of the spec that an update cannot change, with the API server's reason."""


class Rejected(Exception):
    """An error of helm, kubectl or the API server."""


class Key(NamedTuple):
    """Identifies an object. Objects without a namespace, and those in `default`, have an empty one."""

    api_version: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Release:
    """A Helm release, as last installed or upgraded. `groups` are the API groups that its chart installs."""

    name: str
    namespace: str
    chart: str
    repository: str | None
    version: str | None
    values: Mapping[str, Any]
    wait: bool
    timeout_seconds: int | None
    atomic: bool
    create_namespace: bool
    skip_crds: bool
    stack: str
    logical_id: str
    groups: tuple[str, ...] = ()
    revision: int = 1


@dataclass
class Kubernetes:
    """The contents of one cluster."""

    releases: dict[tuple[str, str], Release] = field(default_factory=dict)  # by namespace and name
    objects: dict[Key, Manifest] = field(default_factory=dict)
    namespaces: set[str] = field(default_factory=lambda: set(BUILT_IN_NAMESPACES))
    add_ons: set[str] = field(default_factory=set)
    starting: dict[str, int] = field(default_factory=dict)  # requests that webhooks will refuse, by kind and group

    def view(self) -> dict[str, Any]:
        """All contents, ready for JSON."""
        return {
            "namespaces": sorted(self.namespaces),
            "releases": [asdict(release) for release in self.releases.values()],
            "objects": list(self.objects.values()),
        }

    def add_on(self, name: str, namespace: str) -> None:
        """Record an EKS add-on and the namespace of its controllers."""
        self.add_ons.add(name)
        self.namespaces |= {namespace, *ADD_ONS[name]["namespaces"][1:]}

    def install(self, release: Release) -> None:
        """`helm upgrade --install`: Rejected when the namespace does not exist and create_namespace is false."""
        if release.namespace not in self.namespaces and not release.create_namespace:
            raise Rejected(f'Error: create: failed to create: namespaces "{release.namespace}" not found')
        key = (release.namespace, release.name)
        if key not in self.releases:
            self.starting |= dict.fromkeys(LATE_WEBHOOKS.get(release.chart, ()), REQUESTS_BEFORE_WEBHOOKS)
        revision = self.releases[key].revision + 1 if key in self.releases else 1
        self.releases[key] = replace(release, revision=revision)
        self.namespaces.add(release.namespace)

    def uninstall(self, namespace: str, name: str) -> None:
        """`helm uninstall`. A missing release is no error, as in the CDK's function."""
        self.releases.pop((namespace, name), None)

    def create(self, manifests: list[Manifest]) -> None:
        """`kubectl create --save-config`: applies all objects, or none when one is Rejected or exists already."""
        for manifest in manifests:
            if key_of(manifest) in self.objects or _namespace_name(manifest) in self.namespaces:
                kind, name = manifest["kind"], manifest["metadata"]["name"]
                raise Rejected(f'Error from server (AlreadyExists): {kind} "{name}" already exists')
        self.apply(manifests)

    def apply(self, manifests: list[Manifest], prune_label: str | None = None) -> None:
        """`kubectl apply`, with the label of `--prune -l`: applies all objects, or none when one is Rejected."""
        namespaces, groups = set(self.namespaces), self._groups()
        for manifest in manifests:
            _check(manifest, namespaces, groups)
            _check_immutable(self.objects.get(key_of(manifest)), manifest)
            self._call_webhooks(manifest)
            namespaces |= {_namespace_name(manifest)} - {""}
            if manifest["kind"] == "CustomResourceDefinition":
                groups = groups | {manifest["spec"]["group"]}
        applied = {key_of(manifest): manifest for manifest in manifests}
        visited = {key.namespace for key in applied}
        for key, manifest in list(self.objects.items()):
            labels = manifest["metadata"].get("labels") or {}
            if prune_label in labels and key not in applied and key.kind in PRUNED and key.namespace in {"", *visited}:
                self._delete(key)
        self.objects.update(applied)
        self.namespaces |= namespaces

    def value(self, kind: str, name: str, namespace: str, path: str) -> str | None:
        """The field at `path`, such as .status.succeeded, of an object; None without it. Recorded Jobs succeeded."""
        for key, manifest in self.objects.items():
            if (key.kind.lower(), key.name, key.namespace or "default") != (kind.lower(), name, namespace):
                continue
            found: Any = {**manifest, "status": {"succeeded": 1}} if key.kind == "Job" else manifest
            for part in filter(None, path.split(".")):
                found = found.get(part) if isinstance(found, dict) else None
            return None if found is None else str(found)
        return None

    def _call_webhooks(self, manifest: Manifest) -> None:
        """Raise Rejected while the webhook that would check the object does not answer."""
        group, slash, _ = manifest["apiVersion"].partition("/")
        kind = f"{manifest['kind']}.{group}" if slash else manifest["kind"]
        if self.starting.get(kind):
            self.starting[kind] -= 1
            called = f"failed calling webhook for {kind}: failed to call webhook: connect: connection refused"
            raise Rejected(f"Error from server (InternalError): Internal error occurred: {called}")

    def delete(self, manifests: Iterable[Manifest]) -> None:
        """`kubectl delete`. Missing objects are no error, as in the CDK's function."""
        for manifest in manifests:
            self._delete(key_of(manifest))

    def _delete(self, key: Key) -> None:
        self.objects.pop(key, None)
        if key.kind == "Namespace" and key.api_version == "v1":
            self.namespaces -= {key.name} - BUILT_IN_NAMESPACES
            self.objects = {it: manifest for it, manifest in self.objects.items() if it.namespace != key.name}
            self.releases = {it: release for it, release in self.releases.items() if it[0] != key.name}

    def _groups(self) -> frozenset[str]:
        """The API groups that the API server serves."""
        brought = {group for name in self.add_ons for group in ADD_ONS[name]["groups"]}
        brought |= {group for release in self.releases.values() for group in release.groups}
        defined = {
            manifest["spec"]["group"]
            for key, manifest in self.objects.items()
            if key.kind == "CustomResourceDefinition"
        }
        return BUILT_IN_GROUPS | brought | defined


def contents(cluster_arn: str) -> dict[str, Any] | None:
    """The recorded contents of an EKS cluster in this process, in the form of `Kubernetes.view`.

    None for an unknown cluster.
    """
    parts = cluster_arn.split(":")
    if len(parts) != 6 or parts[2] != "eks" or not parts[5].startswith("cluster/"):
        return None
    found = get_backend("eks")[parts[4]][parts[3]].clusters.get(parts[5].removeprefix("cluster/"))
    return found.kubernetes.view() if found else None


def parse_manifests(text: str) -> list[Manifest]:
    """The objects of a manifest: a JSON list of objects with apiVersion, kind and metadata.name."""
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise Rejected(f"Manifest is not JSON: {error}") from error
    if not isinstance(parsed, list):
        raise Rejected("Manifest is not a JSON list of objects")
    for number, manifest in enumerate(parsed):
        if not isinstance(manifest, dict):
            raise Rejected(f"error validating data: item {number} of Manifest is not an object")
        metadata = manifest.get("metadata")
        known = {**manifest, "metadata.name": metadata.get("name") if isinstance(metadata, dict) else None}
        if missing := [name for name in ("apiVersion", "kind", "metadata.name") if not known.get(name)]:
            raise Rejected(f"error validating data: item {number} of Manifest lacks {', '.join(missing)}")
    return parsed


def key_of(manifest: Manifest) -> Key:
    """The key of an object."""
    metadata = manifest["metadata"]
    namespace = str(metadata.get("namespace") or "")
    place = "" if namespace == "default" else namespace
    return Key(manifest["apiVersion"], manifest["kind"], place, metadata["name"])


def _check(manifest: Manifest, namespaces: set[str], groups: frozenset[str]) -> None:
    """Raise Rejected when the API server would refuse the object."""
    key = key_of(manifest)
    if len(json.dumps(manifest, separators=(",", ":")).encode()) > MAX_ANNOTATION_BYTES:
        limit = f"metadata.annotations: Too long: must have at most {MAX_ANNOTATION_BYTES} bytes"
        raise Rejected(f'The {key.kind} "{key.name}" is invalid: {limit}')
    if key.namespace and key.namespace not in namespaces:
        raise Rejected(
            f'Error from server (NotFound): namespaces "{key.namespace}" not found, for {key.kind} {key.name}'
        )
    group, slash, _ = key.api_version.partition("/")
    if slash and group not in groups:
        words = "ensure CRDs are installed first"
        raise Rejected(f'no matches for kind "{key.kind}" in version "{key.api_version}": {words}')


def _check_immutable(stored: Manifest | None, manifest: Manifest) -> None:
    """Raise Rejected when the object changes a field that the API server keeps for the life of the object.

    Source: Kubernetes 1.35, pkg/apis/core/validation (PersistentVolume, PersistentVolumeClaim) and batch (Job).
    """
    fields = IMMUTABLE.get((manifest["apiVersion"], manifest["kind"]), {}) if stored else {}
    for name, reason in fields.items():
        if stored and stored["spec"].get(name) != manifest["spec"].get(name):
            kind, called = manifest["kind"], manifest["metadata"]["name"]
            raise Rejected(f'The {kind} "{called}" is invalid: {reason}')


def _namespace_name(manifest: Manifest) -> str:
    """The name of the namespace if the object is one, else an empty string."""
    is_one = (manifest["apiVersion"], manifest["kind"]) == ("v1", "Namespace")
    return str(manifest["metadata"]["name"]) if is_one else ""
