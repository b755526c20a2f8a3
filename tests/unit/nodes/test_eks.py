"""User data of EKS nodes: the NodeConfig, and what the scripts do when they run."""

import json
from email import message_from_string

import jsonschema
import pytest
import yaml

from tests.kubernetes.environments import eks_environment
from tests.kubernetes.schemas import OWN_CRDS, closed
from tests.unit.nodes.machine import Machine, syntax_errors
from ultracluster.catalog import catalog
from ultracluster.config.lustre import Lustre
from ultracluster.nodes.eks import (
    ClusterEndpoint,
    cpu_node_user_data,
    group_user_data,
    karpenter_node_user_data,
    system_node_user_data,
)
from ultracluster.nodes.steps import Step

CRD = OWN_CRDS / "node.eks.aws_nodeconfigs.yaml"
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
    return group_user_data(group, labels=LABELS, taints=[TAINT], lustre=lustre, cluster=cluster)


EVERY_DOCUMENT = {
    "custom image": gpu_node(group(image="ami-0123456789abcdef0"), cluster=CLUSTER),
    "no disks": gpu_node(group(local_storage="none"), lustre=None),
    "system": system_node_user_data(lustre=OVER_TCP),
    "cpu": cpu_node_user_data(lustre=OVER_TCP),
    "karpenter": karpenter_node_user_data(catalog["p5.48xlarge"], lustre=OVER_EFA),
    "karpenter without EFA": karpenter_node_user_data(None, lustre=OVER_TCP),
    **{name: gpu_node(group(name)) for name in catalog},
}


@pytest.fixture(scope="module")
def schema():
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
def test_user_data_leaves_room_for_what_eks_and_karpenter_add(text):
    """EC2 takes 16 KiB. The part with the cluster's endpoint and certificate has about 2 KiB."""
    assert len(text.encode()) < 12 * 1024


@pytest.mark.parametrize("text", EVERY_DOCUMENT.values(), ids=EVERY_DOCUMENT)
def test_every_script_is_valid_bash(text):
    assert all(script.startswith("#!/bin/bash\nset -uo pipefail\n") for script in scripts(text))
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


HUGE_PAGES = Step("allocate-huge-pages", ("5128",))
READY = "var/lib/cloud/instance/ultracluster-ready"
KUBELET = "[Service]\nExecStart=/usr/bin/true\n"


@pytest.fixture
def eks_machine(tmp_path):
    """A machine of EKS: dnf, cloud-init's folder of the instance, huge pages, and a kubelet."""
    machine = Machine(tmp_path, apt=False)
    machine.write(PAGES, "5128\n")
    machine.write("etc/systemd/system/kubelet.service", KUBELET)
    (machine.root / READY).parent.mkdir(parents=True)
    machine.systemctl("daemon-reload")
    return machine


def boot(machine, name, **failing):
    """Runs the boot script of a node; returns what it printed on standard error."""
    (text,) = scripts(EVERY_DOCUMENT[name])
    ran = machine.run(text, **failing)
    return ran.stderr


def joins(machine):
    """Whether the kubelet starts when nodeadm starts it."""
    machine.systemctl("start", "kubelet.service")
    return machine.systemctl("is-active", "kubelet.service") == 0


def powered_off(machine):
    return "systemctl poweroff" in machine.commands("systemctl")


@pytest.mark.parametrize("found", ["4000", "0"])
def test_missing_huge_pages_are_allocated_at_every_boot_and_a_shortage_is_reported(machine, found):
    machine.write(PAGES, found)
    ran = machine.run(HUGE_PAGES)
    assert ran.returncode == 0
    assert machine.read("etc/tmpfiles.d/huge-pages.conf") == f"w {machine.root}/{PAGES} - - - - 5128\n"
    assert f"only {found} of 5128" in ran.stderr


def test_more_huge_pages_of_the_image_stay(machine):
    machine.write(PAGES, "5634")
    assert machine.run(HUGE_PAGES).returncode == 0
    assert machine.commands("systemd-tmpfiles") == []


def test_huge_pages_that_cannot_be_set_fail_their_step(machine):
    machine.write(PAGES, "0")
    assert machine.run(HUGE_PAGES, systemd_tmpfiles="exit 73").returncode == 73


