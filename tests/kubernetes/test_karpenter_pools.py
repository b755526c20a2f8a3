"""Karpenter's pools of the environment file, and the queues for their nodes."""

from email import message_from_string

import pytest

from tests.kubernetes.environments import P5, eks_environment
from tests.kubernetes.schemas import check
from tests.synthesis import FILES
from ultracluster import load
from ultracluster.kubernetes.deployed import DeployedResources, KarpenterResources
from ultracluster.kubernetes.jobs import JobRefused, example_job, prepare_job
from ultracluster.kubernetes.karpenter import elastic_pools, karpenter_pools
from ultracluster.kubernetes.karpenter_own import elastic_cpu_pod
from ultracluster.kubernetes.labels import DEVICE_STACK, GPU, GPU_TAINT, NODE_GROUP
from ultracluster.kubernetes.queues import team_and_queue_objects

SUBNETS = {"us-east-2a": "subnet-0in-a", "us-east-2b": "subnet-0nodes", "us-east-2c": "subnet-0in-c"}
RESOURCES = KarpenterResources(
    "queue", "NodeRole", "subnet-0nodes", ("subnet-0x", "subnet-0y"), "sg-0efa", "sg-0cluster", SUBNETS
)
PREP = {"name": "prep", "families": ["c7i", "m7i"], "purchase": "spot", "limits": {"cpus": 256}}
EVAL = {
    "name": "eval",
    "instance_types": ["g6e.12xlarge", "g6e.48xlarge"],
    "purchase": ["spot", "on_demand"],
    "zones": ["us-east-2a", "us-east-2c"],
    "limits": {"gpus": 20},
    "weight": 40,
    "idle_minutes": 30,
    "root_volume_gib": 500,
}
TRY = {"name": "try", "instance_types": ["p5.48xlarge"], "efa": True, "limits": {"nodes": 2}}
ARM = {"name": "arm", "instance_types": ["m7gd.4xlarge"], "limits": {"nodes": 3, "cpus": 40}}


def environment(*pools, **settings):
    return eks_environment(P5, lustre=True, karpenter={"pools": list(pools)}, **settings)


def sets(*pools, **settings):
    """Sets of objects by name."""
    found = karpenter_pools(environment(*pools, **settings), DeployedResources("test-1", karpenter=RESOURCES))
    return {each.name: each for each in found}


def made(pool):
    """Specs of the node class and the node pool."""
    return [item["spec"] for item in sets(pool)[f"elastic-{pool['name']}"].items]


def requirement(pool, key):
    [found] = [entry for entry in pool["template"]["spec"]["requirements"] if entry["key"].endswith(key)]
    assert found["operator"] == "In"
    return found["values"]


@pytest.mark.parametrize("pool", [PREP, EVAL, TRY, ARM], ids=lambda pool: pool["name"])
def test_objects_follow_karpenters_crds(pool):
    name = f"elastic-{pool['name']}"
    node_class, node_pool = sets(pool)[name].items
    for item in (node_class, node_pool):
        check(item)
        assert item["metadata"]["name"] == name
    template = node_pool["spec"]["template"]
    assert template["spec"]["nodeClassRef"]["name"] == template["metadata"]["labels"][NODE_GROUP] == name


def test_each_pool_is_a_set_of_its_own_so_that_it_is_deleted_when_it_leaves_the_file():
    found = sets(PREP, EVAL, TRY)
    assert list(found) == ["elastic-prep", "elastic-eval", "elastic-try", "huge-pages"]
    assert {each.after for each in found.values()} == {("karpenter",)}


def test_a_pool_has_the_types_or_the_families_of_the_file():
    _, prep = made(PREP)
    assert requirement(prep, "instance-family") == ["c7i", "m7i"]
    _, evaluate = made(EVAL)
    assert requirement(evaluate, "instance-type") == ["g6e.12xlarge", "g6e.48xlarge"]


