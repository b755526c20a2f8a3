"""The command of the Systems Manager document, run against a real Slurm: it drains a node and kills no job."""

import json

import pytest

from tests.engines.slurm import start
from ultracluster.constructs.drain import document_content


def command(node, reason="NvidiaXid 79 needs replace"):
    """The command as Run Command writes it, with the parameters in place of their names."""
    [step] = document_content()["mainSteps"]
    text = "\n".join(step["inputs"]["runCommand"])
    return text.replace("{{ node }}", node).replace("{{ reason }}", reason) + "\n"


@pytest.fixture
def run(debian):
    """Runs a script in a cluster of two nodes, on a login node that also has the commands of an older Slurm."""

    def running(script):
        beginning = start(debian, {})
        for node in ("gpu-1", "gpu-2", "gpu-9"):
            debian.write(f"/drain-{node}", command(node), mode=0o755)
        older = "/opt/aws/pcs/scheduler/slurm-25.05/bin"
        debian.write(f"{older}/scontrol", "#!/bin/sh\nexit 1\n", mode=0o755)
        current = "/opt/aws/pcs/scheduler/slurm-26.05/bin"
        link = f"mkdir -p {current}; ln -s /usr/bin/scontrol /usr/bin/sinfo {current}/\n"
        debian.write("/run.sh", beginning + link + script)
        ran = debian.run("bash", "/run.sh")
        return ran.stdout.splitlines(), ran.stderr

    return running


def test_a_drained_node_finishes_its_job_and_gets_no_further_one(run):
    said, errors = run(
        """
sbatch -N1 -w gpu-1 --output=/tmp/job.log --wrap 'sleep 6; echo finished' > /dev/null
for _ in $(seq 40); do squeue -h -t running | grep -q . && break; sleep 0.2; done
/drain-gpu-1
sbatch -N1 -w gpu-1 --output=/tmp/next.log --wrap 'echo next' > /dev/null
for _ in $(seq 60); do grep -q finished /tmp/job.log && break; sleep 0.5; done
cat /tmp/job.log
sinfo -h -n gpu-1 -o '%T %E'
squeue -h -t pending -o '%T %r'
test -e /tmp/next.log || echo 'next did not start'
"""
    )
    outcome = json.loads(said[0])
    assert (outcome["node"], outcome["outcome"], outcome["detail"]) == ("gpu-1", "drained", "draining"), errors
    assert said[1] == "finished"
    # draining until Slurm has cleaned up after the job
    assert said[2].split(" ", 1)[0] in ("draining", "drained")
    assert said[2].split(" ", 1)[1] == "auto-repair: NvidiaXid 79 needs replace"
    assert said[3].startswith("PENDING ")
    assert said[4] == "next did not start"


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
echo 'sinfo "$@"; sleep 1' > /slow; rm /opt/aws/pcs/scheduler/slurm-26.05/bin/sinfo
install -m 755 /slow /opt/aws/pcs/scheduler/slurm-26.05/bin/sinfo
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
