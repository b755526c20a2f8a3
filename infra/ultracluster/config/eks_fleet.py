"""Rules between an EKS control plane and the fleet."""

from collections.abc import Iterator

from ultracluster.catalog import eks
from ultracluster.config import clock
from ultracluster.config.cpu_nodes import cpu_node_room, system_node_room, unlisted_type
from ultracluster.config.drivers import eks_driver_problems
from ultracluster.config.eks import DEVICE_STACKS, Eks
from ultracluster.config.eks_teams import team_problems
from ultracluster.config.fields import from_cdk
from ultracluster.config.fleet import Fleet
from ultracluster.config.mount_paths import mount_path_problems
from ultracluster.config.network import nodes_without_aws
from ultracluster.config.node_groups import Scale, image_not_pinned, unknown_group
from ultracluster.config.problems import Path, Problem
from ultracluster.config.purchase import spot_service_role

SYSTEM_GROUP, CPU_GROUP, ELASTIC_GROUPS = "system", "cpu", "elastic-"
"""Node-group labels of the system nodes and the CPU nodes, and the start of those of Karpenter's node pools."""


_RESERVED_GROUPS = {SYSTEM_GROUP: "the name labels the system nodes", CPU_GROUP: "the name labels the CPU nodes"}


def eks_problems(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """Validation problems between `fleet` and its control plane, at paths of the file."""
    yield from _subnets(fleet)
    yield from _internet(fleet, settings)
    yield from mount_path_problems(fleet)
    yield from _system_nodes(fleet, settings)
    yield from _cpu_groups(fleet)
    yield from _group_names(fleet)
    yield from _purchases(fleet)
    yield from _spot_pools(settings)
    yield from _counts(fleet)
    yield from _quotas_of_eks(fleet, settings)
    yield from _interfaces(fleet)
    yield from _slurm_settings(fleet)
    yield from _images(fleet, settings)
    yield from eks_driver_problems(fleet, settings)
    yield from _lustre_efa(fleet)
    yield from _device_stacks(fleet, settings)
    yield from _ultraservers(fleet, settings)
    yield from _dynamic_resources(fleet, settings)
    yield from team_problems(fleet, settings)
    yield from _quotas_by_group(fleet, settings)


def _subnets(fleet: Fleet) -> Iterator[Problem]:
    """EKS places its network interfaces in at least two zones (EKS User Guide, "VPC and subnet requirements", 2026)."""
    existing = fleet.network.existing
    subnets = existing.control_plane_subnet_ids if existing else ()
    # one token may stand for a list of subnets
    if existing and len(set(subnets)) < 2 and not any(map(from_cdk, subnets)):
        message = "EKS requires subnets in at least two Availability Zones; there is one subnet"
        at = ("network", "existing", "control_plane_subnet_ids")
        yield Problem("eks-subnets", at, message, "add a private subnet in another Availability Zone")


def _internet(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    create = fleet.network.create
    if create and not create.nat_gateways and not settings.chart_mirror:
        message = "without NAT gateways the cluster cannot download charts and images"
        hint = "set nat_gateways: 1, or set control_plane.chart_mirror to a registry that holds them"
        yield Problem("charts-without-internet", ("network", "create", "nat_gateways"), message, hint)
    yield from nodes_without_aws(fleet.network)
    if create and not create.nat_gateways and settings.karpenter:
        message = "Karpenter creates instance profiles in IAM, which has no VPC endpoint"
        hint = "set karpenter: false, or set network.create.nat_gateways: 1"
        yield Problem("karpenter-without-internet", ("control_plane", "karpenter"), message, hint)


def _system_nodes(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    nodes = settings.system_nodes
    yield from unlisted_type(nodes.instance_type, ("control_plane", "system_nodes", "instance_type"))
    yield from system_node_room(fleet, nodes.instance_type, nodes.count)
    if settings.cpu_nodes.count:
        at_cpu: Path = ("control_plane", "cpu_nodes", "instance_type")
        yield from unlisted_type(settings.cpu_nodes.instance_type, at_cpu)
        yield from cpu_node_room(fleet, [(at_cpu, settings.cpu_nodes.instance_type)])
    elif not fleet.cpu_groups and settings.karpenter is not True and all(pool.has_gpus for pool in settings.pools):
        message = "no CPU nodes: launchers, Ray heads and other pods without GPUs take CPUs of accelerated nodes"
        message += ", or stay pending under Volcano and KAI"
        at = ("control_plane", "cpu_nodes", "count")
        hint = "add a pool without GPUs to karpenter" if settings.pools else "set karpenter: true"
        yield Problem("cpu-nodes-missing", at, message, f"set count: 2, or {hint}", "warning")


def _cpu_groups(fleet: Fleet) -> Iterator[Problem]:
    for i, group in fleet.known_groups:
        keys: list[Path] = [("instance_type",)] if group.instance_type is not None else [("instance_types", 0)]
        keys += [("instance_types", j) for j in range(1, len(group.instance_types))]
        yield from cpu_node_room(
            fleet, [(("node_groups", i, *key), name) for key, name in zip(keys, group.types, strict=True)]
        )


def _group_names(fleet: Fleet) -> Iterator[Problem]:
    for i, group in enumerate(fleet.node_groups):
        if group.name in _RESERVED_GROUPS or group.name.startswith(ELASTIC_GROUPS):
            karpenter = f"names that start with {ELASTIC_GROUPS} label Karpenter's nodes"
            use = _RESERVED_GROUPS.get(group.name, karpenter)
            message = f"{group.name} is reserved: on EKS, {use}"
            yield Problem("node-group-name-reserved", ("node_groups", i, "name"), message, "choose another name")


def _purchases(fleet: Fleet) -> Iterator[Problem]:
    """Managed node groups launch On-Demand, on Spot, and into capacity blocks.

    Source: EKS User Guide, managed node group capacity types, and capacity blocks with them (2026).
    """
    for i, group in enumerate(fleet.node_groups):
        at: Path = ("node_groups", i, "purchase")
        if group.purchase.type == "interruptible_reservation":
            message = "EKS managed node groups do not launch into interruptible reservations"
            hint = "set type: reservation, capacity_block or spot"
            yield Problem("purchase-not-on-eks", (*at, "type"), message, hint)
        starts = group.purchase.start_time
        if starts and starts <= clock.now():
            message = (
                f"the capacity block started at {group.purchase.starts}; a change of the group would now stop its nodes"
            )
            yield Problem("capacity-block-started", (*at, "starts"), message, "remove starts", "warning")


def _spot_pools(settings: Eks) -> Iterator[Problem]:
    """Karpenter's rights do not include the creation of the role (Karpenter 1.14, "Getting started")."""
    for i, pool in enumerate(settings.pools):
        if "spot" in pool.markets:
            yield spot_service_role(("control_plane", "karpenter", "pools", i, "purchase"))
            return


def _counts(fleet: Fleet) -> Iterator[Problem]:
    """Neither EKS nor software in the cluster resizes a managed node group, except at the end of a capacity block.

    Source: EKS User Guide, "Capacity Blocks with managed node groups" (2026).
    """
    for i, group in enumerate(fleet.node_groups):
        at: Path = ("node_groups", i, "count")
        if not isinstance(group.count, Scale):
            continue
        if group.purchase.type == "capacity_block":
            message = "EKS starts all nodes of a capacity block and stops them before its end, so min would be ignored"
            yield Problem("count-min-ignored", at, message, f"set count: {group.max_count}")
        elif group.min_count < group.max_count:
            message = f"no autoscaler adds nodes to {group.name}; it starts with {group.min_count}"
            hint = f"set count: {group.max_count}, or resize it with `aws eks update-nodegroup-config`"
            yield Problem("count-not-scaled", at, message, hint, "warning")


def _quotas_of_eks(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """Quotas that AWS raises on request, so this only warns (EKS User Guide, "service quotas", 2026)."""
    for i, group in enumerate(fleet.node_groups):
        if len(group.blocks()) == 1 and group.max_count > eks.NODES_PER_GROUP:
            message = f"{group.max_count} nodes; the default quota is {eks.NODES_PER_GROUP} per managed node group"
            hint = "split the node group, or request a quota increase"
            yield Problem("eks-quota", ("node_groups", i, "count"), message, hint, "warning")
    groups = len(fleet.launched_groups) + 1 + bool(settings.cpu_nodes.count)
    if groups > eks.MAXIMUM_NODE_GROUPS:
        message = f"{groups} node groups with system and CPU nodes; the default quota is "
        message += f"{eks.MAXIMUM_NODE_GROUPS} per cluster"
        hint = "merge node groups, or request a quota increase"
        yield Problem("eks-quota", "node_groups", message, hint, "warning")


def _interfaces(fleet: Fleet) -> Iterator[Problem]:
    """The VPC CNI assigns pods addresses of card 0 only (amazon-vpc-cni-k8s; amazon-eks-ami issue 2423, 2026)."""
    for i, group in fleet.known_groups:
        if group.interfaces != "max_bandwidth":
            continue
        plain = sum(interface.kind == "interface" for interface in group.layout("eks")) - 1
        if plain:
            message = (
                f"pods use the first interface only; {plain} more waste addresses and were seen to keep nodes from "
            )
            message += "joining the cluster"
            at = ("node_groups", i, "interfaces")
            yield Problem("interfaces-unused-by-pods", at, message, "set interfaces: auto", "warning")


def _slurm_settings(fleet: Fleet) -> Iterator[Problem]:
    for i, group in enumerate(fleet.node_groups):
        for name in group.slurm_settings:
            at: Path = ("node_groups", i, "slurm_settings", name)
            yield Problem("slurm-setting-not-allowed", at, "an EKS cluster has no Slurm", f"remove {name}")
        for key in ("gres_settings", "idle_seconds"):
            if getattr(group, key):
                message = "an EKS cluster has no Slurm"
                yield Problem("slurm-setting-not-allowed", ("node_groups", i, key), message, f"remove {key}")


def _images(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """The catalogue pins an image release for each Kubernetes version that it holds."""
    unpinned = eks.newer_kubernetes(settings.kubernetes_version)
    for i, group in enumerate(fleet.node_groups):
        if group.image.startswith("ssm:") or (group.image == "auto" and unpinned):
            yield image_not_pinned(("node_groups", i))


def _lustre_efa(fleet: Fleet) -> Iterator[Problem]:
    """AWS documents Lustre over EFA for Ubuntu; AL2023 GPU images were not verified (EKS User Guide, FSx CSI)."""
    for at, settings in fleet.storage.all_lustre:
        if not settings.efa:
            continue
        message = "AWS documents Lustre over EFA for Ubuntu; with EKS's AL2023 images it is not verified"
        hint = "check `lnetctl net show --net efa` on the first node; if it shows no interface, Lustre uses TCP"
        yield Problem("lustre-efa-on-eks", ("storage", *at, "efa"), message, hint, "warning")


def _device_stacks(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """Two stacks on a node silently assign the same GPU to two pods (EKS User Guide, "Manage NVIDIA devices")."""
    if isinstance(settings.device_stack, str):
        return
    names = [group.name for group in fleet.node_groups]
    cpu_only = fleet.cpu_groups
    serves: dict[str, str] = {}
    for stack in DEVICE_STACKS:
        groups = getattr(settings.device_stack, stack)
        for i, name in enumerate(groups):
            at: Path = ("control_plane", "device_stack", stack, i)
            if name not in names:
                yield from unknown_group("device-stack-node-group-unknown", at, name, names)
            elif name in cpu_only:
                message = f"{name} has no GPUs, so no device stack serves it"
                yield Problem("device-stack-without-gpus", at, message, f"remove {name}")
            elif name in groups[:i]:
                message = f"{name} is already {stack}[{groups.index(name)}]"
                yield Problem("duplicate-name", at, message, "remove the duplicate")
            elif name in serves:
                message = f"{name} is already in {serves[name]}; two stacks on a node assign the same GPU to two pods"
                yield Problem("device-stack-conflict", at, message, f"remove {name} from {serves[name]} or {stack}")
            serves.setdefault(name, stack)
    for i, name in enumerate(names):
        if name not in serves and name not in cpu_only:
            message = f"{name} has no device stack, so Kubernetes would not see its GPUs"
            hint = f"add {name} to a list of control_plane.device_stack"
            yield Problem("device-stack-missing", ("node_groups", i, "name"), message, hint)


def _ultraservers(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """NVLink between instances requires ComputeDomains of the DRA driver; a cluster has one DRA driver.

    Source: EKS User Guide, "Use P6e-GB200 UltraServers with Amazon EKS" (2026).
    """
    for i, group in fleet.known_groups:
        if not group.hardware.ultraserver_only:
            continue
        if eks.older(settings.kubernetes_version, eks.ULTRASERVER_KUBERNETES):
            message = f"{group.type_names} requires Kubernetes {eks.ULTRASERVER_KUBERNETES} or newer"
            hint = f'set kubernetes_version: "{eks.NEWEST_TESTED}"'
            yield Problem("kubernetes-too-old", ("control_plane", "kubernetes_version"), message, hint)
        stacks = settings.device_stacks(group.name)
        if stacks and "dra" in settings.used_device_stacks and "dra" not in stacks:
            message = f"{group.name} would use the DRA driver for NVLink only, while other node groups use it for GPUs"
            hint = f"move {group.name} to device_stack.dra"
            yield Problem("device-stack-ultraserver", ("node_groups", i, "name"), message, hint)


def _dynamic_resources(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """Karpenter and KAI with resource claims: for GPUs under `dra`, for NVLink domains of UltraServers under any stack.

    Source: EKS User Guide, "Manage NVIDIA GPU devices" (2026); KAI Scheduler 0.17, docs/dra and its feature gates.
    """
    ultraserver = next((group.name for _, group in fleet.known_groups if group.hardware.ultraserver_only), None)
    if "dra" in settings.used_device_stacks:
        claims = "pods that claim their GPUs"
    elif ultraserver:
        claims = f"pods that claim an NVLink domain of {ultraserver}"
    else:
        return
    message = f"Karpenter does not account for {claims}"
    if settings.karpenter is True:
        yield Problem("karpenter-with-dra", ("control_plane", "karpenter"), message, "set karpenter: false")
    with_gpus = [i for i, pool in enumerate(settings.pools) if pool.has_gpus]
    if with_gpus:
        at: Path = ("control_plane", "karpenter", "pools", with_gpus[0])
        yield Problem("karpenter-with-dra", at, message, "remove pools with GPUs")
    if settings.places_with == "kai":
        message = f"KAI may need a feature gate to place {claims}: its documentation says yes, its code says no"
        hint = "test one such pod first, or set scheduler: kueue"
        yield Problem("scheduler-dra-unverified", ("control_plane", "scheduler"), message, hint, "warning")


def _quotas_by_group(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """Queues of Volcano and KAI count GPUs, not node groups (Volcano 1.15, capacity plugin; KAI 0.17, queues)."""
    if settings.queues_with != "kueue" and len(fleet.gpu_groups) > 1:
        name = {"volcano": "Volcano", "kai": "KAI"}[settings.queues_with]
        message = f"{name} adds up a team's GPUs over all node groups and does not enforce the quota of each"
        hint = f"set scheduler: kueue_with_{settings.queues_with}"
        yield Problem("quota-not-by-group", ("control_plane", "scheduler"), message, hint, "warning")
