"""A real Slurm runs the scripts that `ultracluster job` prints, with stand-ins for torchrun and Open MPI."""

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engines.slurm import start
from tests.synthesis import ROOT
from ultracluster import load
from ultracluster.jobs.request import Script
from ultracluster.nodes.pcs import job_settings
from ultracluster.nodes.steps import Step
from ultracluster.nodes.steps import script as step_script
from ultracluster.slurm.jobs import cpu_job, gpu_job
from ultracluster.slurm.sbatch import sbatch_script

FOLDER = "/fsx/queues/eval"
SLURM = "/opt/aws/pcs/scheduler/slurm-26.05"
QUEUES = "PartitionName=eval Nodes=cloud-[1-4] Default=YES MaxTime=600\nPartitionName=prep Nodes=gpu-[1-2]\n"
SETTINGS = {
    "SuspendTime": 300,
    "KillWait": 5,
    "ReturnToService": 0,
}

TORCHRUN = """#!/usr/bin/env python3
# Starts no process: prints what torchrun is told, and takes six steps of training for all ranks of the node.
# A step needs the step before of every rank, as a collective does. Rank 5 hangs at step 3 of its first run.
import os, sys, time
from pathlib import Path

words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
node, each = int(words["--node-rank"]), int(words["--nproc-per-node"])
nodes = int(words["--nnodes"])
print("NODE", os.environ["SLURMD_NODENAME"], " ".join(sys.argv[1:]), flush=True)
beats = Path(os.environ["JOB_FOLDER"], "heartbeats")
run = int(os.environ.get("SLURM_RESTART_COUNT", 0))
hang, fail = Path("hang").exists() and run == 0, Path("fail").exists() and run == 0
if fail and node == 1:
    sys.exit(1)
for step in range(1, 7):
    for rank in range(node * each, node * each + each):
        if hang and rank == 5 and step >= 3:
            continue
        (beats / f"new{rank}").write_text(str(step))
        (beats / f"new{rank}").rename(beats / str(rank))
    while True:
        seen = [int((beats / str(r)).read_text()) if (beats / str(r)).exists() else 0 for r in range(nodes * each)]
        if min(seen) >= step or run and max(seen) > step:
            break
        time.sleep(0.1)
    time.sleep(0.2)
if Path("long").exists() and run == 0:
    while not (beats.parent / "stop").exists():
        time.sleep(0.1)
    print("SAVED", flush=True)
print("DONE", flush=True)
"""

BEGIN = f"""
install -d -m 1777 /fsx /fsx/queues {FOLDER}
useradd --no-create-home ana
as_ana() {{ setpriv --reuid=ana --regid=nogroup --clear-groups "$@"; }}
cd {FOLDER}
scontrol power up cloud-[1-4]
for _ in $(seq 1000); do [ "$(sinfo -h -p eval -t idle -o %D%T)" = 4idle ] && break; sleep 0.2; done
"""
WAIT = """
for _ in $(seq 1000); do [ -z "$(squeue -h)" ] && break; sleep 0.2; done
cat *.out
"""


def environment():
    return load(ROOT / "examples/slurm-whole-fleet.yaml")


def printed(gpus, **options):
    return sbatch_script(gpu_job(environment(), gpus, queue="eval", **options), "ultracluster job FILE")


def quick(script):
    """The script with a watch that waits for seconds in place of half an hour."""
    assert "--stalled 1800" in script
    return script.replace("--stalled 1800", "--stalled 10 --poll 0.3")


def run(debian, script, **files):
    beginning = start(debian, SETTINGS, cloud=4, queues=QUEUES)
    conf = debian.read("/etc/slurm/slurm.conf").replace("CPUs=4 Gres", "CPUs=96 Gres")
    debian.write("/etc/slurm/slurm.conf", conf)
    debian.write(f"{FOLDER}/venv/bin/torchrun", TORCHRUN, mode=0o755)
    for name, text in files.items():
        debian.write(f"{FOLDER}/{name}.sbatch", text)
    debian.write("/run.sh", beginning + BEGIN + script)
    ran = debian.run("bash", "/run.sh")
    return ran.stdout.splitlines(), ran.stdout + ran.stderr


