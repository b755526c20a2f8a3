"""Charts of the queue managers and gang schedulers Kueue, Volcano and KAI, with their values.

In the combined modes only Kueue holds quotas; the other one has a single queue without limits and chooses nodes.

Source: the projects at the versions of `infra/ultracluster/catalog/data/software.json`: Kueue's Configuration v1beta2,
Volcano's scheduler plugins and label discovery, KAI's chart.
"""

from typing import Any

import yaml

from ultracluster.catalog.software import charts
from ultracluster.config.eks import JobOperator
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.kueue import device_class_mappings
from ultracluster.kubernetes.labels import CLIQUE, GPU, HOSTNAME, IN_TEAMS, network_layer, on_system_nodes
from ultracluster.kubernetes.parts import Release

Values = dict[str, Any]

FRAMEWORKS: dict[JobOperator, tuple[str, ...]] = {
    "trainer": ("trainer.kubeflow.org/trainjob",),
    "jobset": ("jobset.x-k8s.io/jobset",),
    "leader_worker_set": ("leaderworkerset.x-k8s.io/leaderworkerset",),
    "mpi": ("kubeflow.org/mpijob",),
    "ray": ("ray.io/rayjob", "ray.io/raycluster", "ray.io/rayservice"),
}
"""Job kinds that Kueue admits, by their operator."""

KUBERNETES_FRAMEWORKS = ("batch/job", "pod", "deployment", "statefulset")
"""Kubernetes' own kinds that Kueue admits. Without `pod`, a plain pod would use GPUs outside every quota."""

RESOURCES_WITHOUT_QUOTA = ["ephemeral-storage", "hugepages-"]
"""Prefixes of resources that no ClusterQueue has a quota of."""

READY_WITHIN = "30m"
"""Time for all pods of an admitted job to run: every node pulls images of 20 GB and more."""

RECOVERED_WITHIN = "15m"
"""Time that a running job may miss a pod. A node repair takes longer, and the other nodes should not idle."""

TOPOLOGY_NAME = "network"

RELEASES = {"kueue": "kueue", "volcano": "volcano", "kai": "kai-scheduler"}
"""Name of the chart and of the release of each queue manager or scheduler."""


def gang_scheduler_release(environment: EksEnvironment) -> tuple[str, ...]:
    """Name of the gang scheduler's release, if not Kueue. Job operators require its PodGroup CRD at their start."""
    return () if environment.gang_scheduler == "kueue" else (RELEASES[environment.gang_scheduler],)


def scheduler_releases(environment: EksEnvironment) -> tuple[Release, ...]:
    """Releases of the queue manager and of the gang scheduler, which may be the same."""
    values = {
        "kueue": lambda: kueue_values(environment),
        "volcano": lambda: volcano_values(environment),
        "kai": kai_values,
    }
    wanted = dict.fromkeys((environment.queue_manager, environment.gang_scheduler))
    return tuple(Release(RELEASES[name], charts[RELEASES[name]], values[name]()) for name in wanted)


def kueue_values(environment: EksEnvironment) -> Values:
    """Kueue with two replicas, because its webhooks are called for every job and pod of a team.

    It creates its own certificates and does not need cert-manager.
    """
    return {
        "controllerManager": {
            **on_system_nodes(),
            "replicas": 2,
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
            # because it manages pods, it caches all pods of the cluster
            "manager": {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}}},
        },
        "managerConfig": {
            "controllerManagerConfigYaml": yaml.safe_dump(kueue_configuration(environment), sort_keys=False)
        },
    }


def kueue_configuration(environment: EksEnvironment) -> Values:
    """Kueue's complete configuration: the chart merges only certificates into it."""
    job_kinds = (kind for job in environment.job_operators for kind in FRAMEWORKS.get(job, ()))
    frameworks = [*KUBERNETES_FRAMEWORKS, *job_kinds]
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
        # jobs without a queue name wait for one, but only in namespaces of teams
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": dict(IN_TEAMS),
        "waitForPodsReady": {
            "timeout": READY_WITHIN,
            "recoveryTimeout": RECOVERED_WITHIN,
            "blockAdmission": False,
            # five attempts, 1 to 30 minutes apart; then the job waits for its owner to act
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
            "excludeResourcePrefixes": RESOURCES_WITHOUT_QUOTA,
            "deviceClassMappings": device_class_mappings(environment),
        },
    }