@pytest.mark.parametrize(
    ("pool", "types"), [(PREP, ["spot"]), (EVAL, ["spot", "on-demand"]), (TRY, ["on-demand"])], ids=str
)
def test_capacity_types_are_those_of_the_file(pool, types):
    assert requirement(made(pool)[1], "capacity-type") == types


def test_limits_are_in_the_words_of_karpenter():
    assert made(PREP)[1]["limits"] == {"cpu": "256"}
    assert made(EVAL)[1]["limits"] == {GPU: "20"}
    assert made(TRY)[1]["limits"] == {"nodes": "2"}
    assert made(ARM)[1]["limits"] == {"nodes": "3", "cpu": "40"}


def test_nodes_are_in_the_subnets_of_their_zones():
    node_class, pool = made(EVAL)
    assert node_class["subnetSelectorTerms"] == [{"id": "subnet-0in-a"}, {"id": "subnet-0in-c"}]
    assert requirement(pool, "zone") == ["us-east-2a", "us-east-2c"]


def test_without_zones_nodes_are_in_the_zone_of_the_environment():
    node_class, pool = made(PREP)
    assert node_class["subnetSelectorTerms"] == [{"id": "subnet-0nodes"}]
    assert requirement(pool, "zone") == ["us-east-2b"]


def test_only_nodes_with_gpus_have_their_taint_and_label_and_stay_until_they_are_empty():
    _, evaluate = made(EVAL)
    assert evaluate["template"]["spec"]["taints"] == [GPU_TAINT]
    assert evaluate["template"]["metadata"]["labels"][DEVICE_STACK] == "gpu_operator"
    assert evaluate["disruption"]["budgets"] == [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}]
    assert (evaluate["disruption"]["consolidateAfter"], evaluate["weight"]) == ("30m", 40)
    _, prep = made(PREP)
    assert prep["disruption"] == {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10m"}
    assert "taints" not in prep["template"]["spec"]
    assert DEVICE_STACK not in prep["template"]["metadata"]["labels"]
    assert "weight" not in prep


def test_nodes_with_efa_have_its_security_group_and_all_its_cards():
    node_class, _ = made(TRY)
    assert node_class["securityGroupSelectorTerms"] == [{"id": "sg-0efa"}, {"id": "sg-0cluster"}]
    kinds = [entry["interfaceType"] for entry in node_class["networkInterfaces"]]
    assert kinds == ["interface", *["efa-only"] * 32]


@pytest.mark.parametrize("pool", [PREP, EVAL, ARM], ids=lambda pool: pool["name"])
def test_nodes_without_efa_have_one_interface_and_the_group_of_the_cluster(pool):
    """A pod that requests EFA would otherwise get a node of the pool, with EFA that its security group blocks."""
    node_class, _ = made(pool)
    assert node_class["securityGroupSelectorTerms"] == [{"id": "sg-0cluster"}]
    assert [entry["interfaceType"] for entry in node_class["networkInterfaces"]] == ["interface"]


def test_local_disks_are_joined_where_types_have_them():
    assert made(ARM)[0]["instanceStorePolicy"] == "RAID0"
    assert "instanceStorePolicy" not in made(PREP)[0]


def test_the_architecture_is_that_of_the_types():
    assert requirement(made(ARM)[1], "arch") == ["arm64"]
    assert requirement(made(PREP)[1], "arch") == ["amd64"]


def test_the_root_volume_has_the_size_of_the_file():
    assert made(EVAL)[0]["blockDeviceMappings"][0]["ebs"]["volumeSize"] == "500Gi"


def scripts(node_class):
    document = message_from_string(node_class["userData"])
    return "".join(part.get_payload() for part in document.get_payload())


def test_only_nodes_with_efa_prepare_for_it():
    assert "LimitMEMLOCK" in scripts(made(TRY)[0])
    assert "LimitMEMLOCK" not in scripts(made(EVAL)[0])


def test_nodes_outside_ultraclusters_reach_lustre_over_tcp():
    lustre = {"deployment": "persistent_2", "capacity_gib": 9600, "throughput_mbps_per_tib": 500, "efa": True}
    hpc = {"name": "hpc", "instance_types": ["hpc7a.96xlarge"], "efa": True, "limits": {"nodes": 2}}
    over_efa = {}
    for pool in (hpc, TRY):
        view = environment(pool)
        with_efa = view.storage.model_copy(update={"lustre": type(view.storage.lustre).model_validate(lustre)})
        view = type(view)(**{**vars(view), "storage": with_efa})
        found = karpenter_pools(view, DeployedResources("test-1", karpenter=RESOURCES))
        over_efa[pool["name"]] = "set-up-lustre-efa" in scripts(found[0].items[0]["spec"])
    assert over_efa == {"hpc": False, "try": True}


def test_karpenter_knows_the_huge_pages_of_pools_with_efa_only():
    [overlay] = sets(PREP, EVAL, TRY)["huge-pages"].items
    [only] = overlay["spec"]["requirements"]
    assert (only["key"], only["values"]) == ("karpenter.sh/nodepool", ["elastic-try"])
    assert "huge-pages" not in sets(PREP, EVAL)


def test_quotas_are_the_most_that_nodes_within_the_limits_have():
    prep, evaluate, training = elastic_pools(environment(TRY, EVAL, PREP))[:3]
    assert (prep.name, prep.cpus, prep.memory_gib, prep.gpus) == ("elastic-prep", 256, 1024, 0)
    # five of g6e.12xlarge, or two of g6e.48xlarge with 192 vCPUs and 1,536 GiB each
    assert (evaluate.name, evaluate.gpus, evaluate.cpus, evaluate.memory_gib) == ("elastic-eval", 20, 384, 3072)
    assert (training.gpus, training.efa_devices, training.cpus) == (16, 64, 384)
    [arm] = elastic_pools(environment(ARM))
    assert (arm.cpus, arm.memory_gib) == (32, 128)


def queues(*pools, **settings):
    return {each.name: each for each in team_and_queue_objects(environment(*pools, **settings))}


def test_flavors_and_queues_follow_the_pools():
    found = queues(TRY, EVAL, PREP)
    for pool in ("prep", "eval", "try"):
        [flavor] = found[f"flavor-elastic-{pool}"].items
        check(flavor)
        assert flavor["spec"]["nodeLabels"] == {NODE_GROUP: f"elastic-{pool}"}
        assert ("tolerations" in flavor["spec"]) == (pool != "prep")
    [cohort] = found["cohort-pools"].items
    queue, local = found["kueue-elastic-research"].items
    for item in (cohort, queue, local):
        check(item)
    assert queue["spec"]["cohortName"] == cohort["metadata"]["name"] == "test.pools"
    for item in (cohort, queue):
        [group] = item["spec"]["resourceGroups"]
        assert [flavor["name"] for flavor in group["flavors"]] == ["elastic-prep", "elastic-eval", "elastic-try"]
    quotas = {
        entry["name"]: entry["nominalQuota"] for entry in cohort["spec"]["resourceGroups"][0]["flavors"][1]["resources"]
    }
    assert quotas == {"cpu": 384, "memory": "3072Gi", GPU: 20, "vpc.amazonaws.com/efa": 0}


def test_queues_come_after_the_flavors_and_the_cohort():
    found = queues(EVAL)
    assert found["cohort-pools"].after == ("flavor-elastic-eval",)
    assert {"flavor-elastic-eval", "cohort-pools"} <= set(found["kueue-elastic-research"].after)


def test_the_two_forms_share_no_object_but_the_queues_of_teams():
    """What the old form alone had is deleted last, after the new form's objects were applied."""

    def names(karpenter):
        view = eks_environment(P5, karpenter=karpenter)
        parts = (*karpenter_pools(view, DeployedResources("t", karpenter=RESOURCES)), *team_and_queue_objects(view))
        return {
            (part.name, item["kind"], item["metadata"]["name"])
            for part in parts
            for item in part.items
            if "elastic" in part.name or "pools" in part.name or part.name == "huge-pages"
        }

    default, own = names(True), names({"pools": [PREP, EVAL, TRY]})
    kinds = {kind for _, kind, name in default if (kind, name) in {entry[1:] for entry in own}}
    assert kinds == {"ClusterQueue", "LocalQueue"}
    assert {part for part, _, _ in default & own} == {"kueue-elastic-research"}


def test_under_volcano_there_are_pools_without_queues():
    assert "elastic-prep" in sets(PREP, scheduler="volcano")
    assert not [name for name in queues(PREP, scheduler="volcano") if "elastic" in name]


def test_pools_without_gpus_go_with_gpus_that_pods_claim():
    view = environment(PREP, device_stack="dra")
    _, pool = karpenter_pools(view, DeployedResources("t", karpenter=RESOURCES))[0].items
    assert "taints" not in pool["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def shipped():
    return load(FILES["eks-karpenter"])


def test_data_is_prepared_on_a_pool_where_there_are_no_static_nodes(shipped):
    [job] = prepare_job(shipped, "research", 60)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "elastic"
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {NODE_GROUP: "elastic-prep"}
    # c7i has less memory for each CPU than m7i: 124 of the 128 GiB of c7i.16xlarge for 63 CPUs
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": 60, "memory": "118Gi"}


def test_a_pod_is_not_larger_than_the_largest_node_within_the_limits(shipped):
    assert prepare_job(shipped, "research", 191)
    with pytest.raises(JobRefused, match="may have 1 to 191"):
        prepare_job(shipped, "research", 192)


def with_plane(environment, **settings):
    return environment.model_copy(update={"control_plane": environment.control_plane.model_copy(update=settings)})


def test_static_nodes_come_first(shipped):
    nodes = type(shipped.control_plane.cpu_nodes)(count=2, instance_type="m7i.4xlarge")
    with_nodes = with_plane(shipped, cpu_nodes=nodes)
    [small], [large] = (prepare_job(with_nodes, "research", cpus) for cpus in (8, 60))
    assert small["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    assert large["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "elastic"


@pytest.mark.parametrize("name", ["prep", "elastic-prep"])
def test_a_preparation_runs_on_the_pool_that_is_named(shipped, name):
    nodes = type(shipped.control_plane.cpu_nodes)(count=2, instance_type="m7i.4xlarge")
    with_nodes = with_plane(shipped, cpu_nodes=nodes)
    [job] = prepare_job(with_nodes, "research", 8, node_group=name)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "elastic"
    assert job["spec"]["template"]["spec"]["nodeSelector"] == {NODE_GROUP: "elastic-prep"}
    [job] = prepare_job(with_nodes, "research", 8, node_group="cpu")
    assert job["spec"]["template"]["spec"]["nodeSelector"] == {NODE_GROUP: "cpu"}
    with pytest.raises(JobRefused, match="60 CPUs do not fit: a pod of research may have 1 to 15"):
        prepare_job(with_nodes, "research", 60, node_group="cpu")
    with pytest.raises(JobRefused, match=r"eval is not a group or pool of CPU nodes of .*; allowed: cpu, elastic-prep"):
        prepare_job(with_nodes, "research", 8, node_group="eval")


def test_data_is_prepared_on_a_pool_of_arm64():
    """The public image is for both architectures."""
    view = environment(ARM)
    assert elastic_cpu_pod(view, 8) == ("elastic-arm", 8 * 60 // 15)


@pytest.mark.parametrize("scheduler", ["volcano", "kai", "kueue_with_kai"])
def test_under_other_schedulers_there_is_no_elastic_preparation(shipped, scheduler):
    with pytest.raises(JobRefused, match="no CPU nodes"):
        prepare_job(with_plane(shipped, scheduler=scheduler), "research", 8)


def test_a_launcher_runs_beside_its_workers_and_not_on_a_pool(shipped):
    with pytest.raises(JobRefused, match="no CPU nodes"):
        example_job(with_plane(shipped, jobs=("mpi",)), "research", 8, kind="nccl-test")
