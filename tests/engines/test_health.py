"""A real Slurm runs the health checks of nodes, with stubs of NVIDIA's tools that fail on one node."""

import pytest

from tests.engines.slurm import HELD, start
from tests.unit.nodes.test_check_node import SMI
from ultracluster.config.health import Health
from ultracluster.constructs.launch_templates import group_name
from ultracluster.nodes.health import admit_steps, health_settings, spare_steps
from ultracluster.nodes.pcs import job_settings
from ultracluster.nodes.steps import Step

BROKEN = SMI.replace("_pending>No<", "_pending>Yes<", 1)
REASON = "health: reset: memory: GPU 00000000:53:00.0: a row waits to be remapped"
FACTS = ("type=p5.48xlarge", "gpus=2", "nvlink=0", "efa=0", "lustre_efa=0", "prolog=fast")
FAULT = "[ -e /fault ] && [[ ${SLURMD_NODENAME:-gpu-1} == *-1 ]]"
WAIT = 'until_() { for _ in $(seq 1000); do eval "$1" && return; sleep 0.5; done; echo "never: $1"; }\n'
"""A function that waits for a condition, for some minutes at most."""


@pytest.fixture
def node(debian):
    """The Debian folder with the checks, and a fault of gpu-1 and cloud-1 once there is a file /fault."""
    debian.write("/smi/good.xml", SMI)
    debian.write("/smi/broken.xml", BROKEN)
    debian.stub({"nvidia-smi": f"if {FAULT}; then cat /smi/broken.xml; else cat /smi/good.xml; fi", "systemctl": ""})
    debian.boot([Step("write-job-programs"), Step("write-health-checks", FACTS)])
    return debian


def run(debian, script, *, interval=0, cloud=0):
    settings = health_settings(job_settings({}, [], "26.05"), Health())
    times = {"HealthCheckInterval": interval, "HealthCheckTimeout": 60} | ({"SuspendTime": 3600} if cloud else {})
    beginning = start(debian, {**settings, **times, "PrologFlags": "Alloc"}, cloud=cloud)
    debian.write("/run.sh", beginning + WAIT + script)
    ran = debian.run("bash", "/run.sh")
    return ran.stdout.splitlines(), ran.stderr


def test_the_prolog_takes_a_node_with_a_fault_out_and_the_job_runs_on_another(node):
    node.write("/fault", "")
    # the prolog has no way to ask slurmctld
    prolog = "PATH=/no-slurm:/usr/bin bash /opt/ultracluster/prolog.d/10-health"
    said, errors = run(
        node,
        f"""
SLURMD_NODENAME=gpu-1 {prolog} || echo "prolog $?"
sbatch -N1 --requeue --output=/tmp/x --wrap 'echo "ran on $SLURMD_NODENAME"' > /dev/null
until_ 'grep -qs ran /tmp/x'; until_ '[ -z "$(squeue -h)" ]'
cat /tmp/x; sinfo -h -N -o '%N %T %E'
PCS_NODE_ID=gpu-1 /opt/ultracluster/health/health-check; sinfo -h -N -o '%N %T %E'
sbatch -N1 -w gpu-1 --output=/tmp/y --wrap true > /dev/null; sleep 1; squeue -h -o '%T %r'; scancel --state=pending
rm /fault; scontrol update nodename=gpu-1 state=resume
finish -N1 -w gpu-1 --output=/tmp/y --wrap 'echo "back on $SLURMD_NODENAME"'; cat /tmp/y
""",
    )
    assert said[:5] == [REASON, "prolog 1", "ran on gpu-2", "gpu-1 drained Prolog error", "gpu-2 idle none"], errors
    assert said[5:7] == [f"gpu-1 drained {REASON}", "gpu-2 idle none"], errors
    assert said[7].startswith("PENDING")
    assert said[8:] == ["back on gpu-1"]


def test_the_health_check_drains_a_busy_node_whose_job_ends_by_itself(node):
    said, errors = run(
        node,
        f"""
sbatch -N1 -w gpu-1 --output=/tmp/x --wrap 'echo started; {HELD}; echo "ended by itself"' > /dev/null
until_ 'grep -qs started /tmp/x'
touch /fault
until_ '[ "$(sinfo -h -n gpu-1 -o %T)" = draining ]'
sinfo -h -N -o '%N %T %E'; squeue -h -o '%T'
touch /end
until_ '[ -z "$(squeue -h)" ]'; cat /tmp/x
until_ '[ "$(sinfo -h -n gpu-1 -o %T)" = drained ]'; sinfo -h -N -o '%N %T %E'
""",
        interval=4,
    )
    assert said == [
        f"gpu-1 draining {REASON}",
        "gpu-2 idle none",
        "RUNNING",
        "started",
        "ended by itself",
        f"gpu-1 drained {REASON}",
        "gpu-2 idle none",
    ], errors


