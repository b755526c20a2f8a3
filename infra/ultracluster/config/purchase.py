"""How instances are bought, and which placement group they launch into."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

from ultracluster.config import node_effects
from ultracluster.config.effects import IN_PLACE, NEW_NODES
from ultracluster.config.fields import Many, cdk_value, text
from ultracluster.config.problems import Path, Problem, rule
from ultracluster.config.settings import Settings

PurchaseType = Literal["on_demand", "spot", "reservation", "capacity_block", "interruptible_reservation"]


class Purchase(Settings):
    """How instances are bought.

    `on_demand` and `spot` take no other key. `reservation` is an On-Demand Capacity Reservation, by id or by resource
    group. `capacity_block` needs its reservation id; for UltraServers, `ultraserver` and one id per UltraServer.
    Allowed combinations: `infra/ultracluster/config/launch.py`.
    """

    type: Annotated[PurchaseType, node_effects.PURCHASE_TYPE]
    """Purchase option."""
    reservation_id: Annotated[Annotated[str, cdk_value()] | None, NEW_NODES] = None
    """Id of the capacity reservation or capacity block to launch into."""
    reservation_group_arn: Annotated[Annotated[str, cdk_value()] | None, NEW_NODES] = None
    """ARN of the resource group of capacity reservations to launch into."""
    ultraserver: Annotated[str | None, node_effects.ULTRASERVER] = None
    """UltraServer type: u-p6e-gb200x36 or u-p6e-gb200x72."""
    reservation_ids: Annotated[Many[Annotated[str, cdk_value()]], node_effects.BLOCKS] = ()
    """Reservation ids of the UltraServers' capacity blocks, one per UltraServer."""
    starts: Annotated[
        Annotated[str, text(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", "a UTC time such as 2027-01-11T11:30:00Z")] | None,
        IN_PLACE,
    ] = None
    """Start of the capacity block, or of the last of several, if it is in the future. EKS starts the nodes then."""

    @property
    def start_time(self) -> datetime | None:
        """`starts` as a time; None without `starts`, or when it is not a valid time, which validation refuses."""
        try:
            return datetime.fromisoformat(self.starts) if self.starts else None
        except ValueError:
            return None

    @rule
    def _start_is_a_time(self) -> Iterator[Problem]:
        if self.starts and self.start_time is None:
            message = f"{self.starts} is not a valid date and time"
            yield Problem("invalid-format", "starts", message, "copy StartDate of the capacity block from EC2")

    @rule
    def _start_of_a_block(self) -> Iterator[Problem]:
        if self.starts and self.type != "capacity_block":
            message = f"starts applies to capacity_block only, so {self.type} would ignore it"
            yield Problem("capacity-block-start-ignored", "starts", message, "remove starts")

    @property
    def reservations(self) -> tuple[str, ...]:
        """All reservation ids."""
        return tuple(reservation for _, reservation in self.reservations_by_path)

    @property
    def reservations_by_path(self) -> tuple[tuple[Path, str], ...]:
        """All reservation ids, with their paths in `purchase`."""
        ids = tuple((("reservation_ids", i), reservation) for i, reservation in enumerate(self.reservation_ids))
        return ((("reservation_id",), self.reservation_id), *ids) if self.reservation_id else ids


class ExistingPlacementGroup(Settings):
    """An existing cluster placement group. With a reservation: the group that the reservation was created in."""

    existing: Annotated[
        str,
        text(r"^[!-~]([ -~]{0,253}[!-~])?$", "the name of a placement group, in ASCII characters"),
        cdk_value(),
        NEW_NODES,
    ]
    """Name of the placement group."""

    @rule
    def _name_not_id(self) -> Iterator[Problem]:
        """A launch template names a group in GroupName, and its id in another key (EC2 API, Placement)."""
        if re.fullmatch(r"pg-[0-9a-f]{8,17}", self.existing):
            message = f"{self.existing} is the id of a placement group, not its name"
            hint = "copy GroupName from `aws ec2 describe-placement-groups`"
            yield Problem("invalid-format", "existing", message, hint)


def spot_service_role(at: Path) -> Problem:
    """The warning about the first Spot Instances of an account, at a path of the file."""
    message = "Spot Instances need the role AWSServiceRoleForEC2Spot in the account; ultracluster does not create it"
    hint = "run `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com` once per account"
    return Problem("spot-service-role", at, message, hint, "warning")


Placement = Literal["auto", "none"] | ExistingPlacementGroup
"""Value of a node group's `placement`."""
