"""A DaemonSet with the tools of full checks, DCGM and NCCL tests, for nodes with the label `labels.DIAGNOSTICS`.

The agent of `acceptance` sets the label on an idle node and runs check_node.py there, as on PCS. The tools run in the
containers of this pod: each takes one command at a time through named pipes in a folder of the node. The pod has no
service account token. It requests no GPUs but sees all of the node, like DCGM in NVIDIA's GPU Operator, so it works
without a device plugin, and no scheduler counts it.

Source: NVIDIA GPU Operator 26.7, assets/state-dcgm; NVIDIA DCGM, docker/; awsome-distributed-ai, nccl-tests (2026).
"""

from typing import Any

from ultracluster.catalog.software import images
from ultracluster.catalog.training import IMAGES
from ultracluster.kubernetes.cpu_jobs import ALL_REDUCE
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import DEVICE_STACK, DIAGNOSTICS, EVERY_GPU
from ultracluster.kubernetes.parts import Object, Objects

NAME, NAMESPACE = "node-diagnostics", "kube-system"
FOLDER = "/run/ultracluster-health"
"""Folder of the node with the programs and pipes, in memory: a reboot empties it."""

NCCL_TESTS = next(image.name for image in IMAGES if image.use == "nccl-tests")

SERVE = """mkdir -p "/tools/$TOOL"
cd "/tools/$TOOL"
rm -f request answer
mkfifo request answer
while read -r arguments < request; do
  status=0
  $RUN $arguments > output || status=$?
  echo "$status" > answer
done
"""
"""Runs $RUN with the arguments of each line of the pipe `request`; writes the exit status to the pipe `answer`."""

TOOLS: dict[str, Object] = {
    "dcgmi": {
        "name": "dcgm",
        "image": images["dcgm"],
        "command": ["sh", "-euc", f"nv-hostengine\n{SERVE}"],
        "env": {"RUN": "dcgmi"},
        "securityContext": {"privileged": True},
    },
    "all_reduce_perf": {
        "name": "nccl",
        "image": NCCL_TESTS,
        "command": ["sh", "-euc", SERVE],
        "env": {
            "RUN": f"mpirun --allow-run-as-root --bind-to none -n 1 {ALL_REDUCE}",
            # one node needs neither the network nor the NVLink of an UltraServer
            "NCCL_NET": "Socket",
            "NCCL_MNNVL_ENABLE": "0",
        },
    },
}
"""Container of each tool that check_node.py runs; `env` is a mapping of variables."""


def diagnostics_objects(environment: EksEnvironment) -> tuple[Objects, ...]:
    """The DaemonSet; none if new nodes are accepted without diagnostics."""
    if not (environment.acceptance and environment.acceptance.needs_tools):
        return ()
    metadata = {"name": NAME, "namespace": NAMESPACE}
    daemon_set = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": _spec(environment)}
    return (Objects(NAME, (daemon_set,)),)


def _spec(environment: EksEnvironment) -> Object:
    labels = {"app.kubernetes.io/name": NAME}
    wanted = [{"key": key, "operator": "Exists"} for key in (DEVICE_STACK, DIAGNOSTICS)]
    terms = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    pod = {
        # no priority class: it must not evict pods of teams that run beside idle GPUs
        "automountServiceAccountToken": False,
        # the shells do not handle SIGTERM
        "terminationGracePeriodSeconds": 1,
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "containers": [_container(environment, name, tool) for name, tool in TOOLS.items()],
        "volumes": [
            {"name": "tools", "hostPath": {"path": f"{FOLDER}/tools", "type": "DirectoryOrCreate"}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
            {"name": "gpus", "hostPath": {"path": "/dev/null"}},
        ],
    }
    # Karpenter must not remove the idle node before the outcome
    annotations = {"karpenter.sh/do-not-disrupt": "true"}
    return {
        "selector": {"matchLabels": labels},
        # an update must not end running diagnostics
        "updateStrategy": {"type": "OnDelete"},
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod},
    }


def _container(environment: EksEnvironment, name: str, tool: Object) -> Object:
    variables: dict[str, Any] = {"TOOL": name, **tool["env"]}
    return {
        **tool,
        "image": environment.image(tool["image"]),
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        "volumeMounts": [
            {"name": "tools", "mountPath": "/tools"},
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 - memory of the pod
            {"name": "gpus", "mountPath": EVERY_GPU},
        ],
    }
