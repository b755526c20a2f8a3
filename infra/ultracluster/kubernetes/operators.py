"""What runs distributed jobs, and what adds nodes: the values of the job operators and of Karpenter.

All of them make their webhooks' certificates themselves, so none takes cert-manager.

Source: the projects at the versions of `infra/ultracluster/catalog/data/software.json`.
"""

from collections.abc import Mapping
from typing import Any

from ultracluster.catalog.software import charts, manifests
from ultracluster.config.eks import Eks, JobOperator
from ultracluster.kubernetes.labels import NODE_GROUP, SYSTEM
from ultracluster.kubernetes.parts import Deployed, Object, Objects, Release

Values = dict[str, Any]

NEEDS: Mapping[JobOperator, tuple[JobOperator, ...]] = {"trainer": ("jobset",)}
"""Operators that others run their jobs by."""

CHARTS: Mapping[JobOperator, str] = {
    "jobset": "jobset",
    "trainer": "kubeflow-trainer",
    "leader_worker_set": "lws",
    "ray": "kuberay-operator",
}
"""Charts of the operators, each behind what it needs. Volcano's jobs come with Volcano; MPI's operator has no chart."""

BATCH_SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler"}
"""What KubeRay calls the schedulers that place its gangs; Kueue admits Ray's kinds without its help."""

KARPENTER_ACCOUNT = "karpenter"
"""Service account that Karpenter's role is bound to, in the namespace of its chart."""

MPI = manifests["mpi-operator"]
MPI_ROLES = ["mpi-operator", "kubeflow-mpijobs-admin", "kubeflow-mpijobs-edit", "kubeflow-mpijobs-view"]
"""Cluster roles in the manifest of MPI's operator."""
INSTALLER = "mpi-operator-installer"
NOBODY = 65532
KEPT_SECONDS = 3600


def installed(settings: Eks) -> tuple[JobOperator, ...]:
    """The operators of the file and those that they need, which come first."""
    needed = (name for job in settings.jobs for name in (*NEEDS.get(job, ()), job))
    return tuple(dict.fromkeys(needed))


def operator_parts(settings: Eks, *, after: tuple[str, ...]) -> tuple[Release | Objects, ...]:
    """Job operators of the file, behind the releases `after`, whose kinds they look for when they start."""
    jobs = installed(settings)
    parts: list[Release | Objects] = []
    for operator, chart in CHARTS.items():
        if operator in jobs:
            before = (*after, *(CHARTS[name] for name in NEEDS.get(operator, ())))
            parts.append(Release(chart, charts[chart], operator_values(operator, settings), before))
    if "mpi" in jobs:
        parts.append(mpi_objects(settings.kubernetes_version))
    return tuple(parts)


def operator_values(operator: JobOperator, settings: Eks) -> Values:
    """Values of one operator's chart."""
    placed_by = settings.places_with
    if operator == "trainer":
        # its own JobSet would be a second one beside ours
        return {"jobset": {"install": False}, "dataCache": {"enabled": False, "lws": {"install": False}}}
    if operator == "leader_worker_set" and placed_by == "volcano":
        return {"gangSchedulingManagement": {"schedulerProvider": "volcano"}}
    if operator == "ray" and placed_by in BATCH_SCHEDULERS:
        return {"batchScheduler": {"name": BATCH_SCHEDULERS[placed_by]}}
    return {}


def karpenter_release(deployed: Deployed) -> Release | None:
    """Karpenter on the system nodes, if the environment takes it. It hears of interruptions from its queue."""
    if deployed.elastic is None:
        return None
    values = {
        "settings": {
            "clusterName": deployed.cluster_name,
            "interruptionQueue": deployed.elastic.interruption_queue,
        },
        "serviceAccount": {"name": KARPENTER_ACCOUNT},
        "replicas": 2,
        # nodes of its own would go with it
        "nodeSelector": {NODE_GROUP: SYSTEM},
        "controller": {
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
        },
    }
    return Release("karpenter", charts["karpenter"], values)


def mpi_objects(kubernetes_version: str) -> Objects:
    """MPI's operator: a Job in the cluster that applies its pinned manifest, whose CRD client-side apply cannot hold.

    The Job's role reaches what the manifest holds and nothing else. Its name changes with what it applies, because the
    pods of a Job cannot. What it applied stays in the cluster when this goes, but for what lies in the namespace.
    """
    namespace, version = MPI.namespace, f"{MPI.version}-kubectl-{kubernetes_version}".replace(".", "-")
    account = {"kind": "ServiceAccount", "name": INSTALLER, "namespace": namespace}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"install-{version}", "namespace": namespace},
        "spec": {
            "backoffLimit": 6,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"spec": _installer_pod(kubernetes_version)},
        },
    }
    return Objects(
        MPI.name,
        (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": INSTALLER, "namespace": namespace}},
            _rbac("ClusterRole", rules=_cluster_rules()),
            _rbac("ClusterRoleBinding", roleRef=_reference("ClusterRole"), subjects=[account]),
            _rbac("Role", namespace, rules=[*_applies("", "serviceaccounts"), *_applies("apps", "deployments")]),
            _rbac("RoleBinding", namespace, roleRef=_reference("Role"), subjects=[account]),
            job,
        ),
    )


def _cluster_rules() -> list[Values]:
    """`escalate` and `bind` let it give the operator rights that it lacks itself, in roles of these names only."""
    group = "rbac.authorization.k8s.io"
    return [
        *_applies("", "namespaces", [MPI.namespace]),
        *_applies("apiextensions.k8s.io", "customresourcedefinitions", ["mpijobs.kubeflow.org"]),
        *_applies(group, "clusterrolebindings", ["mpi-operator"]),
        *_applies(group, "clusterroles", MPI_ROLES),
        {
            "apiGroups": [group],
            "resources": ["clusterroles"],
            "verbs": ["escalate", "bind"],
            "resourceNames": MPI_ROLES,
        },
    ]


def _applies(group: str, resource: str, names: list[str] | None = None) -> list[Values]:
    """What server-side apply needs. Kubernetes bounds no creation by name."""
    rule = {"apiGroups": [group], "resources": [resource]}
    bounds = {"resourceNames": names} if names else {}
    return [{**rule, "verbs": ["create"]}, {**rule, "verbs": ["get", "patch"], **bounds}]


def _rbac(kind: str, namespace: str | None = None, **fields: Any) -> Object:
    metadata = {"name": INSTALLER, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, **fields}


def _reference(kind: str) -> Values:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": INSTALLER}


def _installer_pod(kubernetes_version: str) -> Object:
    """The kubectl of the cluster's own minor version, as nobody, on a node without taints."""
    repository = MPI.installer_image.rpartition(":")[0]
    return {
        "serviceAccountName": INSTALLER,
        "restartPolicy": "OnFailure",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "kubectl",
                "image": f"{repository}:v{kubernetes_version}.0",
                "args": [
                    "apply",
                    "--server-side",
                    "--force-conflicts",
                    "--field-manager=ultracluster",
                    f"--filename={MPI.url}",
                ],
                # where kubectl keeps what it discovers
                "env": [{"name": "HOME", "value": "/home"}],
                "volumeMounts": [{"name": "home", "mountPath": "/home"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
        "volumes": [{"name": "home", "emptyDir": {"sizeLimit": "100Mi"}}],
    }
