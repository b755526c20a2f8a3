"""User data of PCS nodes."""

from email import message_from_string

import pytest
import yaml

from tests.kubernetes.environments import eks_environment
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.pcs import compute_node_user_data, login_node_user_data, protect_slurmd

OVER_EFA = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=True)


def group(**settings):
    [found] = eks_environment({"train": "p5en.48xlarge"}).node_groups
    return found.model_copy(update=settings)


def parts(text):
    document = message_from_string(text)
    assert not document.defects
    return [(part.get_content_type(), part.get_payload()) for part in document.get_payload()]


def test_the_parts_are_one_mime_multipart_document():
    document = message_from_string(compute_node_user_data(group(), None))
    kinds = [part.get_content_type() for part in document.walk()]
    assert kinds == ["multipart/mixed", "text/cloud-config", "text/x-shellscript"]
    assert not document.defects


def test_a_compute_node_joins_its_disks_before_it_mounts():
    _, (_, disks), (_, lustre) = parts(compute_node_user_data(group(), OVER_EFA))
    assert "mdadm --create" in disks
    assert "/etc/fstab" in lustre


def test_a_group_without_local_storage_joins_no_disks():
    assert "mdadm" not in compute_node_user_data(group(local_storage="none"), OVER_EFA)


def test_a_login_node_mounts_over_tcp_and_joins_no_disks():
    text = login_node_user_data(OVER_EFA)
    assert "/etc/fstab" in text
    assert "lnetctl" not in text
    assert "modprobe" not in text
    assert "mdadm" not in text


@pytest.mark.parametrize("text", [login_node_user_data(None), compute_node_user_data(group(), None)])
def test_every_node_keeps_needrestart_from_slurmd(text):
    kind, content = parts(text)[0]
    assert kind == "text/cloud-config"
    assert content.strip() == protect_slurmd().strip()
    (file,) = yaml.safe_load(content)["write_files"]
    assert file["path"] == "/etc/needrestart/conf.d/slurmd.conf"
    assert file["content"] == "$nrconf{override_rc}{qr(^slurmd)} = 0;\n"


def test_user_data_stays_below_the_16_kib_that_ec2_takes():
    assert len(compute_node_user_data(group(), OVER_EFA).encode()) < 16 * 1024
