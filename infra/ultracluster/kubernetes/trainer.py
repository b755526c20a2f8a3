"""Runtimes of Kubeflow Trainer: one for each node group, with everything that a TrainJob needs to use whole nodes.

A TrainJob names the runtime and the number of nodes; Trainer adds the addresses and ranks that `torchrun` reads.

Source: Kubeflow Trainer 2.3, ClusterTrainingRuntime and the plugin torch (pkg/runtime/framework/plugins/torch).
"""

from ultracluster.catalog.training import default_image, recorder_environment, training_environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.job_pods import SCRATCH, SCRIPT, Job, gpu_pod
from ultracluster.kubernetes.parts import Object, Objects

RELEASE = "kubeflow-trainer"

TRAINER_STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
"""Label of the jobs that train. Trainer expects their container under the name `node`."""


def training_runtimes(environment: EksEnvironment) -> tuple[Objects, ...]:
    """The runtimes, named after the node groups; empty without `trainer` in `jobs`.

    UltraServers have none: their pods claim a channel of a ComputeDomain that every job needs for itself.
    """
    if "trainer" not in environment.job_operators:
        return ()
    groups = [group for group in environment.gpu_groups if not group.hardware.ultraserver_only]
    runtimes = tuple(found for group in groups if (found := training_runtime(environment, group)))
    return (Objects("training-runtimes", runtimes, after=(RELEASE,)),) if runtimes else ()


def training_runtime(environment: EksEnvironment, group: NodeGroup) -> Object | None:
    """The runtime of a node group: one pod per node, with all its GPUs and EFA devices. None without a public image."""
    image = default_image(group.hardware)
    if image is None:
        return None
    name, each = environment.image(image.name), group.hardware.gpu_count
    lustre = environment.storage.lustre
    command = ["torchrun", f"{lustre.mount_path}/{SCRIPT}" if lustre else SCRIPT]
    job = Job(environment, environment.teams[0], group, each, name, group.name)
    variables = {
        **training_environment(group.hardware, efa=group.efa),
        **recorder_environment(f"{SCRATCH}/trace-rank-", image.name),
    }
    template = gpu_pod(job, "node", command, variables)
    # all teams use the runtime; Kueue's default queue is that of the namespace
    template["spec"].pop("securityContext", None)
    gang: Object = {"podGroupPolicy": {"volcano": {}}} if environment.gang_scheduler == "volcano" else {}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": group.name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            **gang,
            "template": {
                "spec": {
                    "failurePolicy": {"maxRestarts": 3},
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {
                                "metadata": {"labels": dict(TRAINER_STEP)},
                                "spec": {"backoffLimit": 0, "template": template},
                            },
                        }
                    ],
                }
            },
        },
    }
