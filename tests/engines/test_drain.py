"""The command of the Systems Manager document, run against a real Slurm: it drains a node and kills no job."""

import json

import pytest

from tests.engines.slurm import HELD, start
from ultracluster.constructs.drain import document_content

CLOUD = "cloud-[1-38] State=CLOUD CPUs=4"
POWER_SAVING = {"NodeName": CLOUD, "SuspendProgram": "/usr/bin/true", "ResumeProgram": "/usr/bin/true"}
"""PCS launches instances on demand: 38 of the 40 nodes of the cluster have none."""


def command(node, reason="NvidiaXid 79 needs replace", since="2126-11-22T03:00:00Z"):
    """The command as Run Command writes it, with the parameters in place of their names."""
    [step] = document_content()["mainSteps"]
    text = "\n".join(step["inputs"]["runCommand"])
    for name, value in (("node", node), ("reason", reason), ("since", since)):
        text = text.replace(f"{{{{ {name} }}}}", value)
    return text + "\n"


@pytest.fixture
def run(debian):
    """Runs a script in a cluster of two nodes, on a login node that also has the commands of an older Slurm.

    Both nodes have just booted (`slurmd -b`). /drain-NODE acts on a later alert, /late-NODE on an earlier one.
    """

    def running(script, settings=None):
        beginning = start(debian, settings or {}).replace("slurmd -D", "slurmd -b -D")
        for node in ("gpu-1", "gpu-2", "gpu-9", "cloud-1"):
            debian.write(f"/drain-{node}", command(node), mode=0o755)
            debian.write(f"/late-{node}", command(node, since="2026-11-22T03:00:00Z"), mode=0o755)
        older = "/opt/aws/pcs/scheduler/slurm-25.05/bin"
        debian.write(f"{older}/scontrol", "#!/bin/sh\nexit 1\n", mode=0o755)
        current = "/opt/aws/pcs/scheduler/slurm-26.05/bin"
        link = f"mkdir -p {current}; ln -s /usr/bin/scontrol {current}/\n"
        debian.write("/run.sh", beginning + link + script)
        ran = debian.run("bash", "/run.sh")
        return ran.stdout.splitlines(), ran.stderr

    return running


def test_a_drained_node_finishes_its_job_and_gets_no_further_one(run):
    said, errors = run(
        f"""
sbatch -N1 -w gpu-1 --output=/tmp/job.log --wrap '{HELD}; echo finished' > /dev/null
for _ in $(seq 1000); do squeue -h -t running | grep -q . && break; sleep 0.2; done
/drain-gpu-1
sbatch -N1 -w gpu-1 --output=/tmp/next.log --wrap 'echo next' > /dev/null
state() {{ scontrol show node gpu-1 | grep -o 'State=[A-Z+]*'; }}
state; touch /end
for _ in $(seq 1000); do [ "$(state)" = State=IDLE+DRAIN ] && break; sleep 0.5; done
cat /tmp/job.log
state
sinfo -h -n gpu-1 -o %E
squeue -h -t pending -o '%T %r'
test -e /tmp/next.log || echo 'next did not start'
"""
    )
    outcome = json.loads(said[0])
    assert (outcome["node"], outcome["outcome"]) == ("gpu-1", "drained"), errors
    assert said[1:4] == ["State=MIXED+DRAIN", "finished", "State=IDLE+DRAIN"]
    assert said[4] == "auto-repair: NvidiaXid 79 needs replace"
    assert said[5].startswith("PENDING ")
    assert said[6] == "next did not start"


def test_an_alert_from_before_the_boot_does_not_drain_the_new_instance(run):
    said, errors = run("/late-gpu-1; sinfo -h -n gpu-1 -o %T; /drain-gpu-1")
    outcome = json.loads(said[0])
    assert (outcome["outcome"], said[1]) == ("skipped", "idle"), errors
    assert outcome["detail"].startswith("booted since: at 20")
    assert json.loads(said[2])["outcome"] == "drained"


def test_an_alert_that_still_fires_an_hour_after_the_boot_is_about_the_new_instance(run):
    said, errors = run(
        """
printf '#!/bin/sh\\n[ "$*" = +%%s ] && set -- --date "1 hour" +%%s\\nexec /usr/bin/date "$@"\\n' > /usr/local/bin/date
chmod 755 /usr/local/bin/date
/late-gpu-1
"""
    )
    assert json.loads(said[0])["outcome"] == "drained", errors


def test_nodes_without_an_instance_are_neither_drained_nor_counted(run):
    said, errors = run("/drain-cloud-1; /drain-gpu-1; /drain-gpu-2; sinfo -h -n cloud-1 -o %T", POWER_SAVING)
    outcomes = [json.loads(line) for line in said[:3]]
    assert [outcome["outcome"] for outcome in outcomes] == ["skipped", "drained", "refused"], errors
    assert "POWERED_DOWN" in outcomes[0]["detail"]
    assert outcomes[2]["detail"] == "1 of 2 running nodes are drained already, the limit is 1"
    assert said[3] == "idle~"


def test_a_second_alert_changes_nothing_and_a_second_node_is_beyond_the_limit(run):
    said, errors = run(
        """
/drain-gpu-1
/drain-gpu-1
/drain-gpu-2
sinfo -h -N -o '%N %T'
"""
    )
    outcomes = [json.loads(line)["outcome"] for line in said[:3]]
    assert outcomes == ["drained", "unchanged", "refused"], errors
    assert said[3:] == ["gpu-1 drained", "gpu-2 idle"]


def test_alerts_of_two_nodes_at_the_same_time_keep_the_limit(run):
    said, errors = run(
        """
printf '#!/bin/sh\\n/usr/bin/scontrol "$@"; code=$?; sleep 1; exit $code\\n' > /slow
rm /opt/aws/pcs/scheduler/slurm-26.05/bin/scontrol
install -m 755 /slow /opt/aws/pcs/scheduler/slurm-26.05/bin/scontrol
/drain-gpu-1 & one=$!; /drain-gpu-2 & two=$!; wait "$one" "$two"
"""
    )
    assert sorted(json.loads(line)["outcome"] for line in said) == ["drained", "refused"], errors


def test_a_node_that_somebody_drained_keeps_the_reason_and_an_unknown_node_is_an_error(run):
    said, errors = run(
        """
scontrol update nodename=gpu-1 state=drain reason='disk swap'
/drain-gpu-1
/drain-gpu-9 || echo "failed with $?"
sinfo -h -n gpu-1 -o %E
/drain-gpu-2
"""
    )
    assert json.loads(said[0])["outcome"] == "unchanged", errors
    assert (json.loads(said[1])["detail"], said[2], said[3]) == ("no such node", "failed with 1", "disk swap")
    assert json.loads(said[4])["outcome"] == "drained", "what people drained does not count for the limit"
