"""Admission policies, pod security and taints: each refuses with its setting, and lets through without it."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.fleet import fleet_file
from tests.servers.api import Api, Denied, Object
from tests.servers.control_plane import ControlPlane
from tests.servers.fleets import BINDING, Fleet, running
from tests.servers.nodes import node
from ultracluster.kubernetes.acceptance import NAME as ACCEPTANCE
from ultracluster.kubernetes.acceptance import NAMESPACE
from ultracluster.kubernetes.addons import cluster_addons
from ultracluster.kubernetes.file_systems import POLICY, nfs_policy
from ultracluster.kubernetes.jobs import example_job
from ultracluster.kubernetes.labels import GPU_TAINT, NOT_ACCEPTED

TAINTED = (GPU_TAINT, NOT_ACCEPTED)


@pytest.fixture(scope="module")
def fleet(control_plane: ControlPlane) -> Iterator[Fleet]:
    """Two nodes that have just joined and are not accepted."""
    environment = fleet_file(jobs=["jobset"])
    (group,) = environment.node_groups
    nodes = [node(name, group, leaf="leaf", taints=TAINTED) for name in ("new-a", "new-b")]
    with running(control_plane, environment, nodes) as found:
        yield found
        found.clear(*found.teams)


@pytest.fixture
def member(fleet: Fleet) -> Api:
    """A member of research."""
    return fleet.member("research")


def pod(namespace: str, **spec: object) -> Object:
    containers = [{"name": "a", "image": "a"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "tried-", "namespace": namespace},
        "spec": {"containers": containers, **spec},
    }


def refusal(api: Api, obj: Object) -> str:
    """What the server says against an object; empty if it is accepted."""
    try:
        api.create(obj, dry_run=True)
    except Denied as denied:
        return str(denied)
    return ""


@pytest.mark.parametrize(
    "spec",
    [
        {"hostNetwork": True},
        {"hostPID": True},
        {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
        {"containers": [{"name": "a", "image": "a", "securityContext": {"privileged": True}}]},
        {"containers": [{"name": "a", "image": "a", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]},
    ],
    ids=["host-network", "host-pid", "host-path", "privileged", "capabilities"],
)
def test_a_team_runs_no_pod_with_the_power_of_its_node(fleet, member, spec):
    said = fleet.until(lambda: refusal(member, pod("research", **spec)), "a refusal")
    assert 'violates PodSecurity "baseline' in said
    assert refusal(fleet.api, pod("default", **spec)) == ""


def test_a_team_mounts_no_file_server_of_its_choice(fleet, member):
    mounting = pod("research", volumes=[{"name": "files", "nfs": {"server": "fs-1", "path": "/"}}])
    assert refusal(member, mounting) == ""
    for obj in nfs_policy().items:
        fleet.api.apply(obj)
    said = fleet.until(lambda: refusal(member, mounting), "a refusal of the policy")
    assert "mount the claims of the namespace" in said
    assert refusal(member, pod("research")) == ""
    fleet.api.delete(*BINDING, POLICY)
    fleet.until(lambda: not refusal(member, mounting), "a pod with an NFS volume, without the policy")


def test_the_agent_of_a_node_changes_that_node_alone(fleet):
    running = pod(NAMESPACE, serviceAccountName=ACCEPTANCE, nodeName="new-a")
    agent = fleet.api.as_pod(fleet.api.create(running))
    change = {"metadata": {"labels": {"seen": "true"}}}
    first, second = (fleet.api.get("v1", "Node", name) for name in ("new-a", "new-b"))
    for each in (first, second):
        each |= {"apiVersion": "v1", "kind": "Node"}
    agent.patch(first, change)
    said = fleet.until(lambda: agent.against_patch(second, change), "a refusal of the policy")
    assert "an agent may change its own node only" in said
    fleet.api.delete(*BINDING, ACCEPTANCE)
    fleet.until(lambda: not agent.against_patch(second, change), "a change of another node, without the policy")
    fleet.deploy()


def monitored(fleet: Fleet, tolerations: list[Object], name: str) -> int:
    """On how many new nodes the DCGM pod of AWS's monitoring agent is to run, with tolerations of its add-on."""
    labels = {"app": name}
    spec = {"containers": [{"name": "dcgm", "image": "dcgm"}], "tolerations": tolerations}
    template = {"metadata": {"labels": labels}, "spec": spec}
    metadata = {"name": name, "namespace": "kube-system"}
    selected = {"selector": {"matchLabels": labels}, "template": template}
    fleet.api.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": selected})

    def seen() -> Object | None:
        status = fleet.api.get("apps/v1", "DaemonSet", name, "kube-system").get("status", {})
        return status if status.get("observedGeneration") else None

    wanted: int = fleet.until(seen, f"the DaemonSet {name}")["desiredNumberScheduled"]
    fleet.api.delete("apps/v1", "DaemonSet", name, "kube-system")
    return wanted


def test_the_monitoring_agents_dcgm_runs_on_nodes_that_are_not_accepted(fleet):
    """Without it the agent reports failed hardware for ever, a minute after the node has joined."""
    addons = cluster_addons(fleet.environment.storage, environment=fleet.environment.name)
    (agent,) = (each for each in addons if each.addon.name == "eks-node-monitoring-agent")
    tolerations = agent.configuration["dcgmAgent"]["tolerations"]
    assert monitored(fleet, tolerations, "dcgm-server") == 2
    assert monitored(fleet, [each for each in tolerations if each["key"] != NOT_ACCEPTED["key"]], "dcgm-before") == 0


def test_a_job_starts_on_a_node_only_once_it_is_accepted(fleet):
    job = fleet.submit(example_job(fleet.environment, "pretrain", 16, name="first-job"))
    fleet.waits_for(job, "taint")
    for name in ("new-a", "new-b"):
        accepted = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        fleet.api.patch(accepted, {"spec": {"taints": [GPU_TAINT]}})
    fleet.runs(job, 2)