def test_a_node_of_a_dynamic_group_with_a_fault_powers_down_after_its_job_and_is_launched_again(node):
    node.boot([Step("write-job-programs"), Step("write-health-checks", (*FACTS, "dynamic=1"))])
    said, errors = run(
        node,
        f"""
sbatch -N1 -w cloud-1 --output=/tmp/x --wrap 'echo started; {HELD}; echo "ended by itself"' > /dev/null
until_ 'grep -qs started /tmp/x'
touch /fault
until_ 'scontrol show node cloud-1 | grep -q State=.*DRAIN'
squeue -h -o '%T'; scontrol show node cloud-1 | grep -o 'Reason=.*remapped'
rm /fault; touch /end
until_ '[ -z "$(squeue -h)" ]'; cat /tmp/x
until_ 'grep -q "suspend cloud" /var/log/engines.log'
until_ '[ "$(sinfo -h -n cloud-1 -o %t)" = "idle~" ]'
finish -N1 -w cloud-1 --output=/tmp/y --wrap 'echo "again on $SLURMD_NODENAME"'
cat /tmp/y; grep cloud /var/log/engines.log
""",
        interval=4,
        cloud=1,
    )
    assert said == [
        "RUNNING",
        f"Reason={REASON}",
        "started",
        "ended by itself",
        "again on cloud-1",
        "resume cloud-1",
        "suspend cloud-1",
        "resume cloud-1",
    ], errors


def test_a_healthy_node_runs_jobs_and_one_that_a_person_drained_is_left_alone(node):
    said, errors = run(
        node,
        """
finish -N2 --output=/tmp/x --wrap 'srun -N2 --ntasks=2 bash -c "echo \\$SLURMD_NODENAME" | sort'
cat /tmp/x
scontrol update nodename=gpu-1 state=drain reason=upgrade
touch /fault; sleep 6
sinfo -h -N -o '%N %T %E'
""",
        interval=4,
    )
    assert said == ["gpu-1", "gpu-2", "gpu-1 drained upgrade", "gpu-2 idle none"], errors


def test_a_new_node_that_is_not_accepted_takes_no_job_and_says_why(node):
    node.write("/fault", "")
    admit, drain = admit_steps(Health().acceptance("pcs", 8))
    level, on_failure, _, limit = admit.arguments
    node.write("/admit.sh", admit.script.text)
    node.write("/drain.sh", drain.script.text)
    said, errors = run(
        node,
        f"""
bash /admit.sh {level} {on_failure} 0 {limit} 2> /dev/null; echo "admitted $?"; ls /run/ultracluster
rm /fault
sbatch -N1 -w gpu-1 --output=/tmp/x --wrap 'echo ran' > /dev/null
until_ '[ "$(sinfo -h -n gpu-1 -o %T)" = drained ]'; cat /tmp/x 2> /dev/null || true
sinfo -h -n gpu-1 -o '%T %E'; scancel 1
scontrol update nodename=gpu-1 state=resume; sleep 1
PCS_NODE_ID=gpu-1 bash /drain.sh; sinfo -h -n gpu-1 -o '%T %E'
bash /admit.sh fast drain 0 {limit}; ls /run/ultracluster
""",
    )
    assert said[:3] == ["admitted 0", "not-accepted", "ready"], errors
    drained = [line for line in said if line.startswith("drained")]
    assert drained == ["drained Prolog error", f"drained {REASON}"], (said, errors)
    assert "ran" not in said
    assert said[-1] == "ready"


def test_a_new_node_that_is_to_be_replaced_fails_the_step_and_takes_no_job(node):
    node.write("/fault", "")
    [admit] = admit_steps(Health(on_failure="replace").acceptance("pcs", 8))
    assert admit.required
    level, on_failure, _, limit = admit.arguments
    node.write("/admit.sh", admit.script.text)
    ran = node.run("bash", "-c", f"bash /admit.sh {level} {on_failure} 0 {limit}; echo $?; ls /run/ultracluster")
    assert ran.stdout.splitlines() == ["1"]
    assert ran.stderr.strip() == REASON


