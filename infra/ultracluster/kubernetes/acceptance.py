"""Acceptance of new nodes with GPUs: a DaemonSet runs an agent on each, `nodes/programs/accept_node.py`.

Why an agent: the kubelet may not remove taints of its own node (NodeRestriction), and AWS's node monitoring agent
does not keep pods off a node before its first check. Once a node is accepted, that agent and EKS node repair own it.

The container has a small shell image and runs the programs with the Python of the node, chrooted, so that they see its
driver and devices. Device plugins and exporters start once the node is accepted. Tools that the node's image lacks run
in a pod of `diagnostics`, which a label schedules, so that the agent needs no permission to create pods.

Source: Karpenter 1.14, "NodePools", startupTaints; Kubernetes, "Admission control", NodeRestriction, and "Managing
service accounts", node information in tokens (2026).
"""

import hashlib
import json

from ultracluster.catalog import efa_devices, instance_types
from ultracluster.catalog.software import charts, images
from ultracluster.config.acceptance import Acceptance
from ultracluster.kubernetes.admission import Check, Requests, admission_policy
from ultracluster.kubernetes.diagnostics import FOLDER, NAMESPACE, TOOLS, diagnostics_objects
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.karpenter import pool_groups
from ultracluster.kubernetes.labels import DEVICE_STACK
from ultracluster.kubernetes.parts import Object, Objects
from ultracluster.nodes.health_programs import program, tables

NAME = "node-acceptance"
TOOL = """#!/bin/sh
# Runs a tool of the pod node-diagnostics with these arguments: prints its output and exits with its status.
cd "${0%/*}/../tools/${0##*/}" || exit
echo "$*" > request
read -r status < answer
cat output
exit "$status"
"""
"""Program on the node with the name of each of `diagnostics.TOOLS`: it runs the tool in the pod."""
RBAC = "rbac.authorization.k8s.io"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path


def acceptance_objects(environment: EksEnvironment) -> tuple[Objects, ...]:
    """Objects of the agent and its tools; none if nobody accepts nodes."""
    acceptance = environment.acceptance
    if acceptance is None:
        return ()
    files = {
        "check_node.py": program("check_node"),
        "accept_node.py": program("accept_node"),
        "run-tool": TOOL,
        "tables.json": tables(),
        "facts.json": json.dumps(facts(environment), separators=(",", ":")),
    }
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "watch", "patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ]
    if acceptance.needs_tools or acceptance.replaces:
        # the agent checks whether jobs run on the node
        rules.append({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME}
    items = (
        *_own_node(),
        _object("v1", "ServiceAccount"),
        _object("v1", "ConfigMap", data=files),
        _object(f"{RBAC}/v1", "ClusterRole", namespaced=False, rules=rules),
        _object(f"{RBAC}/v1", "ClusterRoleBinding", namespaced=False, roleRef=role, subjects=[account]),
        _object("apps/v1", "DaemonSet", spec=_daemon_set(environment, acceptance, json.dumps(files))),
    )
    return (Objects(NAME, items), *diagnostics_objects(environment))


def _own_node() -> tuple[Object, Object]:
    """An agent may change its own node only: RBAC cannot express that. Tokens name their node since Kubernetes 1.32."""
    node = "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')"
    agents = f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{NAME}'"
    check = Check(f"{node} == object.metadata.name", "an agent may change its own node only")
    return admission_policy(NAME, [Requests(["UPDATE"], ["nodes"])], [check], condition=agents)


def facts(environment: EksEnvironment) -> Object:
    """Content of facts.json: GPUs and NVLink by instance type, EFA devices by node group."""
    types = {name: [each.gpu_count, int(each.has_nvlink)] for name, each in instance_types.items() if each.gpu_count}
    static = {group.name: efa_devices(group.layout("eks")) for group in environment.gpu_groups}
    return {"types": types, "efa": {**static, **pool_groups(environment)}}


def _daemon_set(environment: EksEnvironment, acceptance: Acceptance, files: str) -> Object:
    start = [
        f"mkdir -p /node{FOLDER}/bin /node{FOLDER}/tools",
        f"cp -L /programs/* /node{FOLDER}/",
        *(f"install -m 755 /programs/run-tool /node{FOLDER}/bin/{tool}" for tool in TOOLS),
        # the token is outside the chroot, so the agent gets its open folder
        f"exec 9< {TOKEN}",
        f"exec chroot /node /usr/bin/python3 -IS {FOLDER}/accept_node.py",
    ]
    name = {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    variables = {
        "FOLDER": FOLDER,
        "CHECK_NODE_FOLDER": FOLDER,
        "ACCEPT": acceptance.level,
        "ON_FAILURE": acceptance.on_failure,
        # pods elsewhere are of teams, whatever labels they have
        "PLATFORM": f"{NAMESPACE},{charts['dcgm-exporter'].namespace}",
    }
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    container = {
        "name": "agent",
        "image": environment.image(images["shell"]),
        "command": ["sh", "-ec", "\n".join(start)],
        "env": [{"name": "NODE", **name}, *({"name": k, "value": v} for k, v in {**variables, "PATH": path}.items())],
        # to read every device
        "securityContext": {"privileged": True},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [
            {"name": "node", "mountPath": "/node", "mountPropagation": "HostToContainer"},
            {"name": "programs", "mountPath": "/programs", "readOnly": True},
        ],
    }
    labels = {"app.kubernetes.io/name": NAME}
    exists = {"key": DEVICE_STACK, "operator": "Exists"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [exists]}]}
    pod = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-node-critical",
        # pod network and cluster DNS may not be ready on a new node
        "hostNetwork": True,
        "hostPID": True,
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "containers": [container],
        "volumes": [
            {"name": "node", "hostPath": {"path": "/"}},
            {"name": "programs", "configMap": {"name": NAME}},
        ],
    }
    # a new annotation restarts the pods when a program changes
    digest = hashlib.sha256(files.encode()).hexdigest()[:16]
    return {
        "selector": {"matchLabels": labels},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {"metadata": {"labels": labels, "annotations": {"ultracluster/programs": digest}}, "spec": pod},
    }


def _object(api_version: str, kind: str, *, namespaced: bool = True, **fields: object) -> Object:
    metadata = {"name": NAME, **({"namespace": NAMESPACE} if namespaced else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
