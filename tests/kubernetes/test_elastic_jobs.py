"""Jobs on GPU pools of Karpenter: whole nodes of one size, in the queue `elastic`."""

import pytest

from tests.kubernetes.fleet import fleet_file
from tests.kubernetes.kueue_rules import assigned_flavor
from tests.kubernetes.schemas import check
from ultracluster.catalog import instance_types
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.jobs import JobRefused, example_job
from ultracluster.kubernetes.karpenter import elastic_pools
from ultracluster.kubernetes.kueue_elastic import elastic_cohort, elastic_flavors, elastic_queues

POOLS = [
    {"name": "prep", "families": ["c7i"], "limits": {"cpus": 768}},
    {
        "name": "eval",
        "instance_types": ["g6e.24xlarge", "g6e.2xlarge", "g6e.12xlarge"],
        "purchase": ["spot", "on_demand"],
        "limits": {"gpus": 32},
    },
    {"name": "try", "instance_types": ["p5.48xlarge"], "efa": True, "limits": {"nodes": 2}},
]
OWN = {"karpenter": {"pools": POOLS}}


def printed(pool, gpus, settings=OWN, **options):
    objects = example_job(fleet_file(**settings), "research", gpus, node_group=pool, **options)
    for obj in objects:
        check(obj)
    return objects


def workload(objects):
    """The job itself."""
    (job,) = [obj for obj in objects if obj["kind"] in ("Job", "JobSet", "MPIJob")]
    return job


def pod_of(objects):
    spec = workload(objects)["spec"]
    return (spec.get("template") or spec["mpiReplicaSpecs"]["Worker"]["template"])["spec"]


@pytest.mark.parametrize("name", ["eval", "elastic-eval"])
def test_a_pool_takes_a_job_in_the_queue_of_elastic_nodes(name):
    job = workload(printed(name, 8))
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "elastic"
    assert pod_of([job])["nodeSelector"]["ultracluster/node-group"] == "elastic-eval"
    # Kueue would wait for nodes with a topology, which do not exist yet
    assert "annotations" not in job["spec"]["template"].get("metadata", {})


@pytest.mark.parametrize(("gpus", "nodes", "each"), [(4, 1, 4), (8, 2, 4), (32, 8, 4), (6, 6, 1), (1, 1, 1)])
def test_the_largest_nodes_that_the_gpus_fill_are_taken(gpus, nodes, each):
    objects = printed("eval", gpus)
    assert workload(objects)["spec"]["parallelism"] == nodes
    assert pod_of(objects)["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == each


def test_a_pod_fits_the_smallest_type_with_its_gpus():
    smallest = instance_types["g6e.12xlarge"]
    requests = pod_of(printed("eval", 4))["containers"][0]["resources"]["requests"]
    assert requests["cpu"] < smallest.vcpus
    assert int(requests["memory"].removesuffix("Gi")) < smallest.memory_gib


def test_several_nodes_are_of_one_type_and_one_node_is_of_any():
    label = "node.kubernetes.io/instance-type"
    assert pod_of(printed("eval", 8))["nodeSelector"][label] == "g6e.12xlarge"
    assert label not in pod_of(printed("eval", 4))["nodeSelector"]
    assert label not in pod_of(printed("try", 16))["nodeSelector"]  # the pool has one type


def test_nodes_with_efa_give_every_device():
    limits = pod_of(printed("try", 16))["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32, "hugepages-2Mi": "5120Mi"}


@pytest.mark.parametrize(
    ("settings", "pool", "gpus"), [(OWN, "eval", 32), (OWN, "try", 16), ({"karpenter": True}, "g", 16)]
)
def test_kueue_admits_the_largest_job(settings, pool, gpus):
    view = EksEnvironment.from_environment(fleet_file(**settings))
    objects = printed(pool, gpus, settings)
    pod, pods = pod_of(objects), workload(objects)["spec"]["parallelism"]
    requests = {**pod["containers"][0]["resources"]["requests"]}
    requests.pop("hugepages-2Mi", None)
    total = {key: _times(value, pods) for key, value in requests.items()}
    queue = elastic_queues(view, view.teams[1])[0]
    flavors = {flavor["metadata"]["name"]: flavor for flavor in elastic_flavors(view)}
    found = assigned_flavor(
        queue, flavors, total, selector=pod["nodeSelector"], topology=None, shared=elastic_cohort(view)
    )
    assert found == pod["nodeSelector"]["ultracluster/node-group"]


def _times(amount, pods):
    return f"{int(amount.removesuffix('Gi')) * pods}Gi" if isinstance(amount, str) else amount * pods


def test_every_default_pool_with_gpus_takes_a_job():
    view = EksEnvironment.from_environment(fleet_file(karpenter=True))
    with_gpus = [pool for pool in elastic_pools(view) if pool.gpus]
    assert len(with_gpus) > 3
    for pool in with_gpus:
        job = printed(pool.name, pool.gpus, {"karpenter": True}, image="registry.example.com/mine:1")
        assert pod_of(job)["nodeSelector"]["ultracluster/node-group"] == pool.name


def test_the_launcher_of_a_test_of_nccl_is_beside_a_worker():
    job = printed("try", 16, {**OWN, "jobs": ["mpi"]}, kind="nccl-test")[-1]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "elastic"
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    assert launcher["nodeSelector"] == pod_of([job])["nodeSelector"]
    assert launcher["tolerations"] == pod_of([job])["tolerations"]
    asked = [each["containers"][0]["resources"]["requests"]["cpu"] for each in (launcher, pod_of([job]))]
    assert sum(asked) < instance_types["p5.48xlarge"].vcpus


@pytest.mark.parametrize(
    ("pool", "gpus", "said"),
    [
        ("eval", 33, "33 GPUs do not fit elastic-eval: its nodes have 1 or 4, and its limits allow 32 GPUs"),
        ("try", 12, "12 GPUs do not fit elastic-try: its nodes have 8, and its limits allow 16 GPUs"),
        ("try", 0, "0 GPUs do not fit elastic-try"),
        ("try", -8, "-8 GPUs do not fit elastic-try"),
        ("prep", 8, "elastic-prep has no GPUs; use --kind prepare --cpus N --pool elastic-prep"),
        ("tryy", 8, "tryy is not a node group of research; allowed: train, elastic-eval, elastic-try"),
    ],
)
def test_jobs_that_no_pool_holds_are_refused(pool, gpus, said):
    with pytest.raises(JobRefused) as refused:
        printed(pool, gpus)
    assert said in str(refused.value)


def test_nodes_too_small_for_the_launcher_are_refused():
    with pytest.raises(JobRefused, match=r"g6e.2xlarge of elastic-eval has 8 vCPUs, too few"):
        printed("eval", 1, {**OWN, "jobs": ["mpi"]}, kind="nccl-test")


@pytest.mark.parametrize("scheduler", ["volcano", "kai", "kueue_with_kai", "kueue_with_volcano"])
def test_another_scheduler_than_kueue_is_refused_with_the_label_of_the_nodes(scheduler):
    with pytest.raises(JobRefused) as refused:
        printed("eval", 4, {**OWN, "scheduler": scheduler})
    assert "printed for the scheduler kueue only" in str(refused.value)
    assert "nodeSelector {ultracluster/node-group: elastic-eval}" in str(refused.value)
