"""Job operators, and the installer of the MPI operator."""

import json

import pytest

from tests.kubernetes.environments import OPERATORS, eks_environment
from tests.kubernetes.schemas import check
from ultracluster.config.eks import JobOperator
from ultracluster.kubernetes.labels import GPU_TAINT
from ultracluster.kubernetes.operators import MPI, mpi_objects, operator_parts
from ultracluster.kubernetes.parts import Part, Release


def parts(jobs, *, after=(), **settings) -> dict[str, Part]:
    made = operator_parts(eks_environment(jobs=list(jobs), **settings), after=after)
    return {part.name: part for part in made}


def mpi(kind: str):
    return next(item for item in mpi_objects("1.35").items if item["kind"] == kind)


def test_no_operator_without_jobs():
    assert parts([]) == {}


@pytest.mark.parametrize(
    ("operator", "names"),
    [
        ("trainer", ["jobset", "kubeflow-trainer"]),
        ("jobset", ["jobset"]),
        ("leader_worker_set", ["lws"]),
        ("mpi", ["mpi-operator", "mpi-operator-installed"]),
        ("ray", ["kuberay-operator"]),
    ],
)
def test_an_operator_is_installed_with_those_it_requires_and_no_others(operator, names):
    assert list(parts([operator])) == names


def test_a_required_operator_is_listed_first_and_once():
    jobs: list[JobOperator] = ["trainer", "jobset"]
    assert eks_environment(jobs=jobs).job_operators == ("jobset", "trainer")


def test_the_trainers_chart_does_not_install_jobset():
    trainer = parts(["trainer"])["kubeflow-trainer"]
    assert trainer.values["jobset"] == {"install": False}
    assert "jobset" in trainer.after


def test_the_trainers_chart_does_not_install_leader_worker_set():
    assert parts(["trainer"])["kubeflow-trainer"].values["dataCache"]["lws"] == {"install": False}


def test_operators_are_installed_after_the_gang_scheduler():
    made = parts(OPERATORS, after=("volcano",), scheduler="volcano")
    assert all("volcano" in part.after for part in made.values() if isinstance(part, Release))


@pytest.mark.parametrize(
    ("scheduler", "name"),
    [("volcano", "volcano"), ("kueue_with_volcano", "volcano"), ("kai", "kai-scheduler"), ("kueue", None)],
)
def test_kuberay_uses_the_gang_scheduler(scheduler, name):
    values = parts(["ray"], scheduler=scheduler)["kuberay-operator"].values
    assert values.get("batchScheduler", {}).get("name") == name


def test_leader_worker_sets_are_gangs_under_volcano():
    values = parts(["leader_worker_set"], scheduler="volcano")["lws"].values
    assert values["gangSchedulingManagement"] == {"schedulerProvider": "volcano"}
    values = parts(["leader_worker_set"], scheduler="kueue")["lws"].values
    assert "gangSchedulingManagement" not in values


def test_objects_of_the_mpi_operator_follow_the_schema_of_kubernetes():
    for version in ("1.33", "1.36"):
        for item in mpi_objects(version).items:
            check(item, version)


def test_the_installer_applies_the_pinned_manifest_on_the_server():
    container, _ = mpi("Job")["spec"]["template"]["spec"]["initContainers"]
    assert "--server-side" in container["args"]
    assert f"--filename={MPI.url}" in container["args"]
    assert MPI.commit in MPI.url


def test_the_installers_kubectl_is_of_the_clusters_version():
    for version in ("1.34", "1.36"):
        job = next(item for item in mpi_objects(version).items if item["kind"] == "Job")
        assert {container["image"] for container in steps(job)} == {f"registry.k8s.io/kubectl:v{version}.0"}


def steps(job):
    """Containers of the Job, in the order in which they run."""
    spec = job["spec"]["template"]["spec"]
    return [*spec["initContainers"], *spec["containers"]]


def test_the_installer_moves_the_operator_to_system_nodes_and_waits_for_it():
    """The manifest of the operator tolerates no taint."""
    _, place, wait = steps(mpi("Job"))
    (patch,) = [argument for argument in place["args"] if argument.startswith("--patch=")]
    pod = json.loads(patch.removeprefix("--patch="))["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"ultracluster/node-group": "system"}
    assert pod["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    assert wait["args"][:3] == ["rollout", "status", "deployment/mpi-operator"]


def test_a_deployment_waits_for_the_end_of_the_installers_job():
    made = parts(["mpi"])
    end, job = made["mpi-operator-installed"], mpi("Job")
    assert (end.job, end.namespace) == (job["metadata"]["name"], job["metadata"]["namespace"])
    assert end.after == ("mpi-operator",)
    assert job["spec"]["activeDeadlineSeconds"] < end.seconds < 900 - 30


def test_another_kubectl_version_is_another_job():
    names = [
        item["metadata"]["name"]
        for version in ("1.34", "1.35")
        for item in mpi_objects(version).items
        if item["kind"] == "Job"
    ]
    assert len(set(names)) == 2


def test_the_installer_follows_the_restricted_pod_standard():
    """Kubernetes, "Pod Security Standards", profile restricted."""
    spec = mpi("Job")["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in steps(mpi("Job")):
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert all("emptyDir" in volume for volume in spec["volumes"])


def test_the_installer_does_not_run_on_gpu_nodes_and_is_removed_afterwards():
    job = mpi("Job")["spec"]
    assert GPU_TAINT["key"] not in str(job["template"]["spec"].get("tolerations", []))
    assert job["ttlSecondsAfterFinished"] > 0
    assert job["backoffLimit"] > 0


def test_the_installer_may_escalate_only_in_named_roles():
    rules = mpi("ClusterRole")["rules"]
    raising = [rule for rule in rules if {"escalate", "bind"} & set(rule["verbs"])]
    assert raising
    assert all(rule["resourceNames"] for rule in raising)
    assert not any("*" in {*rule["verbs"], *rule["resources"], *rule["apiGroups"]} for rule in rules)


def test_the_installer_cannot_delete_and_lists_only_its_deployment():
    for kind in ("ClusterRole", "Role"):
        for rule in mpi(kind)["rules"]:
            assert not {"delete", "update"} & set(rule["verbs"])
            assert rule["resources"] == ["deployments"] or not {"list", "watch"} & set(rule["verbs"])
            assert not {"secrets", "pods"} & set(rule["resources"])
