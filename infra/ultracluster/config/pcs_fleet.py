"""Rules between a PCS control plane and the fleet."""

from collections.abc import Iterator

from ultracluster.catalog import instance_types, pcs
from ultracluster.config.containers import container_problems
from ultracluster.config.cpu_nodes import login_architecture, unlisted_type
from ultracluster.config.drivers import pcs_driver_problems
from ultracluster.config.fleet import Fleet
from ultracluster.config.gres import detects_gpus
from ultracluster.config.mount_paths import mount_path_problems
from ultracluster.config.network import nodes_without_aws
from ultracluster.config.node_groups import image_not_pinned, unknown_group, unused_groups
from ultracluster.config.pcs import Pcs
from ultracluster.config.problems import Path, Problem
from ultracluster.config.purchase import spot_service_role
from ultracluster.config.slurm_conflicts import lower_words, preempt_mode_problems, queue_conflicts
from ultracluster.config.slurm_settings import SlurmSettings, known_slurm
from ultracluster.config.ultraservers import ultraserver_problems


def pcs_problems(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """Validation problems between `fleet` and its control plane, at paths of the file."""
    yield from _cluster_size(fleet, settings)
    yield from _node_group_limit(fleet)
    yield from _queues_name_groups(fleet, settings)
    yield from _mixed_queues(fleet, settings)
    yield from ultraserver_problems(fleet, settings)
    yield from _efa_only_on_pcs(fleet)
    yield from _suspended_jobs(fleet, settings)
    yield from _node_settings(fleet, settings)
    yield from _gpu_detection(fleet, settings)
    yield from _agents(fleet, settings)
    yield from pcs_driver_problems(fleet)
    yield from _pinned_images(fleet, settings)
    yield from _block_starts(fleet)
    yield from container_problems(fleet, settings.login.image, containers=settings.containers)
    yield from mount_path_problems(fleet)
    yield from unlisted_type(settings.login.instance_type, ("control_plane", "login", "instance_type"))
    yield from login_architecture(fleet, settings.login.instance_type)
    yield from _homes_of_login_nodes(fleet, settings)
    yield from _agents_reach_registries(fleet, settings)
    yield from _second_gateway(fleet)
    yield from _spot_role(fleet)
    yield from nodes_without_aws(fleet.network)


def _cluster_size(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    nodes = settings.managed_nodes(fleet.nodes)
    smallest = pcs.smallest_size(nodes)
    if smallest is None:
        message = f"{nodes} nodes including login nodes; the largest PCS cluster manages {max(pcs.SIZES.values())}"
        yield Problem("pcs-too-many-nodes", "node_groups", message, "split the fleet into several environments")
    elif settings.size != "auto" and pcs.SIZES[settings.size] < nodes:
        limit = pcs.SIZES[settings.size]
        message = f"a {settings.size} cluster manages {limit} nodes; there are {nodes} including login nodes"
        hint = f"set size: {smallest}, or set size: auto"
        yield Problem("pcs-size-too-small", ("control_plane", "size"), message, hint)


def _homes_of_login_nodes(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """Users who log in again may reach another login node. Whether a boot script mounts homes is not known here."""
    login = settings.login
    if login.count > 1 and not fleet.storage.homes and not login.boot_scripts:
        message = f"each of the {login.count} login nodes has a /home of its own, so users find their files on one of "
        message += "them only"
        hint = "set storage.home, set count: 1, or add a script that mounts /home to control_plane.login.bootstrap"
        yield Problem("login-nodes-without-homes", ("control_plane", "login", "count"), message, hint)


def _agents_reach_registries(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    create = fleet.network.create
    if create and not create.nat_gateways and not settings.image_mirror:
        message = "without NAT gateways nodes cannot pull the images of the metrics agents, so they send no metrics"
        hint = "set nat_gateways: 1, or set control_plane.image_mirror to a registry that holds them"
        yield Problem("agents-without-internet", ("network", "create", "nat_gateways"), message, hint, "warning")


def _suspended_jobs(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """A job that is suspended, or that takes turns with others, keeps its GPUs and their memory.

    Source: Slurm documentation, "Generic Resource (GRES) Scheduling"; slurmctld 26.05, tried: the job of a higher QOS
    waits until the other job ends.
    """
    gpus = {group.name for _, group in fleet.gpu_groups}
    given: list[tuple[Path, SlurmSettings]] = []
    if gpus and not any(preempt_mode_problems(settings.slurm_settings)):
        given.append((("control_plane",), settings.slurm_settings))
    for i, queue in enumerate(settings.queues):
        if gpus & set(queue.node_groups) and not any(queue_conflicts(queue.slurm_settings)):
            given.append((("control_plane", "queues", i), queue.slurm_settings))
    for at, values in given:
        words = lower_words(values, "PreemptMode")
        if word := words.get("suspend") or words.get("gang"):
            message = f"with {word} a job that another one preempts keeps its GPUs, so the other job waits for them"
            hint = "set PreemptMode: REQUEUE, or CANCEL"
            yield Problem("slurm-setting-value", (*at, "slurm_settings", "PreemptMode"), message, hint)


def _node_settings(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """Parameters of nodes that PCS allows with newer versions of Slurm only (AWS PCS User Guide, 2026)."""
    for i, group in enumerate(fleet.node_groups):
        given: list[Path] = [("slurm_settings", name) for name in group.slurm_settings]
        given += [("gres_settings", j, name) for j, record in enumerate(group.gres_settings) for name in record]
        since = {at: pcs.NODE_GROUP_SETTINGS_SINCE.get(str(at[-1]), "") for at in given}
        if group.idle_seconds:
            since[("idle_seconds",)] = pcs.NODE_GROUP_IDLE_TIME_SINCE
        for at, version in since.items():
            if known_slurm(settings.slurm_version) and settings.slurm_version < version:
                name = at[-1]
                message = f"PCS allows {name} for a node group from Slurm {version} on; "
                message += f"slurm_version is {settings.slurm_version}"
                hint = f'remove {name}, or set slurm_version: "{version}"'
                yield Problem("slurm-setting-not-allowed", ("node_groups", i, *at), message, hint)


def _gpu_detection(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """Before Slurm 26.05 PCS does not set Sockets, which Slurm needs to place detected GPUs.

    Source: AWS PCS User Guide, "Configuring hardware topology" (2026).
    """
    if not pcs.NODE_GROUP_SETTINGS_SINCE["AutoDetect"] <= settings.slurm_version < pcs.SOCKETS_KNOWN_SINCE:
        return
    for i, group in enumerate(fleet.node_groups):
        for j, record in enumerate(group.gres_settings):
            if detects_gpus(record) and "Sockets" not in group.slurm_settings:
                message = f"Slurm {settings.slurm_version} drains every node that has AutoDetect without Sockets"
                at: Path = ("node_groups", i, "gres_settings", j, "AutoDetect")
                yield Problem("slurm-gres", at, message, f"add Sockets to slurm_settings of {group.name}")


def _agents(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """An older PCS agent ignores node lifecycle actions, so the node never takes a job.

    Source: AWS PCS User Guide, "AWS PCS agent versions" (2026).
    """
    images: list[tuple[Path, str]] = [(("control_plane", "login", "image"), settings.login.image)]
    images += [(("node_groups", i, "image"), group.image) for i, group in enumerate(fleet.node_groups)]
    for at, image in images:
        if pcs.runs_boot_steps(image) is False:
            message = f"{image} has PCS agent {pcs.IMAGE_AGENTS[image]}, which runs no boot steps; "
            message += f"{pcs.AGENT_VERSION} and newer do"
            hint = f"set an image that was built on {pcs.AGENT_IMAGE_BUILD} or later, or set image: auto"
            yield Problem("pcs-agent-too-old", at, message, hint)
        elif image in pcs.IMAGE_BUILDS:
            yield from _build(at, image, settings.slurm_version)


def _build(at: Path, image: str, slurm_version: str) -> Iterator[Problem]:
    """A build of AWS's image has some versions of Slurm, and newer builds have newer drivers. Unknown images pass.

    Source: awsome-distributed-ai, PCS-READY-DLAMI.md (as of 2026-08-05).
    """
    build, newest = pcs.IMAGE_BUILDS[image], pcs.IMAGE_BUILDS[pcs.NEWEST_IMAGE]
    if not build.has(slurm_version):
        message = f"{image} has Slurm {', '.join(build.slurm)}, not {slurm_version}, so its nodes never join"
        yield Problem("pcs-image-without-slurm", at, message, "set image: auto, or a newer image that has the version")
    elif build.built < newest.built:
        message = f"{image} was built on {build.built}; {pcs.NEWEST_IMAGE} of {newest.built} in us-east-2 is newer"
        hint = "set the newest image of your Region, as docs/operations.md shows; PCS then replaces each node when its "
        yield Problem("image-older", at, message, f"{hint}jobs end", "warning")


def _node_group_limit(fleet: Fleet) -> Iterator[Problem]:
    groups = len(fleet.launched_groups) + 1
    if groups > pcs.MAXIMUM_NODE_GROUPS:
        message = (
            f"{groups} node groups including the login nodes; the maximum is {pcs.MAXIMUM_NODE_GROUPS} per PCS cluster"
        )
        yield Problem(
            "pcs-too-many-node-groups",
            "node_groups",
            message,
            "merge node groups, or split the fleet into several environments",
        )


def _queues_name_groups(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    names = [group.name for group in fleet.node_groups]
    used = {name for queue in settings.queues for name in queue.node_groups}
    for i, queue in enumerate(settings.queues):
        for j, name in enumerate(queue.node_groups):
            if name not in names:
                at = ("control_plane", "queues", i, "node_groups", j)
                yield from unknown_group("queue-node-group-unknown", at, name, names)
    yield from unused_groups("node-group-without-queue", "queue", names, used)


def _mixed_queues(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """Slurm gives a job any nodes of a queue on which it fits."""
    known = {group.name: group for _, group in fleet.known_groups}
    for i, queue in enumerate(settings.queues):
        groups = [known[name] for name in queue.node_groups if name in known]
        types = [group.hardware for group in groups]
        kinds = {(each.architecture, each.gpu_model, each.gpu_count, each.cores) for each in types}
        if len(kinds) > 1 and len({each.ultraserver_only for each in types}) == 1:
            names = " and ".join(dict.fromkeys(group.type_names for group in groups))
            message = f"a job may get nodes of {names} together, and runs as fast as the slowest"
            at: Path = ("control_plane", "queues", i, "node_groups")
            yield Problem("queue-nodes-differ", at, message, "use one queue for each instance type", "warning")


def _efa_only_on_pcs(fleet: Fleet) -> Iterator[Problem]:
    """PCS was reported to drop `efa-only` interfaces (awsome-distributed-ai, July 2026; not verified)."""
    for i, group in fleet.known_groups:
        if any(interface.kind == "efa-only" for interface in group.layout("pcs")):
            message = "PCS was reported to drop efa-only interfaces at launch; whether it still does is not verified"
            hint = "check the number of NICs in NCCL's log on the first node"
            if group.interfaces != "auto":
                hint = "set interfaces: auto, or " + hint
            yield Problem("efa-only-unverified", ("node_groups", i, "interfaces"), message, hint, "warning")


def _pinned_images(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """AWS publishes `latest` only: a later deployment may resolve to a newer image and replace the nodes.

    A file without control_plane.login gets no warning about login nodes.

    Source: AWS PCS User Guide, "AMI release notes" (2026).
    """
    groups: dict[Path, tuple[str, str]] = {
        ("node_groups", i): (group.image, next(iter(group.types), "")) for i, group in enumerate(fleet.node_groups)
    }
    if "login" in settings.model_fields_set:
        groups["control_plane", "login"] = settings.login.image, settings.login.instance_type
    for path, (image, instance_type) in groups.items():
        if image == "auto":
            known = instance_types.get(instance_type) if instance_type else None
            parameter = pcs.IMAGE_PARAMETER.format(architecture=known.architecture) if known else ""
            yield image_not_pinned(path, parameter)
        elif image.startswith("ssm:"):
            yield image_not_pinned(path, image.removeprefix("ssm:"))


def _second_gateway(fleet: Fleet) -> Iterator[Problem]:
    """All nodes of a VPC that is created here route through its first NAT gateway."""
    create = fleet.network.create
    if create and create.nat_gateways > 1:
        message = "all nodes route through the first NAT gateway; a second one serves no node of a PCS cluster"
        yield Problem(
            "nat-gateway-unused", ("network", "create", "nat_gateways"), message, "set nat_gateways: 1", "warning"
        )


def _block_starts(fleet: Fleet) -> Iterator[Problem]:
    for i, group in enumerate(fleet.node_groups):
        if group.purchase.starts and group.purchase.type == "capacity_block":
            message = "PCS waits for the capacity block to start, so starts would be ignored"
            at = ("node_groups", i, "purchase", "starts")
            yield Problem("capacity-block-start-ignored", at, message, "remove starts")


def _spot_role(fleet: Fleet) -> Iterator[Problem]:
    """PCS launches Spot Instances only in accounts with the service-linked role of EC2 Spot. One warning per file.

    Source: AWS PCS User Guide, "Amazon EC2 Spot role for AWS PCS" (2026).
    """
    for i, group in enumerate(fleet.node_groups):
        if group.purchase.type == "spot":
            yield spot_service_role(("node_groups", i, "purchase", "type"))
            return