@pytest.mark.parametrize(
    ("state", "lost"),
    [
        ("IDLE", 0),
        ("RESERVED", 0),
        ("MIXED+CLOUD+PLANNED", 0),
        ("IDLE+CLOUD+DYNAMIC_NORM", 0),
        ("IDLE+DRAIN", 1),
        ("DOWN+NOT_RESPONDING", 1),
        ("IDLE+CLOUD+NOT_RESPONDING", 1),
        ("IDLE+CLOUD+POWERED_DOWN", 1),
        ("IDLE+INVALID_REG", 1),
        ("UNKNOWN", 1),
    ],
)
def test_a_node_that_takes_no_job_is_one_that_a_spare_stands_in_for(debian, state, lost):
    nodes = f"NodeName=gpu-1 Boards=1 State={state} ThreadsPerCore=1\nNodeName=gpu-2 Boards=1 State=IDLE Weight=1"
    said = f"case $* in *nodes*) echo '{nodes}' ;; *reservation*) exit 1 ;; esac"
    debian.write("/opt/aws/pcs/scheduler/slurm-26.05/bin/scontrol", f"#!/bin/bash\n{said}\n", mode=0o755)
    [step] = spare_steps(Health(spares={"gpu": 2}))
    debian.stub({"systemctl": ""})
    debian.boot([step])
    ran = debian.run("bash", "-c", "keep-spares gpu=2 || true")
    assert f"since {lost} nodes have failed" in ran.stdout, ran.stderr


def test_a_spare_takes_no_job_until_a_node_fails_and_is_kept_again_once_the_node_is_back(node):
    [step] = spare_steps(Health(spares={"gpu": 1}))
    node.boot([step])
    said, errors = run(
        node,
        """
mkdir -p /opt/aws/pcs/scheduler/slurm-26.05/bin; ln -s /usr/bin/scontrol /opt/aws/pcs/scheduler/slurm-26.05/bin
keep-spares gpu=1; keep-spares gpu=1
sbatch -N2 --output=/tmp/both --wrap 'echo both' > /dev/null
finish -N1 --output=/tmp/one --wrap 'echo "one on $SLURMD_NODENAME"'; cat /tmp/one
squeue -h -o '%i %T'
scontrol update nodename=gpu-2 state=drain reason=fault
sbatch -N1 --output=/tmp/next --wrap 'echo "next on $SLURMD_NODENAME"' > /dev/null; sleep 2; squeue -h -j 3 -o %T
keep-spares gpu=1
scancel 1; until_ 'grep -qs next /tmp/next'; cat /tmp/next; until_ '[ -z "$(squeue -h)" ]'
scontrol update nodename=gpu-2 state=resume
until_ '[ "$(sinfo -h -n gpu-2 -o %T)" = idle ]'; keep-spares gpu=1
scontrol --oneliner show reservation | grep -o ' Nodes=[^ ]*'
""",
    )
    assert said[:7] == [
        "spares of gpu: gpu-1, since 0 nodes have failed",
        "one on gpu-2",
        "1 PENDING",
        "PENDING",
        "spares of gpu: none, since 1 nodes have failed",
        "next on gpu-1",
        "spares of gpu: gpu-1, since 0 nodes have failed",
    ], errors
    assert said[7:] == [" Nodes=gpu-1"]


def test_spares_are_of_the_group_as_pcs_names_its_nodes(node):
    [step] = spare_steps(Health(spares={"train": 1}))
    node.boot([step])
    train, other = (group_name(name, "p5.48xlarge") for name in ("train", "train-b"))
    listed = "\n".join(
        f"NodeName={name} Arch=x State=IDLE+CLOUD" for name in (f"{other}-1", f"{train}-7", f"{train}-8")
    )
    node.write(
        "/opt/aws/pcs/scheduler/slurm-26.05/bin/scontrol",
        f"""#!/bin/bash
case "$*" in
    *"show nodes") echo "{listed}" ;;
    "create reservation"*) echo "$@" >> /created ;;
    *"show reservation"*) exit 1 ;;
esac
""",
        mode=0o755,
    )
    ran = node.run("keep-spares", *step.arguments)
    assert ran.stdout == f"spares of train: {train}-7, since 0 nodes have failed\n", ran.stderr
    assert node.read("/created").endswith(f"nodes={train}-7\n")
