"""The accelerated fleet: which instances, how many, how they are bought and wired."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field

from ultracluster.catalog import InstanceType, Interface, Profile, catalog, interface_layout, ultraservers
from ultracluster.catalog.instance_types import UnknownInstanceType
from ultracluster.config.codes import Code
from ultracluster.config.fields import KIND, MAPPING, NUMBER, TEXT, Image, Name
from ultracluster.config.launch import Launch, Request, decide, launch_problems
from ultracluster.config.problems import Path, Problem, rule
from ultracluster.config.purchase import ExistingPlacementGroup, Purchase
from ultracluster.config.settings import Settings

Controller = Literal["pcs", "eks"]


class Scale(Settings):
    """A group that grows and shrinks between two counts."""

    min: Annotated[int, Field(ge=0)]
    """Nodes that are always there."""
    max: Annotated[int, Field(ge=1)]
    """Nodes that there can be."""

    @rule
    def _min_below_max(self) -> Iterator[Problem]:
        if self.min > self.max:
            message = f"min {self.min} is above max {self.max}"
            yield Problem("count-range", "min", message, f"set min: {self.max}")


class NodeGroup(Settings):
    """Instances of one type that are launched alike.

    `placement` auto is a cluster placement group wherever one is allowed. `interfaces` auto is the layout that suits
    the control plane. `local_storage` raid0 joins the NVMe disks. `image` auto is AWS's image for the control plane,
    on EKS in the release that the catalogue pins; otherwise an AMI id or `ssm:/path` of a parameter that holds one, on
    EKS built upon an EKS-optimised AL2023 image.
    """

    name: Name
    """Name of the group."""
    instance_type: str
    """Accelerated instance type; `ultracluster catalog` lists them."""
    count: Annotated[Annotated[int, Field(ge=1), NUMBER] | Annotated[Scale, MAPPING], KIND]
    """Nodes: a number, or min and max."""
    purchase: Purchase
    """How the instances are bought."""
    placement: Annotated[
        Annotated[Literal["auto", "none"], TEXT] | Annotated[ExistingPlacementGroup, MAPPING], KIND
    ] = "auto"
    """auto: a cluster placement group wherever one is allowed. none: no group. Or an existing one."""
    interfaces: Literal["auto", "fewest_ips", "max_bandwidth", "efa_with_ip"] = "auto"
    """Network interfaces of a node. auto: the layout that suits the control plane."""
    local_storage: Literal["raid0", "none"] = "raid0"
    """raid0 joins the local NVMe disks into one volume."""
    root_volume_gib: Annotated[int, Field(ge=100, le=16384)] = 300
    """Size of the root volume in GiB."""
    image: Image = "auto"
    """auto: AWS's image for the control plane. Or an AMI, or an SSM parameter that holds one."""

    @property
    def hardware(self) -> InstanceType:
        """The catalogue's record of the type. Raises UnknownInstanceType for a name that a rule refused."""
        return catalog[self.instance_type]

    @property
    def min_count(self) -> int:
        """Instances that are always there."""
        return self.count.min if isinstance(self.count, Scale) else self.count

    @property
    def max_count(self) -> int:
        """Instances that there can be."""
        return self.count.max if isinstance(self.count, Scale) else self.count

    @cached_property
    def launch(self) -> Launch:
        """Market, capacity reservation and placement group that the launch template names."""
        return decide(self.purchase, self.placement)

    def layout(self, controller: Controller) -> tuple[Interface, ...]:
        """Interfaces of one node. `auto` is `fewest_ips`, but `efa_with_ip` on PCS, reported not to pass `efa-only` on.

        Source: awsome-distributed-ai, aws-pcs templates (July 2026); whether it still holds is not verified.
        """
        automatic: dict[Controller, Profile] = {"pcs": "efa_with_ip", "eks": "fewest_ips"}
        return interface_layout(self.hardware, automatic[controller] if self.interfaces == "auto" else self.interfaces)

    def blocks(self) -> tuple[Self, ...]:
        """The group as groups of one capacity block each: UltraServers are launched block by block.

        A group without several blocks is returned as it is; otherwise the parts are named `<name>-1`, `<name>-2` ...
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
    def _known_type(self) -> Iterator[Problem]:
        try:
            catalog[self.instance_type]
        except UnknownInstanceType as unknown:
            message = f"{self.instance_type} is not in the catalogue; it holds {', '.join(catalog)}"
            hint = f"did you mean {unknown.nearest[0]}?" if unknown.nearest else "see `ultracluster catalog`"
            yield Problem("unknown-instance-type", "instance_type", message, hint)

    @rule
    def _launchable(self) -> Iterator[Problem]:
        """Placement and purchase go together, see `infra/ultracluster/config/launch.py`."""
        if self.instance_type in catalog:
            request = Request(self.hardware, self.min_count, self.max_count, self.purchase, self.placement)
            yield from launch_problems(request)


def image_not_pinned(index: int) -> Problem:
    """The warning of the whole file that the image of its node group `index` may change under the nodes."""
    message = "the image is looked up at each deployment, and a newer one replaces the nodes"
    return Problem("image-not-pinned", ("node_groups", index, "image"), message, "pin it: image: ami-...", "warning")


def unknown_group(code: Code, at: Path, name: str, groups: Sequence[str]) -> Problem:
    """The refusal of `name`, at `at`, which is none of the node groups."""
    near = get_close_matches(name, groups, n=1)
    hint = f"did you mean {near[0]}?" if near else "choose one of them"
    return Problem(code, at, f"{name} is not a node group; there are {', '.join(groups)}", hint)
