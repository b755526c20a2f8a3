"""The fleet: instance types, counts, purchase, network interfaces and disks."""

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field

from ultracluster.catalog import (
    InstanceType,
    Interface,
    Profile,
    UltraClusterType,
    efa_devices,
    instance_types,
    interface_layout,
    ultraservers,
)
from ultracluster.config import node_effects
from ultracluster.config.bootstrap import Bootstrap, Policies, Script, SecurityGroups, boot_problems, scripts
from ultracluster.config.codes import Code
from ultracluster.config.effects import NEW_NODES, NEW_SECTION
from ultracluster.config.fields import KIND, MAPPING, NUMBER, TEXT, ZONE_DUMMIES, Image, Many, Name, cdk_value
from ultracluster.config.gres import GresRecord, gres_problems, layout_problems
from ultracluster.config.group_types import type_problems, wiring_problems
from ultracluster.config.launch import Launch, Request, decide, launch_problems
from ultracluster.config.problems import Path, Problem, rule
from ultracluster.config.purchase import ExistingPlacementGroup, Purchase
from ultracluster.config.settings import Settings
from ultracluster.config.slurm_settings import SlurmSettings, setting_problems

Controller = Literal["pcs", "eks"]

NODE_GROUPS = 2
"""Our security groups of accelerated nodes: that of the cluster, and that of EFA."""

HPC = "hpc"
"""Start of the names of families for high performance computing (EC2 User Guide, instance naming)."""


class Scale(Settings):
    """A node group with a minimum and a maximum count."""

    min: Annotated[int, Field(ge=0), node_effects.COUNT]
    """Minimum number of nodes."""
    max: Annotated[int, Field(ge=1), node_effects.COUNT]
    """Maximum number of nodes."""

    @rule
    def _min_below_max(self) -> Iterator[Problem]:
        if self.min > self.max:
            message = f"min {self.min} is greater than max {self.max}"
            yield Problem("count-range", "min", message, f"set min: {self.max}")


