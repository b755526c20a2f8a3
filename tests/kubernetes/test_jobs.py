"""The example job of a team, on every instance type and under every scheduler."""

import json

import pytest

from tests.kubernetes.fleet import SCHEDULERS, STACKS, TEAMS, fleet_file, one_team_file
from tests.kubernetes.schemas import check
from ultracluster.catalog import catalog
from ultracluster.catalog.training import default_image
from ultracluster.config.environment import Environment
from ultracluster.jobs.request import JobRefused, Script
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.jobs import example_job, prepare_job
from ultracluster.kubernetes.queues import team_and_queue_objects

PCS = {"type": "pcs", "slurm_version": "25.11", "queues": [{"name": "train", "node_groups": ["train"]}]}
OPERATORS = ([], ["jobset"], ["trainer"])


OWN_IMAGE = "registry.example.com/mine:1"


def printed(environment, team, gpus, **options):
    """The objects of a job. On P6e-GB200 with an image of one's own, because AWS has none."""
    if any(group.hardware.ultraserver_only for group in environment.node_groups):
        options.setdefault("image", OWN_IMAGE)
    return example_job(environment, team, gpus, **options)


def workload(objects):
    (found,) = [obj for obj in objects if obj["kind"] in ("Job", "JobSet")]
    return found


def template(objects):
    """The pod template of any kind of job."""
    spec = workload(objects)["spec"]
    if "replicatedJobs" in spec:
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    return spec["tasks"][0]["template"] if "tasks" in spec else spec["template"]


def pods(objects):
    spec = workload(objects)["spec"]
    if "replicatedJobs" in spec:
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    return spec["tasks"][0]["replicas"] if "tasks" in spec else spec["parallelism"]


def container(objects):
    (found,) = template(objects)["spec"]["containers"]
    return found


def environment_variables(objects):
    return {variable["name"]: variable.get("value") for variable in container(objects)["env"]}


def in_cluster(environment):
    """Objects of teams and queues that the job refers to."""
    parts = team_and_queue_objects(EksEnvironment.from_environment(environment))
    return [obj for part in parts for obj in part.items]


def kinds(objects):
    return [obj["kind"] for obj in objects]


@pytest.mark.parametrize("operators", OPERATORS, ids=lambda operators: "-".join(operators) or "none")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_a_job_on_every_type_follows_its_schemas(hardware, stack, scheduler, operators):
    nodes = 36 if hardware.ultraserver_only else 2
    gpus = hardware.gpu_count * nodes
    environment = one_team_file(hardware.name, nodes, gpus, device_stack=stack, scheduler=scheduler, jobs=operators)
    for obj in printed(environment, "pretrain", gpus):
        check(obj)
        assert obj["metadata"]["namespace"] == "pretrain"


