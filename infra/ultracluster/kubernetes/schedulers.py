"""What queues jobs and places them: the values of Kueue, Volcano and KAI.

In the combined modes Kueue alone holds quotas, and the other chooses nodes out of one queue without limits.

Source: the projects at the versions of `infra/ultracluster/catalog/data/software.json`: Kueue's Configuration v1beta2,
Volcano's scheduler plugins and label discovery, KAI's chart.
"""

from typing import Any

import yaml

from ultracluster.catalog.software import charts
from ultracluster.config.eks import Eks, JobOperator
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.kueue import device_class_mappings
from ultracluster.kubernetes.labels import CLIQUE, GPU, HOSTNAME, TEAM, network_layer
from ultracluster.kubernetes.operators import installed
from ultracluster.kubernetes.parts import Release

Values = dict[str, Any]

FRAMEWORKS: dict[JobOperator, tuple[str, ...]] = {
    "trainer": ("trainer.kubeflow.org/trainjob",),
    "jobset": ("jobset.x-k8s.io/jobset",),
    "leader_worker_set": ("leaderworkerset.x-k8s.io/leaderworkerset",),
    "mpi": ("kubeflow.org/mpijob",),
    "ray": ("ray.io/rayjob", "ray.io/raycluster", "ray.io/rayservice"),
}
"""Kinds of jobs that Kueue admits, by the operator that runs them."""

KUBERNETES_FRAMEWORKS = ("batch/job", "pod", "deployment", "statefulset")
"""Kubernetes's own kinds; a pod that Kueue did not know would take GPUs beside every quota."""

UNCOUNTED = ["ephemeral-storage", "hugepages-"]
"""Beginnings of the names of resources that no cluster queue has a quota of."""

READY_WITHIN = "30m"
"""How long an admitted job may take until all its pods run: images of 20 GB and more are pulled on every node."""

RECOVERED_WITHIN = "15m"
"""How long a running job may miss a pod. Repair of a node takes longer, and the other nodes should not idle."""

TOPOLOGY_NAME = "network"

RELEASES = {"kueue": "kueue", "volcano": "volcano", "kai": "kai-scheduler"}
"""Chart, and name of the release, of each scheduler."""


def placing_release(settings: Eks) -> tuple[str, ...]:
    """The release that places gangs, where that is not Kueue. Job operators look for its PodGroups when they start."""
    return () if settings.places_with == "kueue" else (RELEASES[settings.places_with],)


def scheduler_releases(environment: Environment, settings: Eks) -> tuple[Release, ...]:
    """Releases of what holds the quotas and of what places jobs."""
    values = {
        "kueue": lambda: kueue_values(environment, settings),
        "volcano": lambda: volcano_values(environment, settings),
        "kai": kai_values,
    }
    wanted = dict.fromkeys((settings.queues_with, settings.places_with))
    return tuple(Release(RELEASES[name], charts[RELEASES[name]], values[name]()) for name in wanted)


def kueue_values(environment: Environment, settings: Eks) -> Values:
    """Kueue with two replicas: its webhooks stand before every job and pod of a team.

    Certificates are its own, so it takes no cert-manager.
    """
    return {
        "controllerManager": {
            "replicas": 2,
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
            # with pods among its jobs it caches those of the whole cluster
            "manager": {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}}},
        },
        "managerConfig": {
            "controllerManagerConfigYaml": yaml.safe_dump(kueue_configuration(environment, settings), sort_keys=False)
        },
    }


def kueue_configuration(environment: Environment, settings: Eks) -> Values:
    """Kueue's own configuration, whole: the chart merges nothing into it but certificates."""
    frameworks = [*KUBERNETES_FRAMEWORKS, *(kind for job in installed(settings) for kind in FRAMEWORKS.get(job, ()))]
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "controller": {
            "groupKindConcurrency": {
                "Job.batch": 5,
                "Pod": 5,
                "Workload.kueue.x-k8s.io": 10,
                "LocalQueue.kueue.x-k8s.io": 5,
                "ClusterQueue.kueue.x-k8s.io": 5,
                "ResourceFlavor.kueue.x-k8s.io": 1,
            }
        },
        "clientConnection": {"qps": 300, "burst": 500},
        # jobs without a queue's name wait for one, in the namespaces of teams and nowhere else
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchExpressions": [{"key": TEAM, "operator": "Exists"}]},
        "waitForPodsReady": {
            "timeout": READY_WITHIN,
            "recoveryTimeout": RECOVERED_WITHIN,
            "blockAdmission": False,
            # five attempts, a minute to half an hour apart; then the job waits for its owner
            "requeuingStrategy": {
                "timestamp": "Eviction",
                "backoffLimitCount": 5,
                "backoffBaseSeconds": 60,
                "backoffMaxSeconds": 1800,
            },
        },
        "integrations": {"frameworks": frameworks},
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "resources": {
            "excludeResourcePrefixes": UNCOUNTED,
            "deviceClassMappings": device_class_mappings(environment),
        },
    }


