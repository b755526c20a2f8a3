"""The list of Slurm's metrics agrees with what a real slurmctld serves."""

import re

import pytest

from tests.engines.debian import Debian
from ultracluster.telemetry.metrics import metrics_of

MEMORY_MIB = 1000

CONFIGURATION = f"""\
ClusterName=engines
SlurmctldHost=node(127.0.0.1)
SlurmctldPort=16917
SlurmUser=root
StateSaveLocation=/var/spool/slurmctld
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny,enable_http
MetricsType=metrics/openmetrics
MetricsParameters=ignore_private_data
GresTypes=gpu
NodeName=n[1-2] NodeHostname=node NodeAddr=127.0.0.1 Port=[16921-16922] CPUs=2 RealMemory={MEMORY_MIB} Gres=gpu:8 \\
 State=UNKNOWN
PartitionName=train Nodes=ALL Default=YES
"""

PATHS = tuple(dict.fromkeys(each.path for each in metrics_of("slurm")))

RUN = f"""
set -e
hostname node
head -c 1024 /dev/urandom > /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
mkdir -p /run/munge /var/spool/slurmctld
chown munge: /run/munge /etc/munge /etc/munge/munge.key
setpriv --reuid=munge --regid=munge --clear-groups munged --force 2>/dev/null
slurmctld -c -D >/var/log/slurmctld.log 2>&1 &
for _ in $(seq 60); do timeout 1 sinfo -h 2>/dev/null | grep -q train && break; sleep 0.5; done
python3 - <<'END'
import urllib.request
for path in {PATHS!r}:
    print("PATH", path)
    print(urllib.request.urlopen("http://127.0.0.1:16917" + path).read().decode())
END
"""


@pytest.fixture(scope="module")
def served(debian_folder, tmp_path_factory) -> dict[str, str]:
    """What slurmctld answers, by path."""
    debian = Debian(debian_folder, tmp_path_factory.mktemp("slurm"))
    debian.write("/etc/slurm/slurm.conf", CONFIGURATION)
    debian.write("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n")
    debian.write("/etc/hosts", "127.0.0.1 localhost node\n")
    debian.write("/run.sh", RUN)
    ran = debian.run("bash", "/run.sh")
    assert ran.returncode == 0, ran.stderr + debian.read("/var/log/slurmctld.log")
    parts = re.split(r"^PATH (\S+)$", ran.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("path", PATHS)
def test_slurm_serves_the_metrics_of_each_path_as_gauges(served, path):
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", served[path], flags=re.MULTILINE))
    listed = {each.name for each in metrics_of("slurm") if each.path == path}
    assert listed <= set(types)
    assert {types[name] for name in listed} == {"gauge"}


def test_labels_are_those_that_slurm_sets(served):
    for each in metrics_of("slurm"):
        series = re.findall(rf"^{each.name}(?:{{(.*)}})? \S+$", served[each.path], flags=re.MULTILINE)
        assert series, each.name
        assert {label for text in series for label in re.findall(r'(\w+)="', text)} == set(each.labels), each.name


def test_memory_is_in_mebibytes_whatever_the_names_say(served):
    """Slurm exports RealMemory, which is in MiB, as slurm_node_memory_bytes."""
    assert f'slurm_node_memory_bytes{{node="n1"}} {MEMORY_MIB}\n' in served["/metrics/nodes"]
    of_memory = [each for each in metrics_of("slurm") if "_mem" in each.name]
    assert {each.unit for each in of_memory} == {"mebibytes"}
