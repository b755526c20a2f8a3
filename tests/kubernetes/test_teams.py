"""Namespaces of teams, and access of their members."""

from ipaddress import ip_address, ip_network

import pytest

from tests.kubernetes.fleet import SCHEDULERS, TEAMS, fleet, one_team
from tests.kubernetes.schemas import check
from ultracluster.kubernetes.network_policies import network_policies
from ultracluster.kubernetes.teams import access, fleet_view, namespace


def made(environment, team=0):
    found = environment.teams[team]
    return (namespace(environment, found), fleet_view(environment), *access(environment, found))


def granted(objects, kind):
    """Verbs by API group and resource."""
    (found,) = [obj for obj in objects if obj["kind"] == kind]
    return {
        (group, resource): set(rule["verbs"])
        for rule in found["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_objects_follow_the_schema_of_kubernetes(scheduler):
    for obj in made(fleet(scheduler=scheduler, jobs=["trainer", "mpi", "ray", "leader_worker_set"])):
        check(obj)


def test_the_namespace_has_labels_for_team_and_pod_security():
    labels = made(fleet())[0]["metadata"]["labels"]
    assert labels["ultracluster/team"] == "pretrain"
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"


def test_bindings_name_the_group_of_the_access_entries():
    bindings = [obj for obj in made(fleet(), 1) if obj["kind"].endswith("Binding")]
    assert [binding["subjects"][0]["name"] for binding in bindings] == ["team:research"] * 2
    assert [binding["metadata"].get("namespace") for binding in bindings] == ["research", None]


def test_members_can_run_jobs_and_debug_their_pods():
    verbs = granted(made(fleet()), "Role")
    assert "create" in verbs["batch", "jobs"]
    assert verbs["", "pods/log"] >= {"get"}
    assert verbs["", "pods/exec"] >= {"create"}
    assert verbs["", "persistentvolumeclaims"] == {"get", "list", "watch", "create", "delete"}
    assert "create" in verbs["apps", "deployments"]
    assert "create" in verbs["apps", "statefulsets"]


def test_members_read_the_training_runtimes_and_storage_classes():
    view = granted(made(fleet(jobs=["trainer"])), "ClusterRole")
    assert view["trainer.kubeflow.org", "clustertrainingruntimes"] == {"get", "list", "watch"}
    assert view["storage.k8s.io", "storageclasses"] == {"get", "list", "watch"}
    assert ("trainer.kubeflow.org", "clustertrainingruntimes") not in granted(made(fleet()), "ClusterRole")


def test_cluster_roles_are_read_only():
    for scheduler in SCHEDULERS:
        for verbs in granted(made(fleet(scheduler=scheduler)), "ClusterRole").values():
            assert verbs == {"get", "list", "watch"}


def test_members_cannot_change_their_permissions_or_quotas():
    for scheduler in SCHEDULERS:
        verbs = granted(made(fleet(scheduler=scheduler, jobs=["trainer", "ray"])), "Role")
        assert {group for group, _ in verbs}.isdisjoint({"rbac.authorization.k8s.io", "*"})
        assert all("*" not in allowed for allowed in verbs.values())
        assert verbs.get(("kueue.x-k8s.io", "localqueues"), set()) <= {"get", "list", "watch"}


def test_roles_cover_only_installed_kinds():
    bare = {group for group, _ in granted(made(fleet()), "Role")}
    assert bare == {"", "apps", "batch", "kueue.x-k8s.io"}
    with_trainer = {group for group, _ in granted(made(fleet(jobs=["trainer"])), "Role")}
    assert with_trainer - bare == {"trainer.kubeflow.org", "jobset.x-k8s.io"}
    volcano = granted(made(fleet(scheduler="volcano")), "Role")
    assert "create" in volcano["batch.volcano.sh", "jobs"]
    assert ("kueue.x-k8s.io", "workloads") not in volcano


def test_members_can_read_kinds_of_both_schedulers_of_a_combined_mode():
    groups = {group for group, _ in granted(made(fleet(scheduler="kueue_with_kai")), "Role")}
    assert {"kueue.x-k8s.io", "scheduling.run.ai"} <= groups


def test_members_can_create_claims_only_under_dra_or_on_ultraservers():
    claims = ("resource.k8s.io", "resourceclaimtemplates")
    domains = ("resource.nvidia.com", "computedomains")
    assert claims not in granted(made(fleet()), "Role")
    dra = granted(made(fleet(device_stack="dra")), "Role")
    assert "create" in dra[claims]
    assert domains not in dra
    assert "create" in granted(made(one_team("p6e-gb200.36xlarge", 36, 144)), "Role")[domains]


def admits(policy, *, namespace, address, port):
    """Whether an ingress rule of the team pretrain admits a connection from a pod, by the meaning of the API."""
    for rule in policy["spec"]["ingress"]:
        ports = {each["port"] for each in rule.get("ports", ())}
        if ports and port not in ports:
            continue
        for peer in rule.get("from", [{"ipBlock": {"cidr": "0.0.0.0/0"}}]):
            labels = peer.get("namespaceSelector", {}).get("matchLabels", {})
            if "ipBlock" in peer and ip_address(address) in ip_network(peer["ipBlock"]["cidr"]):
                return True
            if "podSelector" in peer and namespace == "pretrain":
                return True
            if labels and labels == {"kubernetes.io/metadata.name": namespace}:
                return True
    return False


def test_other_teams_connect_to_no_pod_of_a_team():
    environment = fleet(jobs=["ray"])
    (policy,) = network_policies(environment, environment.teams[0])
    check(policy)
    assert policy["spec"]["podSelector"] == {}
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    node, plane = "10.0.128.9", "10.0.0.9"
    for port in (22, 6379, 8000, 8265, 10001, 29500):
        assert not admits(policy, namespace="research", address=node, port=port)
        assert admits(policy, namespace="pretrain", address=node, port=port)
    assert admits(policy, namespace="", address=plane, port=8000)
    assert not admits(policy, namespace="", address=plane, port=8265)
    assert admits(policy, namespace="kuberay", address=node, port=8265)
    (bare,) = network_policies(fleet(), fleet().teams[0])
    assert not admits(bare, namespace="kuberay", address=node, port=8265)


def test_pods_behind_a_load_balancer_are_public():
    environment = fleet(teams=({**TEAMS[0], "load_balancers": 1}, TEAMS[1]))
    _, public = network_policies(environment, environment.teams[0])
    check(public)
    assert public["spec"]["podSelector"] == {"matchLabels": {"ultracluster/public": "true"}}
    assert admits(public, namespace="", address="203.0.113.9", port=443)
