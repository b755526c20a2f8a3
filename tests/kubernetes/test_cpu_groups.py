"""Node groups without GPUs, and with GPUs that are not for UltraClusters, on Kubernetes."""

import pytest

from tests.kubernetes.environments import SCHEDULERS, eks_environment
from ultracluster.config.environment import Environment
from ultracluster.kubernetes import kueue
from ultracluster.kubernetes.devices import dra_driver_values
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.jobs import JobRefused, example_job, prepare_job
from ultracluster.kubernetes.labels import DEVICE_STACK, EFA, GPU, HUGE_PAGES, NODE_GROUP, node_labels
from ultracluster.kubernetes.queues import team_and_queue_objects
from ultracluster.kubernetes.topology import topologies
from ultracluster.kubernetes.trainer import training_runtimes

PREP = {"name": "prep", "instance_types": ["c7i.48xlarge", "m7i.48xlarge"], "count": 6, "purchase": {"type": "spot"}}
SMALL = {"name": "eval", "instance_type": "g6e.4xlarge", "count": 4}
TEAMS = [
    {"name": "pretrain", "node_groups": ["train"], "gpus": 16},
    {"name": "research", "node_groups": ["eval"], "gpus": 4},
]


def whole_fleet(**settings):
    """Training nodes, G-family nodes without EFA, CPU nodes of two types, and two teams."""
    plane = {
        "type": "eks",
        "kubernetes_version": "1.35",
        "admins": ["arn:aws:iam::111122223333:role/Platform"],
        "teams": TEAMS,
        **settings,
    }
    return Environment.model_validate(
        {
            "schema_version": 1,
            "name": "test",
            "region": "us-east-2",
            "availability_zone": "us-east-2b",
            "network": {"create": {}},
            "node_groups": [{"name": "train", "instance_type": "p5.48xlarge", "count": 2}, SMALL, PREP],
            "control_plane": plane,
        }
    )


def view(**settings):
    return EksEnvironment.from_environment(whole_fleet(**settings))


def nominal(queue, resource):
    (group,) = queue["spec"]["resourceGroups"]
    return {
        flavor["name"]: next(each["nominalQuota"] for each in flavor["resources"] if each["name"] == resource)
        for flavor in group["flavors"]
    }


def test_teams_have_equal_shares_of_the_cpus_of_every_pool():
    environment = view()
    pools = {pool.name: (pool.nodes, pool.each) for pool in environment.cpu_pools}
    assert pools == {"cpu": (2, (15, 60)), "prep": (6, (191, 380))}
    for team in environment.teams:
        _, queue, _ = kueue.team_queues(environment, team)
        assert nominal(queue, "cpu")["prep.hosts"] == 6 * 191 // 2
        assert nominal(queue, "memory")["prep.hosts"] == f"{6 * 380 // 2}Gi"
        assert nominal(queue, GPU)["prep.hosts"] == 0


def test_a_pod_without_gpus_tries_the_cpu_pools_first():
    environment = view()
    _, queue, _ = kueue.team_queues(environment, environment.teams[0])
    assert list(nominal(queue, "cpu"))[:2] == ["cpu.hosts", "prep.hosts"]


def test_the_nodes_of_a_cpu_group_have_no_device_stack_and_their_flavor_no_taint():
    environment = view()
    assert node_labels("prep", environment.settings, gpus=False) == {NODE_GROUP: "prep"}
    assert DEVICE_STACK in node_labels("eval", environment.settings)
    flavors = {flavor["metadata"]["name"]: flavor["spec"] for flavor in kueue.cpu_flavors(environment)}
    assert flavors["prep.hosts"] == {"nodeLabels": {NODE_GROUP: "prep"}, "topologyName": "hosts"}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_takes_a_fleet_with_cpu_groups(scheduler):
    environment = view(scheduler=scheduler, jobs=["trainer", "jobset"])
    names = [objects.name for objects in team_and_queue_objects(environment)]
    assert len(names) == len(set(names))
    runtimes = [item["metadata"]["name"] for objects in training_runtimes(environment) for item in objects.items]
    assert runtimes == ["train", "eval"]


def test_cpu_groups_add_no_topology_and_no_devices():
    environment = view(device_stack="dra")
    assert set(topologies(environment)) == {"network-3-layers", "hosts"}
    affinity = dra_driver_values(environment)["kubeletPlugin"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["train", "eval"]


def pod_of(objects):
    (job,) = [each for each in objects if each["kind"] == "JobSet"]
    return job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def test_a_job_on_gpus_without_efa_asks_for_no_efa_and_no_huge_pages():
    pod = pod_of(example_job(whole_fleet(jobs=["jobset"]), "research", 2))
    (container,) = pod["containers"]
    assert pod["nodeSelector"] == {NODE_GROUP: "eval"}
    assert container["resources"]["limits"] == {GPU: 1}
    assert not {EFA, HUGE_PAGES} & set(container["resources"]["requests"])
    names = {each["name"] for each in container["env"] if not each["name"].startswith("TORCH_")}
    assert names == {"NCCL_DEBUG", "JOB_FOLDER", "MASTER_ADDR", "NODE_NAME"}


def test_a_job_that_claims_devices_claims_no_efa_where_there_is_none():
    objects = example_job(whole_fleet(jobs=["jobset"], device_stack="dra"), "research", 2)
    assert [each["metadata"]["name"] for each in objects if each["kind"] == "ResourceClaimTemplate"] == ["gpus-1"]


def test_data_is_prepared_on_the_first_pool_whose_nodes_are_large_enough():
    small, large = (prepare_job(whole_fleet(), "research", cpus)[0] for cpus in (4, 100))
    chosen = [job["spec"]["template"]["spec"]["nodeSelector"][NODE_GROUP] for job in (small, large)]
    assert chosen == ["cpu", "prep"]
    (container,) = large["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": 100, "memory": f"{100 * 380 // 191}Gi"}
    with pytest.raises(JobRefused, match="1 to 191"):
        prepare_job(whole_fleet(), "research", 192)


def test_a_fleet_of_large_nodes_alone_keeps_its_objects():
    """An environment without CPU groups has the flavors that it had before there were any."""
    assert [flavor["metadata"]["name"] for flavor in kueue.cpu_flavors(eks_environment())] == ["cpu.hosts"]
