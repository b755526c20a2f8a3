"""Real Slurm knows the name of each parameter that PCS allows."""

import re

import pytest

from tests.engines.slurm import CONFIGURATION, HOST, QUEUES, SLURMDBD
from ultracluster.catalog import pcs

UNKNOWN = "NoSuchName"
GPUS = "Name=gpu File=/gpu/nvidia[0-3]"
FILES = {"slurm": CONFIGURATION + QUEUES, "gres": GPUS, "cgroup": "CgroupPlugin=disabled", "slurmdbd": SLURMDBD}
LISTS = {
    "cluster": pcs.CLUSTER_SETTINGS,
    "queue": pcs.QUEUE_SETTINGS,
    "node": pcs.NODE_GROUP_SETTINGS,
    "gres": pcs.GRES_SETTINGS,
    "cgroup": pcs.CGROUP_SETTINGS,
    "slurmdbd": pcs.SLURMDBD_SETTINGS,
}
READERS = {
    "gres": "timeout 60 slurmd -N gpu-1 -G",
    "cgroup": "timeout 60 slurmctld -c -D",
    "slurmdbd": "timeout 60 slurmdbd -D",
}
"""A command that reads each file, and says which names it does not know. All commands read slurm.conf."""


def files(owner, names):
    """Slurm's files, one of which sets parameters of an allow-list."""
    line = " ".join(f"{name}=1" for name in names)
    match owner:
        case "cluster":
            return {**FILES, "slurm": f"{FILES['slurm']}{line}"}
        case "queue":
            return {**FILES, "slurm": f"{CONFIGURATION}{QUEUES.strip()} {line}"}
        case "node":
            return {**FILES, "slurm": CONFIGURATION.replace("State=UNKNOWN", line) + QUEUES}
        case "gres":
            return {**FILES, "gres": f"{GPUS} {line}"}
    return {**FILES, owner: "\n".join([FILES[owner].strip(), *line.split()])}


@pytest.mark.parametrize("owner", LISTS)
def test_slurm_knows_every_name_of_the_lists(debian, owner):
    names = [*sorted(LISTS[owner]), UNKNOWN]
    # a daemon reads the names of all lines, other commands end at the first that they do not know
    parts = [names] if owner in ("cgroup", "slurmdbd") else [[name] for name in names]
    script = "set +e\n"
    for i, part in enumerate(parts):
        for file, text in files(owner, part).items():
            debian.write(f"/{i}/{file}.conf", f"{text}\n", mode=0o600)
        script += f"SLURM_CONF=/{i}/slurm.conf {READERS.get(owner, 'scontrol show hostnames node')} 2>&1\n"
    debian.write("/etc/hosts", "127.0.0.1 localhost node\n")
    debian.write("/run.sh", f"{HOST}{script}")
    said = debian.run("bash", "/run.sh").stdout
    assert re.findall(r"unrecognized key: (\w+)", said) == [UNKNOWN], said
