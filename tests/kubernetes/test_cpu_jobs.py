"""Jobs with parts on CPU nodes: NCCL tests with their launcher, and data preparation."""

import pytest

from tests.kubernetes.fleet import SCHEDULERS, STACKS, fleet_file, one_team_file
from tests.kubernetes.schemas import check
from ultracluster.catalog import catalog
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.jobs import JobRefused, example_job, prepare_job
from ultracluster.kubernetes.queues import team_and_queue_objects

MPI = {"jobs": ["mpi"]}
CPU_NODES = {"ultracluster/node-group": "cpu"}
OTHERS = [scheduler for scheduler in SCHEDULERS if scheduler != "volcano"]


def nccl_test(environment, gpus, **options):
    return example_job(environment, "pretrain", gpus, kind="nccl-test", **options)


def replicas(objects):
    return objects[-1]["spec"]["mpiReplicaSpecs"]


def launcher(objects):
    return replicas(objects)["Launcher"]["template"]["spec"]


def quota(environment, flavor):
    """The team's quota on the flavor whose name starts with `flavor`, by resource."""
    view = EksEnvironment.from_environment(environment)
    objects = [obj for part in team_and_queue_objects(view) for obj in part.items]
    queue = next(obj for obj in objects if obj["kind"] == "ClusterQueue" and obj["metadata"]["name"] == "pretrain")
    (found,) = [
        each
        for group in queue["spec"]["resourceGroups"]
        for each in group["flavors"]
        if each["name"].startswith(flavor)
    ]
    return {each["name"]: int(str(each["nominalQuota"]).removesuffix("Gi")) for each in found["resources"]}


@pytest.mark.parametrize("scheduler", OTHERS)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_the_nccl_test_of_every_type_follows_its_schemas(hardware, stack, scheduler):
    nodes = 36 if hardware.ultraserver_only else 2
    gpus = hardware.gpu_count * nodes
    environment = one_team_file(hardware.name, nodes, gpus, device_stack=stack, scheduler=scheduler, **MPI)
    objects = nccl_test(environment, gpus)
    for obj in objects:
        check(obj)
    assert replicas(objects)["Worker"]["replicas"] == nodes
    assert objects[-1]["spec"]["slotsPerWorker"] == hardware.gpu_count
    assert objects[-1]["spec"]["runPolicy"]["ttlSecondsAfterFinished"] == 24 * 3600


def test_the_launcher_is_on_a_cpu_node_without_gpus():
    objects = nccl_test(fleet_file(**MPI), 64)
    assert launcher(objects)["nodeSelector"] == CPU_NODES
    assert "tolerations" not in launcher(objects)
    (container,) = launcher(objects)["containers"]
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    worker = replicas(objects)["Worker"]["template"]["spec"]
    assert worker["nodeSelector"] == {"ultracluster/node-group": "train"}
    assert worker["containers"][0]["image"] == container["image"]


def test_workers_run_as_the_images_user_without_the_teams_files():
    """The MPI operator starts sshd in them, which needs root."""
    team = {"name": "pretrain", "node_groups": ["train"], "gpus": 64, "user": "1001:1001"}
    objects = nccl_test(fleet_file(teams=(team,), **MPI), 64)
    for replica in replicas(objects).values():
        spec = replica["template"]["spec"]
        assert "securityContext" not in spec
        assert not any("persistentVolumeClaim" in volume for volume in spec.get("volumes", []))


def test_a_preparation_runs_as_the_teams_user():
    team = {"name": "pretrain", "node_groups": ["train"], "gpus": 64, "user": "1001:1002"}
    (job,) = prepare_job(fleet_file(teams=(team,)), "pretrain", 4)
    spec = job["spec"]["template"]["spec"]
    assert spec["securityContext"] == {"runAsUser": 1001, "runAsGroup": 1002}
    assert {"name": "HOME", "value": "/scratch"} in spec["containers"][0]["env"]


def test_mpirun_starts_a_process_for_each_gpu_and_passes_the_variables_on():
    (container,) = launcher(nccl_test(fleet_file(**MPI), 64))["containers"]
    command = container["command"]
    assert command[command.index("-np") + 1] == "64"
    assert command[command.index("-N") + 1] == "8"
    passed = [command[i + 1] for i, word in enumerate(command) if word == "-x"]
    assert {"NCCL_NET=AWS Libfabric", "NCCL_NET_PLUGIN=ofi", "FI_PROVIDER=efa", "LD_LIBRARY_PATH"} <= set(passed)
    assert "/opt/nccl-tests/build/all_reduce_perf" in command


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("lustre", [True, False])
def test_a_preparation_follows_its_schemas_and_runs_on_cpu_nodes(scheduler, lustre):
    environment = fleet_file(scheduler=scheduler)
    if not lustre:
        storage = environment.storage.model_copy(update={"lustre": None})
        environment = environment.model_copy(update={"storage": storage})
    (job,) = prepare_job(environment, "pretrain", 8)
    check(job)
    spec = job["spec"]["tasks"][0] if "tasks" in job["spec"] else job["spec"]
    pod = spec["template"]["spec"]
    assert pod["nodeSelector"] == CPU_NODES
    assert pod["containers"][0]["command"][-1] == ("/fsx/prepare.py" if lustre else "prepare.py")
    claims = [volume["name"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
    assert bool(claims) == lustre
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
    assert job["spec"]["ttlSecondsAfterFinished"] == 24 * 3600


@pytest.mark.parametrize("instance_type", ["m7i.4xlarge", "c7i.8xlarge", "r7g.2xlarge"])
def test_cpu_parts_are_within_the_teams_quota(instance_type):
    environment = fleet_file(cpu_nodes={"instance_type": instance_type, "count": 4}, **MPI)
    given = quota(environment, "cpu")
    (prepared,) = prepare_job(environment, "pretrain", 4)
    pods = [prepared["spec"]["template"]["spec"], launcher(nccl_test(environment, 64))]
    for pod in pods:
        asked = pod["containers"][0]["resources"]["requests"]
        assert 0 < asked["cpu"] <= given["cpu"]
        assert 0 < int(asked["memory"].removesuffix("Gi")) <= given["memory"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "nccl-test is an MPIJob; add mpi to control_plane.jobs"),
        ({**MPI, "scheduler": "volcano"}, "Volcano does not queue MPIJobs"),
        ({**MPI, "cpu_nodes": {"count": 0}}, "there are no CPU nodes; set count of control_plane.cpu_nodes to 2"),
    ],
)
def test_impossible_nccl_tests_are_refused(settings, said):
    with pytest.raises(JobRefused) as refused:
        nccl_test(fleet_file(**settings), 64)
    assert said in str(refused.value)


@pytest.mark.parametrize("cpus", [0, -1, 1000])
def test_a_preparation_fits_one_node_and_the_teams_share(cpus):
    with pytest.raises(JobRefused, match="a pod of pretrain may have 1 to 1"):
        prepare_job(fleet_file(), "pretrain", cpus)


def test_images_come_from_the_mirror():
    (job,) = prepare_job(fleet_file(chart_mirror="oci://registry.example.com/copies"), "pretrain", 4)
    image = job["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == "registry.example.com/copies/docker/library/python:3.12-slim"
