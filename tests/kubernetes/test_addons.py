from tests.kubernetes.environments import eks_environment
from tests.kubernetes.schemas import check
from ultracluster.config.eks import POD_ADDRESSES
from ultracluster.kubernetes.addons import cluster_addons
from ultracluster.kubernetes.labels import GPU_TAINT


def made(**environment):
    return {addon.addon.name: addon for addon in cluster_addons(eks_environment(**environment).storage)}


def test_a_node_needs_its_network_and_identity_before_it_is_ready():
    before = {name for name, addon in made().items() if addon.before_nodes}
    assert before == {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}


def test_what_comes_before_the_nodes_is_listed_first():
    flags = [addon.before_nodes for addon in cluster_addons(eks_environment(lustre=True, buckets=["datasets"]).storage)]
    assert flags == sorted(flags, reverse=True)


def test_storage_drivers_come_with_the_storage_they_serve():
    drivers = {"aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver"}
    assert not drivers & set(made())
    assert drivers & set(made(lustre=True)) == {"aws-fsx-csi-driver"}
    assert drivers & set(made(buckets=["datasets"])) == {"aws-mountpoint-s3-csi-driver"}


def test_the_network_plugin_holds_as_many_addresses_as_the_subnet_was_planned_for():
    environment = made()["vpc-cni"].configuration["env"]
    assert int(environment["MINIMUM_IP_TARGET"]) == POD_ADDRESSES
    assert 0 < int(environment["WARM_IP_TARGET"]) < POD_ADDRESSES


def test_the_network_plugins_environment_is_text():
    """EKS's schema of the add-on refuses numbers."""
    container = {"name": "aws-node", "image": "registry.example/cni:1"}
    env = [{"name": name, "value": value} for name, value in made()["vpc-cni"].configuration["env"].items()]
    spec = {"containers": [{**container, "env": env}]}
    check({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cni"}, "spec": spec})


def test_the_monitoring_agent_looks_into_gpus():
    (toleration,) = made()["eks-node-monitoring-agent"].configuration["dcgmAgent"]["tolerations"]
    assert (toleration["key"], toleration["effect"]) == (GPU_TAINT["key"], GPU_TAINT["effect"])
    assert toleration["operator"] == "Exists"


def test_buckets_are_mounted_on_gpu_nodes_too():
    driver = made(buckets=["datasets"])["aws-mountpoint-s3-csi-driver"]
    assert driver.configuration["node"]["tolerateAllTaints"]


def test_dns_stays_off_gpu_nodes():
    assert "tolerations" not in made()["coredns"].configuration
