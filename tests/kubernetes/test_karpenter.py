"""Karpenter's release and pools."""

import re
from email import message_from_string

import pytest

from tests.kubernetes.environments import P5, eks_environment
from tests.kubernetes.schemas import Refused, check
from ultracluster.catalog import catalog
from ultracluster.catalog.eks import KUBERNETES_VERSIONS
from ultracluster.kubernetes.deployed import DeployedResources, KarpenterResources
from ultracluster.kubernetes.karpenter import karpenter_pools, karpenter_release, pool_name
from ultracluster.kubernetes.labels import DEVICE_STACK, GPU, GPU_TAINT, NODE_GROUP, OPERANDS, SYSTEM

RESOURCES = KarpenterResources(
    "queue", "NodeRole", "subnet-0nodes", ("subnet-0a", "subnet-0b"), "sg-0efa", "sg-0cluster"
)
DEPLOYED = DeployedResources("test-1", karpenter=RESOURCES)
SOLD_ON_DEMAND = [name for name, hardware in catalog.items() if "on-demand" in hardware.usage_classes]
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def made(**settings):
    """Node classes and pools by name."""
    [found] = karpenter_pools(eks_environment(P5, lustre=True, karpenter=True, **settings), DEPLOYED)
    classes = {item["metadata"]["name"]: item["spec"] for item in found.items if item["kind"] == "EC2NodeClass"}
    pools = {item["metadata"]["name"]: item["spec"] for item in found.items if item["kind"] == "NodePool"}
    return found, classes, pools


@pytest.fixture(scope="module")
def everything():
    return made()


@pytest.fixture(scope="module")
def classes(everything):
    return everything[1]


@pytest.fixture(scope="module")
def pools(everything):
    return everything[2]


def gpu_pools(pools):
    return {name: pool for name, pool in pools.items() if name != "elastic-cpu"}


def requirement(pool, key):
    [found] = [entry for entry in pool["template"]["spec"]["requirements"] if entry["key"].endswith(key)]
    return found["operator"], found["values"]


def test_every_object_follows_karpenters_crds(everything):
    found, _, _ = everything
    for item in found.items:
        if item["kind"] != "NodeOverlay":  # its CRD is not at hand
            check(item)