def test_ranks_have_the_order_of_slurms_nodes(debian):
    said, all_said = run(debian, f"as_ana sbatch train.sbatch >/dev/null\n{WAIT}", train=printed(16))
    nodes = sorted(line for line in said if line.startswith("NODE"))
    address = "--master-addr 127.0.0.1 --master-port 29500 train.py"
    assert nodes == [
        f"NODE cloud-{rank + 1} --nnodes 4 --nproc-per-node 4 --node-rank {rank} {address}" for rank in range(4)
    ], all_said
    assert said.count("DONE") == 4


def test_a_rank_that_hangs_is_named_and_the_job_finishes_without_its_node(debian):
    script = f"touch hang\nas_ana sbatch train.sbatch >/dev/null\n{WAIT}scontrol show job 1 | grep -o 'ExcNodeList=.*'"
    said, all_said = run(debian, script, train=quick(printed(8)))
    assert "watch_job: rank 5 on cloud-2 stopped at step 2" in said, all_said
    assert "watch_job: the next run avoids cloud-2" in said
    started = [line.split()[1] for line in said if line.startswith("NODE")]
    assert sorted(started[:2]) == ["cloud-1", "cloud-2"]
    assert len(started) == 4
    assert "cloud-2" not in started[2:]
    assert said.count("DONE") == 2
    assert said[-1] == "ExcNodeList=cloud-2"


def test_a_command_that_fails_is_started_again(debian):
    said, all_said = run(debian, f"touch fail\nas_ana sbatch train.sbatch >/dev/null\n{WAIT}", train=printed(8))
    assert any(line.startswith("watch_job: the command ended with exit code") for line in said), all_said
    assert "watch_job: no rank stopped before the others" in said
    assert said.count("watch_job: requeue") == 1
    assert said.count("DONE") == 2


def test_a_node_that_fails_is_replaced(debian):
    script = f"""touch long
as_ana sbatch train.sbatch >/dev/null
for _ in $(seq 1000); do [ "$(grep -c NODE *.out 2>/dev/null)" = 2 ] && break; sleep 0.2; done
scontrol update nodename=cloud-2 state=down reason=test
{WAIT}"""
    said, all_said = run(debian, script, train=printed(8))
    started = [line.split()[1] for line in said if line.startswith("NODE")]
    assert sorted(started[:2]) == ["cloud-1", "cloud-2"], all_said
    assert len(started) == 4
    assert "cloud-2" not in started[2:]
    assert said.count("DONE") == 2
    assert not any(line.startswith("watch_job") for line in said)  # Slurm did it


def test_a_cancelled_job_does_not_come_back(debian):
    script = f"""touch long
as_ana sbatch train.sbatch >/dev/null
for _ in $(seq 1000); do grep -q NODE *.out 2>/dev/null && break; sleep 0.2; done
as_ana scancel 1
{WAIT}sleep 3; scontrol show job 1 | grep -o 'JobState=[A-Z]*'"""
    said, all_said = run(debian, script, train=printed(8))
    assert said[-1] == "JobState=CANCELLED", all_said
    assert "watch_job: requeue" not in said
    assert "DONE" not in said


def test_a_job_whose_time_ends_saves_and_goes_on(debian):
    # Slurm looks every 30 s which jobs end within a minute or so: this one has its short limit while it runs alone
    script = f"""touch long
as_ana sbatch --signal=B:USR1@50 --time=10 train.sbatch >/dev/null
for _ in $(seq 1000); do [ "$(grep -c NODE *.out 2>/dev/null)" = 2 ] && break; sleep 0.2; done
scontrol update jobid=1 timelimit=1
for _ in $(seq 1000); do scontrol show job 1 | grep -q Restarts=1 && break; sleep 0.1; done
scontrol update jobid=1 timelimit=10
{WAIT}scontrol show job 1 | grep -o 'Restarts=[0-9]*'"""
    said, all_said = run(debian, script, train=printed(8))
    assert "watch_job: the job has to end soon; save a checkpoint and end" in said, all_said
    assert said.count("SAVED") == 2
    assert said[-1] == "Restarts=1"
    assert said.count("DONE") == 4


