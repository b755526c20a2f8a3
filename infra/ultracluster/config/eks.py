"""The Kubernetes control plane: an Amazon EKS cluster, what runs in it, and the teams that share the fleet."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from ipaddress import IPv4Network
from typing import Annotated, Literal, get_args

from pydantic import Field

from ultracluster.catalog import eks, software
from ultracluster.config import clock
from ultracluster.config.fields import (
    KIND,
    MAPPING,
    NUMBER,
    TEXT,
    CpuType,
    Many,
    PublicCidr,
    RoleArn,
    cdk_value,
    from_cdk,
    text,
)
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings

DeviceStack = Literal["gpu_operator", "device_plugin", "dra"]
Scheduler = Literal["kueue", "volcano", "kai", "kueue_with_kai", "kueue_with_volcano"]
JobOperator = Literal["trainer", "jobset", "leader_worker_set", "mpi", "ray", "volcano"]
Priority = Literal["high", "normal", "low"]

DEVICE_STACKS: tuple[DeviceStack, ...] = get_args(DeviceStack)

POD_ADDRESSES = 30
"""IPv4 addresses that the VPC CNI holds ready on each node for its pods, beside those of the interfaces."""

SUBNET_ADDRESSES = 32
"""IPv4 addresses of a control-plane subnet that EKS's interfaces (six) and private endpoints take, rounded up.

Source: EKS User Guide, "VPC and subnet requirements" (2026).
"""

RESERVED_NAMES = frozenset(
    {"default", "root", "monitoring", "mount-s3"}
    | {chart.namespace for chart in software.charts.values()}
    | {manifest.namespace for manifest in software.manifests.values()}
)
"""Namespaces and queues that are there before any team: Kubernetes's, those of the cluster's software, Volcano's root.

Beside them are all that start with `kube-` or end with `-system`.
"""

ACCELERATED = re.compile(r"(p|gr?|inf|trn|dl|vt|f)\d")
"""How the names of instance families with GPUs or other accelerators begin (EC2 User Guide, instance naming)."""

WIDEST = 8
"""Prefix length of the widest network that may reach a public endpoint."""

NOTICE = timedelta(days=90)
"""How long before the end of extended support a file that names the version is warned about."""


class SystemNodes(Settings):
    """CPU nodes for what serves the cluster: DNS, operators, schedulers and storage controllers."""

    instance_type: CpuType = "m7i.2xlarge"
    """Instance type, without accelerators."""
    count: Annotated[int, Field(ge=2)] = 2
    """Number of nodes, spread over the control-plane subnets."""

    @rule
    def _without_gpus(self) -> Iterator[Problem]:
        if ACCELERATED.match(self.instance_type):
            message = f"{self.instance_type} has accelerators, which nothing on a system node uses"
            yield Problem("system-nodes-accelerated", "instance_type", message, "set instance_type: m7i.2xlarge")


class DeviceStacks(Settings):
    """Which stack shows the GPUs of which node groups to Kubernetes, where it is not one for all."""

    gpu_operator: Many[str] = ()
    """Node groups served by NVIDIA's GPU Operator."""
    device_plugin: Many[str] = ()
    """Node groups served by NVIDIA's device plugin alone."""
    dra: Many[str] = ()
    """Node groups whose GPUs and EFA cards are claimed by dynamic resource allocation."""


