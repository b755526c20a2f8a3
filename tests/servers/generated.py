"""Every Kubernetes object that the project generates: what a deployment applies, and what `ultracluster job` prints."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tests.kubernetes.fleet import SCHEDULERS, STACKS, fleet_file
from tests.kubernetes.test_order import DEPLOYED
from tests.synthesis import FILES
from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.config.file_systems import MoreLustre
from ultracluster.config.loader import load
from ultracluster.jobs.request import JobRefused, Script
from ultracluster.kubernetes.deployed import DeployedResources, KarpenterResources, NfsExport
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.jobs import example_job, prepare_job
from ultracluster.kubernetes.order import ordered_parts
from ultracluster.kubernetes.parts import Object, Objects

OPERATORS = ((), ("jobset",), ("trainer",), ("jobset", "leader_worker_set", "mpi", "ray", "trainer"))
FLEETS = {
    "p5en": ({"train": ("p5en.48xlarge", 4)}, {"train": 32}),
    "gb200": ({"nvl": ("p6e-gb200.36xlarge", 36)}, {"nvl": 144}),
    "both": ({"train": ("p5en.48xlarge", 4), "nvl": ("p6e-gb200.36xlarge", 36)}, {"train": 32, "nvl": 144}),
}
IMAGE = "registry.example.com/mine:1"
EXPORT = NfsExport("fs-1.efs.us-east-2.amazonaws.com", "/", ("nfsvers=4.1",))
KARPENTER = KarpenterResources("queue", "NodeRole", "subnet-1", ("subnet-2",), "sg-1", "sg-2")
SCRIPT = Script("train.py", "print()\n")


def environments() -> Iterator[tuple[str, Environment]]:
    """Shipped EKS files, and fleets under every scheduler, device stack and list of operators, by name."""
    for name, file in FILES.items():
        found = load(file)
        if isinstance(found.control_plane, Eks):
            yield name, found
    for fleet, scheduler, stack, operators in product(FLEETS, SCHEDULERS, STACKS, OPERATORS):
        groups, gpus = FLEETS[fleet]
        teams = (
            {"name": "pretrain", "node_groups": list(groups), "gpus": gpus, "priority": "high"},
            {"name": "research", "node_groups": list(groups), "gpus": dict.fromkeys(groups, 0), "may_borrow": True},
        )
        settings = {"scheduler": scheduler, "device_stack": stack, "jobs": list(operators)}
        name = f"{fleet}, {scheduler}, {stack}, {'+'.join(operators) or 'no operator'}"
        yield name, fleet_file(groups, teams, **settings)


def objects() -> dict[str, tuple[str, Object]]:
    """Distinct objects by their text, each with the first environment that has it."""
    found: dict[str, tuple[str, Object]] = {}
    for name, environment in environments():
        for obj in (*_installed(environment), *printed(environment)):
            found.setdefault(json.dumps(obj, sort_keys=True), (name, obj))
    return found


def _installed(environment: Environment) -> Iterator[Object]:
    for part in ordered_parts(EksEnvironment.from_environment(environment), deployed(environment)):
        if isinstance(part, Objects):
            yield from part.items


def deployed(environment: Environment) -> DeployedResources:
    """Resources with made-up ids, as far as the environment has them."""
    storage, settings = environment.storage, environment.control_plane
    lustre = DEPLOYED.file_system if storage.lustre else None
    karpenter = replace(
        KARPENTER, zone_subnet_ids={f"{environment.region}{zone}": f"subnet-{zone}" for zone in "abcdef"}
    )
    more = {each.name: DEPLOYED.file_system if isinstance(each, MoreLustre) else EXPORT for each in storage.more}
    return replace(
        DEPLOYED,
        file_system=lustre,
        buckets={name: f"test-{name}-1" for name in storage.buckets},
        karpenter=karpenter if isinstance(settings, Eks) and settings.karpenter else None,
        home=EXPORT if storage.home else None,
        more=more,
    )


def printed(environment: Environment) -> Iterator[Object]:
    """What `ultracluster job` prints for each team, node group and kind of job."""
    view = EksEnvironment.from_environment(environment)
    for team in view.teams:
        for group, gpus in view.quotas(team):
            wanted = max(gpus, group.hardware.gpu_count)
            for kind in ("train", "nccl-test", "nccl-pairs"):
                yield from _if_possible(environment, team.name, wanted, kind=kind, node_group=group.name, image=IMAGE)
            yield from _if_possible(environment, team.name, wanted, node_group=group.name, image=IMAGE, script=SCRIPT)
        try:
            yield from prepare_job(environment, team.name, 2)
        except JobRefused:
            continue


def _if_possible(*args: object, **options: object) -> Iterator[Object]:
    """The objects of a job, or none where the environment cannot run it."""
    try:
        yield from example_job(*args, **options)  # type: ignore[arg-type]
    except JobRefused:
        return


def pods_of(obj: Object) -> Iterator[Object]:
    """Pods as the controllers of an object make them."""
    place = obj["metadata"].get("namespace")
    for number, template in enumerate(_templates(obj)):
        metadata = {**template.get("metadata", {}), "name": f"pod-{number}", "namespace": place}
        # accounts are objects of their own, and none is made here
        spec = {key: value for key, value in template["spec"].items() if key != "serviceAccountName"}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _templates(obj: Object) -> Iterator[Object]:
    spec = obj.get("spec", {})
    match obj["kind"]:
        case "Job" if "tasks" in spec:
            yield from (task["template"] for task in spec["tasks"])
        case "Job" | "DaemonSet" | "Deployment":
            yield spec["template"]
        case "JobSet":
            yield from (each["template"]["spec"]["template"] for each in spec["replicatedJobs"])
        case "MPIJob":
            yield from (each["template"] for each in spec["mpiReplicaSpecs"].values())
