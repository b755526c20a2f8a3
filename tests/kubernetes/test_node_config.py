"""What EKS nodes are told at their first boot."""

import json
import os
import subprocess
from email import message_from_string

import jsonschema
import pytest
import yaml

from tests.kubernetes.environments import eks_environment
from tests.kubernetes.schemas import CRDS, closed
from ultracluster.catalog import catalog
from ultracluster.config.storage import Lustre
from ultracluster.kubernetes.node_config import (
    ClusterEndpoint,
    elastic_node_user_data,
    gpu_node_user_data,
    huge_pages,
    locked_memory,
    lustre_client,
    system_node_user_data,
)

CRD = CRDS / "node.eks.aws_nodeconfigs.yaml"
OVER_EFA = Lustre(capacity_gib=9600, throughput_mbps_per_tib=500, efa=True)
OVER_TCP = Lustre(capacity_gib=9600, throughput_mbps_per_tib=500)
LABELS = {"ultracluster/node-group": "train", "nvidia.com/gpu.deploy.operands": "false"}
CLUSTER = ClusterEndpoint("prod-1", "https://x.eks.amazonaws.com", "Y2VydA==", "172.20.0.0/16")

PODS_BY_TYPE = {
    "p5.48xlarge": 51,
    "p5e.48xlarge": 51,
    "p5en.48xlarge": 149,
    "p6-b200.48xlarge": 149,
    "p6-b300.48xlarge": None,
    "p6e-gb200.36xlarge": None,
}
"""Pods with an address where EFA sits on card 0 (VPC CNI's eni-max-pods.txt, one interface less); else EKS's count."""


def group(instance_type="p5en.48xlarge", **settings):
    [found] = eks_environment({"train": instance_type}).node_groups
    return found.model_copy(update=settings)


def parts(text):
    document = message_from_string(text)
    assert not document.defects
    return [(part.get_content_type(), part.get_payload()) for part in document.get_payload()]


def node_config(text):
    [config] = [json.loads(content) for kind, content in parts(text) if kind == "application/node.eks.aws"]
    return config


def scripts(text):
    return [content for kind, content in parts(text) if kind == "text/x-shellscript"]


EVERY_DOCUMENT = {
    "custom image": gpu_node_user_data(group(image="ami-0123456789abcdef0"), LABELS, lustre=OVER_EFA, cluster=CLUSTER),
    "no disks": gpu_node_user_data(group(local_storage="none"), LABELS, lustre=None, cluster=None),
    "system": system_node_user_data(lustre=OVER_TCP),
    "elastic": elastic_node_user_data(catalog["p5.48xlarge"], lustre=OVER_EFA),
    "elastic without EFA": elastic_node_user_data(None, lustre=OVER_TCP),
    **{name: gpu_node_user_data(group(name), LABELS, lustre=OVER_EFA, cluster=None) for name in catalog},
}


@pytest.fixture(scope="module")
def schema():
    if not CRD.exists():
        pytest.skip("the CRD of nodeadm is not beside the project")
    crd = yaml.safe_load(CRD.read_text("utf-8"))
    found = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    # the CRD has an object for each value of a kubelet setting, which nodeadm reads as whatever it is
    found["properties"]["spec"]["properties"]["kubelet"]["properties"]["config"] = {"type": "object"}
    return closed(found)


@pytest.mark.parametrize("text", EVERY_DOCUMENT.values(), ids=EVERY_DOCUMENT)
def test_every_node_config_is_one_that_nodeadm_reads(text, schema):
    jsonschema.validate(node_config(text), schema)


def test_the_schema_would_see_a_setting_at_the_wrong_place(schema):
    config = node_config(EVERY_DOCUMENT["system"])
    config["spec"]["kubelet"]["maxPods"] = 5
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, schema)


@pytest.mark.parametrize("text", EVERY_DOCUMENT.values(), ids=EVERY_DOCUMENT)
def test_half_of_the_16_kib_that_ec2_takes_is_left_to_eks(text):
    assert len(text.encode()) < 8 * 1024


@pytest.mark.parametrize("text", EVERY_DOCUMENT.values(), ids=EVERY_DOCUMENT)
def test_every_script_is_valid_bash_that_stops_at_the_first_failure(text):
    for script in scripts(text):
        assert script.startswith("#!/bin/bash\nset -euo pipefail\n")
        checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_local_disks_are_joined_where_the_group_asks_for_it():
    assert node_config(EVERY_DOCUMENT["p5en.48xlarge"])["spec"]["instance"] == {"localStorage": {"strategy": "RAID0"}}
    assert "instance" not in node_config(EVERY_DOCUMENT["no disks"])["spec"]


@pytest.mark.parametrize(("name", "pods"), PODS_BY_TYPE.items())
def test_a_node_takes_no_more_pods_than_card_0_has_addresses_for(name, pods):
    assert node_config(EVERY_DOCUMENT[name])["spec"]["kubelet"]["config"].get("maxPods") == pods