def test_64_gpus_of_p5en_under_kueue():
    """The worked example: eight nodes, each with eight GPUs and sixteen EFA devices."""
    objects = printed(fleet_file(jobs=["jobset"]), "pretrain", 64)
    assert kinds(objects) == ["JobSet", "ConfigMap"]
    job, pod, resources = workload(objects), template(objects), container(objects)["resources"]
    assert pods(objects) == 8
    assert job["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "default",
        "kueue.x-k8s.io/priority-class": "high",
    }
    for amounts in (resources["limits"], resources["requests"]):
        assert amounts["nvidia.com/gpu"] == 8
        assert amounts["vpc.amazonaws.com/efa"] == 16
        assert amounts["hugepages-2Mi"] == "5120Mi"
    assert pod["metadata"]["annotations"] == {
        "kueue.x-k8s.io/podset-preferred-topology": "topology.k8s.aws/network-node-layer-3"
    }
    assert pod["spec"]["nodeSelector"] == {"ultracluster/node-group": "train"}
    assert pod["spec"]["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    mounts = {mount["name"]: mount["mountPath"] for mount in container(objects)["volumeMounts"]}
    assert mounts == {
        "training": "/fsx",
        "shared-memory": "/dev/shm",  # noqa: S108
        "scratch": "/scratch",
        "job-files": "/job",
    }
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert volumes["training"]["persistentVolumeClaim"] == {"claimName": "training"}


@pytest.mark.parametrize(
    ("name", "efa"),
    [
        ("p5.4xlarge", 1),
        ("p5.48xlarge", 32),
        ("p5e.48xlarge", 32),
        ("p5en.48xlarge", 16),
        ("p6-b200.48xlarge", 8),
        ("p6-b300.48xlarge", 16),
        ("p6e-gb200.36xlarge", 4),
    ],
)
def test_a_pod_requests_every_gpu_and_efa_device_of_its_node(name, efa):
    gpus = catalog[name].gpu_count
    limits = container(printed(one_team_file(name, 36, 36 * gpus), "pretrain", 2 * gpus))["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == gpus
    assert limits["vpc.amazonaws.com/efa"] == efa


@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_a_pod_leaves_cpus_and_memory_for_the_node(hardware):
    job = printed(one_team_file(hardware.name, 36, 36 * hardware.gpu_count), "pretrain", hardware.gpu_count)
    requests = container(job)["resources"]["requests"]
    assert 0 < requests["cpu"] < hardware.vcpus
    assert 0 < int(requests["memory"].removesuffix("Gi")) < hardware.memory_gib


@pytest.mark.parametrize("scheduler", ["kueue", "kueue_with_kai", "kueue_with_volcano"])
@pytest.mark.parametrize("stack", ["gpu_operator", "dra"])
@pytest.mark.parametrize("name", ["p5.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge"])
def test_a_job_of_the_whole_quota_is_within_it(name, stack, scheduler):
    """The team's queue has a quota of every resource that Kueue counts for the job, and it is large enough."""
    hardware = catalog[name]
    gpus = 36 * hardware.gpu_count
    environment = one_team_file(name, 36, gpus, device_stack=stack, scheduler=scheduler)
    objects = printed(environment, "pretrain", gpus)
    asked = dict(container(objects)["resources"]["requests"])
    asked["memory"] = int(asked["memory"].removesuffix("Gi"))
    del asked["hugepages-2Mi"]
    for obj in objects:
        if obj["kind"] == "ResourceClaimTemplate":
            (request,) = obj["spec"]["spec"]["devices"]["requests"]
            by_class = {"gpu.nvidia.com": "nvidia.com/gpu", "efa.networking.k8s.aws": "vpc.amazonaws.com/efa"}
            asked[by_class[request["exactly"]["deviceClassName"]]] = request["exactly"]["count"]
        if obj["kind"] == "ComputeDomain":
            asked["resource.nvidia.com/channel"] = 1
    (queue,) = [obj for obj in in_cluster(environment) if obj["kind"] == "ClusterQueue"]
    _, flavor = queue["spec"]["resourceGroups"][0]["flavors"]  # the first one is of CPU nodes
    quota = {entry["name"]: int(str(entry["nominalQuota"]).removesuffix("Gi")) for entry in flavor["resources"]}
    assert asked.keys() == quota.keys()
    assert all(pods(objects) * amount <= quota[resource] for resource, amount in asked.items())
    assert pods(objects) * asked["nvidia.com/gpu"] == quota["nvidia.com/gpu"]


@pytest.mark.parametrize("operators", OPERATORS, ids=lambda operators: "-".join(operators) or "none")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("stack", STACKS)
def test_pods_meet_the_baseline_standard_of_their_namespace(scheduler, operators, stack):
    """Pod Security Standards, baseline: nothing of the host, no privilege, no added capability."""
    environment = one_team_file("p6e-gb200.36xlarge", 36, 144, scheduler=scheduler, jobs=operators, device_stack=stack)
    spec = template(printed(environment, "pretrain", 144))["spec"]
    assert {"hostNetwork", "hostPID", "hostIPC", "securityContext", "initContainers"}.isdisjoint(spec)
    assert all("hostPath" not in volume for volume in spec["volumes"])
    for each in spec["containers"]:
        assert {"securityContext", "ports", "lifecycle"}.isdisjoint(each)


def test_mounts_and_volumes_match():
    for environment in (
        fleet_file(),
        fleet_file().model_copy(update={"storage": fleet_file().storage.model_copy(update={"lustre": None})}),
    ):
        objects = printed(environment, "pretrain", 64)
        mounts = {mount["name"] for mount in container(objects)["volumeMounts"]}
        assert mounts == {volume["name"] for volume in template(objects)["spec"]["volumes"]}


def test_a_job_runs_as_the_user_that_owns_the_team_s_folder():
    teams = ({**TEAMS[0], "user": "2001:2002"}, TEAMS[1])
    spec = template(example_job(fleet_file(teams=teams), "pretrain", 8))["spec"]
    assert spec["securityContext"] == {"runAsUser": 2001, "runAsGroup": 2002}
    variables = {entry["name"]: entry.get("value") for entry in spec["containers"][0]["env"]}
    assert (variables["HOME"], variables["LOGNAME"]) == ("/scratch", "pretrain")
    assert "securityContext" not in template(example_job(fleet_file(teams=teams), "research", 8))["spec"]


def test_a_job_mounts_the_linked_folders_that_slurm_nodes_have():
    links = [{"path": "/datasets", "bucket": "datasets", "import_events": ["new"]}]
    file = fleet_file().model_dump(exclude_unset=True)
    file["storage"] = {
        "buckets": {"datasets": {}},
        "lustre": {**file["storage"]["lustre"], "links": links},
    }
    objects = example_job(Environment.model_validate(file), "pretrain", 8)
    assert {mount["name"]: mount["mountPath"] for mount in container(objects)["volumeMounts"]} == {
        "training": "/fsx",
        "datasets-link": "/fsx/datasets",
        "shared-memory": "/dev/shm",  # noqa: S108 - NCCL uses this path
        "scratch": "/scratch",
        "job-files": "/job",
    }


@pytest.mark.parametrize("operators", OPERATORS[1:])
def test_a_job_set_restarts_all_its_pods_together(operators):
    """A failed pod fails its Job, and the JobSet restarts all Jobs."""
    job = workload(printed(fleet_file(jobs=operators), "pretrain", 64))
    assert job["kind"] == "JobSet"
    assert job["spec"]["failurePolicy"]["maxRestarts"] > 0
    assert job["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] == 0


def test_a_plain_job_has_a_headless_service_for_its_pods():
    objects = printed(fleet_file(), "pretrain", 64)
    assert kinds(objects) == ["Service", "Job", "ConfigMap"]
    service, *_ = objects
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"].items() <= template(objects)["metadata"]["labels"].items()
    assert template(objects)["spec"]["subdomain"] == service["metadata"]["name"]


def test_jobs_of_a_namespace_share_what_kubernetes_does_not_delete_with_a_job():
    """Only the job itself has a time to live. Anything else is the same for every job, or it would pile up."""
    for settings in ({}, {"jobs": ["jobset"]}, {"scheduler": "volcano"}, {"device_stack": "dra"}):
        first, second = (printed(fleet_file(**settings), "pretrain", 64, name=name) for name in ("one", "two"))
        differ = [one["kind"] for one, other in zip(first, second, strict=True) if one != other]
        assert differ == [workload(first)["kind"]]


@pytest.mark.parametrize("operators", OPERATORS, ids=lambda operators: "-".join(operators) or "none")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_finished_job_is_deleted_after_a_day(scheduler, operators):
    job = workload(printed(fleet_file(scheduler=scheduler, jobs=operators), "pretrain", 64))
    assert job["spec"]["ttlSecondsAfterFinished"] == 24 * 3600


@pytest.mark.parametrize("settings", [{}, {"jobs": ["jobset"]}, {"scheduler": "volcano"}])
def test_the_longest_name_leaves_room_for_names_of_pods(settings):
    """Names of pods are labels of DNS: 63 characters at most (RFC 1123)."""
    name = "a" * 40
    job = workload(printed(fleet_file(**settings), "research", 128, name=name))
    assert job["metadata"]["name"] == name
    longest = {"JobSet": f"{name}-node-0-15-abcde", "Job": f"{name}-15" if not settings else f"{name}-node-15"}
    assert len(longest[job["kind"]]) <= 63
    assert name in environment_variables([job])["MASTER_ADDR"]


@pytest.mark.parametrize("name", ["A", "1a", "a-", "a_b", "a.b", "a" * 41, "-a", "ä"])
def test_names_that_kubernetes_refuses_are_refused(name):
    with pytest.raises(JobRefused, match="is not a valid job name; allowed: a letter"):
        printed(fleet_file(), "pretrain", 64, name=name)


@pytest.mark.parametrize(
    ("settings", "main", "rank"),
    [
        ({"jobs": ["jobset"]}, "train-64-gpus-node-0-0.train-64-gpus", "$(JOB_COMPLETION_INDEX)"),
        ({}, "train-64-gpus-0.job-pods", "$(JOB_COMPLETION_INDEX)"),
        ({"scheduler": "volcano"}, "train-64-gpus-node-0.train-64-gpus", "$(VC_TASK_INDEX)"),
    ],
)
def test_pods_know_the_address_of_the_first_pod_and_their_rank(settings, main, rank):
    objects = printed(fleet_file(**settings), "pretrain", 64)
    assert environment_variables(objects)["MASTER_ADDR"] == main
    command = container(objects)["command"]
    watch, torchrun = command[: command.index("--")], command[command.index("--") + 1 :]
    assert watch[:2] == ["python3", "/job/watch_job.py"]
    assert {"--ranks=64", "--ranks-per-node=8", "--node=$(NODE_NAME)", f"--node-rank={rank}"} <= set(watch)
    command = torchrun
    assert command[0] == "torchrun"
    assert {"--nnodes=8", "--nproc-per-node=8", f"--node-rank={rank}"} <= set(command)
    assert command[-1] == "/fsx/train.py"


def test_the_job_sets_no_nccl_tuning():
    variables = environment_variables(printed(fleet_file(), "pretrain", 64))
    assert variables["FI_PROVIDER"] == "efa"
    assert {"NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "FI_EFA_USE_DEVICE_RDMA"}.isdisjoint(variables)


def test_p5_4xlarge_disables_peer_to_peer():
    small = printed(one_team_file("p5.4xlarge", 4, 4), "pretrain", 4)
    assert environment_variables(small)["FI_HMEM_DISABLE_P2P"] == "1"
    assert "FI_HMEM_DISABLE_P2P" not in environment_variables(printed(fleet_file(), "pretrain", 64))


def test_a_type_without_network_layers_is_placed_on_any_nodes():
    annotations = template(printed(one_team_file("p5.4xlarge", 4, 4), "pretrain", 4))["metadata"]["annotations"]
    assert annotations == {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}


def test_volcano_starts_all_pods_or_none_and_prefers_close_nodes():
    spec = workload(printed(fleet_file(scheduler="volcano"), "research", 32))["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["priorityClassName"]) == ("research", "volcano", "normal")
    assert spec["minAvailable"] == spec["tasks"][0]["replicas"] == 4
    assert spec["networkTopology"] == {"mode": "soft"}


@pytest.mark.parametrize("operators", OPERATORS[:2])
def test_kai_starts_all_pods_or_none_and_prefers_close_nodes(operators):
    environment = fleet_file(scheduler="kai", jobs=operators)
    objects = printed(environment, "pretrain", 64)
    metadata = workload(objects)["metadata"]
    assert metadata["labels"] == {"kai.scheduler/queue": "pretrain", "priorityClassName": "high"}
    annotations = metadata["annotations"]
    assert annotations["kai.scheduler/topology-preferred-placement"] == "topology.k8s.aws/network-node-layer-3"
    topologies = [obj for obj in in_cluster(environment) if obj["kind"] == "Topology"]
    assert annotations["kai.scheduler/topology"] in {obj["metadata"]["name"] for obj in topologies}
    assert template(objects)["spec"]["schedulerName"] == "kai-scheduler"
    if not operators:  # of a JobSet KAI reads the number of pods by itself
        assert annotations["kai.scheduler/batch-min-member"] == "8"


def test_kueue_admits_and_kai_schedules():
    environment = fleet_file(scheduler="kueue_with_kai", jobs=["jobset"])
    objects = printed(environment, "pretrain", 64)
    labels = workload(objects)["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "default"
    queues = {obj["metadata"]["name"] for obj in in_cluster(environment) if obj["kind"] == "Queue"}
    assert labels["kai.scheduler/queue"] in queues
    assert "kueue" not in json.dumps(template(objects))
    assert template(objects)["spec"]["schedulerName"] == "kai-scheduler"


@pytest.mark.parametrize("operators", OPERATORS[:2])
def test_kueue_admits_and_volcano_schedules(operators):
    objects = printed(fleet_file(scheduler="kueue_with_volcano", jobs=operators), "pretrain", 64)
    job = workload(objects)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    owner = job["spec"]["replicatedJobs"][0]["template"] if operators else job
    assert owner["metadata"]["annotations"]["scheduling.volcano.sh/group-min-member"] == "8"
    assert template(objects)["spec"]["schedulerName"] == "volcano"
    assert template(objects)["metadata"]["annotations"] == {
        "scheduling.volcano.sh/queue-name": "default",
        "volcano.sh/network-topology-mode": "soft",
    }


def test_claimed_devices_are_not_requested_too():
    """They would count twice, and no device plugin advertises them."""
    objects = printed(one_team_file("p5.48xlarge", 8, 64, device_stack="dra"), "pretrain", 64)
    assert kinds(objects) == ["ResourceClaimTemplate", "ResourceClaimTemplate", "Service", "Job", "ConfigMap"]
    resources = container(objects)["resources"]
    assert {"nvidia.com/gpu", "vpc.amazonaws.com/efa"}.isdisjoint({**resources["limits"], **resources["requests"]})
    claims = {
        claim["name"]: claim["resourceClaimTemplateName"] for claim in template(objects)["spec"]["resourceClaims"]
    }
    assert {claim["name"] for claim in resources["claims"]} == set(claims)
    assert set(claims.values()) == {obj["metadata"]["name"] for obj in objects[:2]}


@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_no_claim_exceeds_the_limit_of_kubernetes(hardware):
    """A claim holds 32 devices at most, in an exact number, or Kueue could not count it."""
    environment = one_team_file(hardware.name, 36, 36 * hardware.gpu_count, device_stack="dra")
    templates = [obj for obj in printed(environment, "pretrain", hardware.gpu_count) if "Template" in obj["kind"]]
    assert len(templates) == 2
    for obj in templates:
        requests = [request["exactly"] for request in obj["spec"]["spec"]["devices"]["requests"]]
        assert sum(request["count"] for request in requests) <= 32
        assert {request["allocationMode"] for request in requests} == {"ExactCount"}


@pytest.mark.parametrize("stack", ["gpu_operator", "dra"])
def test_pods_on_ultraservers_claim_a_channel_of_the_jobs_compute_domain(stack):
    objects = printed(one_team_file("p6e-gb200.36xlarge", 36, 144, device_stack=stack), "pretrain", 72)
    (domain,) = [obj for obj in objects if obj["kind"] == "ComputeDomain"]
    made = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    claims = {
        claim["name"]: claim["resourceClaimTemplateName"] for claim in template(objects)["spec"]["resourceClaims"]
    }
    assert claims["channel"] == made
    assert {"name": "channel"} in container(objects)["resources"]["claims"]
    if stack == "gpu_operator":
        annotations = template(objects)["metadata"]["annotations"]
        assert annotations == {"kueue.x-k8s.io/podset-preferred-topology": "nvidia.com/gpu.clique"}


def test_the_image_is_the_catalogues_its_copy_in_the_mirror_or_ones_own():
    name = default_image(catalog["p5en.48xlarge"]).name
    assert container(printed(fleet_file(), "pretrain", 64))["image"] == name
    mirrored = printed(fleet_file(chart_mirror="oci://registry.example.com/copies"), "pretrain", 64)
    copy = name.replace("public.ecr.aws/", "registry.example.com/copies/")
    assert container(mirrored)["image"] == copy
    assert container(printed(fleet_file(), "pretrain", 64, image=OWN_IMAGE))["image"] == OWN_IMAGE


def test_a_type_without_a_public_image_asks_for_one():
    with pytest.raises(JobRefused) as refused:
        example_job(one_team_file("p6e-gb200.36xlarge", 36, 144), "pretrain", 72)
    assert str(refused.value) == (
        "no public image of AWS meets the minimum versions of p6e-gb200.36xlarge: "
        "public.ecr.aws/deep-learning-containers/pytorch-training-arm64:2.7.0-gpu-py312-cu128-ubuntu22.04-ec2 has "
        "EFA installer 1.40.0, minimum 1.41.0; aws-ofi-nccl unknown, minimum 1.19.0. "
        "Build an image with what `ultracluster catalog p6e-gb200.36xlarge` lists, and pass it with --image"
    )


@pytest.mark.parametrize("name", catalog)
def test_a_missing_plugin_is_an_error(name):
    """NCCL fails if NCCL_NET names a network that no plugin registers. Without NCCL_NET it falls back to TCP."""
    gpus = catalog[name].gpu_count
    variables = environment_variables(printed(one_team_file(name, 36, 36 * gpus), "pretrain", gpus))
    assert (variables["NCCL_NET"], variables["NCCL_NET_PLUGIN"]) == ("AWS Libfabric", "ofi")
    assert variables["FI_PROVIDER"] == "efa"


TWO = {"train": ("p5en.48xlarge", 4), "small": ("p5.4xlarge", 6)}
TWO_TEAMS = ({"name": "research", "node_groups": ["train", "small"], "gpus": {"train": 16, "small": 4}},)


def test_the_first_node_group_is_the_default():
    environment = fleet_file(TWO, TWO_TEAMS)
    first = template(printed(environment, "research", 16))["spec"]["nodeSelector"]
    named = template(printed(environment, "research", 4, node_group="small"))["spec"]["nodeSelector"]
    assert [*first.values(), *named.values()] == ["train", "small"]


def test_a_team_that_may_borrow_can_use_the_whole_fleet():
    assert pods(printed(fleet_file(), "research", 128)) == 16


@pytest.mark.parametrize(
    ("team", "gpus", "node_group", "said"),
    [
        ("reserch", 8, None, "reserch is not a team of staging; allowed: pretrain, research. Did you mean research?"),
        ("pretrain", 8, "small", "small is not a node group of pretrain; allowed: train"),
        ("pretrain", 12, None, "12 GPUs are not whole nodes: p5en.48xlarge has 8; request 8 or 16"),
        ("research", 132, None, "132 GPUs are not whole nodes: p5en.48xlarge has 8; request 128"),
        ("research", 1000, None, "1000 GPUs are too many: train has 128; request at most 128"),
        ("research", 1001, None, "1001 GPUs are not whole nodes: p5en.48xlarge has 8; request 128"),
        ("pretrain", 100, None, "100 GPUs are not whole nodes: p5en.48xlarge has 8; request 96"),
        ("pretrain", 4, None, "request 8"),
        ("pretrain", 0, None, "request 8"),
        ("pretrain", -8, None, "request 8"),
        (
            "pretrain",
            104,
            None,
            "104 GPUs are too many: the quota of pretrain on train is 96, and the team may not borrow",
        ),
        ("research", 136, None, "136 GPUs are too many: train has 128"),
    ],
)
def test_impossible_jobs_are_refused(team, gpus, node_group, said):
    with pytest.raises(JobRefused) as refused:
        printed(fleet_file(teams=TEAMS), team, gpus, node_group=node_group)
    assert said in str(refused.value)


def test_on_pcs_the_error_points_to_sbatch():
    data = fleet_file().model_dump(exclude={"control_plane"}, exclude_none=True, mode="json")
    with pytest.raises(JobRefused, match="sbatch"):
        printed(Environment.model_validate({**data, "control_plane": PCS}), "pretrain", 64)


def test_a_job_set_fails_for_a_command_that_cannot_start_and_does_not_count_an_eviction():
    job = workload(printed(fleet_file(jobs=["jobset"]), "pretrain", 64))
    policy, spec = job["spec"]["failurePolicy"], job["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert policy["maxRestarts"] == 3
    assert [(rule["name"], rule["action"]) for rule in policy["rules"]] == [
        ("cannot_start", "FailJobSet"),
        ("evicted", "RestartJobSetAndIgnoreMaxRestarts"),
    ]
    cannot_start, evicted = spec["podFailurePolicy"]["rules"]
    assert cannot_start["onExitCodes"] == {"containerName": "train", "operator": "In", "values": [2, 126, 127]}
    assert evicted["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    # the message of a Job that a rule fails, as Kubernetes writes it (pkg/controller/job/pod_failure_policy.go)
    message = "Container train for pod pretrain/train-node-0-0 failed with exit code 2 matching FailJob rule at index 0"
    (pattern,) = policy["rules"][0]["onJobFailureMessagePatterns"]
    assert pattern in message
    assert pattern not in "Pod pretrain/train-node-0-0 has condition DisruptionTarget matching FailJob rule at index 1"


def test_a_volcano_job_ends_for_a_command_that_cannot_start():
    policies = workload(printed(fleet_file(scheduler="volcano"), "pretrain", 64))["spec"]["policies"]
    assert [policy.get("exitCode") for policy in policies] == [2, 126, 127, None]  # the first that fits decides
    assert [policy["action"] for policy in policies] == ["TerminateJob"] * 3 + ["RestartJob"]


def test_ranks_write_heartbeats_and_traces_into_the_folder_of_the_job():
    variables = environment_variables(printed(fleet_file(), "pretrain", 64, name="first"))
    assert variables["JOB_FOLDER"] == "/fsx/jobs/first"
    assert variables["TORCH_FR_DUMP_TEMP_FILE"] == "/fsx/jobs/first/traces/rank-"
    assert variables["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1"
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" not in variables  # the image has a newer PyTorch


def test_an_image_of_ones_own_gets_the_settings_of_all_versions():
    variables = environment_variables(printed(fleet_file(), "pretrain", 64, image=OWN_IMAGE))
    assert {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"} <= set(variables)
    mirrored = "registry.example.com/deep-learning-containers/pytorch:2.14.0-cu133-amzn2023"
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" not in environment_variables(
        printed(fleet_file(), "pretrain", 64, image=mirrored)
    )


def test_without_a_file_system_each_node_watches_its_own_ranks():
    file = fleet_file().model_dump(exclude_unset=True)
    file["storage"] = {}
    found = printed(Environment.model_validate(file), "pretrain", 64)
    assert environment_variables(found)["JOB_FOLDER"] == "/scratch/job"
    assert "--ranks=0" in container(found)["command"]


def test_jobs_with_the_same_files_share_them():
    names = [printed(fleet_file(), "pretrain", 64, name=name)[-1]["metadata"]["name"] for name in ("first", "second")]
    assert len(set(names)) == 1
    script = Script("work.py", "print(1)\n")
    own = printed(fleet_file(), "pretrain", 64, script=script, command=["--lr", "1"])
    assert own[-1]["data"]["work.py"] == script.text
    assert own[-1]["metadata"]["name"] not in names
    assert container(own)["command"][-3:] == ["/job/work.py", "--lr", "1"]
    check(own[-1])


@pytest.mark.parametrize(("name", "program"), [("a.py", "python"), ("a.sh", "bash")])
def test_a_preparation_carries_a_script(name, program):
    job, files = prepare_job(fleet_file(), "pretrain", 4, script=Script(name, "x\n"), command=["b"])
    (prepare,) = job["spec"]["template"]["spec"]["containers"]
    assert prepare["command"] == [program, f"/job/{name}", "b"]
    assert files["data"] == {name: "x\n"}
    check(job)


def test_spare_nodes_are_not_for_jobs():
    file = fleet_file().model_dump(exclude_unset=True)
    teams = [{**file["control_plane"]["teams"][0], "gpus": 64, "may_borrow": True}]
    file["control_plane"]["teams"] = teams
    file["health"] = {"spares": {"train": 1}}
    environment = Environment.model_validate(file)
    with pytest.raises(JobRefused) as refused:
        printed(environment, "pretrain", 128)
    assert str(refused.value) == "128 GPUs are too many: train has 120 and 8 on spare nodes; request at most 120"
    assert pods(printed(environment, "pretrain", 120)) == 15
