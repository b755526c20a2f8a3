"""Ranks in the order of the network, and jobs on blocks of UltraServers, in a real Slurm."""

import pytest

from tests.engines.slurm import start
from ultracluster.nodes.steps import Step

CURL = 'case "$*" in *instance-id*) echo i-1;; *region*) echo us-east-2;; *) echo token;; esac'
NETWORK = {"cloud-1": "nn-1 nn-2 nn-5", "cloud-2": "nn-1 nn-3 nn-6", "cloud-3": "nn-1 nn-2 nn-4"}
QUEUE = "PartitionName=train Nodes=cloud-[1-{count}] Default=YES OverSubscribe=EXCLUSIVE\n"
POWER_UP = """
scontrol update nodename=cloud-[1-{count}] state=power_up
until [ "$(sinfo -h -t idle -o %T%D)" = idle{count} ]; do sleep 0.2; done
"""
"""Starts cloud nodes before there is a job: slurmctld lets a job begin up to 30 s after the nodes that it starts."""


def record(debian, aws):
    debian.stub({"curl": CURL, "aws": aws, "sleep": ""})
    debian.write("/step.sh", Step("read-topology").script.text)
    return debian.run("bash", "/step.sh")


def test_a_node_records_the_network_nodes_above_it_from_the_top_down(debian):
    ran = record(debian, "printf 'nn-1\\tnn-2\\tnn-3\\n'")
    assert ran.returncode == 0, ran.stderr
    assert debian.read("/opt/ultracluster/network-nodes") == "nn-1 nn-2 nn-3\n"
    call = next(call for call in debian.stubs_called() if call.startswith("aws"))
    assert call.startswith("aws ec2 describe-instance-topology --region us-east-2 --instance-ids i-1")


@pytest.mark.parametrize("aws", ["echo None", "echo 'Unable to locate credentials' >&2; exit 255"])
def test_a_node_whose_place_is_not_known_can_still_order_those_of_others(debian, aws):
    assert record(debian, aws).returncode == 1
    assert debian.exists("/opt/ultracluster/order-nodes")
    assert not debian.exists("/opt/ultracluster/network-nodes")


def test_ranks_follow_the_network_and_nodes_without_a_place_come_last(debian):
    record(debian, "exit 1")
    # the nodes of this Slurm share their files
    program = debian.read("/opt/ultracluster/order-nodes")
    assert "/opt/ultracluster/network-nodes" in program
    program = program.replace("/opt/ultracluster/network-nodes", "/network/$SLURMD_NODENAME")
    debian.write("/opt/ultracluster/order-nodes", program, mode=0o755)
    for node, above in NETWORK.items():
        debian.write(f"/network/{node}", f"{above}\n")
    job = """#!/bin/bash
export SLURM_HOSTFILE=/tmp/hosts
/opt/ultracluster/order-nodes 2 > /tmp/hosts
srun --distribution=arbitrary --ntasks-per-node=2 sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME' | sort -n
"""
    debian.write("/job.sh", job, mode=0o755)
    run = POWER_UP.format(count=4) + "finish -N4 --ntasks-per-node=2 --output=/tmp/x /job.sh; cat /tmp/x\n"
    debian.write("/run.sh", start(debian, {"SuspendTime": 600}, cloud=4, queues=QUEUE.format(count=4)) + run)
    ran = debian.run("bash", "/run.sh")
    order = ["cloud-3", "cloud-1", "cloud-2", "cloud-4"]
    assert ran.stdout.splitlines() == [f"{rank} {order[rank // 2]}" for rank in range(8)], ran.stderr


BLOCKS = """
- topology: block
  cluster_default: true
  block:
    block_sizes: [4]
    blocks:
      - {block: one, nodes: "cloud-[1-4]"}
      - {block: two, nodes: "cloud-[5-8]"}
"""
"""What PCS writes, with UltraServers of four nodes (topology.yaml man page)."""

JOBS = """
finish -N4 --output=/tmp/one --wrap 'scontrol show hostnames'
finish -N6 --segment=3 --output=/tmp/two --wrap 'scontrol show hostnames'
finish -N5 --output=/tmp/five --wrap 'scontrol show hostnames'
echo "$(cut -d- -f2 /tmp/one | awk '{print ($1 > 4)}' | sort | uniq -c | xargs)"
echo "$(cut -d- -f2 /tmp/two | awk '{print ($1 > 4)}' | sort | uniq -c | xargs)"
echo "$(cut -d- -f2 /tmp/five | awk '{print ($1 > 4)}' | sort | uniq -c | sort -r | xargs)"
"""


def test_a_job_of_one_ultraserver_is_in_one_and_segments_divide_a_larger_one(debian):
    debian.write("/etc/slurm/topology.yaml", BLOCKS)
    debian.write("/run.sh", start(debian, {"SuspendTime": 600}, cloud=8, queues=QUEUE.format(count=8)) + JOBS)
    ran = debian.run("bash", "/run.sh")
    one, two, five = ran.stdout.splitlines()
    assert one in ("4 0", "4 1"), ran.stderr
    assert two == "3 0 3 1", ran.stderr
    assert five in ("4 0 1 1", "4 1 1 0"), ran.stderr