class NodeGroup(Settings):
    """Instances of one type, or of several alike, with the same launch settings.

    `placement: auto` creates a cluster placement group for On-Demand and Spot instances with EFA. A reservation that
    was created in a placement group needs `placement: {existing: NAME}` with that group. `interfaces: auto` uses the
    layout for the control plane, with every EFA card of types with GPUs and of HPC types; other CPU types get EFA only
    with one of the layouts. `zones` are for nodes without EFA: network traffic between zones is slower and charged.
    `local_storage: raid0` combines the NVMe disks. `image: auto` uses AWS's image for the control plane,
    on EKS in the release `control_plane.image_release`. Otherwise `image` is an AMI id, or `ssm:/path` of a parameter
    that holds an AMI id; on EKS the AMI must be based on an EKS-optimised AL2023 image.
    """

    name: Annotated[Name, node_effects.NODE_GROUP_NAME]
    """Name of the group."""
    instance_type: Annotated[str | None, node_effects.TYPE] = None
    """Instance type; `ultracluster catalog` lists those of UltraClusters."""
    instance_types: Annotated[Many[str], node_effects.TYPES] = ()
    """Instead of instance_type: several types with the same architecture, vCPUs, GPUs and EFA, for more capacity."""
    count: Annotated[Annotated[int, Field(ge=1), NUMBER] | Annotated[Scale, MAPPING], KIND, node_effects.COUNT]
    """Number of nodes, or min and max."""
    purchase: Annotated[Purchase, NEW_SECTION] = Purchase(type="on_demand")
    """How the instances are bought."""
    zones: Annotated[Many[Annotated[str, cdk_value(ZONE_DUMMIES)]], node_effects.ZONES] = ()
    """Availability Zones of nodes without EFA. Without it, the availability_zone of the environment."""
    placement: Annotated[
        Annotated[Literal["auto", "none"], TEXT] | Annotated[ExistingPlacementGroup, MAPPING], KIND, NEW_NODES
    ] = "auto"
    """auto: a new cluster placement group for On-Demand and Spot with EFA. none: no group. Or an existing group."""
    interfaces: Annotated[Literal["auto", "fewest_ips", "max_bandwidth", "efa_with_ip", "without_efa"], NEW_NODES] = (
        "auto"
    )
    """Network interface layout. auto: the layout for the control plane. `ultracluster catalog TYPE` shows each."""
    local_storage: Annotated[Literal["raid0", "none"], NEW_NODES] = "raid0"
    """raid0 joins the local NVMe disks into one volume."""
    root_volume_gib: Annotated[int, Field(ge=100, le=16384), NEW_NODES] = 300
    """Size of the root volume in GiB."""
    image: Annotated[Image, node_effects.IMAGE] = "auto"
    """auto: AWS's image for the control plane. Or an AMI id, or an SSM parameter that holds one."""
    bootstrap: Annotated[Bootstrap, NEW_NODES] = ()
    """Scripts that nodes run at their first boot, after all other steps and in this order: paths, or mappings."""
    policies: Annotated[Policies, node_effects.POLICIES] = ()
    """ARNs of further IAM policies. The nodes of the group then have a role of their own."""
    security_groups: Annotated[SecurityGroups, NEW_NODES] = ()
    """Ids of further security groups of the nodes, of all their interfaces."""
    slurm_settings: Annotated[SlurmSettings, NEW_NODES] = Field(default_factory=dict)
    """Parameters of the group's nodes in slurm.conf that PCS allows. On EKS there are none."""
    gres_settings: Annotated[Many[GresRecord], NEW_NODES] = ()
    """Records of gres.conf for the group's nodes, for MIG, MPS and other devices. On EKS there are none."""
    idle_seconds: Annotated[Annotated[int, Field(ge=1, le=10_000_000)] | None, NEW_NODES] = None
    """Seconds after which PCS terminates an idle node of this group. Without it, those of control_plane."""

    @property
    def types(self) -> tuple[str, ...]:
        """Names of the instance types, one or several."""
        return self.instance_types if self.instance_type is None else (self.instance_type,)

    @property
    def one_type(self) -> str | None:
        """The instance type of a group that has one alone, which the launch template names."""
        return self.types[0] if len(self.types) == 1 else None

    @property
    def type_names(self) -> str:
        """The instance types in words."""
        return " or ".join(self.types)

    @property
    def hardware(self) -> InstanceType:
        """The first instance type; the others are alike. Raises UnknownInstanceType for a name that a rule refuses."""
        return instance_types[self.types[0]]

    @property
    def known(self) -> bool:
        """Whether every instance type is in the list; a rule refuses the others."""
        return bool(self.types) and all(name in instance_types for name in self.types)

    @property
    def efa(self) -> bool:
        """Whether the nodes have EFA interfaces, on either control plane."""
        return efa_devices(self.layout("pcs")) > 0

    @property
    def min_count(self) -> int:
        """Minimum number of instances."""
        return self.count.min if isinstance(self.count, Scale) else self.count

    @property
    def max_count(self) -> int:
        """Maximum number of instances."""
        return self.count.max if isinstance(self.count, Scale) else self.count

    @property
    def boot_scripts(self) -> tuple[Script, ...]:
        """The scripts of `bootstrap`, each with its settings."""
        return scripts(self.bootstrap)

    @cached_property
    def launch(self) -> Launch:
        """Market, capacity reservation and placement group that the launch template names."""
        return decide(self.purchase, self.placement, efa=self.efa)

    def layout(self, controller: Controller) -> tuple[Interface, ...]:
        """Interfaces of one node. `auto` is `fewest_ips` on EKS and `efa_with_ip` on PCS, where the type is for EFA.

        PCS was reported to drop `efa-only` interfaces.

        Source: awsome-distributed-ai, aws-pcs templates (July 2026); not verified since.
        """
        automatic: dict[Controller, Profile] = {"pcs": "efa_with_ip", "eks": "fewest_ips"}
        if self.interfaces != "auto":
            return interface_layout(self.hardware, self.interfaces)
        made_for_efa = self.hardware.gpu_count or self.hardware.family.startswith(HPC)
        return interface_layout(self.hardware, automatic[controller] if made_for_efa else "without_efa")

    @property
    def has_local_disks(self) -> bool:
        """Whether any of the instance types has local NVMe disks."""
        return any(instance_types[name].instance_store.disks for name in self.types)

    @property
    def joins_disks(self) -> bool:
        """Whether nodes have a volume of local NVMe disks."""
        return self.local_storage == "raid0" and self.has_local_disks

    @property
    def lustre_over_efa(self) -> bool:
        """Whether the nodes can reach a file system over EFA: it is verified for types of UltraClusters only.

        Source: FSx for Lustre User Guide, "Configuring EFA clients": Nitro v4 and newer, without trn2 (2026).
        """
        return self.efa and isinstance(self.hardware, UltraClusterType)

    def blocks(self) -> tuple[Self, ...]:
        """The group split into one group per capacity block: UltraServers launch block by block.

        A group with at most one block is returned unchanged; otherwise the parts are named `<name>-1`, `<name>-2` ...
        """
        purchase = self.purchase
        bought = ultraservers.get(purchase.ultraserver or "")
        if len(purchase.reservation_ids) < 2 or bought is None:
            return (self,)
        return tuple(
            self.model_copy(
                update={
                    "name": f"{self.name}-{number}",
                    "count": bought.instances,
                    "purchase": purchase.model_copy(update={"reservation_ids": (reservation,)}),
                }
            )
            for number, reservation in enumerate(purchase.reservation_ids, 1)
        )

    @rule
    def _instance_types(self) -> Iterator[Problem]:
        """See `infra/ultracluster/config/group_types.py`."""
        efa = self.known and self.efa
        yield from type_problems(self.instance_type, self.instance_types, self.purchase, efa=efa)

    @rule
    def _wiring(self) -> Iterator[Problem]:
        if self.known:
            placed = not isinstance(self.placement, str)
            yield from wiring_problems(self.hardware, self.interfaces, self.layout("pcs"), self.zones, placed=placed)

    @rule
    def _allowed_settings(self) -> Iterator[Problem]:
        yield from setting_problems(self.slurm_settings, "node group")
        records, settings = self.gres_settings, self.slurm_settings
        yield from gres_problems(records, settings)
        if self.known:
            gpus, cores = self.hardware.gpu_count, self.hardware.cores
            yield from layout_problems(records, settings, gpus=gpus, cores=cores)

    @rule
    def _boot_steps(self) -> Iterator[Problem]:
        yield from boot_problems(self.bootstrap, self.policies, self.security_groups, own_groups=NODE_GROUPS)

    @rule
    def _launchable(self) -> Iterator[Problem]:
        """Combinations of purchase and placement, see `infra/ultracluster/config/launch.py`."""
        if self.known:
            request = Request(self.hardware, self.min_count, self.max_count, self.purchase, self.placement)
            yield from launch_problems(request)