def test_an_image_of_ones_own_is_told_the_cluster_and_registers_with_taint_and_labels():
    spec = node_config(EVERY_DOCUMENT["custom image"])["spec"]
    assert spec["cluster"] == {
        "name": "prod-1",
        "apiServerEndpoint": "https://x.eks.amazonaws.com",
        "certificateAuthority": "Y2VydA==",
        "cidr": "172.20.0.0/16",
    }
    assert spec["kubelet"]["flags"] == [
        "--register-with-taints=nvidia.com/gpu=present:NoSchedule",
        "--node-labels=ultracluster/node-group=train,nvidia.com/gpu.deploy.operands=false",
    ]


def test_eks_tells_its_own_image_the_cluster_taints_and_labels():
    spec = node_config(EVERY_DOCUMENT["p5en.48xlarge"])["spec"]
    assert "cluster" not in spec
    assert "flags" not in spec["kubelet"]


def test_only_nodes_with_efa_set_memory_aside():
    def sets_aside(text):
        return "hugepages-2048kB" in text, "LimitMEMLOCK=infinity" in text

    assert sets_aside(EVERY_DOCUMENT["p5en.48xlarge"]) == (True, True)
    assert sets_aside(EVERY_DOCUMENT["elastic without EFA"]) == (False, False)
    assert sets_aside(EVERY_DOCUMENT["system"]) == (False, False)


def test_without_a_file_system_no_lustre_client_is_installed():
    assert "lustre" not in EVERY_DOCUMENT["no disks"]
    assert "dnf install -y lustre-client" in EVERY_DOCUMENT["system"]


@pytest.fixture
def node(tmp_path):
    """Runs a script on a node that stands in a folder: its /etc and /sys are there, and its commands are `commands`."""

    def run(script, **commands):
        for folder in ("etc/modprobe.d", "etc/systemd/system", "etc/tmpfiles.d", "bin", "root"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name, body in {"sleep": "exit 0", **commands}.items():
            command = tmp_path / "bin" / name.replace("_", "-")
            command.write_text(f"#!/bin/bash\n{body}\n")
            command.chmod(0o755)
        for root in ("/etc/", "/sys/", "/root"):
            script = script.replace(f" {root}", f" {tmp_path}{root}").replace(f"={root}", f"={tmp_path}{root}")
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash"], input=script, text=True, capture_output=True, cwd=tmp_path, env={"PATH": path}, timeout=20
        )

    return run


NO_EFA = "case $1 in is-active) exit 3;; *) exit 0;; esac"


def test_a_node_whose_efa_client_does_not_start_says_so_and_mounts_over_tcp(node, tmp_path):
    ran = node(lustre_client(catalog["p5en.48xlarge"], efa=True), rpm="exit 0", systemctl=NO_EFA, curl="exit 22")
    assert ran.returncode == 0
    assert "Lustre runs over TCP" in ran.stderr
    assert (tmp_path / "etc/systemd/system/lustre-tuning.timer").exists()


def test_a_node_whose_efa_client_starts_says_nothing(node):
    ran = node(lustre_client(catalog["p5en.48xlarge"], efa=True), rpm="exit 0", systemctl="exit 0", curl="exit 1")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_client_that_cannot_be_installed_fails_its_script_alone(node):
    ran = node(lustre_client(None, efa=False), rpm="exit 1", dnf="exit 1")
    assert ran.returncode != 0


def test_large_clients_are_tuned_after_every_mount(node, tmp_path):
    node(lustre_client(catalog["p5en.48xlarge"], efa=False), rpm="exit 0", systemctl="exit 0")
    service = (tmp_path / "etc/systemd/system/lustre-tuning.service").read_text()
    assert "ExecStart=-/usr/sbin/lctl set_param ldlm.namespaces.*.lru_size=19200\n" in service
    assert "options ksocklnd credits=2560\n" in (tmp_path / "etc/modprobe.d/lustre-tuning.conf").read_text()
    assert "OnUnitActiveSec=1min" in (tmp_path / "etc/systemd/system/lustre-tuning.timer").read_text()


@pytest.mark.parametrize(("found", "warns"), [(5128, False), (4000, True)])
def test_huge_pages_are_set_at_every_boot_and_missed_ones_are_told(node, tmp_path, found, warns):
    pages = tmp_path / "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    pages.parent.mkdir(parents=True)
    pages.write_text(f"{found}\n")
    ran = node(huge_pages(), systemd_tmpfiles="exit 0")
    assert ran.returncode == 0
    assert (tmp_path / "etc/tmpfiles.d/huge-pages.conf").read_text() == f"w {pages} - - - - 5128\n"
    assert ("only 4000 of 5128" in ran.stderr) == warns


def test_containers_may_lock_all_memory(node, tmp_path):
    assert node(locked_memory(), systemctl="exit 0").returncode == 0
    drop_in = tmp_path / "etc/systemd/system/containerd.service.d/locked-memory.conf"
    assert drop_in.read_text() == "[Service]\nLimitMEMLOCK=infinity\n"


@pytest.mark.parametrize("hardware", [catalog["p5en.48xlarge"], None])
def test_scripts_can_run_twice(node, hardware):
    script = lustre_client(hardware, efa=True)
    for _ in range(2):
        assert node(script, rpm="exit 0", systemctl="exit 0").returncode == 0
