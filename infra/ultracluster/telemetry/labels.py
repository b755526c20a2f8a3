"""Labels of every series under both control planes, and their sources."""

from dataclasses import dataclass
from typing import Literal

ScrapeJob = Literal[
    "dcgm", "node", "jobs", "slurm", "kube-state-metrics", "kueue", "volcano", "kai", "jobset", "karpenter", "pods"
]
"""Values of the label `job`: the scrape job, as Prometheus sets it. The workload is in the label `workload`."""

USER_JOBS: tuple[ScrapeJob, ...] = ("pods", "jobs")
"""Scrape jobs whose metrics users write: their pods on EKS, files of their jobs on PCS. No rule may repair on them."""


@dataclass(frozen=True)
class Label:
    """A label. `eks` and `pcs` say where its value comes from on each control plane."""

    name: str
    help: str
    eks: str
    pcs: str


COMMON = (
    Label("cluster", "The cluster", "external label: the EKS cluster's name", "external label: the PCS cluster's name"),
    Label("environment", "The environment's name", "external label: name of the environment file", "the same"),
)
"""Labels of every series."""

NODE = (
    Label(
        "node", "The node", "the Kubernetes node's name", "the Slurm node's name: PCS_NODE_ID of node lifecycle actions"
    ),
    Label("instance_type", "EC2 instance type", "node label node.kubernetes.io/instance-type", "IMDS instance-type"),
    Label("node_group", "Node group of the environment file", "the project's node-group label", "node group's name"),
)
"""Labels of every series of the scrape jobs in NODE_JOBS."""

NODE_JOBS: tuple[ScrapeJob, ...] = ("dcgm", "node", "jobs")
"""Scrape jobs whose targets get the labels of NODE.

Others must not: Slurm's and kube-state-metrics' own label `node` names the node that a series is about, and a label of
the target, or one of `external_labels` where a series has none, would name the scraper's node instead."""

GPU = (
    Label("gpu", "Index of the GPU on its node", "DCGM exporter", "DCGM exporter"),
    Label("UUID", "UUID of the GPU", "DCGM exporter", "DCGM exporter"),
    Label("team", "Who uses the GPU", "the namespace's team", "the job's Slurm account"),
    Label("workload", "What uses the GPU", "the pod's job, from its labels", "Slurm job ID, from DCGM's job mapping"),
)
"""Labels of GPU series beside those of the node. `team` and `workload` are empty on an idle GPU."""

DROPPED = ("Hostname", "hostname", "device", "exported_instance", "exported_job")
"""Labels of DCGM exporter that are dropped: `node` and `gpu` replace them under one name in all versions."""