def volcano_values(environment: EksEnvironment) -> Values:
    """Volcano with two replicas of each component and leader election.

    The chart takes the scheduler's configuration as text, but the controller's as a mapping: it would quote text.
    """
    custom: Values = {
        **on_system_nodes(selector="default_ns", tolerations="default_tolerations"),
        "scheduler_replicas": 2,
        "controller_replicas": 2,
        "admission_replicas": 2,
        "leader_elect_enable": True,
        "scheduler_config_override": yaml.safe_dump(volcano_configuration(environment), sort_keys=False),
    }
    levels = volcano_levels(environment)
    if levels:
        labels = [{"nodeLabel": label} for label in (*levels, HOSTNAME)]
        config = {"networkTopologyTypes": {TOPOLOGY_NAME: labels}}
        custom["controller_config_override"] = {
            "networkTopologyDiscovery": [{"source": "label", "enabled": True, "config": config}]
        }
    return {"basic": {"image_pull_policy": "IfNotPresent"}, "custom": custom}


def volcano_configuration(environment: EksEnvironment) -> Values:
    """Configuration of Volcano's scheduler: gangs, priorities, and bin packing of nodes and switches.

    Where Volcano holds the quotas, a queue reclaims its deserved resources from whole gangs. Evicting single tasks
    would stop at the minimum size of a gang, so borrowed resources would never come back. Plugins that filter victims
    must be in one tier. Volcano schedules DRA claims by default.
    """
    first: list[Values] = [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]
    actions = ["enqueue", "allocate", "backfill"]
    if environment.queue_manager == "volcano":
        arguments = {"capacity.DynamicResourceAllocationEnable": environment.uses_dra}
        first.append({"name": "capacity", "arguments": arguments})
        actions += ["gangreclaim", "gangpreempt"]
    second: list[Values] = [
        {"name": "predicates"},
        # its default spreads pods, which works against binpack
        {"name": "nodeorder", "arguments": {"leastrequested.weight": 0}},
        {"name": "binpack", "arguments": _packed("binpack", weight_key="binpack.weight")},
        {"name": "network-topology-aware", "arguments": _packed("hypernode.binpack", weight_key="weight")},
    ]
    return {"actions": ", ".join(actions), "tiers": [{"plugins": first}, {"plugins": second}]}


def _packed(prefix: str, *, weight_key: str) -> Values:
    """Plugin arguments that weigh GPUs most when packing."""
    return {
        weight_key: 10,
        f"{prefix}.cpu": 1,
        f"{prefix}.memory": 1,
        f"{prefix}.resources": GPU,
        f"{prefix}.resources.{GPU}": 10,
    }


def volcano_levels(environment: EksEnvironment) -> tuple[str, ...]:
    """Labels that Volcano builds HyperNodes from, the farthest switch first; none where AWS documents no layers.

    Volcano mixes up tiers when topologies share labels, so there is a single topology: the network layers that every
    type of the fleet has, or the NVLink domain if all are UltraServers.
    """
    types = [group.hardware for group in environment.gpu_groups]
    if types and all(hardware.ultraserver_only for hardware in types):
        return (CLIQUE,)
    depth = min((hardware.topology_depth for hardware in types if hardware.topology_depth), default=0)
    return tuple(network_layer(number) for number in range(1, depth + 1))


def kai_values() -> Values:
    """KAI with bin packing of GPUs and CPUs, two replicas of each component and leader election.

    The chart creates neither queues, which would have no limits, nor topologies: `kai.py` has both.
    """
    return {
        # the operator passes both on to the schedulers and webhooks that it makes
        "global": {"leaderElection": True, **on_system_nodes()},
        "operator": {"replicaCount": 2},
        "scheduler": {"placementStrategy": "binpack"},
        "defaultQueue": {"createDefaultQueue": False},
        "topologyMigration": {"enabled": False},
    }
