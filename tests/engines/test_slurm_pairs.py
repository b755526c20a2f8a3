"""A real Slurm measures pairs of nodes, with stand-ins for Open MPI and all_reduce_perf, with its output."""

from tests.engines.slurm import start
from tests.engines.test_slurm_jobs import BEGIN, FOLDER, SETTINGS, WAIT, printed, run_with_containers
from tests.unit.jobs.test_pair_nodes import OUTPUT
from ultracluster.slurm.nccl_tests import PAIRS_CONTAINER

QUEUES = "PartitionName=eval Nodes=cloud-[1-6] Default=YES MaxTime=600\n"

MPIRUN = """#!/bin/bash
# Starts a rank on each of the two nodes, as a step of the job. It does not end when it is asked to, nor does its step
# when it is killed.
trap '' TERM
while [ "$1" != --host ]; do shift; done
nodes=${2//:4/}
until [ "${1##*/}" = all_reduce_perf ]; do shift; done
setsid srun --nodes=2 --nodelist="$nodes" --ntasks=2 --ntasks-per-node=1 "$@" &
wait
"""

ALL_REDUCE = """#!/bin/bash
# cloud-5 is slow. On cloud-2 a rank hangs, and does not end when it is asked to. The first rank prints.
[ "$SLURMD_NODENAME" != cloud-2 ] || { trap '' TERM; while :; do sleep 1; done; }
nodes=$(scontrol show hostnames "$SLURM_STEP_NODELIST")
speed=355.4
[[ $nodes != *cloud-2* ]] || sleep 600
[[ $nodes != *cloud-5* ]] || speed=201.5
[ "$SLURM_PROCID" != 0 ] || sed "s/SPEED/$speed/" /output
"""


def test_a_slow_node_and_one_that_hangs_are_named(debian):
    text = printed(16, kind="nccl-pairs")
    text = text.replace("--floor 0 --seconds 300", "--floor 320 --seconds 15").replace("_TO_END = 20", "_TO_END = 1")
    beginning = start(debian, SETTINGS, cloud=6, queues=QUEUES)
    conf = debian.read("/etc/slurm/slurm.conf").replace("CPUs=4 Gres", "CPUs=96 Gres")
    debian.write("/etc/slurm/slurm.conf", conf)
    debian.write("/usr/local/cuda-13.2/efa/test-cuda-13.2/all_reduce_perf", ALL_REDUCE, mode=0o755)
    debian.write("/opt/amazon/openmpi/bin/mpirun", MPIRUN, mode=0o755)
    debian.write("/output", OUTPUT.format(wrong="0 OK", average="SPEED "))
    debian.write(f"{FOLDER}/pairs.sbatch", text)
    begin = BEGIN.replace("[1-4]", "[1-6]").replace("4idle", "6idle")
    script = f"""
as_ana sbatch --nodes=6 pairs.sbatch > /dev/null
{WAIT}
grep -oh "scontrol update.*" *.out | bash
for node in cloud-2 cloud-5; do scontrol show node $node | grep -o "Reason=[^[]*"; done
scontrol show job 1 | grep -o "ExitCode=.*"
sinfo -h -N -o "%N %T"
"""
    debian.write("/run.sh", beginning + begin + script)
    ran = debian.run("bash", "/run.sh")
    said, all_said = [line.strip() for line in ran.stdout.splitlines()], ran.stdout + ran.stderr
    assert [line for line in said if "round" in line] == [
        "nccl-pairs: round 1: cloud-1 with cloud-2: does not end in 15 s",
        "nccl-pairs: round 1: cloud-3 with cloud-4: 355.4 GB/s",
        "nccl-pairs: round 1: cloud-5 with cloud-6: 201.5 GB/s",
        "nccl-pairs: round 2: cloud-2 with cloud-3: does not end in 15 s",
        "nccl-pairs: round 2: cloud-4 with cloud-5: 201.5 GB/s",
        "nccl-pairs: round 2: cloud-6 with cloud-1: 355.4 GB/s",
    ], all_said
    assert [line.partition(";")[0] for line in said if "may not" in line] == [
        f"nccl-pairs: you may not drain {node}" for node in ("cloud-2", "cloud-5")
    ]
    assert said[-9:] == [
        "Reason=health: isolate: nccl: no pair of it works: all_reduce with cloud-1 does not end in 15 s",
        "Reason=health: isolate: nccl: its best pair, with cloud-6, has 201.5 GB/s, below the floor of 320 GB/s",
        "ExitCode=1:0",
        *(f"cloud-{number} {'drained' if number in (2, 5) else 'idle'}" for number in range(1, 7)),
    ], all_said


def test_steps_of_pairs_share_a_container_of_their_job(debian):
    step = f"srun --ntasks=1 {PAIRS_CONTAINER} --container-image=/busybox.sqsh --container-writable sh -c"
    script = f"""#!/bin/bash
#SBATCH --output=%j.out
{step} 'echo imported > /mark'
{step} 'cat /mark'
ls /var/lib/enroot/*/data
"""
    assert run_with_containers(debian, script).stdout.splitlines() == ["imported", "pyxis_1.pairs"]