def test_locked_memory_of_containers_is_unlimited(machine):
    assert machine.run(Step("allow-locked-memory")).returncode == 0
    drop_in = machine.read("etc/systemd/system/containerd.service.d/locked-memory.conf")
    assert drop_in == "[Service]\nLimitMEMLOCK=infinity\n"
    assert machine.commands("systemctl") == ["systemctl daemon-reload"]


def test_images_cannot_ask_for_gpus(machine):
    toolkit = {"nvidia_container_runtime": "exit 0", "nvidia_ctk": "exit 0"}
    assert machine.run(Step("hold-gpus"), **toolkit).returncode == 0
    (command,) = machine.commands("nvidia-ctk")
    assert "accept-nvidia-visible-devices-envvar-when-unprivileged=false" in command
    assert "accept-nvidia-visible-devices-as-volume-mounts=true" in command
    assert machine.run(Step("hold-gpus"), **{**toolkit, "nvidia_ctk": "exit 1"}).returncode == 1


def test_a_node_without_the_toolkit_has_nothing_to_hold(machine):
    assert machine.run(Step("hold-gpus")).returncode == 0
    assert machine.commands("nvidia-ctk") == []


def test_gpus_are_held_before_the_node_joins_wherever_it_may_have_some():
    held = {name for name, text in EVERY_DOCUMENT.items() if "nvidia-ctk" in text}
    assert {"p5en.48xlarge", "karpenter", "karpenter without EFA"} <= held
    assert "system" not in held


@pytest.mark.parametrize("name", ["p5en.48xlarge", "system", "karpenter", "karpenter without EFA"])
def test_a_node_on_which_every_step_succeeds_joins_and_joins_again_after_a_reboot(eks_machine, name):
    assert boot(eks_machine, name) == ""
    assert joins(eks_machine)
    eks_machine.reboot()
    assert joins(eks_machine)
    assert not powered_off(eks_machine)


@pytest.mark.parametrize("name", ["p5en.48xlarge", "karpenter"])
@pytest.mark.parametrize(
    ("command", "step"),
    [
        ("mkdir", "allow-locked-memory"),
        ("systemd_tmpfiles", "allocate-huge-pages"),
        ("rpm", "install-lustre-client"),
    ],
)
def test_a_node_on_which_a_step_fails_powers_off_and_never_joins(eks_machine, name, command, step):
    if command == "systemd_tmpfiles":
        eks_machine.write(PAGES, "0")
    body = 'case "$*" in *containerd*) exit 1;; *) exec /bin/mkdir "$@";; esac' if command == "mkdir" else "exit 1"
    assert f"ultracluster: step {step} failed" in boot(eks_machine, name, **{command: body})
    assert powered_off(eks_machine)
    assert not joins(eks_machine)


def test_without_efa_for_lustre_a_node_reports_it_and_joins(tmp_path):
    machine = Machine(tmp_path, apt=False, efa=False)
    machine.write(PAGES, "5128")
    machine.write("etc/systemd/system/kubelet.service", KUBELET)
    (machine.root / READY).parent.mkdir(parents=True)
    assert "ultracluster: step set-up-lustre-efa failed" in boot(machine, "p5en.48xlarge")
    assert joins(machine)
    assert "lustre-tuning.timer" in machine.read("systemd/enabled")


def test_a_cpu_node_on_which_a_step_fails_powers_off(eks_machine):
    boot(eks_machine, "cpu", rpm="exit 1")
    assert powered_off(eks_machine)
    assert not joins(eks_machine)


def test_a_system_node_joins_even_if_a_step_fails(eks_machine):
    assert "step install-lustre-client failed" in boot(eks_machine, "system", rpm="exit 1")
    assert joins(eks_machine)
    assert not powered_off(eks_machine)


def test_an_image_of_a_node_that_joined_is_guarded_like_any_other(eks_machine):
    boot(eks_machine, "p5en.48xlarge")
    (eks_machine.root / READY).unlink()  # cloud-init starts a folder for the new instance
    assert not joins(eks_machine)


def test_inlined_scripts_keep_the_first_line_of_files_that_they_write():
    text = EVERY_DOCUMENT["p5en.48xlarge"]
    assert "<<'WAIT'\n#!/bin/bash\n" in text
    assert "# the unit asks" not in text