def test_a_script_that_the_job_carries_runs_on_a_part_of_a_node(debian):
    script = Script("work.py", "print('RUNS')\nEND = 1\nEND\n")
    text = printed(2, script=script, command=("--lr", "1e-4", "a b"))
    said, all_said = run(debian, f"as_ana sbatch train.sbatch >/dev/null\n{WAIT}cat */work.py", train=text)
    (node,) = (line for line in said if line.startswith("NODE"))
    assert "--nnodes 1 --nproc-per-node 2 --node-rank 0" in node, all_said
    assert node.endswith("train-2-gpus-1/work.py --lr 1e-4 a b")
    assert "--master-port 29501" in node
    assert said[-3:] == ["print('RUNS')", "END = 1", "END"]


def test_a_preparation_and_a_network_test_run(debian):
    carried = Script("prepare.sh", "echo PREPARED $SLURM_CPUS_PER_TASK $1\n")
    prepare = sbatch_script(
        cpu_job(environment(), 4, queue="prep", script=carried, command=("a",)), "ultracluster job FILE"
    )
    debian.write("/usr/local/cuda-13.2/efa/test-cuda-13.2/all_reduce_perf", "", mode=0o755)
    debian.write("/opt/amazon/openmpi/bin/mpirun", '#!/bin/bash\necho "MPIRUN $*"\n', mode=0o755)
    said, all_said = run(
        debian,
        f"as_ana sbatch prepare.sbatch >/dev/null\nas_ana sbatch nccl.sbatch >/dev/null\n{WAIT}",
        prepare=prepare,
        nccl=printed(8, kind="nccl-test"),
    )
    assert "PREPARED 4 a" in said, all_said
    (test,) = (line for line in said if line.startswith("MPIRUN"))
    assert test.startswith("MPIRUN --bind-to none -np 8 -N 4 -x LD_LIBRARY_PATH")


def test_a_job_has_the_limits_of_the_node_and_not_those_of_the_session(debian):
    carried = Script("limits.sh", "echo JOB $(ulimit -l)\n")
    limits = sbatch_script(cpu_job(environment(), 4, queue="prep", script=carried), "ultracluster job FILE")
    said, all_said = run(
        debian,
        f"echo NODE $(ulimit -l)\n(ulimit -S -l 16; as_ana sbatch limits.sbatch) >/dev/null\n{WAIT}",
        limits=limits,
    )
    (node,) = (line.split()[1] for line in said if line.startswith("NODE"))
    assert node != "16"
    assert f"JOB {node}" in said, all_said


def test_a_job_runs_nothing_in_a_folder_of_somebody_else(debian):
    carried = Script("prepare.sh", "echo RAN\n")
    text = sbatch_script(cpu_job(environment(), 4, queue="prep", script=carried), "ultracluster job FILE")
    name = "prepare-4-cpus"
    before = f"install -d -m 1777 -o nobody {name}-1; as_ana mkdir own; setpriv --reuid=nobody ln -s own {name}-2\n"
    submit = "for _ in 1 2 3; do as_ana sbatch prepare.sbatch > /dev/null; done\n"
    said, all_said = run(debian, before + submit + WAIT, prepare=text)
    refused = [f"{FOLDER}/{name}-{number} belongs to somebody else" for number in (1, 2)]
    assert sorted(said) == sorted([*refused, "RAN"]), all_said


def test_a_folder_of_one_node_is_refused(debian):
    script = (
        f"install -d -m 1777 /local\ncp train.sbatch /local; cd /local\nas_ana sbatch train.sbatch >/dev/null\n{WAIT}"
    )
    said, all_said = run(debian, script, train=printed(4))
    assert said == ["/local is not shared by the nodes: submit the job in a folder of /fsx"], all_said


