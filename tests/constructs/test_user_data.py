"""What a node does at its first boot, without CDK."""

import subprocess
from email import message_from_string

import pytest

from ultracluster.catalog import catalog
from ultracluster.constructs.user_data import LustreMount, mount_lustre, protect_slurmd, raid0_instance_store, user_data

P5EN, P5_SMALL = catalog["p5en.48xlarge"], catalog["p5.4xlarge"]
OVER_EFA = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=True)
OVER_TCP = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=False)


def test_the_parts_are_one_mime_multipart_document():
    document = message_from_string(user_data([protect_slurmd(), raid0_instance_store()]))
    kinds = [part.get_content_type() for part in document.walk()]
    assert kinds == ["multipart/mixed", "text/cloud-config", "text/x-shellscript"]
    assert not document.defects


@pytest.mark.parametrize(
    "script",
    [
        raid0_instance_store(),
        mount_lustre(OVER_EFA, P5EN),
        mount_lustre(OVER_TCP, P5_SMALL),
        mount_lustre(OVER_TCP, None),
    ],
)
def test_every_script_is_valid_bash_that_stops_at_the_first_failure(script):
    assert script.startswith("#!/bin/bash\nset -euo pipefail\n")
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_lustre_mounts_at_every_boot_with_relatime_flock_and_netdev():
    entry = next(line for line in mount_lustre(OVER_TCP, None).splitlines() if line.startswith("entry="))
    device, path, kind, options, *_ = entry.removeprefix("entry='").split()
    assert (device, path, kind) == ("fs-1.fsx.us-east-2.amazonaws.com@tcp:/abcdefgh", "/fsx", "lustre")
    assert options.split(",")[:3] == ["relatime", "flock", "_netdev"]


def test_efa_clients_mount_after_their_efa_unit_and_check_it():
    script = mount_lustre(OVER_EFA, P5EN)
    assert "x-systemd.after=configure-efa-fsx-lustre-client.service" in script
    assert "systemctl is-active --quiet configure-efa-fsx-lustre-client.service" in script
    assert "lnetctl net show --net efa | grep -q 'status: up'" in script


@pytest.mark.parametrize(("mount", "hardware"), [(OVER_TCP, P5EN), (OVER_EFA, None)])
def test_without_efa_on_both_sides_nothing_of_efa_is_set_up(mount, hardware):
    assert "efa-" not in mount_lustre(mount, hardware)
    assert "lnetctl" not in mount_lustre(mount, hardware)


def test_the_client_is_tuned_by_its_memory_and_vcpus():
    large, small = mount_lustre(OVER_TCP, P5EN), mount_lustre(OVER_TCP, P5_SMALL)
    assert "ldlm.namespaces.*.lru_size=19200" in large
    assert "ptlrpcd_per_cpt_max=32" in large
    assert "ldlm.namespaces.*.lru_size=1600" in small
    assert "ptlrpcd_per_cpt_max" not in small


def test_user_data_stays_below_the_16_kib_that_ec2_takes():
    parts = [protect_slurmd(), raid0_instance_store(), mount_lustre(OVER_EFA, P5EN)]
    assert len(user_data(parts).encode()) < 16 * 1024
