"""Runtimes of Kubeflow Trainer for each node group."""

import pytest

from tests.kubernetes.environments import GB200, SCHEDULERS, STACKS, eks_environment
from tests.kubernetes.fleet import fleet
from tests.kubernetes.schemas import check
from ultracluster.catalog import catalog
from ultracluster.catalog.training import default_image
from ultracluster.kubernetes.trainer import training_runtimes

X86 = [hardware for hardware in catalog.values() if not hardware.ultraserver_only]
MIXED = {"train": ("p5en.48xlarge", 4), "small": ("p5.4xlarge", 6)}
TEAMS = ({"name": "research", "node_groups": ["train", "small"], "gpus": {"train": 8, "small": 1}},)


def runtimes(environment):
    return {obj["metadata"]["name"]: obj for part in training_runtimes(environment) for obj in part.items}


def the_pod(runtime):
    (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return replicated["template"]["spec"]["template"]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("stack", STACKS)
def test_a_runtime_for_each_node_group_follows_the_crd(stack, scheduler):
    made = runtimes(fleet(MIXED, TEAMS, jobs=["trainer"], device_stack=stack, scheduler=scheduler))
    assert set(made) == {"train", "small"}
    for runtime in made.values():
        check(runtime)


def test_without_trainer_there_is_none():
    assert training_runtimes(fleet(jobs=["jobset"])) == ()


def test_ultraservers_have_none_because_each_job_needs_a_compute_domain():
    assert training_runtimes(eks_environment(GB200, jobs=["trainer"])) == ()


@pytest.mark.parametrize("hardware", X86, ids=lambda hardware: hardware.name)
def test_a_pod_has_the_whole_node(hardware):
    (runtime,) = runtimes(eks_environment({"train": hardware.name}, jobs=["trainer"], lustre=True)).values()
    spec = the_pod(runtime)["spec"]
    (container,) = spec["containers"]
    limits = container["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == hardware.gpu_count
    assert limits["vpc.amazonaws.com/efa"] >= 1
    assert limits["hugepages-2Mi"] == "5120Mi"
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"/fsx", "/dev/shm", "/scratch"}  # noqa: S108
    assert spec["nodeSelector"] == {"ultracluster/node-group": "train"}
    assert [entry["key"] for entry in spec["tolerations"]] == ["nvidia.com/gpu"]
    assert container["image"] == default_image(hardware).name


def test_trainer_finds_its_container_and_sets_the_addresses():
    """Trainer looks for the container `node` of the step `trainer`, and sets PET_* itself."""
    runtime = runtimes(fleet(jobs=["trainer"]))["train"]
    (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert replicated["template"]["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    (container,) = the_pod(runtime)["spec"]["containers"]
    assert (container["name"], container["command"]) == ("node", ["torchrun", "/fsx/train.py"])
    assert not {"MASTER_ADDR", "PET_NNODES"} & {entry["name"] for entry in container["env"]}
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 1, "torch": {}}


def test_pods_of_kueue_prefer_one_switch_and_volcano_has_gangs():
    annotations = the_pod(runtimes(fleet(jobs=["trainer"]))["train"])["metadata"]["annotations"]
    assert "kueue.x-k8s.io/podset-preferred-topology" in annotations
    volcano = runtimes(fleet(jobs=["trainer"], scheduler="volcano"))["train"]
    assert volcano["spec"]["podGroupPolicy"] == {"volcano": {}}
    assert the_pod(volcano)["spec"]["schedulerName"] == "volcano"


def test_a_runtime_is_nobodys_own():
    """All teams use it, so it has neither the queue nor the user of one."""
    teams = ({"name": "research", "node_groups": ["train"], "gpus": 8, "user": "2000:2000"},)
    (runtime,) = runtimes(fleet(teams=teams, jobs=["trainer"])).values()
    assert "securityContext" not in the_pod(runtime)["spec"]
    assert "research" not in str(runtime)


def test_a_mirror_holds_the_image():
    mirrored = runtimes(fleet(jobs=["trainer"], chart_mirror="oci://example.org/mirror"))["train"]
    (container,) = the_pod(mirrored)["spec"]["containers"]
    assert container["image"].startswith("example.org/mirror/deep-learning-containers/")


def test_runtimes_wait_for_trainer_whose_webhooks_check_them():
    (part,) = training_runtimes(fleet(jobs=["trainer"]))
    assert part.after == ("kubeflow-trainer",)