def test_an_image_without_nccl_tests_fails_with_the_reason(debian):
    said, all_said = run(debian, f"as_ana sbatch nccl.sbatch >/dev/null\n{WAIT}", nccl=printed(4, kind="nccl-test"))
    assert said == ["no all_reduce_perf below /usr/local: this image has no NCCL tests"], all_said


def test_slurm_refuses_more_than_the_queue_has_and_accepts_every_script(debian):
    texts = {f"gpus{gpus}": printed(gpus) for gpus in (1, 2, 3, 4, 8, 12, 16)}
    texts["beyond"] = texts["gpus16"].replace("--nodes=4", "--nodes=5")
    script = "for f in *.sbatch; do as_ana sbatch --test-only $f >/dev/null 2>&1 && echo $f; done"
    said, all_said = run(debian, script, **texts)
    assert sorted(said) == sorted(f"{name}.sbatch" for name in texts if name != "beyond"), all_said


CONTAINER = f"""
for package in /files/amd64/{{curl,lib}}*.deb; do dpkg-deb --extract $package /; done
mkdir -p {SLURM}/lib/slurm; ln -s /usr/bin {SLURM}/bin
python3 -m http.server 8000 --bind 127.0.0.1 --directory /files > /dev/null 2>&1 &
sleep 1
bash /step.sh 26.05 4.0.0 /var/lib/enroot cpu http://127.0.0.1:8000 $1 > /step.log 2>&1
echo "include /etc/aws/pcs/scheduler/slurm-26.05/plugstack.conf.d/*.conf" > /etc/slurm/plugstack.conf
. /start.sh
mkdir -p /scratch
install -d -m 1777 /fsx /fsx/queues {FOLDER}
useradd --no-create-home ana
cd {FOLDER}
setpriv --reuid=ana --regid=nogroup --clear-groups timeout 60 sbatch --wait train.sbatch > /dev/null || true
cat *.out
"""


def run_with_containers(debian, text):
    """Output of a job in containers, and what it left. See test_containers.py for the folder."""
    folder = os.environ.get("ULTRACLUSTER_CONTAINER_FILES")
    if not folder:
        pytest.skip("ULTRACLUSTER_CONTAINER_FILES names no folder with Enroot, Pyxis and an image")
    shutil.copytree(Path(folder, "files"), debian.upper / "files")
    shutil.copy(Path(folder, "busybox.sqsh"), debian.upper)
    debian.boot([Step("write-job-programs")])
    queues = "PartitionName=eval Nodes=gpu-[1-2] Default=YES\n"
    settings = {**job_settings({}, [], "26.05"), "PrologFlags": "Alloc"}
    debian.write("/start.sh", start(debian, settings, queues=queues))
    debian.write("/step.sh", step_script("set-up-containers").text)
    debian.write(f"{FOLDER}/train.sbatch", text)
    debian.write("/usr/local/bin/nvidia-container-cli", "#!/bin/sh\n", mode=0o755)  # gives the container its GPUs
    debian.write("/run.sh", CONTAINER)
    checksum = hashlib.sha256(Path(folder, "files", "SHA256SUMS").read_bytes()).hexdigest()
    return debian.run("bash", "/run.sh", checksum)


def test_a_job_runs_in_a_real_container(debian):
    job = replace(gpu_job(environment(), 4, queue="eval", command=["train.py", "a b"]), image="/busybox.sqsh")
    text = sbatch_script(job, "ultracluster job FILE").replace("exec torchrun", f"exec sh {FOLDER}/torchrun.sh")
    said = 'echo "$(cat /name) $(pwd) $FI_PROVIDER $MASTER_ADDR"; echo "$@"; ls "$JOB_FOLDER"'
    debian.write(f"{FOLDER}/torchrun.sh", said)
    ran = run_with_containers(debian, text)
    assert ran.stdout.splitlines() == [
        f"busybox {FOLDER} efa 127.0.0.1",
        "--nnodes 1 --nproc-per-node 4 --node-rank 0 --master-addr 127.0.0.1 --master-port 29500 train.py a b",
        "heartbeats",
        "node.sh",
        "nodes",
        "traces",
        "watch_job.py",
    ], (ran.stderr, debian.read("/step.log")[-1500:])
