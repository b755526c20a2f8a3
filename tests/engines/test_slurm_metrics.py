"""A real slurmctld serves the metrics of the catalogue, and a login node finds it."""

import json
import re

import pytest

from tests.engines.slurm import start
from ultracluster.nodes.pcs import metrics_settings
from ultracluster.nodes.steps import Step
from ultracluster.telemetry.agent import slurm_paths
from ultracluster.telemetry.metrics import metrics_of

VERSION = "26.05"
"""Slurm of the Debian folder, without the patch level."""

READ = """
mkdir -p /opt/aws/pcs/scheduler/slurm-26.05/bin
ln -s /usr/bin/scontrol /opt/aws/pcs/scheduler/slurm-26.05/bin/
srun -N1 --output=/dev/null true
python3 - <<'END'
import json, urllib.request
found = {}
for path in PATHS:
    answer = urllib.request.urlopen("http://127.0.0.1:16817" + path, timeout=60)
    found[path] = [answer.headers["Content-Type"], answer.read().decode()]
print(json.dumps(found))
END
bash /step.sh PATHS_AS_ARGUMENTS >&2
for command in $(seq 2); do /usr/local/sbin/find-slurm-controller PATHS_AS_ARGUMENTS >&2; done
cat /etc/ultracluster/metrics/targets/slurm.json
"""


@pytest.fixture
def served(debian):
    """What slurmctld answers by path, and the targets that the step wrote."""
    paths = slurm_paths()
    beginning = start(debian, metrics_settings({}, VERSION))
    debian.stub({"systemctl": ""})
    debian.write("/step.sh", Step("find-slurm-controller").script.text)
    script = READ.replace("PATHS_AS_ARGUMENTS", " ".join(paths)).replace("PATHS", repr(list(paths)))
    debian.write("/run.sh", beginning + script)
    ran = debian.run("bash", "/run.sh")
    answers, targets = (json.loads(line) for line in ran.stdout.splitlines())
    assert answers, ran.stderr
    return answers, targets


def test_slurmctld_serves_every_metric_of_the_catalogue_on_its_path_and_the_step_finds_it(served):
    answers, targets = served
    for path, (kind, text) in answers.items():
        assert kind.startswith("text/plain"), kind
        names = set(re.findall(r"^(slurm_\w+)(?:\{| )", text, re.M))
        wanted = {each.name for each in metrics_of("slurm") if each.path == path}
        assert wanted <= names, path
        types = dict(re.findall(r"^# TYPE (slurm_\w+) (\w+)$", text, re.M))
        assert {types[name] for name in wanted} == {"gauge"}
    assert {address for target in targets for address in target["targets"]} == {"127.0.0.1:16817"}
    assert {target["labels"]["__metrics_path__"] for target in targets} == set(slurm_paths())
