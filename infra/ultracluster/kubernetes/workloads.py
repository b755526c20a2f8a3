"""Which workload a pod belongs to, read from the labels that job operators set on its pods."""

import re

WORKLOAD_LABELS = (
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
    "training.kubeflow.org/job-name",
    "volcano.sh/job-name",
    "ray.io/cluster",
    "batch.kubernetes.io/job-name",
    "app.kubernetes.io/instance",
)
"""Labels with the name of a workload; the first one that a pod has counts. A pod without any is its own workload.

Trainer's jobs are JobSets of the same name. Source: the operators at the versions of
`infra/ultracluster/catalog/data/software.json`; Kubernetes, "Well-Known Labels, Annotations and Taints" (2026).
"""

RANK_LABELS = ("batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index")
"""Labels with the index of a pod in its job. Every operator with a JobSet or Job sets the first."""


def label_name(key: str) -> str:
    """A Kubernetes label key as Prometheus and DCGM exporter write it: other characters than letters become `_`."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", key)