class Team(Settings):
    """A namespace with its share of the fleet.

    `gpus` are guaranteed to the team; what it leaves idle others borrow until it wants them back. `priority` decides
    who borrows first, and names the class of the team's own jobs. `members` may run jobs in the namespace.
    """

    name: Annotated[
        str, text(r"^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$", "a name of up to 30 lower-case letters, digits and hyphens")
    ]
    """Name of the team: of its namespace and its queue."""
    node_groups: Annotated[Many[str], Field(min_length=1)]
    """Node groups that the team's jobs run on."""
    gpus: Annotated[
        Annotated[int, Field(ge=0), NUMBER] | Annotated[Mapping[str, Annotated[int, Field(ge=0)]], MAPPING], KIND
    ]
    """GPUs that are the team's: a number, or a number for each of several node groups."""
    priority: Priority = "normal"
    """Who goes first for idle GPUs, and the class of the team's jobs."""
    may_borrow: bool = False
    """Whether its jobs may use GPUs that nobody claims."""
    members: Many[RoleArn] = ()
    """IAM roles that may run jobs in the namespace."""

    @property
    def quotas(self) -> dict[str, int]:
        """GPUs by node group."""
        return {self.node_groups[0]: self.gpus} if isinstance(self.gpus, int) else dict(self.gpus)

    @rule
    def _gpus_of_its_groups(self) -> Iterator[Problem]:
        if isinstance(self.gpus, int):
            if len(self.node_groups) > 1:
                message = f"{self.gpus} GPUs of {len(self.node_groups)} node groups; each has a quota of its own"
                split = ", ".join(f"{name}: {0 if i else self.gpus}" for i, name in enumerate(self.node_groups))
                yield Problem("team-gpus-by-group", "gpus", message, f"set gpus: {{{split}}}, or share them out")
            return
        for name in self.gpus:
            if name not in self.node_groups:
                message = f"{name} is not among the team's node groups, {', '.join(self.node_groups)}"
                yield Problem("team-gpus-by-group", ("gpus", name), message, "add it to node_groups, or remove it")

    @rule
    def _gpus_to_run_on(self) -> Iterator[Problem]:
        """A group of which a team has nothing and may borrow nothing is of no use to it."""
        if self.may_borrow or (isinstance(self.gpus, int) and len(self.node_groups) > 1):
            return
        for i, name in enumerate(self.node_groups):
            if not self.quotas.get(name):
                message = f"{self.name} has no GPUs of {name} and may not borrow any, so no job of it could run there"
                yield Problem("team-without-gpus", ("node_groups", i), message, "set may_borrow: true, or give it GPUs")

    @rule
    def _name_of_its_own(self) -> Iterator[Problem]:
        if self.name in RESERVED_NAMES or self.name.startswith("kube-") or self.name.endswith("-system"):
            message = f"{self.name} is a name that Kubernetes or the cluster's software has taken"
            yield Problem("team-name-reserved", "name", message, f"call it team-{self.name.removesuffix('-system')}")


class NodeRepair(Settings):
    """Whether EKS reboots or replaces nodes whose hardware fails, and when it stops doing so."""

    enabled: bool = True
    """Whether unhealthy nodes are repaired."""
    max_unhealthy_percent: Annotated[int, Field(ge=1, le=100)] = 20
    """Share of a group's nodes above which nothing is repaired: then something else is wrong."""


class EksControlPlane(Settings):
    """An Amazon EKS cluster without its nodes and software.

    Source: EKS User Guide (2026); figures in `infra/ultracluster/catalog/data/eks.json`.
    """

    type: Literal["eks"] = "eks"
    """The kind of control plane."""
    kubernetes_version: str
    """Version of Kubernetes, in quotes."""
    control_plane_tier: eks.Tier = "standard"
    """Capacity of the API server; above standard it is provisioned and paid for by the hour."""
    endpoint: Literal["private", "public_and_private"] = "private"
    """From where the API server is reached: the VPC alone, or the internet too."""
    allowed_cidrs: Annotated[Many[PublicCidr], Field(max_length=eks.MAXIMUM_PUBLIC_CIDRS)] = ()
    """Public networks that reach the public endpoint."""

    @rule
    def _known_version(self) -> Iterator[Problem]:
        """Versions leave EKS at the end of extended support, and cost more after standard support.

        Source: EKS User Guide, "Understand the Kubernetes version lifecycle on EKS" (2026).
        """
        version, newest = self.kubernetes_version, eks.NEWEST_TESTED
        meant = next((minor for minor in eks.KUBERNETES_VERSIONS if minor in version), newest)
        hint = f'set kubernetes_version: "{newest}"'
        known = eks.KUBERNETES_VERSIONS.get(version)
        if known is None:
            if version == eks.NEXT_UNTESTED:
                message = f"Kubernetes {version} is newer than what was tested, {newest}"
                yield Problem("kubernetes-version-untested", "kubernetes_version", message, hint, "warning")
            else:
                message = f"Kubernetes {version} is not supported; supported are {', '.join(eks.KUBERNETES_VERSIONS)}"
                hint = f'set kubernetes_version: "{meant}"'
                yield Problem("kubernetes-version-unsupported", "kubernetes_version", message, hint)
            return
        today, hint = clock.today(), f"{hint}, one minor version at a time"
        if known.extended_support_ends <= today:
            message = f"EKS ended Kubernetes {version} on {known.extended_support_ends}"
            yield Problem("kubernetes-version-unsupported", "kubernetes_version", message, hint)
        elif known.extended_support_ends < today + NOTICE:
            message = f"EKS ends Kubernetes {version} on {known.extended_support_ends}, and then upgrades the cluster"
            yield Problem("kubernetes-version-ending", "kubernetes_version", message, hint, "warning")
        elif known.standard_support_ends <= today:
            message = f"standard support of Kubernetes {version} ended on {known.standard_support_ends}; "
            message += "EKS charges for extended support"
            yield Problem("kubernetes-version-ending", "kubernetes_version", message, hint, "warning")

    @rule
    def _public_endpoint_is_bounded(self) -> Iterator[Problem]:
        if self.endpoint == "public_and_private" and not self.allowed_cidrs:
            message = "a public endpoint without allowed CIDRs answers the whole internet"
            hint = "add allowed_cidrs: [ADDRESS/32] with the address that https://checkip.amazonaws.com shows"
            yield Problem("endpoint-cidrs", "endpoint", message, hint)
        if self.endpoint == "private" and self.allowed_cidrs:
            message = "the endpoint is private, so allowed CIDRs would be ignored"
            yield Problem("endpoint-cidrs", "allowed_cidrs", message, "remove it, or set endpoint: public_and_private")

    @rule
    def _public_networks(self) -> Iterator[Problem]:
        """EKS refuses reserved addresses, and no private one ever reaches a public endpoint.

        Source: EKS User Guide, "Cluster API server endpoint" (2026).
        """
        for i, cidr in enumerate(self.allowed_cidrs):
            for message, hint in () if from_cdk(cidr) else _not_public(cidr):
                yield Problem("endpoint-cidrs", ("allowed_cidrs", i), f"{cidr} {message}", hint)

    @rule
    def _distinct_networks(self) -> Iterator[Problem]:
        yield from _repeated("allowed_cidrs", self.allowed_cidrs)


