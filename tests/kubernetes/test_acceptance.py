"""The agent of nodes with GPUs and the pod with the tools of the full checks: what they may do, and where they run."""

import os
import subprocess
from dataclasses import replace

import pytest

from tests.kubernetes.environments import GB200, P5, STACKS, eks_environment
from tests.kubernetes.schemas import check
from ultracluster.catalog.software import charts, images
from ultracluster.config.health import Health
from ultracluster.kubernetes.acceptance import TOKEN, acceptance_objects
from ultracluster.kubernetes.diagnostics import FOLDER, NCCL_TESTS, TOOLS
from ultracluster.kubernetes.labels import DEVICE_STACK, DIAGNOSTICS, EFA, GPU

FULL = Health(accept="full")


def view(health=FULL, groups=P5, **settings):
    return replace(eks_environment(groups, **settings), health=health)


def made(health=FULL, groups=P5, **settings):
    """Objects by kind and name."""
    parts = acceptance_objects(view(health, groups, **settings))
    return {(item["kind"], item["metadata"]["name"]): item for part in parts for item in part.items}


def tools(**settings):
    return made(**settings)["DaemonSet", "node-diagnostics"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("groups", [P5, GB200], ids=["p5", "gb200"])
def test_an_api_server_takes_every_object(groups, stack):
    for item in made(groups=groups, device_stack=stack).values():
        check(item)


@pytest.mark.parametrize(
    ("health", "parts"),
    [
        (Health(accept="none"), []),
        (Health(), ["node-acceptance"]),
        (Health(accept="full"), ["node-acceptance", "node-diagnostics"]),
    ],
)
def test_the_pod_with_the_tools_is_for_full_checks(health, parts):
    assert [part.name for part in acceptance_objects(view(health))] == parts


def test_nothing_of_the_checks_can_create_pods_or_read_secrets():
    rules = made()["ClusterRole", "node-acceptance"]["rules"]
    assert {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]} == {
        *(("nodes", verb) for verb in ("get", "watch", "patch")),
        ("events", "create"),
        ("pods", "list"),
    }
    fast = made(Health())["ClusterRole", "node-acceptance"]["rules"]
    assert {resource for rule in fast for resource in rule["resources"]} == {"nodes", "events"}
    replaces = made(Health(on_failure="replace"))["ClusterRole", "node-acceptance"]["rules"]
    assert {resource for rule in replaces for resource in rule["resources"]} == {"nodes", "events", "pods"}
    assert tools()["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in tools()


def test_an_agent_changes_no_other_node_than_its_own():
    objects = made()
    policy = objects["ValidatingAdmissionPolicy", "node-acceptance"]["spec"]
    assert policy["failurePolicy"] == "Fail"
    account = objects["ServiceAccount", "node-acceptance"]["metadata"]
    name = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    assert policy["matchConditions"][0]["expression"] == f"request.userInfo.username == '{name}'"
    [rule] = policy["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["UPDATE"], ["nodes"])
    [allowed] = policy["validations"]
    assert "authentication.kubernetes.io/node-name" in allowed["expression"]
    assert allowed["expression"].endswith(" == object.metadata.name")
    binding = objects["ValidatingAdmissionPolicyBinding", "node-acceptance"]["spec"]
    assert binding == {"policyName": "node-acceptance", "validationActions": ["Deny"]}


def test_the_agent_knows_the_settings_of_the_file():
    health = Health(accept="full", on_failure="replace")
    [container] = made(health)["DaemonSet", "node-acceptance"]["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert [variables[name] for name in ("ACCEPT", "ON_FAILURE")] == ["full", "replace"]
    namespaces = {"kube-system", charts["dcgm-exporter"].namespace}
    assert {*variables["PLATFORM"].split(",")} == namespaces
    assert not namespaces & {team.name for team in view().teams}
    start = container["command"][-1]
    assert all(f"/node{FOLDER}/bin/{tool}" in start for tool in TOOLS)


def test_the_agent_starts_with_a_program_in_place_of_each_tool(tmp_path):
    [container] = made()["DaemonSet", "node-acceptance"]["spec"]["template"]["spec"]["containers"]
    files = made()["ConfigMap", "node-acceptance"]["data"]
    programs, node, token = (tmp_path / name for name in ("programs", "node", "token"))
    for folder in (programs, node, token, tmp_path / "stubs"):
        folder.mkdir()
    for name, text in files.items():
        (programs / name).write_text(text)
    (tmp_path / "stubs" / "chroot").write_text('#!/bin/sh\necho "$*"\nls /proc/self/fd/9/\n')
    (tmp_path / "stubs" / "chroot").chmod(0o755)
    (token / "ca.crt").touch()
    shell, options, script = container["command"]
    for old, new in (("/node", node), ("/programs", programs), (TOKEN, token)):
        script = script.replace(old, str(new))
    path = {"PATH": f"{tmp_path}/stubs:/usr/bin:/bin"}
    ran = subprocess.run([shell, options, script], env=path, capture_output=True, text=True, check=True)
    start = f"{node} /usr/bin/python3 -IS {FOLDER}/accept_node.py"
    assert ran.stdout.splitlines() == [start, "ca.crt"]
    assert {each.name for each in (node / FOLDER.lstrip("/") / "bin").iterdir()} == set(TOOLS)
    for tool in TOOLS:
        assert os.access(node / FOLDER.lstrip("/") / "bin" / tool, os.X_OK)


def test_the_tools_take_no_gpu_from_a_job_and_run_only_where_the_agent_wants_them():
    pod = tools()
    limits = {name for each in pod["containers"] for kind in each["resources"].values() for name in kind}
    assert not {GPU, EFA} & limits
    assert "resourceClaims" not in pod
    assert "priorityClassName" not in pod  # which would evict pods of teams for its CPUs
    affinity = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = affinity["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": key, "operator": "Exists"} for key in (DEVICE_STACK, DIAGNOSTICS)]
    # a host engine of its own, beside that of AWS's node monitoring agent, which has the port of the node
    assert not pod.get("hostNetwork")
    assert {each["name"]: each.get("securityContext") for each in pod["containers"]} == {
        "dcgm": {"privileged": True},
        "nccl": None,
    }
    # the form that nodes take from a container that is not privileged
    assert {"name": "gpus", "hostPath": {"path": "/dev/null"}} in pod["volumes"]
    mount = {"name": "gpus", "mountPath": "/var/run/nvidia-container-devices/all"}
    assert all(mount in each["volumeMounts"] for each in pod["containers"])


def test_no_update_of_the_platform_ends_diagnostics():
    item = made()["DaemonSet", "node-diagnostics"]
    assert item["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert item["spec"]["template"]["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}


def test_the_images_come_from_the_mirror():
    mirror = "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror"
    found = {each["image"] for each in tools(chart_mirror=mirror, nat_gateways=0)["containers"]}
    prefix = mirror.removeprefix("oci://")
    assert found == {f"{prefix}/{each.partition('/')[2]}" for each in (images["dcgm"], NCCL_TESTS)}
    assert {each["image"] for each in tools()["containers"]} == {images["dcgm"], NCCL_TESTS}


def test_dcgm_of_diagnostics_is_that_of_the_exporter():
    versions = {images[name].rpartition(":")[2].partition("-")[0] for name in ("dcgm", "dcgm_exporter")}
    assert len(versions) == 1
