"""User data of EKS nodes: the NodeConfig, and what the scripts do when they run."""

import json
from email import message_from_string

import jsonschema
import pytest
import yaml

from tests.kubernetes.environments import eks_environment
from tests.kubernetes.schemas import CRDS, closed
from tests.unit.nodes.machine import syntax_errors
from ultracluster.catalog import catalog
from ultracluster.config.storage import Lustre
from ultracluster.nodes.eks import (
    ClusterEndpoint,
    gpu_node_user_data,
    huge_pages,
    karpenter_node_user_data,
    locked_memory,
    system_node_user_data,
)

CRD = CRDS / "node.eks.aws_nodeconfigs.yaml"
OVER_EFA = Lustre(capacity_gib=9600, throughput_mbps_per_tib=500, efa=True)
OVER_TCP = Lustre(capacity_gib=9600, throughput_mbps_per_tib=500)
LABELS = {"ultracluster/node-group": "train", "nvidia.com/gpu.deploy.operands": "false"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
CLUSTER = ClusterEndpoint("prod-1", "https://x.eks.amazonaws.com", "Y2VydA==", "172.20.0.0/16")

PODS_BY_TYPE = {
    "p5.48xlarge": 51,
    "p5e.48xlarge": 51,
    "p5en.48xlarge": 149,
    "p6-b200.48xlarge": 149,
    "p6-b300.48xlarge": None,
    "p6e-gb200.36xlarge": None,
}
"""maxPods where EFA uses card 0 (eni-max-pods.txt of the VPC CNI, one interface less); None for EKS's own figure."""


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


def gpu_node(group, *, lustre=OVER_EFA, cluster=None):
    return gpu_node_user_data(group, labels=LABELS, taint=TAINT, lustre=lustre, cluster=cluster)


EVERY_DOCUMENT = {
    "custom image": gpu_node(group(image="ami-0123456789abcdef0"), cluster=CLUSTER),
    "no disks": gpu_node(group(local_storage="none"), lustre=None),
    "system": system_node_user_data(lustre=OVER_TCP),
    "karpenter": karpenter_node_user_data(catalog["p5.48xlarge"], lustre=OVER_EFA),
    "karpenter without EFA": karpenter_node_user_data(None, lustre=OVER_TCP),
    **{name: gpu_node(group(name)) for name in catalog},
}


@pytest.fixture(scope="module")
def schema():
    if not CRD.exists():
        pytest.skip("the CRD of nodeadm is not beside the project")
    crd = yaml.safe_load(CRD.read_text("utf-8"))
    found = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    # the CRD types every value of a kubelet setting as an object, but nodeadm accepts any type
    found["properties"]["spec"]["properties"]["kubelet"]["properties"]["config"] = {"type": "object"}
    return closed(found)


@pytest.mark.parametrize("text", EVERY_DOCUMENT.values(), ids=EVERY_DOCUMENT)
def test_every_node_config_follows_the_schema_of_nodeadm(text, schema):
    jsonschema.validate(node_config(text), schema)


def test_the_schema_refuses_a_misplaced_setting(schema):
    config = node_config(EVERY_DOCUMENT["system"])
    config["spec"]["kubelet"]["maxPods"] = 5
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, schema)


@pytest.mark.parametrize("text", EVERY_DOCUMENT.values(), ids=EVERY_DOCUMENT)
def test_user_data_uses_at_most_half_of_the_16_kib_limit_of_ec2(text):
    assert len(text.encode()) < 8 * 1024


@pytest.mark.parametrize("text", EVERY_DOCUMENT.values(), ids=EVERY_DOCUMENT)
def test_every_script_is_valid_bash_that_stops_at_the_first_failure(text):
    assert all(script.startswith("#!/bin/bash\nset -euo pipefail\n") for script in scripts(text))
    assert syntax_errors(scripts(text)) == []


def test_the_instance_store_is_raid0_if_the_group_asks_for_it():
    assert node_config(EVERY_DOCUMENT["p5en.48xlarge"])["spec"]["instance"] == {"localStorage": {"strategy": "RAID0"}}
    assert "instance" not in node_config(EVERY_DOCUMENT["no disks"])["spec"]


@pytest.mark.parametrize(("name", "pods"), PODS_BY_TYPE.items())
def test_max_pods_is_limited_by_the_addresses_of_card_0(name, pods):
    assert node_config(EVERY_DOCUMENT[name])["spec"]["kubelet"]["config"].get("maxPods") == pods


def test_a_custom_ami_gets_the_cluster_and_registers_with_taint_and_labels():
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


def test_an_ami_of_eks_gets_cluster_taint_and_labels_from_eks():
    spec = node_config(EVERY_DOCUMENT["p5en.48xlarge"])["spec"]
    assert "cluster" not in spec
    assert "flags" not in spec["kubelet"]


def test_only_nodes_with_efa_have_huge_pages_and_unlimited_locked_memory():
    def sets_aside(text):
        return "hugepages-2048kB" in text, "LimitMEMLOCK=infinity" in text

    assert sets_aside(EVERY_DOCUMENT["p5en.48xlarge"]) == (True, True)
    assert sets_aside(EVERY_DOCUMENT["karpenter without EFA"]) == (False, False)
    assert sets_aside(EVERY_DOCUMENT["system"]) == (False, False)


def test_without_a_file_system_no_lustre_client_is_installed():
    assert "lustre" not in EVERY_DOCUMENT["no disks"]
    assert "dnf install -y lustre-client" in EVERY_DOCUMENT["system"]


PAGES = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"


@pytest.mark.parametrize(("found", "warns"), [(5128, False), (4000, True)])
def test_huge_pages_are_set_at_every_boot_and_a_shortage_is_reported(machine, found, warns):
    machine.write(PAGES, f"{found}\n")
    ran = machine.run(huge_pages())
    assert ran.returncode == 0
    assert machine.read("etc/tmpfiles.d/huge-pages.conf") == f"w {machine.root}/{PAGES} - - - - 5128\n"
    assert ("only 4000 of 5128" in ran.stderr) == warns


def test_huge_pages_that_cannot_be_set_fail_their_script(machine):
    machine.write(PAGES, "0\n")
    assert machine.run(huge_pages(), systemd_tmpfiles="exit 73").returncode == 73


def test_locked_memory_of_containers_is_unlimited(machine):
    assert machine.run(locked_memory()).returncode == 0
    drop_in = machine.read("etc/systemd/system/containerd.service.d/locked-memory.conf")
    assert drop_in == "[Service]\nLimitMEMLOCK=infinity\n"
    assert machine.commands("systemctl") == ["systemctl daemon-reload"]


@pytest.mark.parametrize("name", ["p5en.48xlarge", "system", "karpenter"])
def test_all_scripts_of_a_node_run_at_first_boot_and_again(machine, name):
    machine.write(PAGES, "5128\n")
    for _ in range(2):
        for script in scripts(EVERY_DOCUMENT[name]):
            ran = machine.run(script)
            assert (ran.returncode, ran.stderr) == (0, "")