def test_the_crds_would_refuse_an_interface_of_type_efa(everything):
    found, _, _ = everything
    wrong = [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa"}]
    with pytest.raises(Refused):
        check({**found.items[0], "spec": {**found.items[0]["spec"], "networkInterfaces": wrong}})


def test_pools_are_applied_after_karpenter(everything):
    assert everything[0].after == ("karpenter",)


def test_each_pool_has_its_own_node_class_and_labels_its_nodes_with_its_name(classes, pools):
    assert (
        set(classes)
        == set(pools)
        == {"elastic-cpu", "elastic-g", *map(pool_name, catalog.values())} - {"elastic-p6e-gb200-36xlarge"}
    )
    for name, pool in pools.items():
        assert NAME.fullmatch(name)
        assert pool["template"]["spec"]["nodeClassRef"]["name"] == name
        assert pool["template"]["metadata"]["labels"][NODE_GROUP] == name


@pytest.mark.parametrize("instance_type", SOLD_ON_DEMAND)
def test_interfaces_follow_karpenters_rules_and_use_every_efa_card(classes, instance_type):
    hardware = catalog[instance_type]
    interfaces = classes[pool_name(hardware)]["networkInterfaces"]
    places = [(entry["networkCardIndex"], entry["deviceIndex"]) for entry in interfaces]
    efa = [entry["networkCardIndex"] for entry in interfaces if entry["interfaceType"] == "efa-only"]
    assert interfaces[0] == {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    assert len(set(places)) == len(places)
    assert sorted(efa) == sorted(set(efa)) == list(hardware.efa.cards)


@pytest.mark.parametrize("instance_type", SOLD_ON_DEMAND)
def test_a_p_pool_never_has_more_than_two_nodes(pools, instance_type):
    hardware = catalog[instance_type]
    pool = pools[pool_name(hardware)]
    assert requirement(pool, "instance-type") == ("In", [instance_type])
    assert int(pool["limits"][GPU]) == 2 * hardware.gpu_count


def test_every_pool_has_a_limit_and_is_on_demand(pools):
    for pool in pools.values():
        assert pool["limits"]
        assert requirement(pool, "capacity-type") == ("In", ["on-demand"])


def test_gpu_nodes_are_tainted_labelled_and_in_the_environments_zone(pools):
    for pool in gpu_pools(pools).values():
        assert pool["template"]["spec"]["taints"] == [GPU_TAINT]
        assert requirement(pool, "zone") == ("In", ["us-east-2b"])
        assert pool["template"]["metadata"]["labels"][DEVICE_STACK] == "gpu_operator"
    assert "taints" not in pools["elastic-cpu"]["template"]["spec"]


def test_gpu_nodes_are_removed_only_when_empty(pools):
    for pool in gpu_pools(pools).values():
        assert pool["disruption"]["consolidationPolicy"] == "WhenEmpty"
        assert pool["disruption"]["budgets"] == [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}]
        assert pool["template"]["spec"]["expireAfter"] == "Never"


def test_smaller_nodes_have_higher_weights(pools):
    weights = {name: pool["weight"] for name, pool in gpu_pools(pools).items()}
    by_weight = sorted(weights, key=lambda name: -weights[name])
    assert by_weight[:2] == ["elastic-g", "elastic-p5-4xlarge"]


def test_cpu_nodes_are_of_the_sixth_generation_or_newer(pools):
    cpu = pools["elastic-cpu"]
    assert requirement(cpu, "instance-category") == ("In", ["c", "m", "r"])
    assert requirement(cpu, "instance-generation") == ("Gt", ["5"])


def test_the_pool_of_g_families_has_no_efa(classes, pools):
    assert [entry["interfaceType"] for entry in classes["elastic-g"]["networkInterfaces"]] == ["interface"]
    assert requirement(pools["elastic-g"], "instance-family") == ("In", ["g5", "g6", "g6e", "gr6", "g7e"])


def test_pools_use_the_subnets_and_security_groups_of_the_network(classes):
    def place(name):
        spec = classes[name]
        terms = (spec["subnetSelectorTerms"], spec["securityGroupSelectorTerms"])
        return tuple([term["id"] for term in found] for found in terms)

    assert place("elastic-cpu") == (["subnet-0a", "subnet-0b"], ["sg-0cluster"])
    assert place("elastic-g") == (["subnet-0nodes"], ["sg-0cluster"])
    assert place("elastic-p5en-48xlarge") == (["subnet-0nodes"], ["sg-0efa", "sg-0cluster"])


def test_nodes_require_imdsv2_and_encrypted_volumes(classes):
    for spec in classes.values():
        assert spec["metadataOptions"]["httpTokens"] == "required"
        [volume] = [mapping["ebs"] for mapping in spec["blockDeviceMappings"]]
        assert (volume["encrypted"], volume["volumeType"]) == (True, "gp3")
        assert spec["role"] == "NodeRole"


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_amis_are_of_the_release_that_the_catalogue_pins(version):
    _, classes, _ = made(kubernetes_version=version)
    release = KUBERNETES_VERSIONS[version].image_release
    for spec in classes.values():
        [term] = spec["amiSelectorTerms"]
        family, _, alias = term["alias"].partition("@v")
        assert family == "al2023"
        assert release.endswith(f"-{alias}")


def test_user_data_installs_the_lustre_client_and_prepares_efa(classes):
    def scripts(name):
        document = message_from_string(classes[name]["userData"])
        return "".join(part.get_payload() for part in document.get_payload())

    for name in classes:
        assert "dnf install -y lustre-client" in scripts(name)
    assert "LimitMEMLOCK" in scripts("elastic-p5-48xlarge")
    assert "LimitMEMLOCK" not in scripts("elastic-g")


@pytest.mark.parametrize("stacks", ["device_plugin", {"device_plugin": ["train"]}], ids=["for all", "by group"])
def test_nodes_are_labelled_with_the_clusters_device_stack(stacks):
    _, _, pools = made(device_stack=stacks)
    labels = pools["elastic-g"]["template"]["metadata"]["labels"]
    assert (labels[DEVICE_STACK], labels[OPERANDS]) == ("device_plugin", "false")


def test_without_karpenter_there_are_no_pools():
    assert karpenter_pools(eks_environment(), DeployedResources("test-1")) == ()


def test_without_karpenter_there_is_no_release():
    assert karpenter_release(eks_environment(), DeployedResources("test-1")) is None


def test_karpenter_runs_on_system_nodes_and_reads_its_interruption_queue():
    release = karpenter_release(eks_environment(karpenter=True), DEPLOYED)
    assert release is not None
    assert release.values["nodeSelector"] == {NODE_GROUP: SYSTEM}
    assert release.values["settings"]["clusterName"] == "test-1"
    assert release.values["settings"]["interruptionQueue"] == "queue"
    assert release.values["serviceAccount"]["name"] == "karpenter"
    assert release.chart.namespace == "kube-system"


def test_karpenter_knows_its_region_without_the_instance_metadata():
    environment = eks_environment(karpenter=True)
    release = karpenter_release(environment, DEPLOYED)
    assert release is not None
    assert release.values["controller"]["env"] == [{"name": "AWS_REGION", "value": environment.region}]


def test_karpenters_replicas_fit_the_fewest_system_nodes():
    """Its chart allows one replica on a node."""
    environment = eks_environment(karpenter=True, system_nodes={"count": 2})
    release = karpenter_release(eks_environment(karpenter=True), DEPLOYED)
    assert release is not None
    assert release.values["replicas"] <= environment.settings.system_nodes.count


def test_karpenter_knows_the_huge_pages_of_p_nodes(everything):
    """Otherwise it launches no node for a job that requests them (karpenter-provider-aws issue 3315)."""
    found, _, pools = everything
    (overlay,) = [item for item in found.items if item["kind"] == "NodeOverlay"]
    assert overlay["apiVersion"] == "karpenter.sh/v1alpha1"
    assert overlay["spec"].keys() == {"requirements", "capacity"}
    assert overlay["spec"]["capacity"] == {"hugepages-2Mi": "10256Mi"}
    [only] = overlay["spec"]["requirements"]
    assert (only["key"], only["operator"]) == ("karpenter.sh/nodepool", "In")
    assert set(only["values"]) == {name for name in pools if name.startswith("elastic-p")}
    release = karpenter_release(eks_environment(karpenter=True), DEPLOYED)
    assert release.values["settings"]["featureGates"]["nodeOverlay"] is True


def test_karpenter_repairs_no_node():
    release = karpenter_release(eks_environment(karpenter=True), DEPLOYED)
    assert release is not None
    assert not release.values["settings"]["featureGates"].get("nodeRepair")
