"""The relay: a small Prometheus that reads Kueue and JobSet, and passes their metrics on to the AMP managed scraper.

Both serve metrics only with TLS, under a certificate of their own, and only to clients that the API server authorizes.
The scraper takes no certificates: `tls_config` is not among the sections of its configuration. The relay keeps values
for minutes, in memory.

Source: AMP User Guide, "Scraper configuration" (2026); Kueue 0.19 and JobSet 0.12, controller-runtime's metrics server.
"""

import hashlib
from typing import Any

import yaml

from ultracluster.catalog.software import charts, images
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import on_system_nodes
from ultracluster.kubernetes.parts import Object, Objects
from ultracluster.kubernetes.scrape import META, MONITORING, RELAY_PORT, relayed

NAME = "metrics-relay"

SECURE_PORT = 8443
"""Port of the metrics of Kueue and JobSet."""

USER = 65534
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path

RBAC = "rbac.authorization.k8s.io"


def relay_objects(environment: EksEnvironment) -> tuple[Objects, ...]:
    """The relay, in the namespace of the exporters; empty if the environment has nothing to relay."""
    jobs = relayed(environment)
    if not jobs:
        return ()
    configuration = yaml.dump(relay_configuration(environment), Dumper=yaml.CSafeDumper, sort_keys=False, width=1000)
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": MONITORING}
    rules = {
        "ClusterRole": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        "Role": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}],
    }
    items: list[Object] = [
        _object("v1", "ServiceAccount"),
        _object("v1", "ConfigMap", data={"prometheus.yml": configuration}),
        *_granted("ClusterRole", rules["ClusterRole"], account, None),
    ]
    for job in jobs:
        items += _granted("Role", rules["Role"], account, charts[job].namespace)
    items.append(_object("apps/v1", "Deployment", spec=_deployment(environment, configuration)))
    return (Objects(NAME, tuple(items), after=("kube-state-metrics", *jobs)),)


def relay_configuration(environment: EksEnvironment) -> dict[str, Any]:
    """The relay's own Prometheus configuration."""
    interval = f"{environment.observability.scrape_interval_seconds}s"
    return {
        "global": {"scrape_interval": interval},
        "scrape_configs": [_secure_job(job) for job in relayed(environment)],
    }


def _secure_job(job: str) -> dict[str, Any]:
    return {
        "job_name": job,
        "scheme": "https",
        "authorization": {"credentials_file": TOKEN},
        # the controllers issue their certificates themselves; the traffic stays in the cluster
        "tls_config": {"insecure_skip_verify": True},
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [charts[job].namespace]}}],
        "relabel_configs": [
            {"source_labels": [f"{META}pod_label_app_kubernetes_io_name"], "action": "keep", "regex": job},
            {"source_labels": [f"{META}pod_container_port_number"], "action": "keep", "regex": str(SECURE_PORT)},
        ],
    }


def _deployment(environment: EksEnvironment, configuration: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": NAME}
    container = {
        "name": "prometheus",
        "image": environment.image(images["metrics_relay"]),
        "args": [
            "--config.file=/etc/prometheus/prometheus.yml",
            "--storage.tsdb.path=/data",
            "--storage.tsdb.retention.time=2h",
            f"--web.listen-address=:{RELAY_PORT}",
        ],
        "ports": [{"name": "metrics", "containerPort": RELAY_PORT}],
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": RELAY_PORT}},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "configuration", "mountPath": "/etc/prometheus", "readOnly": True},
            {"name": "data", "mountPath": "/data"},
        ],
    }
    pod = {
        **on_system_nodes(),
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "configuration", "configMap": {"name": NAME}},
            {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}},
        ],
    }
    # Prometheus reads its configuration at the start; the annotation replaces the pod when it changes
    digest = hashlib.sha256(configuration.encode()).hexdigest()[:16]
    metadata = {"labels": labels, "annotations": {"ultracluster/configuration": digest}}
    return {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "Recreate"},
        "template": {"metadata": metadata, "spec": pod},
    }


def _granted(kind: str, rules: list[Object], account: Object, namespace: str | None) -> list[Object]:
    """A role with `rules` and its binding to the relay's account, in `namespace` or for the whole cluster."""
    reference = {"apiGroup": RBAC, "kind": kind, "name": NAME}
    return [
        _object(f"{RBAC}/v1", kind, namespace, rules=rules),
        _object(f"{RBAC}/v1", f"{kind}Binding", namespace, roleRef=reference, subjects=[account]),
    ]


def _object(api_version: str, kind: str, namespace: str | None = MONITORING, **fields: Any) -> Object:
    metadata = {"name": NAME, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
