"""EKS add-ons and their configuration."""

import pytest

from tests.kubernetes.environments import eks_environment
from tests.kubernetes.monitoring_agent import FATAL_XIDS, MonitoringAgent
from tests.kubernetes.schemas import check
from ultracluster.catalog.eks import REPAIRS
from ultracluster.cli import remains
from ultracluster.config.eks import POD_ADDRESSES
from ultracluster.kubernetes.addons import cluster_addons
from ultracluster.kubernetes.labels import GPU_TAINT, GPU_TOLERATION, NOT_ACCEPTED


def made(**environment):
    return {
        addon.addon.name: addon for addon in cluster_addons(eks_environment(**environment).storage, environment="test")
    }


def test_nodes_need_network_and_pod_identity_addons_to_become_ready():
    before = {name for name, addon in made().items() if addon.before_nodes}
    assert before == {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}


def test_addons_before_the_nodes_are_listed_first():
    storage = eks_environment(lustre=True, buckets=["datasets"]).storage
    flags = [addon.before_nodes for addon in cluster_addons(storage, environment="test")]
    assert flags == sorted(flags, reverse=True)


def test_storage_drivers_are_installed_with_their_storage():
    drivers = {"aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver"}
    assert not drivers & set(made())
    assert drivers & set(made(lustre=True)) == {"aws-fsx-csi-driver"}
    assert drivers & set(made(buckets=["datasets"])) == {"aws-mountpoint-s3-csi-driver"}


def test_the_vpc_cni_keeps_as_many_addresses_as_the_subnet_plan_counts():
    environment = made()["vpc-cni"].configuration["env"]
    assert int(environment["MINIMUM_IP_TARGET"]) == POD_ADDRESSES
    assert 0 < int(environment["WARM_IP_TARGET"]) < POD_ADDRESSES


def test_the_vpc_cni_enforces_network_policies():
    """EKS's schema of the add-on takes text."""
    assert made()["vpc-cni"].configuration["enableNetworkPolicy"] == "true"


def test_environment_variables_of_the_vpc_cni_are_strings():
    """EKS's schema of the add-on refuses numbers."""
    container = {"name": "aws-node", "image": "registry.example/cni:1"}
    env = [{"name": name, "value": value} for name, value in made()["vpc-cni"].configuration["env"].items()]
    spec = {"containers": [{**container, "env": env}]}
    check({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cni"}, "spec": spec})


def test_dcgm_of_the_monitoring_agent_runs_on_nodes_that_are_not_accepted_yet():
    agent = MonitoringAgent(made()["eks-node-monitoring-agent"].configuration)
    # full checks may hold the taint for minutes
    agent.run([GPU_TAINT, NOT_ACCEPTED], start=0, end=900)
    agent.run([GPU_TAINT], start=900, end=4000)
    assert agent.condition["status"] == "True"


def test_without_that_toleration_each_new_node_would_be_reported_for_ever():
    agent = MonitoringAgent({"dcgmAgent": {"tolerations": [GPU_TOLERATION]}})
    agent.run([GPU_TAINT, NOT_ACCEPTED], start=0, end=900)
    agent.run([GPU_TAINT], start=900, end=4000)
    assert (agent.condition["status"], agent.condition["reason"]) == ("False", "DCGMError")


@pytest.mark.parametrize("last", sorted(FATAL_XIDS - {79}))
def test_no_repair_of_ours_lets_a_later_reason_hide_a_gpu_that_is_gone(last):
    """The condition keeps the latest reason alone: with NoAction for it, EKS would leave the node."""
    agent = MonitoringAgent({})
    agent.xid(79, 0)
    agent.xid(last, 60)
    assert agent.condition["reason"] == f"NvidiaXID{last}Error"
    assert all(each.action != "NoAction" for each in REPAIRS if each.reason == agent.condition["reason"])


def test_the_s3_driver_runs_on_gpu_nodes_too():
    driver = made(buckets=["datasets"])["aws-mountpoint-s3-csi-driver"]
    assert driver.configuration["node"]["tolerateAllTaints"]


def test_volumes_of_pods_carry_the_tag_by_which_leftovers_are_found():
    tags = made()["aws-ebs-csi-driver"].configuration["controller"]["extraVolumeTags"]
    assert tags == {remains.TAG: "test"}


def test_coredns_does_not_run_on_gpu_nodes():
    tolerated = {entry["key"] for entry in made()["coredns"].configuration["tolerations"]}
    assert tolerated == {"CriticalAddonsOnly"}
