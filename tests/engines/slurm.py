"""A Slurm cluster of two nodes with four GPUs each in the Debian folder, for programs that Slurm runs on nodes.

With accounting it has slurmdbd over MariaDB, with cloud nodes it has nodes that Slurm starts and stops, as PCS does.
"""

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
"""

QUEUES = "PartitionName=train Nodes=ALL Default=YES OverSubscribe=NO\n"

ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=node
AccountingStoragePort=16820
"""

SLURMDBD = """\
DbdHost=node
DbdPort=16820
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
PidFile=/run/slurmdbd.pid
CommunicationParameters=NoInAddrAny
"""

CLOUD = """\
NodeName=cloud-[1-{count}] NodeHostname=node NodeAddr=127.0.0.1 Port=[16901-{last}] CPUs=4 Gres=gpu:4 \\
    State=CLOUD {nodes}
ResumeProgram=/opt/engines/resume
SuspendProgram=/opt/engines/suspend
SuspendExcNodes=gpu-[1-2]
ResumeTimeout=60
SuspendTimeout=5
"""

SCHEDULER = "requeue_delay=1,sched_interval=2,bf_interval=2"
"""Slurm looks at waiting jobs every two seconds, in place of every 30 or 60; a job that is requeued waits for one."""

CLOUD_PARAMETERS = {"SlurmctldParameters": "power_save_interval=1"}

# Slurm runs both without PATH; a node that starts without -b counts as one that has not booted since
RESUME = """#!/bin/bash
export PATH=/usr/sbin:/usr/bin SLURM_CONF=/etc/slurm/slurm.conf
for node in $(scontrol show hostnames "$1"); do
    mkdir -p "/var/spool/slurmd-$node"
    echo "resume $node" >> /var/log/engines.log
    setsid -f slurmd -b -D -N "$node" >"/tmp/$node.log" 2>&1
done
sleep 1
"""
SUSPEND = """#!/bin/bash
export PATH=/usr/sbin:/usr/bin SLURM_CONF=/etc/slurm/slurm.conf
for node in $(scontrol show hostnames "$1"); do
    echo "suspend $node" >> /var/log/engines.log
    kill "$(cat "/run/slurmd-$node.pid")"
done
"""

HOST = """
set -e
hostname node
head -c 1024 /dev/urandom > /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
mkdir -p /run/munge /var/spool/slurmctld /gpu /opt/ultracluster
# TaskProlog of nodes on which the step set-job-environment did not run: without the file every job fails
[ -e /opt/ultracluster/task-prolog ] || echo '#!/bin/sh' > /opt/ultracluster/task-prolog
chmod 755 /opt/ultracluster/task-prolog
for gpu in 0 1 2 3; do mknod "/gpu/nvidia$gpu" c 1 5; done
chown munge: /run/munge /etc/munge /etc/munge/munge.key
setpriv --reuid=munge --regid=munge --clear-groups munged --force 2>/dev/null
cd /tmp
"""

DATABASE = """
mkdir -p /run/mysqld
LD_LIBRARY_PATH=/opt/mariadb/usr/lib/$(uname -m)-linux-gnu /opt/mariadb/usr/sbin/mariadbd --no-defaults --user=root \\
    --skip-grant-tables --skip-networking --socket=/run/mysqld/mysqld.sock --datadir=/opt/mariadb/data \\
    --lc-messages-dir=/opt/mariadb/usr/share/mysql --innodb-flush-log-at-trx-commit=0 --innodb-use-native-aio=0 \\
    --innodb-buffer-pool-size=32M >/tmp/mariadb.log 2>&1 &
for _ in $(seq 1000); do [ -S /run/mysqld/mysqld.sock ] && break; sleep 0.1; done
slurmdbd -D >/tmp/slurmdbd.log 2>&1 &
for _ in $(seq 1000); do sacctmgr -n show cluster >/dev/null 2>&1 && break; sleep 0.2; done
sacctmgr -i add cluster engines >/dev/null
"""
"""Starts slurmdbd, which knows the cluster, before slurmctld."""

CONTROLLER = """
slurmctld -c -D >/tmp/slurmctld.log 2>&1 & slurmctld=$!
for _ in $(seq 1000); do
    scontrol ping >/dev/null 2>&1 && break
    kill -0 "$slurmctld" 2>/dev/null || break
    sleep 0.2
done
"""

NODES = """
for node in gpu-1 gpu-2; do mkdir -p "/var/spool/slurmd-$node"; slurmd -D -N "$node" >"/tmp/$node.log" 2>&1 & done
for _ in $(seq 1000); do
    [ "$(scontrol show nodes gpu-1,gpu-2 | grep -c State=IDLE)" = 2 ] && break
    kill -0 "$slurmctld" 2>/dev/null || break
    sleep 0.5
done
"""
"""Waits for nodes in no partition too, which sinfo does not list."""

JOBS = """
finish() {
    local job; job=$(sbatch --parsable "$@") || return
    until [ -z "$(squeue --noheader --jobs="$job" 2> /dev/null)" ]; do sleep 0.5; done
}
"""
"""A function that submits a job and waits until it is over; sbatch --wait looks after 2, 10 and 42 s only."""

HELD = "until [ -e /end ]; do sleep 0.2; done"
"""Commands of a job that runs until a test writes the file /end."""


def start(
    debian: Debian,
    settings: Mapping[str, str | int],
    *,
    accounting: bool = False,
    cloud: int = 0,
    nodes: str = "",
    queues: str = QUEUES,
    prepare: str = "",
) -> str:
    """Writes the configuration, with `settings` of slurm.conf; returns the start of a script, which starts Slurm.

    `accounting` adds slurmdbd; `prepare` is a script that runs before slurmctld starts, such as commands of sacctmgr.
    `cloud` is a number of nodes, cloud-1 and on, that Slurm starts for jobs and stops after SuspendTime seconds, which
    settings may set; `nodes` is text for their line of slurm.conf, such as Features. /var/log/engines.log lists both.
    `queues` are the lines of partitions. /tmp has a log per daemon. Batch jobs start as soon as their cloud nodes do;
    srun without a batch job waits for slurmctld's look at jobs, which is every 30 s. `finish` takes the arguments of
    sbatch, and waits for the job's end.
    """
    own = {"CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny", "SchedulerParameters": SCHEDULER}
    own |= CLOUD_PARAMETERS if cloud else {}
    given = dict(settings) | {
        name: ",".join(filter(None, (value, str(settings.get(name, ""))))) for name, value in own.items()
    }
    lines = "".join(f"{name}={value}\n" for name, value in given.items())
    parts = [CONFIGURATION, ACCOUNTING if accounting else "", lines]
    if cloud:
        parts.append(CLOUD.format(count=cloud, last=16900 + cloud, nodes=nodes))
        debian.write("/opt/engines/resume", RESUME, mode=0o755)
        debian.write("/opt/engines/suspend", SUSPEND, mode=0o755)
    debian.write("/etc/slurm/slurm.conf", "".join([*parts, queues]))
    debian.write("/etc/slurm/slurmdbd.conf", SLURMDBD, mode=0o600)
    debian.write("/etc/slurm/gres.conf", "Name=gpu File=/gpu/nvidia[0-3]\n")
    debian.write("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n")
    debian.write("/etc/hosts", "127.0.0.1 localhost node\n")
    return HOST + (DATABASE if accounting else "") + prepare + CONTROLLER + NODES + JOBS
