"""A real Slurm runs the prolog that connects the nodes of a job by NVLink, with stand-ins of IMEX and systemd."""

import pytest

from tests.engines.slurm import QUEUES, start
from tests.unit.nodes.test_pcs import group
from ultracluster.nodes.pcs import job_settings
from ultracluster.nodes.steps import Step

ULTRASERVER = group("p6e-gb200.36xlarge")
CONFIGURATION = "/etc/nvidia-imex/nodes_config.cfg"

CONTROL = """
case $(cat /imex) in
  up) echo "Node #0   - 127.0.0.1    - READY                - Version: 580.95"; echo "Domain State: UP" ;;
  waits) echo "Node #0   - 127.0.0.1    - READY                - Version: 580.95"
    echo "Node #1   - 10.9.9.9     - UNAVAILABLE          - Version: "; echo "Domain State: DEGRADED" ;;
  broken) echo "Node #0   - 127.0.0.1    - UNAVAILABLE          - Version: 580.95"; echo "Domain State: DOWN" ;;
  silent) sleep 300 ;;
esac
"""
"""What nvidia-imex-ctl -N prints, in the form of its table (AWS PCS User Guide, "Configure UltraServer instances")."""


def run(debian, state, script, *, channel="/channels/channel0", queue="", systemctl=""):
    for name, body in {"systemctl": systemctl, "nvidia-imex-ctl": CONTROL, "pkill": ""}.items():
        # parts of the prolog look for commands beside those of Slurm first
        debian.write(f"/usr/bin/{name}", f'#!/bin/bash\necho "{name} $*" >> /stubs.log\n{body}\n', mode=0o755)
    debian.boot([Step("write-job-programs"), Step("set-up-imex")])
    part = debian.read("/opt/ultracluster/prolog.d/20-imex").replace("IMEX_SECONDS:-25", "IMEX_SECONDS:-8")
    # /dev is that of this machine, which has no NVIDIA driver
    part = part.replace("/dev/nvidia-caps-imex-channels", "/channels")
    debian.write("/opt/ultracluster/prolog.d/20-imex", part, mode=0o755)
    debian.write("/imex", state)
    debian.write(channel, "")
    beginning = start(
        debian, job_settings({}, [ULTRASERVER], "26.05"), queues=QUEUES.replace("OverSubscribe=NO", queue)
    )
    debian.write("/run.sh", beginning + script)
    ran = debian.run("bash", "/run.sh")
    return ran.stdout.splitlines(), ran.stderr


def job(options, *, seconds=300):
    return f"""
sbatch {options} --requeue --output=/tmp/x --wrap 'echo ran' > /dev/null
for _ in $(seq {2 * seconds}); do [ -n "$(squeue -h)" ] || break; sleep 0.5; done; sleep 1
cat /tmp/x 2> /dev/null || echo nothing
"""


def refused(options):
    """A job that drains gpu-1. Slurm looks at it twice more."""
    return f"""
sbatch {options} --requeue --output=/tmp/x --wrap 'echo ran' > /dev/null
for _ in $(seq 1000); do [ "$(sinfo -h -n gpu-1 -o %T)" = drained ] && break; sleep 0.5; done; sleep 5
cat /tmp/x 2> /dev/null || echo nothing
"""


RESTARTS = ["systemctl stop nvidia-imex.service", "pkill -KILL -x nvidia-imex", "systemctl start nvidia-imex.service"]


def restarts(debian):
    return [call for call in debian.stubs_called() if call in RESTARTS]


def test_an_exclusive_job_starts_when_the_domain_of_its_nodes_is_up(debian):
    said, errors = run(debian, "up", job("-N2 --exclusive"))
    assert said == ["ran"], errors
    assert restarts(debian).count(RESTARTS[2]) == 2
    assert debian.read(CONFIGURATION) == "127.0.0.1\n127.0.0.1\n"


@pytest.mark.parametrize("queue", ["OverSubscribe=EXCLUSIVE", "Exclusive=NODE"])
def test_a_queue_of_whole_nodes_makes_its_jobs_exclusive(debian, queue):
    said, errors = run(debian, "up", job("-N1"), queue=queue)
    assert said == ["ran"], errors
    assert restarts(debian) == RESTARTS


@pytest.mark.parametrize("options", ["-N1 -n1 --oversubscribe", "-N1 -n1"])
def test_a_job_that_shares_its_node_leaves_imex_alone(debian, options):
    said, errors = run(debian, "broken", job(options), queue="OverSubscribe=NO")
    assert said == ["ran"], errors
    assert restarts(debian) == []


def test_a_node_that_only_waits_for_another_one_is_not_drained(debian):
    said, errors = run(debian, "waits", job("-N1 -w gpu-1 --exclusive") + "sinfo -h -n gpu-1 -o %T")
    assert said == ["ran", "idle"], errors


@pytest.mark.parametrize("state", ["broken", "silent"])
def test_a_node_whose_imex_is_not_ready_is_drained_within_a_minute(debian, state):
    waiting = refused("-N1 -w gpu-1 --exclusive")
    said, errors = run(debian, state, waiting + "sinfo -h -n gpu-1 -o %T; squeue -h -o '%T %r'")
    assert said[:2] == ["nothing", "drained"], errors
    assert not said[2].startswith("PENDING launch failed requeued held"), said


def test_an_image_without_imex_boots_and_an_exclusive_job_drains_the_node(debian):
    waiting = refused("-N1 -w gpu-1 --exclusive")
    said, errors = run(debian, "up", waiting + "sinfo -h -n gpu-1 -o %T", systemctl="exit 1")
    assert said == ["nothing", "drained"], errors
    assert "imex: nvidia-imex.service does not start" in debian.read("/var/log/ultracluster/job-programs.log")
    assert "systemctl enable nvidia-imex.service" in debian.stubs_called()


def test_a_driver_without_channels_drains_the_node(debian):
    waiting = job("-N1 -w gpu-1 --exclusive", seconds=5)
    said, errors = run(
        debian, "up", waiting + "sed 's/.*failed with//' /var/log/ultracluster/job-programs.log", channel="/none"
    )
    assert said == ["nothing", " 1: imex: the NVIDIA driver has no IMEX channels "], errors


def test_slurm_takes_the_flags_of_imex_and_refuses_those_that_the_rules_refuse(debian):
    def starts(flags):
        debian.write("/run.sh", start(debian, {"PrologFlags": flags}) + "\nsinfo -h -o %D\n")
        ran = debian.run("bash", "-c", "timeout 60 bash /run.sh; grep -ciE 'PrologFlags|fatal' /tmp/slurmctld.log")
        return ran.stdout.splitlines()

    settings = job_settings({"PrologFlags": "DeferBatch"}, [ULTRASERVER], "26.05")
    assert settings["PrologFlags"] == "DeferBatch,Alloc,NoHold"
    assert starts(settings["PrologFlags"]) == ["2", "0"]
    for contradiction in ("Alloc,Contain,NoHold", "Serial,RunInJob", "X11,NoHold"):
        assert starts(contradiction)[0] != "2", contradiction
