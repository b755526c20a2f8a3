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
from ultracluster.kubernetes.kueue import QUEUE_LABEL
from ultracluster.kubernetes.labels import (
    CLIQUE,
    DEVICE_STACK,
    DIAGNOSTICS,
    EVERY_GPU,
    GPU_TOLERATION,
    NODE_GROUP,
    TEAM,
    network_layer,
    on_system_nodes,
)
from ultracluster.kubernetes.parts import Release
from ultracluster.kubernetes.scrape import DCGM_PORT, stored_series
from ultracluster.kubernetes.workloads import WORKLOAD_LABELS
from ultracluster.nodes.collectors import TEXTFILE_FOLDER
from ultracluster.telemetry.budget import kube_state_metrics_shards
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


EVERYWHERE = (
    *("kube_node_", "kube_namespace_", "kube_daemonset_", "kube_deployment_"),
    *("kube_pod_container_status_waiting_reason", "kube_pod_status_unschedulable"),
)
"""Starts of the names of metrics about all namespaces. The last two have series for pods in trouble only."""

LABELS = {
    "nodes": [
        *(NODE_GROUP, "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"),
        *(network_layer(layer) for layer in (1, 2, 3)),
        CLIQUE,
    ],
    "namespaces": [TEAM],
    "pods": [*WORKLOAD_LABELS, QUEUE_LABEL],
}
"""Labels of objects that kube-state-metrics serves in kube_node_labels and its like."""


def exporter_releases(environment: EksEnvironment) -> tuple[Release, ...]:
    """Releases of the exporters, none without metrics; kube-state-metrics has two."""
    if not environment.observability.collects_metrics:
        return ()
    releases = (
        ("dcgm-exporter", "dcgm-exporter", dcgm_exporter_values(environment)),
        ("prometheus-node-exporter", "prometheus-node-exporter", node_exporter_values()),
        ("kube-state-metrics", "kube-state-metrics", state_metrics_values(environment, teams=False)),
        ("kube-state-metrics-teams", "kube-state-metrics", state_metrics_values(environment, teams=True)),
    )
    return tuple(Release(name, charts[chart], values, waits=False) for name, chart, values in releases)


def dcgm_exporter_values(environment: EksEnvironment) -> Values:
    """NVIDIA's DCGM exporter on the nodes with a device stack: static groups and Karpenter's GPU pools.

    It leaves a node while its GPUs are diagnosed. It names the pod that uses a GPU, with the labels that tell its job.
    A change of the counters replaces its pods, which the chart does not do by itself.
    """
    tag = images["dcgm_exporter"].rpartition(":")[2]
    counters = counters_csv(exporter_dcgm(tag))
    served = {"key": DEVICE_STACK, "operator": "Exists"}
    # it holds the GPUs open
    undisturbed = {"key": DIAGNOSTICS, "operator": "DoesNotExist"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [served, undisturbed]}]}
    return {
        "image": {"tag": tag},
        "hostNetwork": True,
        "service": {"enable": False, "address": f":{DCGM_PORT}"},
        "serviceMonitor": {"enabled": False},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "tolerations": [GPU_TOLERATION],
        "extraHostVolumes": [{"name": "gpus", "hostPath": "/dev/null"}],
        "extraVolumeMounts": [{"name": "gpus", "mountPath": EVERY_GPU}],
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
    # its D-Bus client asks at /var/run, and the image has no link from there to /run
    bus = {"name": "bus", "hostPath": "/run/dbus", "mountPath": "/var/run/dbus"}
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


def state_metrics_values(environment: EksEnvironment, *, teams: bool) -> Values:
    """kube-state-metrics with the metrics that are stored: of the whole cluster, or of the pods and jobs of `teams`.

    Pods of the cluster's own software are ten times as many as those of teams. All their series in one answer would be
    larger than the 50 MB that the scraper reads, so that only containers which cannot start are told of all pods. A
    large cluster has shards, each with a part of the objects.
    """
    drop = environment.observability.drop
    shards = kube_state_metrics_shards(sum(group.max_count for group in environment.node_groups), drop=drop)
    served = [name for name in stored_series("kube-state-metrics") if name.startswith(EVERYWHERE) is not teams]
    # an empty list would allow every metric; the scraper drops what is given up in any case
    names = [name for name in served if name in stored_series("kube-state-metrics", drop)] or served
    collectors = {collector for start, collector in COLLECTORS.items() if any(n.startswith(start) for n in names)}
    return {
        **on_system_nodes(),
        "collectors": sorted(collectors),
        "metricAllowlist": names,
        "metricLabelsAllowlist": [f"{kind}=[{','.join(keys)}]" for kind, keys in LABELS.items() if kind in collectors],
        **({"namespaces": ",".join(team.name for team in environment.teams)} if teams else {}),
        **({"autosharding": {"enabled": True}, "replicas": shards} if shards > 1 else {}),
        "prometheusScrape": False,
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "4Gi"}},
    }
