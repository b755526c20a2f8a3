"""Operators for distributed jobs: the values of their charts, and the MPI operator, which has none.

All of them create the certificates of their webhooks themselves, so none needs cert-manager.

Source: the projects at the versions of `infra/ultracluster/catalog/data/software.json`.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ultracluster.catalog.software import charts, manifests
from ultracluster.config.eks import JobOperator
from ultracluster.kubernetes.environment import REQUIRED_OPERATORS, EksEnvironment
from ultracluster.kubernetes.labels import on_system_nodes
from ultracluster.kubernetes.parts import JobEnd, Object, Objects, Part, Release

Values = dict[str, Any]

CHARTS: Mapping[JobOperator, str] = {
    "jobset": "jobset",
    "trainer": "kubeflow-trainer",
    "leader_worker_set": "lws",
    "ray": "kuberay-operator",
}
"""Charts of the operators, each behind those it requires. Volcano brings its own jobs; MPI's operator has no chart."""

BATCH_SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler"}
"""KubeRay's names of the schedulers that place its gangs. Kueue admits Ray's kinds without a setting in KubeRay."""

MPI = manifests["mpi-operator"]
MPI_ROLES = ["mpi-operator", "kubeflow-mpijobs-admin", "kubeflow-mpijobs-edit", "kubeflow-mpijobs-view"]
"""Cluster roles in the manifest of the MPI operator."""
INSTALLER = "mpi-operator-installer"
NOBODY = 65532
"""User and group of the installer."""
INSTALL_SECONDS = 600
"""How long the installer's Job may take. The deployment fails when it takes longer."""
TTL_SECONDS = 3600
"""How long the installer's Job is kept after it finished."""


def operator_parts(environment: EksEnvironment, *, after: tuple[str, ...]) -> tuple[Part, ...]:
    """Job operators of the environment. They start after the releases in `after`, whose CRDs they require."""
    jobs = environment.job_operators
    parts: list[Part] = []
    for operator, chart in CHARTS.items():
        if operator in jobs:
            required = (CHARTS[name] for name in REQUIRED_OPERATORS.get(operator, ()))
            parts.append(Release(chart, charts[chart], operator_values(environment, operator), (*after, *required)))
    if "mpi" in jobs:
        objects = mpi_objects(environment.kubernetes_version)
        parts += [objects, _installed(objects)]
    return tuple(parts)


def operator_values(environment: EksEnvironment, operator: JobOperator) -> Values:
    """Values of one operator's chart."""
    scheduler, place = environment.gang_scheduler, on_system_nodes()
    if operator == "jobset":
        return {"controller": place}
    if operator == "trainer":
        # JobSet has a release of its own
        without = {"jobset": {"install": False}, "dataCache": {"enabled": False, "lws": {"install": False}}}
        return {"manager": place, **without}
    if operator == "leader_worker_set" and scheduler == "volcano":
        return {**place, "gangSchedulingManagement": {"schedulerProvider": "volcano"}}
    if operator == "ray" and scheduler in BATCH_SCHEDULERS:
        return {**place, "batchScheduler": {"name": BATCH_SCHEDULERS[scheduler]}}
    return place


def mpi_objects(kubernetes_version: str) -> Objects:
    """The MPI operator: a Job in the cluster that applies its pinned manifest on the server side.

    The Job then moves the operator to the system nodes and ends when it is available.

    The manifest's CRD is too large for client-side apply. The Job's roles cover the objects of the manifest and nothing
    else. The Job's name has a hash of its pod template, because that is immutable. When the operator leaves the file,
    the objects that the Job applied stay in the cluster, except those in the namespace.
    """
    namespace, pod = MPI.namespace, _installer_pod(kubernetes_version)
    version = f"{MPI.version}-kubectl-{kubernetes_version}".replace(".", "-")
    template = hashlib.sha256(json.dumps(pod, sort_keys=True).encode()).hexdigest()[:6]
    account = {"kind": "ServiceAccount", "name": INSTALLER, "namespace": namespace}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"install-{version}-{template}", "namespace": namespace},
        "spec": {
            "backoffLimit": 6,
            "activeDeadlineSeconds": INSTALL_SECONDS,
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": {"spec": pod},
        },
    }
    return Objects(
        MPI.name,
        (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": INSTALLER, "namespace": namespace}},
            _rbac("ClusterRole", rules=_cluster_rules()),
            _rbac("ClusterRoleBinding", roleRef=_reference("ClusterRole"), subjects=[account]),
            _rbac("Role", namespace, rules=_namespace_rules()),
            _rbac("RoleBinding", namespace, roleRef=_reference("Role"), subjects=[account]),
            job,
        ),
    )


