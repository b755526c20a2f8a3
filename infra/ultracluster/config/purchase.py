"""How instances are bought, and which placement group they launch into."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.fields import Many, cdk_value, text
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings

PurchaseType = Literal["on_demand", "spot", "reservation", "capacity_block", "interruptible_reservation"]


class Purchase(Settings):
    """How instances are bought.

    `on_demand` and `spot` take nothing else. `reservation` is an On-Demand Capacity Reservation, by id or by resource
    group. `capacity_block` names its reservation; for UltraServers, `ultraserver` and one reservation for each.
    Which combinations hold is decided in `infra/ultracluster/config/launch.py`.
    """

    type: PurchaseType
    """How the instances are paid for."""
    reservation_id: Annotated[str, cdk_value()] | None = None
    """Capacity reservation, or capacity block, to launch into."""
    reservation_group_arn: Annotated[str, cdk_value()] | None = None
    """Resource group of capacity reservations to launch into."""
    ultraserver: str | None = None
    """UltraServer that was bought: u-p6e-gb200x36 or u-p6e-gb200x72."""
    reservation_ids: Many[Annotated[str, cdk_value()]] = ()
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

    existing: Annotated[str, Field(min_length=1, max_length=255), cdk_value()]
    """Name of the placement group."""


Placement = Literal["auto", "none"] | ExistingPlacementGroup
"""Value of a node group's `placement`."""
