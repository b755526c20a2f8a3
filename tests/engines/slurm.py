"""A Slurm cluster of two nodes with four GPUs each in the Debian folder, for programs that Slurm runs on nodes."""

from collections.abc import Mapping

from tests.engines.debian import Debian

CONFIGURATION = """\
ClusterName=engines
SlurmctldHost=node(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd-%n
SlurmdPidFile=/run/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=gpu-[1-2] NodeHostname=node NodeAddr=127.0.0.1 Port=[16818-16819] CPUs=4 Gres=gpu:4 State=UNKNOWN
PartitionName=train Nodes=ALL Default=YES OverSubscribe=NO
"""

START = """
set -e
hostname node
head -c 1024 /dev/urandom > /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
mkdir -p /run/munge /var/spool/slurmctld /gpu
for gpu in 0 1 2 3; do mknod "/gpu/nvidia$gpu" c 1 5; done
chown munge: /run/munge /etc/munge /etc/munge/munge.key
setpriv --reuid=munge --regid=munge --clear-groups munged --force 2>/dev/null
slurmctld -c -D >/tmp/slurmctld.log 2>&1 &
sleep 1
for node in gpu-1 gpu-2; do mkdir -p "/var/spool/slurmd-$node"; slurmd -D -N "$node" >"/tmp/$node.log" 2>&1 & done
for _ in $(seq 60); do [ "$(sinfo -h -t idle -o %D)" = 2 ] && break; sleep 0.5; done
cd /tmp
"""


def start(debian: Debian, settings: Mapping[str, str | int]) -> str:
    """Writes the configuration, with `settings` of slurm.conf; returns the start of a script, which starts Slurm."""
    given = {"CommunicationParameters": "", **settings}
    local = "NoInAddrAny,NoCtldInAddrAny"
    given["CommunicationParameters"] = ",".join(filter(None, (local, str(given["CommunicationParameters"]))))
    lines = "".join(f"{name}={value}\n" for name, value in given.items())
    debian.write("/etc/slurm/slurm.conf", CONFIGURATION + lines)
    debian.write("/etc/slurm/gres.conf", "Name=gpu File=/gpu/nvidia[0-3]\n")
    debian.write("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n")
    debian.write("/etc/hosts", "127.0.0.1 localhost node\n")
    return START