def _installed(objects: Objects) -> JobEnd:
    """The end of the installer's Job, and with it the operator's first available pod."""
    job = objects.items[-1]["metadata"]
    return JobEnd(f"{objects.name}-installed", job["name"], job["namespace"], INSTALL_SECONDS + 60, (objects.name,))


def _namespace_rules() -> list[Values]:
    """Rules for the objects of the manifest, and for `kubectl rollout status`."""
    watched = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list", "watch"]}
    return [*_apply_rules("", "serviceaccounts"), *_apply_rules("apps", "deployments"), watched]


def _cluster_rules() -> list[Values]:
    """`escalate` and `bind` let it grant the operator permissions that it lacks itself, in the named roles only."""
    group = "rbac.authorization.k8s.io"
    return [
        *_apply_rules("", "namespaces", [MPI.namespace]),
        *_apply_rules("apiextensions.k8s.io", "customresourcedefinitions", ["mpijobs.kubeflow.org"]),
        *_apply_rules(group, "clusterrolebindings", ["mpi-operator"]),
        *_apply_rules(group, "clusterroles", MPI_ROLES),
        {
            "apiGroups": [group],
            "resources": ["clusterroles"],
            "verbs": ["escalate", "bind"],
            "resourceNames": MPI_ROLES,
        },
    ]


def _apply_rules(group: str, resource: str, names: list[str] | None = None) -> list[Values]:
    """Rules that server-side apply needs. RBAC cannot restrict `create` by name."""
    rule = {"apiGroups": [group], "resources": [resource]}
    only = {"resourceNames": names} if names else {}
    return [{**rule, "verbs": ["create"]}, {**rule, "verbs": ["get", "patch"], **only}]


def _rbac(kind: str, namespace: str | None = None, **fields: Any) -> Object:
    metadata = {"name": INSTALLER, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, **fields}


def _reference(kind: str) -> Values:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": INSTALLER}


def _installer_pod(kubernetes_version: str) -> Object:
    """A pod with kubectl of the cluster's minor version. It runs without root, on a system node."""
    place = {"spec": {"template": {"spec": on_system_nodes()}}}
    deployment, namespace = f"deployment/{MPI.name}", f"--namespace={MPI.namespace}"
    steps = {
        "apply": [
            *("apply", "--server-side", "--force-conflicts"),
            *("--field-manager=ultracluster", f"--filename={MPI.url}"),
        ],
        # the manifest tolerates no taint
        "place": ["patch", deployment, namespace, "--type=merge", f"--patch={json.dumps(place)}"],
        "wait": ["rollout", "status", deployment, namespace, "--timeout=5m"],
    }
    *first, last = [_kubectl(name, arguments, kubernetes_version) for name, arguments in steps.items()]
    return {
        "serviceAccountName": INSTALLER,
        "restartPolicy": "OnFailure",
        **on_system_nodes(),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": first,
        "containers": [last],
        "volumes": [{"name": "home", "emptyDir": {"sizeLimit": "100Mi"}}],
    }


def _kubectl(name: str, arguments: list[str], kubernetes_version: str) -> Object:
    repository = MPI.installer_image.rpartition(":")[0]
    return {
        "name": name,
        "image": f"{repository}:v{kubernetes_version}.0",
        "args": arguments,
        # kubectl caches API discovery there
        "env": [{"name": "HOME", "value": "/home"}],
        "volumeMounts": [{"name": "home", "mountPath": "/home"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
