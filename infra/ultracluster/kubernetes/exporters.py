"""Exporters of GPUs, nodes and Kubernetes objects: Helm releases that the AMP managed scraper reads.

NVIDIA's DCGM exporter has a release of its own, whatever the device stack: one pinned image whose fields the list of
counters fits, on static and on Karpenter's nodes alike. Exporters of nodes listen on the network of the node, so that
the scraper finds them with the node, and so that they take no address.

Helm waits for none of them: neither a broken node nor a missing image stops the deployment.

Source: the charts' own values at the versions of `infra/ultracluster/catalog/data/software.json`.
"""

import hashlib
from typing import Any

from ultracluster.catalog.software import charts, images
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import (
    CLIQUE,
    DEVICE_STACK,
    GPU_TOLERATION,
    NODE_GROUP,
    network_layer,
    on_system_nodes,
)
from ultracluster.kubernetes.parts import Release
from ultracluster.kubernetes.scrape import DCGM_PORT, stored_series
from ultracluster.kubernetes.workloads import WORKLOAD_LABELS
from ultracluster.nodes.collectors import TEXTFILE_FOLDER
from ultracluster.telemetry.dcgm import counters_csv, exporter_dcgm

Values = dict[str, Any]

EVERY_TAINT = {"operator": "Exists", "effect": "NoSchedule"}
"""Agents of nodes also run on nodes that take no other pods."""

COLLECTORS = {
    "kube_node_": "nodes",
    "kube_pod_": "pods",
    "kube_job_": "jobs",
    "kube_namespace_": "namespaces",
    "kube_deployment_": "deployments",
    "kube_daemonset_": "daemonsets",
    "kube_statefulset_": "statefulsets",
    "kube_resourcequota": "resourcequotas",
    "kube_persistentvolumeclaim_": "persistentvolumeclaims",
}
"""Collectors of kube-state-metrics by the start of the names of their metrics."""


def exporter_releases(environment: EksEnvironment) -> tuple[Release, ...]:
    """Releases of the exporters."""
    return tuple(
        Release(name, charts[name], values, waits=False)
        for name, values in (
            ("dcgm-exporter", dcgm_exporter_values(environment)),
            ("prometheus-node-exporter", node_exporter_values()),
            ("kube-state-metrics", state_metrics_values(environment)),
        )
    )


def dcgm_exporter_values(environment: EksEnvironment) -> Values:
    """NVIDIA's DCGM exporter on the nodes with a device stack: static groups and Karpenter's GPU pools.

    It names the pod that uses a GPU, with the labels that tell its job. A change of the counters replaces its pods,
    which the chart does not do by itself.
    """
    tag = images["dcgm_exporter"].rpartition(":")[2]
    counters = counters_csv(exporter_dcgm(tag))
    exists = {"key": DEVICE_STACK, "operator": "Exists"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [exists]}]}
    return {
        "image": {"tag": tag},
        "hostNetwork": True,
        "service": {"enable": False, "address": f":{DCGM_PORT}"},
        "serviceMonitor": {"enabled": False},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "tolerations": [GPU_TOLERATION],
        "customMetrics": counters,
        "podAnnotations": {"ultracluster/counters": hashlib.sha256(counters.encode()).hexdigest()[:16]},
        "kubernetes": {
            "enablePodLabels": True,
            "podLabelAllowlistRegex": [f"^{key.replace('.', '[.]')}$" for key in WORKLOAD_LABELS],
        },
        "kubernetesDRA": {"enabled": environment.uses_dra},
        # eight GPUs with every field of the list; the chart's limits are for its short default list
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "rollingUpdate": {"maxUnavailable": "10%"},
    }


def node_exporter_values() -> Values:
    """Node exporter on every node. Its textfile collector serves the counters of EFA and Lustre.

    The units on the node that write them are part of the user data (`ultracluster.nodes.collectors`).
    """
    host = {"name": "textfile", "hostPath": TEXTFILE_FOLDER, "type": "DirectoryOrCreate", "mountPath": TEXTFILE_FOLDER}
    bus = {"name": "bus", "hostPath": "/run/dbus", "mountPath": "/run/dbus"}
    return {
        "tolerations": [EVERY_TAINT],
        "extraArgs": [
            f"--collector.textfile.directory={TEXTFILE_FOLDER}",
            "--collector.ethtool",
            "--collector.ethtool.metrics-include=^.*_allowance_exceeded$",
            "--collector.systemd",
            # slices and scopes of pods would be thousands of series a node
            "--collector.systemd.unit-include=.+[.](service|timer|mount)",
            "--collector.netdev.device-exclude=^(veth|eni|lo).*",
            "--collector.filesystem.mount-points-exclude=^/(dev|proc|sys|run|var/lib/(kubelet|containerd))($|/)",
        ],
        "extraHostVolumeMounts": [
            {**host, "readOnly": True, "mountPropagation": "HostToContainer"},
            {**bus, "readOnly": True},
        ],
        "service": {"annotations": {"prometheus.io/scrape": "false"}},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
    }


def state_metrics_values(environment: EksEnvironment) -> Values:
    """kube-state-metrics with the metrics that are stored, of nodes and of the teams' namespaces.

    Without the limits its answer would be larger than the 50 MB that the scraper reads: each GPU node has a dozen pods
    of the cluster's own software.
    """
    names = stored_series("kube-state-metrics")
    collectors = sorted(
        {collector for start, collector in COLLECTORS.items() if any(n.startswith(start) for n in names)}
    )
    topology = [network_layer(layer) for layer in (1, 2, 3)]
    node_labels = [NODE_GROUP, "node.kubernetes.io/instance-type", *topology, CLIQUE]
    return {
        **on_system_nodes(),
        "collectors": collectors or ["nodes", "pods", "jobs"],
        "metricAllowlist": list(names),
        "metricLabelsAllowlist": [f"nodes=[{','.join(node_labels)}]"],
        "namespaces": ",".join(team.name for team in environment.teams),
        "prometheusScrape": False,
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "4Gi"}},
    }
