"""Slurm runs jobs with the environment that a step sets on the node."""

import pytest

from ultracluster.nodes.pcs import TASK_PROLOG
from ultracluster.nodes.steps import Step

CONFIGURATION = """\
ClusterName=engines
SlurmctldHost=node(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ReturnToService=2
TaskProlog={task_prolog}
NodeName=n1 NodeHostname=node NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=n1 Default=YES
"""

RUN = """
set -e
hostname node
head -c 1024 /dev/urandom > /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
mkdir -p /run/munge /var/spool/slurmctld /var/spool/slurmd
chown munge: /run/munge /etc/munge /etc/munge/munge.key
setpriv --reuid=munge --regid=munge --clear-groups munged --force 2>/dev/null
slurmctld -c -D >/tmp/slurmctld.log 2>&1 &
sleep 2
slurmd -D -N n1 >/tmp/slurmd.log 2>&1 &
for _ in $(seq 1000); do sinfo -h -t idle | grep -q n1 && break; sleep 0.5; done
cd /tmp
timeout 300 sbatch --wait --output=/tmp/job.log /job.sh >/dev/null
cat /tmp/job.log
"""

JOB = """#!/bin/bash
echo "batch=$FI_HMEM_DISABLE_P2P"
srun --ntasks=1 bash -c 'echo "step=$FI_HMEM_DISABLE_P2P"'
"""


@pytest.mark.parametrize(
    ("variables", "seen"), [(("FI_HMEM_DISABLE_P2P=1",), ["batch=1", "step=1"]), ((), ["batch=", "step="])]
)
def test_batch_scripts_and_steps_get_the_variables_of_their_node(debian, variables, seen):
    debian.stub({"systemctl": ""})
    debian.boot([Step("set-job-environment", variables)])
    debian.write("/etc/slurm/slurm.conf", CONFIGURATION.format(task_prolog=TASK_PROLOG))
    debian.write("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n")
    debian.write("/etc/hosts", "127.0.0.1 localhost node\n")
    debian.write("/job.sh", JOB, mode=0o755)
    debian.write("/run.sh", RUN)
    ran = debian.run("bash", "/run.sh")
    assert ran.stdout.splitlines() == seen, ran.stderr
