"""What a member of a team may do and may not do, as the API server answers."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.kubernetes.fleet import fleet_file
from tests.servers.api import Api, Denied
from tests.servers.control_plane import ControlPlane
from tests.servers.fleets import Fleet, running
from ultracluster.kubernetes.jobs import example_job


class Call(NamedTuple):
    """A request: `namespace` "" is the cluster."""

    verb: str
    resource: str
    namespace: str = "research"
    group: str = ""
    part: str = ""


RBAC = "rbac.authorization.k8s.io"
ADMISSION = ("validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations")

MAY = [
    *(Call(verb, "pods") for verb in ("get", "list", "watch", "create", "delete")),
    *(Call("get", "pods", part=part) for part in ("log", "exec", "portforward")),
    *(Call("create", "pods", part=part) for part in ("exec", "attach", "portforward")),
    *(Call("create", resource) for resource in ("services", "configmaps", "secrets", "persistentvolumeclaims")),
    *(Call("create", resource, group="batch") for resource in ("jobs", "cronjobs")),
    *(Call("create", "deployments", group="apps"), Call("list", "events"), Call("get", "serviceaccounts")),
    *(Call(verb, "jobsets", group="jobset.x-k8s.io") for verb in ("create", "delete")),
    Call("get", "workloads", group="kueue.x-k8s.io"),
    *(Call("list", kind, "", "kueue.x-k8s.io") for kind in ("clusterqueues", "resourceflavors", "topologies")),
    *(Call("list", "nodes", ""), Call("list", "namespaces", "")),
]
NEVER = [
    *(Call(verb, "pods", "pretrain") for verb in ("get", "list", "create", "delete")),
    *(Call("get", "secrets", place) for place in ("pretrain", "kube-system", "")),
    *(Call("create", "pods", "pretrain", part="exec"), Call("get", "pods", "pretrain", part="log")),
    Call("create", "jobsets", "pretrain", "jobset.x-k8s.io"),
    *(Call(verb, "localqueues", group="kueue.x-k8s.io") for verb in ("create", "update", "patch", "delete")),
    *(Call("patch", "workloads", group="kueue.x-k8s.io"), Call("delete", "workloads", group="kueue.x-k8s.io")),
    *(Call(verb, "clusterqueues", "", "kueue.x-k8s.io") for verb in ("create", "update", "patch", "delete")),
    *(Call("patch", kind, "", "kueue.x-k8s.io") for kind in ("cohorts", "resourceflavors", "workloadpriorityclasses")),
    *(Call(verb, "nodes", "") for verb in ("update", "patch", "delete")),
    *(Call("get", "nodes", "", part="proxy"), Call("patch", "nodes", "", part="status")),
    *(Call(verb, "namespaces", "") for verb in ("create", "patch", "delete")),
    *(Call(verb, "persistentvolumes", "") for verb in ("get", "create", "patch")),
    Call("patch", "persistentvolumeclaims"),
    *(Call(verb, "roles", group=RBAC) for verb in ("create", "patch", "escalate")),
    *(Call(verb, "rolebindings", group=RBAC) for verb in ("create", "patch", "delete")),
    Call("create", "clusterrolebindings", "", RBAC),
    *(Call("create", "serviceaccounts"), Call("create", "serviceaccounts", part="token")),
    *(Call("create", "pods", part="binding"), Call("create", "pods", part="eviction"), Call("create", "bindings")),
    *(Call(verb, "resourcequotas") for verb in ("create", "patch", "delete")),
    *(Call("create", kind, group="networking.k8s.io") for kind in ("networkpolicies", "ingresses")),
    *(Call("delete", "networkpolicies", group="networking.k8s.io"), Call("impersonate", "users", "")),
    Call("create", "certificatesigningrequests", "", "certificates.k8s.io"),
    *(Call("patch", kind, "", "admissionregistration.k8s.io") for kind in ADMISSION),
    Call("create", "customresourcedefinitions", "", "apiextensions.k8s.io"),
    Call("create", "priorityclasses", "", "scheduling.k8s.io"),
]


@pytest.fixture(scope="module")
def fleet(control_plane: ControlPlane) -> Iterator[Fleet]:
    """Teams pretrain and research, without nodes."""
    with running(control_plane, fleet_file(jobs=["jobset"]), ()) as found:
        yield found


@pytest.fixture(scope="module")
def member(fleet: Fleet) -> Api:
    """A member of research."""
    return fleet.member("research")


@pytest.fixture(scope="module")
def stranger(fleet: Fleet) -> Api:
    """A user of the cluster in no team."""
    return fleet.api.as_user("mallory", "visitors")


def allowed(api: Api, call: Call) -> bool:
    """Whether the API server would authorize the user."""
    attributes = {"verb": call.verb, "resource": call.resource, "group": call.group, "subresource": call.part}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**attributes, "namespace": call.namespace}},
    }
    return bool(api.create(review)["status"]["allowed"])


def test_a_member_may_run_jobs_and_see_the_fleet(member):
    assert [call for call in MAY if not allowed(member, call)] == []


def test_a_member_may_not_change_queues_nodes_rights_or_other_teams(member):
    assert [call for call in NEVER if allowed(member, call)] == []


def test_only_the_teams_group_grants_these_rights(stranger, servers):
    assert [call for call in MAY if allowed(stranger, call)] == []
    assert [call for call in (*MAY, *NEVER) if not allowed(servers, call)] == []


def test_a_printed_job_is_created_by_a_member_of_its_team_alone(fleet, member):
    for obj in example_job(fleet.environment, "research", 32):
        member.create(obj, dry_run=True)
    for obj in example_job(fleet.environment, "pretrain", 32):
        with pytest.raises(Denied, match=r'User "alice" cannot create resource .* in the namespace "pretrain"'):
            member.create(obj, dry_run=True)


def test_a_job_without_a_queue_gets_the_teams_own(fleet, member):
    (job,) = [obj for obj in example_job(fleet.environment, "research", 32) if obj["kind"] == "JobSet"]
    del job["metadata"]["labels"]
    created = member.create(job, dry_run=True)
    assert created["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    assert created["spec"]["suspend"] is True
