"""Fluent Bit: logs of pods and nodes in CloudWatch Logs, where they outlive pods and nodes.

A container's log has a stream of its own, NAMESPACE.POD.CONTAINER, so that the log of a rank that failed stays beside
that of the pod which replaced it. Each event names workload, team, pod, rank and node. Fluent Bit looks for new files
every few seconds and reads them from their start, so the log of a pod that fails at once is there too. It remembers how
far it has read, and keeps what it could not send yet on the node's disk.

Source: Fluent Bit 5, "Tail", "Systemd", "Kubernetes" and "Amazon CloudWatch"; the chart's own values.
"""

from collections.abc import Sequence
from typing import Any

from ultracluster.catalog.software import charts
from ultracluster.kubernetes.deployed import LogGroups
from ultracluster.kubernetes.exporters import EVERY_TAINT
from ultracluster.kubernetes.parts import Release
from ultracluster.kubernetes.scrape import MONITORING
from ultracluster.kubernetes.workloads import RANK_LABELS, WORKLOAD_LABELS

Entries = Sequence[tuple[str, str]]

RELEASE = "fluent-bit"

LOGS_ACCOUNT = "fluent-bit"
"""Service account of Fluent Bit in the namespace of the exporters. Its role is bound to it."""

STATE = "/var/lib/fluent-bit"
"""Folder of a node with Fluent Bit's positions and what it could not send yet."""

FLUENT_BIT_PORT = 2020

NODE_UNITS = (
    "kubelet",
    "containerd",
    "nodeadm-run",
    "nodeadm-config",
    "nvidia-fabricmanager",
    "nvidia-persistenced",
    "nvidia-imex",
    "collect-efa",
    "collect-lustre",
    "configure-efa-fsx-lustre-client",
)
"""Services of a node whose log is kept, beside the kernel's, which has XIDs and the messages of Lustre and EFA."""

MERGED_POD = (
    ("pod_name", "pod"),
    ("namespace_name", "namespace"),
    ("container_name", "container"),
    ("host", "node"),
)
"""Fields of Fluent Bit's Kubernetes filter and their names in an event."""


def log_release(groups: LogGroups | None) -> tuple[Release, ...]:
    """The release of Fluent Bit; empty without log groups."""
    return (Release(RELEASE, charts[RELEASE], fluent_bit_values(groups), waits=False),) if groups else ()


def fluent_bit_values(groups: LogGroups) -> dict[str, Any]:
    """Fluent Bit on every node, with the role of its service account."""
    return {
        "testFramework": {"enabled": False},
        "serviceAccount": {"name": LOGS_ACCOUNT},
        "tolerations": [EVERY_TAINT],
        "priorityClassName": "system-node-critical",
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        # /var/log is the chart's own mount; logs of containers are links into it
        "daemonSetVolumes": [
            {"name": "varlog", "hostPath": {"path": "/var/log"}},
            {"name": "etcmachineid", "hostPath": {"path": "/etc/machine-id", "type": "File"}},
            {"name": "state", "hostPath": {"path": STATE, "type": "DirectoryOrCreate"}},
        ],
        "daemonSetVolumeMounts": [
            {"name": "varlog", "mountPath": "/var/log", "readOnly": True},
            {"name": "etcmachineid", "mountPath": "/etc/machine-id", "readOnly": True},
            {"name": "state", "mountPath": STATE},
        ],
        "config": {
            "service": _sections(("SERVICE", _service())),
            "inputs": _sections(*(("INPUT", entries) for entries in _inputs())),
            "filters": _sections(*(("FILTER", entries) for entries in _filters())),
            "outputs": _sections(*(("OUTPUT", entries) for entries in _outputs(groups))),
            "customParsers": "",
        },
    }


def _service() -> Entries:
    return (
        ("Flush", "5"),
        ("Log_Level", "warn"),
        ("Parsers_File", "/fluent-bit/etc/parsers.conf"),
        ("HTTP_Server", "On"),
        ("HTTP_Listen", "0.0.0.0"),  # noqa: S104 - the kubelet probes it at the pod's address
        ("HTTP_Port", str(FLUENT_BIT_PORT)),
        ("Health_Check", "On"),
        ("storage.path", f"{STATE}/buffer"),
        ("storage.max_chunks_up", "64"),
    )


