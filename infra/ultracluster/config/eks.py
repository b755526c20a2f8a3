"""The Kubernetes control plane: an Amazon EKS cluster, its software, and the teams that share the fleet."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from ipaddress import IPv4Network
from typing import Annotated, Literal, get_args

from pydantic import Field

from ultracluster.catalog import eks, software
from ultracluster.config import clock, cluster_effects
from ultracluster.config import effect_rules as rules
from ultracluster.config.effects import CONTENT, IN_PLACE, NEW_SECTION
from ultracluster.config.eks_nodes import CpuNodes, NodeRepair, SystemNodes
from ultracluster.config.fields import (
    FLAG,
    KIND,
    MAPPING,
    NUMBER,
    SWITCH,
    TEXT,
    Many,
    Mirror,
    PublicCidr,
    RoleArn,
    from_cdk,
    text,
)
from ultracluster.config.karpenter import KarpenterPool, KarpenterPools
from ultracluster.config.problems import Problem, repeated, repeated_names, rule
from ultracluster.config.settings import Settings

DeviceStack = Literal["gpu_operator", "device_plugin", "dra"]
Scheduler = Literal["kueue", "volcano", "kai", "kueue_with_kai", "kueue_with_volcano"]
JobOperator = Literal["trainer", "jobset", "leader_worker_set", "mpi", "ray", "volcano"]
Priority = Literal["high", "normal", "low"]

DEVICE_STACKS: tuple[DeviceStack, ...] = get_args(DeviceStack)

POD_ADDRESSES = 30
"""IPv4 addresses that the VPC CNI keeps warm on each node for pods, in addition to those of the interfaces."""

SUBNET_ADDRESSES = 32
"""IPv4 addresses that EKS (six), VPC endpoints and the AMP scraper take in a control-plane subnet, rounded up.

Source: EKS User Guide, "VPC and subnet requirements" (2026).
"""

RESERVED_NAMES = frozenset(
    {"default", "root", "monitoring", "mount-s3"}
    | {chart.namespace for chart in software.charts.values()}
    | {manifest.namespace for manifest in software.manifests.values()}
)
"""Names of namespaces and queues that exist before any team: of Kubernetes, of the cluster's software, Volcano's root.

Names that start with `kube-` or end with `-system` are reserved too.
"""

WIDEST = 8
"""Prefix length of the largest network that may reach a public endpoint."""

NOTICE = timedelta(days=90)
"""How long before the end of extended support the warning starts."""


class DeviceStacks(Settings):
    """Device stack of each node group, when the groups use different stacks."""

    gpu_operator: Annotated[Many[str], cluster_effects.DEVICE_STACK] = ()
    """Node groups of NVIDIA's GPU Operator."""
    device_plugin: Annotated[Many[str], cluster_effects.DEVICE_STACK] = ()
    """Node groups of NVIDIA's device plugin without the operator."""
    dra: Annotated[Many[str], cluster_effects.DEVICE_STACK] = ()
    """Node groups whose GPUs and EFA cards pods claim through dynamic resource allocation (DRA)."""


class Team(Settings):
    """A namespace with a share of the fleet.

    `gpus` are guaranteed to the team. Other teams borrow idle GPUs until the team reclaims them. `priority` decides
    who borrows first, and is the priority class of the team's jobs. `members` may run jobs in the namespace.
    """

    name: Annotated[
        str,
        text(
            r"^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$",
            "a name of up to 30 lower-case letters, digits and hyphens that starts with a letter",
        ),
        cluster_effects.TEAM_NAME,
    ]
    """Name of the team, its namespace and its queue."""
    node_groups: Annotated[Many[str], Field(min_length=1), CONTENT]
    """Node groups for the team's jobs."""
    gpus: Annotated[
        Annotated[int, Field(ge=0), NUMBER] | Annotated[Mapping[str, Annotated[int, Field(ge=0)]], MAPPING],
        KIND,
        CONTENT,
    ]
    """Guaranteed GPUs: a number, or a number for each node group."""
    priority: Annotated[Priority, CONTENT] = "normal"
    """Order of teams that borrow idle GPUs, and the priority class of the team's jobs."""
    may_borrow: Annotated[bool, CONTENT] = False
    """Whether the team's jobs may borrow idle GPUs."""
    members: Annotated[Many[RoleArn], cluster_effects.MEMBERS] = ()
    """IAM roles that may run jobs in the namespace."""
    load_balancers: Annotated[Annotated[int, Field(ge=0, le=50), NUMBER], CONTENT] = 0
    """Services of type LoadBalancer that the team may create. By default AWS connects them to the internet."""
    user: Annotated[
        Annotated[str, text(r"^[1-9]\d{0,9}:[1-9]\d{0,9}$", "UID:GID such as 2001:2001, without root")] | None, CONTENT
    ] = None
    """UID:GID that owns the team's folders and that printed jobs run as. Without it any user of its pods may write."""

    @property
    def quotas(self) -> dict[str, int]:
        """Guaranteed GPUs by node group."""
        return {self.node_groups[0]: self.gpus} if isinstance(self.gpus, int) else dict(self.gpus)

    @rule
    def _name_is_free(self) -> Iterator[Problem]:
        if self.name in RESERVED_NAMES or self.name.startswith("kube-") or self.name.endswith("-system"):
            message = f"{self.name} is reserved: Kubernetes or the cluster's software uses the name"
            yield Problem("team-name-reserved", "name", message, f"set name: team-{self.name.removesuffix('-system')}")