def image_not_pinned(group: Path, parameter: str = "") -> Problem:
    """Warning of the whole file: a later deployment may replace the nodes of the group at path `group`.

    The SSM `parameter` holds the id of today's image.
    """
    message = "the image is looked up at each deployment, and a newer image replaces the nodes"
    hint = "set image: ami-... to pin it"
    if parameter:
        hint += f"; `aws ssm get-parameter --name {parameter} --query Parameter.Value` prints today's"
    return Problem("image-not-pinned", (*group, "image"), message, hint, "warning")


def unknown_group(code: Code, at: Path, name: str, groups: Sequence[str]) -> Iterator[Problem]:
    """The error for `name` at path `at`, which is not one of the node groups.

    None while two groups have one name: `name` may be meant as that of the second, and another error tells of it.
    """
    if len({*groups}) < len(groups):
        return
    near = get_close_matches(name, groups, n=1)
    hint = f"did you mean {near[0]}?" if near else "use the name of a node group"
    yield Problem(code, at, f"{name} is not a node group; node groups: {', '.join(groups)}", hint)


def unused_groups(code: Code, user: str, groups: Sequence[str], used: Collection[str]) -> Iterator[Problem]:
    """Errors of the whole file for groups that are not `used`: no `user`, a queue or a team, runs jobs on them.

    A name in `used` that no group has is a typing error, of which another error tells: it stands for an unused group.
    """
    unknown = [name for name in used if name not in groups]
    unused = [name for name in groups if name not in used]
    meant = {near for name in unknown for near in get_close_matches(name, unused, n=1)}
    if len(unknown) >= len(unused):
        return
    for i, name in enumerate(groups):
        if name in unused and name not in meant:
            message = f"no {user} uses {name}, so jobs cannot run on it"
            yield Problem(code, ("node_groups", i, "name"), message, f"add {name} to node_groups of a {user}")
