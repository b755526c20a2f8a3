"""systemd reads the units that steps write."""

import pytest

from tests.engines.debian import WORKING
from tests.unit.nodes.test_eks import group
from tests.unit.nodes.test_telemetry import TELEMETRY
from ultracluster.catalog import catalog, lustre
from ultracluster.catalog.nfs import OPENZFS_OPTIONS
from ultracluster.nodes.collectors import collector_steps
from ultracluster.nodes.lustre import LustreMount, prepare_client_steps
from ultracluster.nodes.mounts import NfsMount, mount_steps
from ultracluster.nodes.pcs import compute_node_steps, login_node_steps
from ultracluster.nodes.steps import Step

UNITS = "/etc/systemd/system"
ONESHOT = "[Unit]\nDescription=Stub\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/true\n"
MOUNT = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/mnt/shared-data", efa=True)
SECOND = LustreMount("fs-2.fsx.us-east-2.amazonaws.com", "zzzzzzzz", "/work", efa=False, read_only=True)
HOME = NfsMount("fs-3.fsx.us-east-2.amazonaws.com:/fsx", "/home", OPENZFS_OPTIONS)
P5EN = catalog["p5en.48xlarge"]

NODES = {
    "compute": compute_node_steps(group(), [MOUNT]),
    "login": login_node_steps([MOUNT]),
    "several": mount_steps([HOME, MOUNT, SECOND], P5EN),
    "eks": prepare_client_steps(P5EN, efa=True),
    "telemetry": [
        step
        for step in compute_node_steps(group(), [MOUNT], telemetry=TELEMETRY)
        if step.name in ("run-exporters", "serve-job-metrics", "ship-logs")
    ]
    + [Step("find-slurm-controller", ("/metrics/jobs", "/metrics/nodes"))],
    "collectors": collector_steps(efa=True, lustre=True, seconds=15, mounts=[("/fsx", "abcdefgh")]),
}


def verify(debian):
    """What systemd says of all units of the system that steps wrote."""
    written = [file.name for file in sorted((debian.upper / UNITS.lstrip("/")).iterdir()) if file.is_file()]
    assert written
    ran = debian.run("systemd-analyze", "verify", "--man=no", *(f"{UNITS}/{name}" for name in written))
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize("dlami", [True, False])
@pytest.mark.parametrize("node", NODES)
def test_systemd_finds_nothing_wrong_in_the_units_of_a_node(debian, node, dlami):
    mounted = "" if dlami else 'case "$2" in /opt/dlami/nvme) exit 1;; esac'
    debian.stub(WORKING | {"mountpoint": mounted, "aws": "echo nn-1"})
    for command in ("lctl", "mount.nfs"):
        debian.write(f"/usr/sbin/{command}", "#!/bin/sh\n", mode=0o755)
    debian.write("/usr/bin/docker", "#!/bin/sh\n", mode=0o755)
    for unit in (lustre.EFA_CLIENT_UNIT, "dlami-nvme.service", "docker.service"):
        debian.write(f"{UNITS}/{unit}", ONESHOT)
    debian.boot(NODES[node])
    assert verify(debian) == (0, "")


def test_the_mount_unit_has_the_name_that_systemd_wants(debian):
    debian.stub(WORKING)
    debian.boot(mount_steps([MOUNT], None))
    assert debian.exists(f"{UNITS}/mnt-shared\\x2ddata.mount")
    assert "systemctl start mnt-shared\\x2ddata.mount" in debian.stubs_called()


def test_systemd_would_refuse_a_unit_that_is_wrong(debian):
    debian.write(f"{UNITS}/scratch.mount", "[Mount]\nWhat=/dev/x\nWhere=/elsewhere\n")
    code, said = verify(debian)
    assert code
    assert "scratch.mount" in said


def test_systemd_reads_the_fence_of_slurmd(debian):
    debian.stub(WORKING)
    debian.write(f"{UNITS}/slurmd.service", ONESHOT)
    debian.boot([Step("fence-slurmd")])
    assert verify(debian) == (0, "")
    shown = debian.run("systemd-analyze", "cat-config", "systemd/system/slurmd.service").stdout
    assert "ExecStartPre=/usr/bin/test -e /run/ultracluster/ready" in shown