class Eks(EksControlPlane):
    """An Amazon EKS cluster with a GPU platform.

    `device_stack` is one for all node groups, or says which groups each stack serves. `jobs` are operators for
    distributed jobs; what they need comes with them. `chart_mirror` is where charts and images are taken from when the
    cluster has no way to the internet.

    Source: EKS User Guide (2026); figures in `infra/ultracluster/catalog/data/eks.json` and `software.json`.
    """

    admins: Annotated[Many[RoleArn], Field(min_length=1)]
    """IAM roles that administer the cluster."""
    system_nodes: SystemNodes = SystemNodes()
    """CPU nodes for what serves the cluster."""
    device_stack: Annotated[Annotated[DeviceStack, TEXT] | Annotated[DeviceStacks, MAPPING], KIND] = "gpu_operator"
    """What shows GPUs to Kubernetes."""
    scheduler: Scheduler = "kueue"
    """What queues jobs and places them."""
    teams: Annotated[Many[Team], Field(min_length=1)]
    """Who shares the fleet, and how."""
    jobs: Many[JobOperator] = ()
    """Operators for distributed jobs."""
    karpenter: bool = False
    """Whether Karpenter adds CPU nodes and On-Demand GPU nodes beside the static fleet."""
    node_repair: NodeRepair = NodeRepair()
    """What happens to nodes whose hardware fails."""
    chart_mirror: Annotated[str, text(r"^oci://[^\s/]+(/[^\s/]+)*$", "oci://registry/path"), cdk_value()] | None = None
    """Registry that holds copies of the charts and images."""

    @property
    def subnet_addresses(self) -> int:
        """IPv4 addresses that each control-plane subnet must hold, with one more system node during an update."""
        nodes = self.system_nodes.count // 2 + 1
        return SUBNET_ADDRESSES + nodes * (1 + POD_ADDRESSES)

    @property
    def queues_with(self) -> Literal["kueue", "volcano", "kai"]:
        """What holds the quotas."""
        return "kueue" if self.scheduler.startswith("kueue") else self.scheduler  # type: ignore[return-value]

    @property
    def places_with(self) -> Literal["kueue", "volcano", "kai"]:
        """What chooses the nodes: Kueue's topology-aware scheduling, Volcano or KAI."""
        return self.scheduler.removeprefix("kueue_with_")  # type: ignore[return-value]

    def device_stacks(self, group: str) -> tuple[DeviceStack, ...]:
        """Stacks that serve a node group; a sound file gives each exactly one."""
        if isinstance(self.device_stack, str):
            return (self.device_stack,)
        return tuple(stack for stack in DEVICE_STACKS if group in getattr(self.device_stack, stack))

    @property
    def used_device_stacks(self) -> frozenset[DeviceStack]:
        """Every stack that serves some node group."""
        if isinstance(self.device_stack, str):
            return frozenset({self.device_stack})
        return frozenset(stack for stack in DEVICE_STACKS if getattr(self.device_stack, stack))

    @rule
    def _one_device_plugin(self) -> Iterator[Problem]:
        """The GPU Operator brings a device plugin and feature discovery: a second set would clash."""
        if {"gpu_operator", "device_plugin"} <= self.used_device_stacks:
            message = "the GPU Operator brings a device plugin of its own; two in a cluster register the same GPUs"
            yield Problem("device-plugins-twice", "device_stack", message, "move the groups to gpu_operator")

    @rule
    def _dynamic_resources(self) -> Iterator[Problem]:
        """GPUs and EFA cards can be claimed from Kubernetes 1.34 on.

        Source: EKS User Guide, "Manage NVIDIA GPU devices", "Manage EFA devices" (2026).
        """
        if "dra" in self.used_device_stacks and eks.older(self.kubernetes_version, eks.DRA_KUBERNETES):
            message = f"dynamic resource allocation of GPUs needs Kubernetes {eks.DRA_KUBERNETES} on EKS"
            hint = f'set kubernetes_version: "{eks.DRA_KUBERNETES}", or device_stack: gpu_operator'
            yield Problem("kubernetes-too-old", "kubernetes_version", message, hint)

    @rule
    def _job_operators(self) -> Iterator[Problem]:
        if "volcano" in self.jobs and self.scheduler != "volcano":
            at = ("jobs", self.jobs.index("volcano"))
            if self.places_with == "volcano":
                message = "Kueue does not admit Volcano's jobs, which would run beside every quota"
                hint = "remove volcano from jobs, or set scheduler: volcano"
                yield Problem("job-operator-beside-quotas", at, message, hint)
            else:
                message = f"Volcano's jobs need Volcano; the scheduler is {self.scheduler}"
                hint = "remove volcano from jobs, or set scheduler: volcano"
                yield Problem("job-operator-without-scheduler", at, message, hint)

    @rule
    def _mirrored_operators(self) -> Iterator[Problem]:
        if self.chart_mirror and "mpi" in self.jobs:
            message = "the MPI operator has no chart that a mirror could hold"
            hint = "remove mpi from jobs; the trainer runs MPI jobs too"
            yield Problem("job-operator-without-chart", ("jobs", self.jobs.index("mpi")), message, hint)

    @rule
    def _distinct_entries(self) -> Iterator[Problem]:
        yield from _repeated("admins", self.admins)
        yield from _repeated("jobs", self.jobs)
        names = [team.name for team in self.teams]
        for i, name in enumerate(names):
            if name in names[:i]:
                message = f"{name} is the name of teams[{names.index(name)}] already"
                yield Problem("duplicate-name", ("teams", i, "name"), message, "give it another name")


def _not_public(cidr: str) -> Iterator[tuple[str, str]]:
    """What speaks against letting a network into a public endpoint, and what to do."""
    try:
        network = IPv4Network(cidr, strict=False)
    except ValueError:
        yield "is not an IPv4 network", "write the address that https://checkip.amazonaws.com shows, with /32"
        return
    if network.prefixlen < WIDEST:
        yield f"lets more than a /{WIDEST} of the internet in", "name the networks of your offices or VPN"
    elif not network.is_global or network.is_multicast:
        hint = "write the address that https://checkip.amazonaws.com shows, with /32"
        yield "is private or reserved, and nothing reaches a public endpoint from there", hint
    elif str(network) != cidr:
        address = cidr.split("/")[0]
        yield "starts inside a network, not at its start", f"write {network}, or {address}/32 for the one address"


def _repeated(key: str, entries: Sequence[str]) -> Iterator[Problem]:
    for i, entry in enumerate(entries):
        if entry in entries[:i]:
            message = f"{entry} is {key}[{entries.index(entry)}] already"
            yield Problem("duplicate-name", (key, i), message, "remove it")