def _inputs() -> list[Entries]:
    tail = (
        ("Name", "tail"),
        ("Skip_Long_Lines", "On"),
        ("Read_from_Head", "On"),
        ("storage.type", "filesystem"),
    )
    journal = (
        ("Name", "systemd"),
        ("Path", "/var/log/journal"),
        ("Strip_Underscores", "On"),
        ("storage.type", "filesystem"),
    )
    return [
        (
            *tail,
            ("Tag", "kube.*"),
            ("Path", "/var/log/containers/*.log"),
            # its own log would describe what it cannot send, without end
            ("Exclude_Path", f"/var/log/containers/fluent-bit-*_{MONITORING}_*.log"),
            ("multiline.parser", "docker, cri"),
            ("DB", f"{STATE}/containers.db"),
            ("Refresh_Interval", "5"),
            ("Rotate_Wait", "60"),
        ),
        (*journal, ("Tag", "node.kernel"), ("Systemd_Filter", "_TRANSPORT=kernel"), ("DB", f"{STATE}/kernel.db")),
        (
            *journal,
            ("Tag", "node.services"),
            *(("Systemd_Filter", f"_SYSTEMD_UNIT={unit}.service") for unit in NODE_UNITS),
            ("DB", f"{STATE}/services.db"),
        ),
        (
            *tail,
            ("Tag", "node.cloud-init"),
            ("Path", "/var/log/cloud-init-output.log"),
            ("DB", f"{STATE}/cloud-init.db"),
        ),
    ]


def _filters() -> list[Entries]:
    """Events with short names. `Copy` and `Rename` do nothing where the new name is taken: the first label counts."""
    lift = (("Name", "nest"), ("Match", "kube.*"), ("Operation", "lift"))
    modify = ("Name", "modify")
    return [
        (
            ("Name", "kubernetes"),
            ("Match", "kube.*"),
            ("Labels", "On"),
            ("Annotations", "Off"),
            ("Merge_Log", "Off"),
            ("K8S-Logging.Exclude", "On"),
            ("Buffer_Size", "0"),
        ),
        (*lift, ("Nested_under", "kubernetes"), ("Add_prefix", "pod_")),
        (*lift, ("Nested_under", "pod_labels"), ("Add_prefix", "label_")),
        (
            modify,
            ("Match", "kube.*"),
            *(("Rename", f"pod_{old} {new}") for old, new in MERGED_POD),
            *(("Copy", f"label_{key} workload") for key in WORKLOAD_LABELS),
            ("Copy", "pod workload"),
            *(("Copy", f"label_{key} rank") for key in RANK_LABELS),
            ("Copy", "namespace team"),
            ("Remove_wildcard", "pod_"),
            ("Remove_wildcard", "label_"),
            ("Remove", "_p"),
        ),
        (
            modify,
            ("Match", "node.*"),
            ("Rename", "MESSAGE log"),
            ("Rename", "SYSTEMD_UNIT unit"),
            ("Add", "node ${NODE_NAME}"),
        ),
        (
            ("Name", "record_modifier"),
            ("Match", "node.*"),
            *(("Allowlist_key", key) for key in ("log", "unit", "node")),
        ),
    ]


def _outputs(groups: LogGroups) -> list[Entries]:
    common = (
        ("Name", "cloudwatch_logs"),
        ("region", groups.region),
        ("auto_create_group", "Off"),
        ("Retry_Limit", "20"),
        ("storage.total_limit_size", "2G"),
    )
    node = [
        (
            *common,
            ("Match", f"node.{source}"),
            ("log_group_name", groups.nodes),
            ("log_stream_name", f"${{NODE_NAME}}.{source}"),
        )
        for source in ("kernel", "services", "cloud-init")
    ]
    pods = (
        *common,
        ("Match", "kube.*"),
        ("log_group_name", groups.pods),
        # for events without a pod: Kubernetes did not answer
        ("log_stream_prefix", "${NODE_NAME}."),
        ("log_stream_template", "$namespace.$pod.$container"),
    )
    return [pods, *node]


def _sections(*sections: tuple[str, Entries]) -> str:
    """Sections of Fluent Bit's classic configuration. `{{` would be a template of Helm, and no entry has it."""
    return "\n".join(
        f"[{name}]\n" + "".join(f"    {key} {value}\n" for key, value in entries) for name, entries in sections
    )
