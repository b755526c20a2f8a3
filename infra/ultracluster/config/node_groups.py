"""The accelerated fleet: which instances, how many, how they are bought and wired."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Literal, Self

from pydantic import Field

from ultracluster.catalog import InstanceType, Interface, Profile, catalog, interface_layout, ultraservers
from ultracluster.catalog.instance_types import UnknownInstanceType
from ultracluster.config.codes import Code
from ultracluster.config.fields import KIND, MAPPING, NUMBER, TEXT, Image, Many, Name, text
from ultracluster.config.launch import decide
from ultracluster.config.problems import Path, Problem, Settings, rule

PurchaseType = Literal["on_demand", "spot", "reservation", "capacity_block", "interruptible_reservation"]
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


class Purchase(Settings):
    """How instances are bought.

    `on_demand` and `spot` take nothing else. `reservation` is an On-Demand Capacity Reservation, by id or by resource
    group. `capacity_block` names its reservation; for UltraServers, `ultraserver` and one reservation for each.
    Which combinations hold is decided in `infra/ultracluster/config/launch.py`.
    """

    type: PurchaseType
    """How the instances are paid for."""
    reservation_id: str | None = None
    """Capacity reservation, or capacity block, to launch into."""
    reservation_group_arn: str | None = None
    """Resource group of capacity reservations to launch into."""
    ultraserver: str | None = None
    """UltraServer that was bought: u-p6e-gb200x36 or u-p6e-gb200x72."""
    reservation_ids: Many[str] = ()
    """Capacity blocks of the UltraServers, one each."""
    starts: Annotated[str, text(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", "2027-01-11T11:30:00Z")] | None = None
    """When the capacity block, or the last of several, begins, if that lies ahead: on EKS its nodes start then."""

    @property
    def start_time(self) -> datetime | None:
        """`starts` as a time; None when there is none, or when no clock shows it, which a rule refuses."""
        try:
            return datetime.fromisoformat(self.starts) if self.starts else None
        except ValueError:
            return None

    @rule
    def _start_exists(self) -> Iterator[Problem]:
        if self.starts and self.start_time is None:
            message = f"{self.starts} is no date and time"
            yield Problem("invalid-format", "starts", message, "copy StartDate of the capacity block from EC2")

    @rule
    def _start_of_a_block(self) -> Iterator[Problem]:
        if self.starts and self.type != "capacity_block":
            message = f"{self.type} has no start, so starts would be ignored"
            yield Problem("capacity-block-start-ignored", "starts", message, "remove starts")

    @property
    def reservations(self) -> tuple[str, ...]:
        """Every reservation id that is named."""
        return (*([self.reservation_id] if self.reservation_id else []), *self.reservation_ids)


class ExistingPlacementGroup(Settings):
    """A cluster placement group that exists."""

    existing: Annotated[str, Field(min_length=1, max_length=255)]
    """Name of the placement group."""


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
            yield from decide(self).problems


def image_not_pinned(index: int) -> Problem:
    """The warning of the whole file that the image of its node group `index` may change under the nodes."""
    message = "the image is looked up at each deployment, and a newer one replaces the nodes"
    return Problem("image-not-pinned", ("node_groups", index, "image"), message, "pin it: image: ami-...", "warning")


def unknown_group(code: Code, at: Path, name: str, groups: Sequence[str]) -> Problem:
    """The refusal of `name`, at `at`, which is none of the node groups."""
    near = get_close_matches(name, groups, n=1)
    hint = f"did you mean {near[0]}?" if near else "choose one of them"
    return Problem(code, at, f"{name} is not a node group; there are {', '.join(groups)}", hint)