class EksControlPlane(Settings):
    """Settings of an Amazon EKS control plane alone, without nodes, software and teams.

    Source: EKS User Guide (2026); figures in `infra/ultracluster/catalog/data/eks.json`.
    """

    type: Annotated[Literal["eks"], rules.KIND] = "eks"
    """Type of control plane."""
    kubernetes_version: Annotated[str, cluster_effects.KUBERNETES_VERSION]
    """Kubernetes version, in quotes."""
    control_plane_tier: Annotated[eks.Tier, IN_PLACE] = "standard"
    """Capacity of the API server. Tiers above standard are provisioned and billed by the hour."""
    endpoint: Annotated[Literal["private", "public_and_private"], IN_PLACE] = "private"
    """Access to the API server: from the VPC only, or also from the internet."""
    allowed_cidrs: Annotated[Many[PublicCidr], Field(max_length=eks.MAXIMUM_PUBLIC_CIDRS), IN_PLACE] = ()
    """Public networks that may reach the public endpoint."""

    @rule
    def _known_version(self) -> Iterator[Problem]:
        """EKS removes versions at the end of extended support, and charges more after standard support.

        Whether the cluster exists already is not known here, so time alone refuses nothing.

        Source: EKS User Guide, "Understand the Kubernetes version lifecycle on EKS" (2026).
        """
        version, newest = self.kubernetes_version, eks.NEWEST_TESTED
        meant = next((minor for minor in eks.KUBERNETES_VERSIONS if minor in version), newest)
        hint = f'set kubernetes_version: "{newest}"'
        known = eks.KUBERNETES_VERSIONS.get(version)
        if known is None:
            if eks.newer_kubernetes(version):
                message = f"Kubernetes {version} is newer than the newest tested version, {newest}"
                yield Problem("kubernetes-version-untested", "kubernetes_version", message, hint, "warning")
            else:
                message = f"Kubernetes {version} is not supported; supported: {', '.join(eks.KUBERNETES_VERSIONS)}"
                hint = f'set kubernetes_version: "{meant}"'
                yield Problem("kubernetes-version-unsupported", "kubernetes_version", message, hint)
            return
        today, hint = clock.today(), f"{hint}; upgrade one minor version at a time"
        if version == newest:
            hint = "update this package, and name a newer version"
        if known.extended_support_ends <= today:
            message = f"EKS ended support of Kubernetes {version} on {known.extended_support_ends}: it creates no "
            message += "clusters with it, and upgrades those that have it"
            yield Problem("kubernetes-version-unsupported", "kubernetes_version", message, hint, "warning")
        elif known.extended_support_ends < today + NOTICE:
            message = f"EKS ends support of Kubernetes {version} on {known.extended_support_ends} and then upgrades it"
            yield Problem("kubernetes-version-ending", "kubernetes_version", message, hint, "warning")
        elif known.standard_support_ends <= today:
            message = f"standard support of Kubernetes {version} ended on {known.standard_support_ends}; "
            message += "EKS charges for extended support"
            yield Problem("kubernetes-version-ending", "kubernetes_version", message, hint, "warning")

    @rule
    def _public_endpoint_has_cidrs(self) -> Iterator[Problem]:
        if self.endpoint == "public_and_private" and not self.allowed_cidrs:
            message = "a public endpoint without allowed_cidrs is open to the whole internet"
            hint = "add allowed_cidrs: [ADDRESS/32] with your address from https://checkip.amazonaws.com"
            yield Problem("endpoint-cidrs", "endpoint", message, hint)
        if self.endpoint == "private" and self.allowed_cidrs:
            message = "the endpoint is private, so allowed_cidrs would be ignored"
            hint = "remove allowed_cidrs, or set endpoint: public_and_private"
            yield Problem("endpoint-cidrs", "allowed_cidrs", message, hint)

    @rule
    def _public_networks(self) -> Iterator[Problem]:
        """EKS refuses reserved addresses, and private addresses never reach a public endpoint.

        Source: EKS User Guide, "Cluster API server endpoint" (2026).
        """
        for i, cidr in enumerate(self.allowed_cidrs):
            for message, hint in () if from_cdk(cidr) else _not_public(cidr):
                yield Problem("endpoint-cidrs", ("allowed_cidrs", i), f"{cidr} {message}", hint)

    @rule
    def _distinct_networks(self) -> Iterator[Problem]:
        yield from repeated("allowed_cidrs", self.allowed_cidrs)


