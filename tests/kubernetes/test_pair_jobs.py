"""Jobs that measure pairs of nodes over EFA: what the MPIJob holds, and what its launcher does."""

import os
import subprocess

import pytest

from tests.kubernetes.fleet import STACKS, fleet_file, one_team_file
from tests.kubernetes.schemas import check
from tests.kubernetes.test_cpu_jobs import MPI, OTHERS, launcher, replicas
from tests.unit.jobs.test_pair_nodes import OUTPUT
from ultracluster.catalog import catalog
from ultracluster.jobs import pair_nodes
from ultracluster.kubernetes.jobs import JobRefused, example_job


def nccl_pairs(environment, gpus, **options):
    return example_job(environment, "pretrain", gpus, kind="nccl-pairs", **options)


def command(objects):
    (container,) = launcher(objects)["containers"]
    return container["command"]


@pytest.mark.parametrize("scheduler", OTHERS)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_the_job_of_every_type_follows_its_schemas(hardware, stack, scheduler):
    nodes = 36 if hardware.ultraserver_only else 2
    gpus = hardware.gpu_count * nodes
    environment = one_team_file(hardware.name, nodes, gpus, device_stack=stack, scheduler=scheduler, **MPI)
    objects = nccl_pairs(environment, gpus, image="mine:1")
    for obj in objects:
        check(obj)
    assert replicas(objects)["Worker"]["replicas"] == nodes
    words = command(objects)
    assert words[words.index("--type") + 1] == hardware.name
    assert ("NCCL_MNNVL_ENABLE=0" in words) == hardware.ultraserver_only


def test_a_pair_is_two_workers_and_a_ring():
    words = command(nccl_pairs(fleet_file(**MPI), 64))
    assert words[words.index("--host") + 1] == "{first}:8,{second}:8"
    assert words[words.index("-np") + 1] == "16"
    assert {"NCCL_ALGO=Ring", "NCCL_NET=AWS Libfabric", "FI_PROVIDER=efa"} <= {*words}
    assert words[-1] == "5"


def test_a_test_that_has_failed_is_not_repeated():
    job = nccl_pairs(fleet_file(**MPI), 64)[-1]
    assert job["spec"]["runPolicy"]["backoffLimit"] == 0
    assert job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] == "Never"


def test_the_launcher_has_the_program_of_a_config_map():
    *_, files, job = nccl_pairs(fleet_file(**MPI), 64)
    (volume,) = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["volumes"]
    assert files["kind"] == "ConfigMap"
    assert volume["configMap"]["name"] == files["metadata"]["name"]
    assert files["data"].keys() == {"pair_nodes.py"}


SSH = """#!/bin/bash
# Runs the command of the last words on the host before them: here in a folder of its own.
while [ "${1#-}" != "$1" ]; do if [ "$1" = -o ]; then shift; fi; shift; done
cd "$ROOT/$1" && shift && "$@"
"""
MPIRUN = """#!/bin/bash
while [ "$1" != --host ]; do shift; done
speed=355.4
if [[ $2 == *worker-2* ]]; then speed=201.5; fi
sed "s/SPEED/$speed/" "$ROOT/output"
"""


def test_the_launcher_names_nodes_and_not_pods(tmp_path):
    objects = nccl_pairs(fleet_file(**MPI), 64)
    (worker,) = replicas(objects)["Worker"]["template"]["spec"]["containers"]
    assert {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} in worker["env"]
    hosts = [f"pairs-worker-{number}.pairs.pretrain.svc" for number in range(4)]
    for number, host in enumerate(hosts):
        (tmp_path / host / "scratch").mkdir(parents=True)
        start = worker["command"][2].replace("/scratch", "scratch").replace("/usr/sbin/sshd", "echo")
        environment = {"PATH": os.environ["PATH"], "NODE_NAME": f"node-{number}"}
        done = subprocess.run(["sh", "-c", start], cwd=tmp_path / host, env=environment, capture_output=True, text=True)
        assert done.stdout == "-De\n"
    (tmp_path / "hostfile").write_text("".join(f"{host} slots=8\n" for host in hosts))
    (tmp_path / "output").write_text(OUTPUT.format(wrong="0 OK", average="SPEED "))
    for name, text in {"ssh": SSH, "mpirun": MPIRUN}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    places = {
        "/etc/mpi/hostfile": str(tmp_path / "hostfile"),
        "/job/pair_nodes.py": pair_nodes.__file__,
        "/opt/amazon/openmpi/bin/mpirun": str(tmp_path / "mpirun"),
        "/scratch/node": "scratch/node",
    }
    words = command(objects)
    words[words.index("--floor") + 1] = "320"
    for path, here in places.items():
        words = [word.replace(path, here) for word in words]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ROOT": str(tmp_path)}
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-2:] == [
        "nccl-pairs: FAILED: node-2: health: isolate: nccl: its best pair, with node-3, has 201.5 GB/s, "
        "below the floor of 320 GB/s",
        "nccl-pairs: an operator runs: kubectl cordon node-2",
    ]


@pytest.mark.parametrize(
    ("settings", "gpus", "said"),
    [
        ({}, 64, "nccl-pairs is an MPIJob; add mpi to control_plane.jobs"),
        ({**MPI, "scheduler": "volcano"}, 64, "nccl-pairs is for Kueue and KAI: Volcano does not queue MPIJobs"),
        ({**MPI, "cpu_nodes": {"count": 0}}, 64, "there are no CPU nodes; set count of control_plane.cpu_nodes to 2"),
        (MPI, 8, "has 8 GPUs, so request at least 16, or all nodes of the group"),
    ],
)
def test_impossible_tests_of_pairs_are_refused(settings, gpus, said):
    with pytest.raises(JobRefused) as refused:
        nccl_pairs(fleet_file(**settings), gpus)
    assert said in str(refused.value)


@pytest.mark.parametrize("options", [{"command": ["x"]}, {"script": object()}])
def test_tests_of_pairs_take_no_command(options):
    with pytest.raises(JobRefused, match="nccl-pairs has its own command; remove --"):
        nccl_pairs(fleet_file(**MPI), 64, **options)


def test_nodes_without_efa_are_refused():
    environment = one_team_file("p5.48xlarge", 2, 16, **MPI)
    groups = tuple(group.model_copy(update={"interfaces": "without_efa"}) for group in environment.node_groups)
    with pytest.raises(JobRefused, match=r"these nodes of p5\.48xlarge have none; use nodes with EFA"):
        nccl_pairs(environment.model_copy(update={"node_groups": groups}), 16)
