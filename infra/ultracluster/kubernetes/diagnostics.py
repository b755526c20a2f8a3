"""Tools of the full checks, DCGM's and NCCL's, in a pod on nodes that have the label `labels.DIAGNOSTICS`.

The agent of `acceptance` sets the label on a node without jobs, and check_node.py runs there, as on PCS. What it calls
is in the containers of this pod: each takes one command at a time through a pipe in a folder of the node. Neither has a
token, and neither requests GPUs: they see those of the node, as DCGM does in NVIDIA's GPU Operator, whether a device
plugin serves them or not, and no scheduler ever counts them against jobs.

Source: NVIDIA GPU Operator 26.7, assets/state-dcgm; NVIDIA DCGM, docker/; awsome-distributed-ai, nccl-tests (2026).
"""

from typing import Any

from ultracluster.catalog.software import images
from ultracluster.catalog.training import IMAGES
from ultracluster.kubernetes.cpu_jobs import ALL_REDUCE
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import DEVICE_STACK, DIAGNOSTICS
from ultracluster.kubernetes.parts import Object, Objects

NAME, NAMESPACE = "node-diagnostics", "kube-system"
FOLDER = "/run/ultracluster-health"
"""Folder of the node with the programs and pipes, which a reboot empties."""

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
"""Runs RUN with the arguments of each line of the pipe `request`. Its output is a file, its status the answer."""

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
"""Container of each tool of check_node.py, with its variables as a mapping."""


def diagnostics_objects(environment: EksEnvironment) -> tuple[Objects, ...]:
    """The DaemonSet; none if no node is diagnosed."""
    if not environment.diagnoses_nodes:
        return ()
    metadata = {"name": NAME, "namespace": NAMESPACE}
    daemon_set = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": _spec(environment)}
    return (Objects(NAME, (daemon_set,)),)


def _spec(environment: EksEnvironment) -> Object:
    labels = {"app.kubernetes.io/name": NAME}
    wanted = [{"key": key, "operator": "Exists"} for key in (DEVICE_STACK, DIAGNOSTICS)]
    terms = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    pod = {
        # without a priority: it evicts no pod of a team that runs beside the idle GPUs
        "automountServiceAccountToken": False,
        # the shells take no signal
        "terminationGracePeriodSeconds": 1,
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "containers": [_container(environment, name, tool) for name, tool in TOOLS.items()],
        "volumes": [
            {"name": "tools", "hostPath": {"path": f"{FOLDER}/tools", "type": "DirectoryOrCreate"}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        ],
    }
    # an idle node that Karpenter launched stays until it is judged
    annotations = {"karpenter.sh/do-not-disrupt": "true"}
    return {
        "selector": {"matchLabels": labels},
        # no update ends diagnostics
        "updateStrategy": {"type": "OnDelete"},
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod},
    }


def _container(environment: EksEnvironment, name: str, tool: Object) -> Object:
    variables: dict[str, Any] = {"TOOL": name, "NVIDIA_VISIBLE_DEVICES": "all", **tool["env"]}
    return {
        **tool,
        "image": environment.image(tool["image"]),
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        "volumeMounts": [
            {"name": "tools", "mountPath": "/tools"},
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 - memory of the pod
        ],
    }