def volcano_values(environment: Environment, settings: Eks) -> Values:
    """Volcano with two replicas of each part, one of them leading.

    The chart takes the scheduler's configuration as text and the controller's as a mapping: text it would quote.
    """
    custom: Values = {
        "scheduler_replicas": 2,
        "controller_replicas": 2,
        "admission_replicas": 2,
        "leader_elect_enable": True,
        "scheduler_config_override": yaml.safe_dump(volcano_configuration(settings), sort_keys=False),
    }
    levels = volcano_levels(environment)
    if levels:
        labels = [{"nodeLabel": label} for label in (*levels, HOSTNAME)]
        config = {"networkTopologyTypes": {TOPOLOGY_NAME: labels}}
        custom["controller_config_override"] = {
            "networkTopologyDiscovery": [{"source": "label", "enabled": True, "config": config}]
        }
    return {"basic": {"image_pull_policy": "IfNotPresent"}, "custom": custom}


def volcano_configuration(settings: Eks) -> Values:
    """Volcano's scheduler: gangs, priorities, and full nodes and switches first.

    Where it holds the quotas, a queue takes back what it deserves from whole gangs: evicting single tasks stops at the
    size that a gang needs, so what was borrowed would never come back. Filters of victims have to stand in one tier.
    Claims of dynamic resources are placed by default.
    """
    first: list[Values] = [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]
    actions = ["enqueue", "allocate", "backfill"]
    if settings.queues_with == "volcano":
        arguments = {"capacity.DynamicResourceAllocationEnable": "dra" in settings.used_device_stacks}
        first.append({"name": "capacity", "arguments": arguments})
        actions += ["gangreclaim", "gangpreempt"]
    second: list[Values] = [
        {"name": "predicates"},
        # its default spreads pods, against the next plugin
        {"name": "nodeorder", "arguments": {"leastrequested.weight": 0}},
        {"name": "binpack", "arguments": _packed("binpack", weight_key="binpack.weight")},
        {"name": "network-topology-aware", "arguments": _packed("hypernode.binpack", weight_key="weight")},
    ]
    return {"actions": ", ".join(actions), "tiers": [{"plugins": first}, {"plugins": second}]}


def _packed(prefix: str, *, weight_key: str) -> Values:
    """Arguments that pack by GPUs above all."""
    return {
        weight_key: 10,
        f"{prefix}.cpu": 1,
        f"{prefix}.memory": 1,
        f"{prefix}.resources": GPU,
        f"{prefix}.resources.{GPU}": 10,
    }


def volcano_levels(environment: Environment) -> tuple[str, ...]:
    """Labels that Volcano makes HyperNodes of, the farthest from the instance first; none where AWS names no layers.

    Volcano mixes tiers when topologies share labels, so there is one: the layers that every type of the fleet has, or
    the NVLink domain where all are UltraServers.
    """
    types = [group.hardware for group in environment.node_groups]
    if all(hardware.ultraserver_only for hardware in types):
        return (CLIQUE,)
    depth = min((hardware.topology_depth for hardware in types if hardware.topology_depth), default=0)
    return tuple(network_layer(number) for number in range(1, depth + 1))


def kai_values() -> Values:
    """KAI, packing GPUs and CPUs, two replicas of each part.

    Its queues are objects of ours: those of its chart have no limits. So are its topologies.
    """
    return {
        "global": {"leaderElection": True},
        "operator": {"replicaCount": 2},
        "scheduler": {"placementStrategy": "binpack"},
        "defaultQueue": {"createDefaultQueue": False},
        "topologyMigration": {"enabled": False},
    }