class Eks(EksControlPlane):
    """An Amazon EKS cluster with a GPU platform.

    `device_stack` is one stack for all node groups, or a list of node groups for each stack. `jobs` are operators for
    distributed jobs, installed with their dependencies. `chart_mirror` is the source of charts and images for a
    cluster without internet access.

    Source: EKS User Guide (2026); figures in `infra/ultracluster/catalog/data/eks.json` and `software.json`.
    """

    admins: Annotated[Many[RoleArn], Field(min_length=1), IN_PLACE]
    """IAM roles that administer the cluster."""
    system_nodes: Annotated[SystemNodes, NEW_SECTION] = SystemNodes()
    """CPU nodes for DNS, operators, schedulers and storage controllers."""
    cpu_nodes: Annotated[CpuNodes, NEW_SECTION] = CpuNodes()
    """CPU nodes for pods of teams that need no GPU."""
    device_stack: Annotated[
        Annotated[DeviceStack, TEXT] | Annotated[DeviceStacks, MAPPING], KIND, cluster_effects.DEVICE_STACK
    ] = "gpu_operator"
    """Software that exposes GPUs to Kubernetes."""
    scheduler: Annotated[Scheduler, cluster_effects.SCHEDULER] = "kueue"
    """Software that queues jobs and places pods."""
    teams: Annotated[Many[Team], Field(min_length=1), cluster_effects.TEAMS]
    """Teams that share the fleet."""
    jobs: Annotated[Many[JobOperator], cluster_effects.JOB_OPERATORS] = ()
    """Operators for distributed jobs."""
    karpenter: Annotated[
        Annotated[bool, FLAG] | Annotated[KarpenterPools, MAPPING], SWITCH, cluster_effects.KARPENTER
    ] = False
    """Whether Karpenter adds nodes to the static fleet: true for its default On-Demand pools, or pools of your own."""
    node_repair: Annotated[NodeRepair, NEW_SECTION] = NodeRepair()
    """Repair of nodes with failed hardware."""
    image_release: Annotated[
        Annotated[str, text(r"^\d{1,4}\.\d{1,4}\.\d{1,4}-\d{8}$", "an image release such as 1.35.6-20260714")] | None,
        cluster_effects.RELEASE,
    ] = None
    """Release of AWS's images for all nodes. Default: the release in the catalogue, which changes with the package."""
    chart_mirror: Annotated[Mirror | None, CONTENT] = None
    """OCI registry with copies of the charts and images."""

    @property
    def subnet_addresses(self) -> int:
        """IPv4 addresses that each control-plane subnet needs, with one more system node during an update."""
        nodes = self.system_nodes.count // 2 + 1
        return SUBNET_ADDRESSES + nodes * (1 + POD_ADDRESSES)

    @property
    def pools(self) -> tuple[KarpenterPool, ...]:
        """Karpenter's pools of the file; none with its default pools and without Karpenter."""
        return self.karpenter.pools if isinstance(self.karpenter, KarpenterPools) else ()

    @property
    def queues_with(self) -> Literal["kueue", "volcano", "kai"]:
        """The software that enforces quotas."""
        return "kueue" if self.scheduler.startswith("kueue") else self.scheduler  # type: ignore[return-value]

    @property
    def places_with(self) -> Literal["kueue", "volcano", "kai"]:
        """The software that chooses nodes: Kueue's topology-aware scheduling, Volcano or KAI."""
        return self.scheduler.removeprefix("kueue_with_")  # type: ignore[return-value]

    def device_stacks(self, group: str) -> tuple[DeviceStack, ...]:
        """Stacks of a node group: exactly one in a valid file."""
        if isinstance(self.device_stack, str):
            return (self.device_stack,)
        return tuple(stack for stack in DEVICE_STACKS if group in getattr(self.device_stack, stack))

    @property
    def used_device_stacks(self) -> frozenset[DeviceStack]:
        """All stacks that a node group uses."""
        if isinstance(self.device_stack, str):
            return frozenset({self.device_stack})
        return frozenset(stack for stack in DEVICE_STACKS if getattr(self.device_stack, stack))

    @rule
    def _release_of_the_version(self) -> Iterator[Problem]:
        """A release belongs to one minor version of Kubernetes (amazon-eks-ami, CHANGELOG)."""
        release, version = self.image_release, self.kubernetes_version
        if release and not release.startswith(f"{version}."):
            of = release.rpartition(".")[0]
            message = f"{release} is a release for Kubernetes {of}; kubernetes_version is {version}"
            known = eks.KUBERNETES_VERSIONS.get(version)
            hint = f"set image_release: {known.image_release}" if known else "remove image_release"
            yield Problem("image-release-version", "image_release", message, hint)
        elif release and (newer := eks.newer_release(release)):
            message = f"{release} is older than {newer}, the newest release that the catalogue knows"
            hint = f"set image_release: {newer}; a deployment then replaces the nodes of every group"
            yield Problem("image-older", "image_release", message, hint, "warning")

    @rule
    def _one_device_plugin(self) -> Iterator[Problem]:
        """The GPU Operator includes a device plugin and feature discovery, which conflict with a second set."""
        if {"gpu_operator", "device_plugin"} <= self.used_device_stacks:
            message = "the GPU Operator includes a device plugin; a second one registers the same GPUs"
            hint = "move the node groups of device_plugin to gpu_operator"
            yield Problem("device-plugins-twice", "device_stack", message, hint)

    @rule
    def _dynamic_resources(self) -> Iterator[Problem]:
        """Pods can claim GPUs and EFA cards from Kubernetes 1.34 on.

        Source: EKS User Guide, "Manage NVIDIA GPU devices", "Manage EFA devices" (2026).
        """
        if "dra" in self.used_device_stacks and eks.older(self.kubernetes_version, eks.DRA_KUBERNETES):
            message = f"dynamic resource allocation of GPUs requires Kubernetes {eks.DRA_KUBERNETES} or newer on EKS"
            hint = f'set kubernetes_version: "{eks.DRA_KUBERNETES}", or set device_stack: gpu_operator'
            yield Problem("kubernetes-too-old", "kubernetes_version", message, hint)

    @rule
    def _job_operators(self) -> Iterator[Problem]:
        if "volcano" in self.jobs and self.scheduler != "volcano":
            at = ("jobs", self.jobs.index("volcano"))
            if self.places_with == "volcano":
                message = "Kueue does not admit Volcano jobs, so they would run outside all quotas"
                hint = "remove volcano from jobs, or set scheduler: volcano"
                yield Problem("job-operator-beside-quotas", at, message, hint)
            else:
                message = f"Volcano jobs require the volcano scheduler; scheduler is {self.scheduler}"
                hint = "remove volcano from jobs, or set scheduler: volcano"
                yield Problem("job-operator-without-scheduler", at, message, hint)

    @rule
    def _mirrored_operators(self) -> Iterator[Problem]:
        if self.chart_mirror and "mpi" in self.jobs:
            message = "the MPI operator has no Helm chart, so chart_mirror cannot hold it"
            hint = "remove mpi from jobs; trainer runs MPI jobs too"
            yield Problem("job-operator-without-chart", ("jobs", self.jobs.index("mpi")), message, hint)

    @rule
    def _distinct_entries(self) -> Iterator[Problem]:
        yield from repeated("admins", self.admins)
        yield from repeated("jobs", self.jobs)
        yield from repeated_names("teams", [team.name for team in self.teams])


def _not_public(cidr: str) -> Iterator[tuple[str, str]]:
    """Why a network cannot be allowed at a public endpoint, and what to do."""
    try:
        network = IPv4Network(cidr, strict=False)
    except ValueError:
        yield "is not an IPv4 network", "set your address from https://checkip.amazonaws.com, with /32"
        return
    if network.prefixlen < WIDEST:
        yield f"is larger than a /{WIDEST}", "list the networks of your offices or VPN"
    elif not network.is_global or network.is_multicast:
        hint = "set your address from https://checkip.amazonaws.com, with /32"
        yield "is private or reserved, so it never reaches a public endpoint", hint
    elif str(network) != cidr:
        address = cidr.split("/")[0]
        yield "is not the first address of its network", f"set {network}, or {address}/32 for one address"
