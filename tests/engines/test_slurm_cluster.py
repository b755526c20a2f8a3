"""The cluster of tests/engines/slurm.py works as PCS's: slurmdbd limits jobs; cloud nodes start and stop with them."""

from tests.engines.slurm import start

ENFORCED = {"AccountingStorageEnforce": "associations,limits,qos", "AccountingStorageTRES": "gres/gpu"}
ACCOUNT = """
useradd --no-create-home ana
sacctmgr -i add account research GrpTRES=gres/gpu=4 >/dev/null
sacctmgr -i add user ana account=research >/dev/null
"""


def test_slurmdbd_holds_a_job_beyond_the_limit_and_refuses_strangers(debian):
    beginning = start(debian, ENFORCED, accounting=True)
    debian.write(
        "/run.sh",
        beginning
        + ACCOUNT
        + """
as() { setpriv --reuid="$1" --regid=nogroup --clear-groups "${@:2}"; }
chmod 777 /tmp
as ana sbatch --parsable --gres=gpu:4 --wrap 'sleep 600' >/dev/null
as ana sbatch --parsable --gres=gpu:1 --wrap 'sleep 600' >/dev/null
for _ in $(seq 1000); do squeue -h -o %r | grep -q Assoc && break; sleep 0.2; done
squeue -h -S i -o '%a %T %r'
as nobody sbatch --wrap true 2>&1 || true
""",
    )
    ran = debian.run("bash", "/run.sh")
    said = ran.stdout.splitlines()
    assert said[:2] == ["research RUNNING None", "research PENDING AssocGrpGRES"], ran.stdout + ran.stderr
    assert "Invalid account" in said[2]


def test_cloud_nodes_start_for_a_job_and_stop_after_it(debian):
    beginning = start(debian, {"SuspendTime": 2}, cloud=3, nodes="Features=cloud")
    debian.write(
        "/run.sh",
        beginning
        + """
sinfo -h -n cloud-1 -o %T
cat > /job.sh <<'JOB'
#!/bin/bash
srun bash -c 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"' | sort
JOB
finish -N3 -C cloud --gres=gpu:4 --output=/tmp/job.log /job.sh
cat /tmp/job.log
for _ in $(seq 1000); do [ "$(grep -c suspend /var/log/engines.log)" = 3 ] && break; sleep 0.5; done
sort /var/log/engines.log
ls /run/slurmd-cloud-*.pid 2>/dev/null
""",
    )
    ran = debian.run("bash", "/run.sh")
    nodes = [f"cloud-{number}" for number in (1, 2, 3)]
    expected = ["idle~", *(f"{node} 0,1,2,3" for node in nodes)]
    expected += [f"{act} {node}" for act in ("resume", "suspend") for node in nodes]
    assert ran.stdout.splitlines() == expected, ran.stderr
