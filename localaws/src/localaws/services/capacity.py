"""EC2 capacity reservations, which moto lacks: DescribeCapacityReservations, and a function that creates them.

On-Demand Capacity Reservations and Capacity Blocks are bought outside the templates, which only contain the id. So
reservations are created in the embedded AWS under the id that an environment contains.
"""

import re
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Literal

from moto.core.responses import ActionResult
from moto.core.utils import get_service_model
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.responses import EC2Response

from localaws import accounts
from localaws.services.patching import add

Reservation = dict[str, Any]
Kind = Literal["capacity-block", "default"]

# EC2's ids have 17 digits; the error message explains the form.
RESERVATION_ID = re.compile(r"cr-[0-9a-f]{17}")


def seed_reservation(
    reservation_id: str,
    instance_type: str,
    zone: str,
    count: int,
    kind: Kind = "capacity-block",
    *,
    days: int = 14,
    account: str = accounts.DEFAULT,
) -> Reservation:
    """Create an active reservation of `count` instances and return it as EC2 describes it.

    `kind` is EC2's ReservationType: "default" is an On-Demand Capacity Reservation and has no end; a Capacity Block
    ends in `days`. An existing id is replaced. Raises ValueError for reservations that EC2 cannot have.
    """
    regions = [z.region_name for zones in RegionsAndZonesBackend.zones.values() for z in zones if z.name == zone]
    if not RESERVATION_ID.fullmatch(reservation_id):
        raise ValueError(f"{reservation_id} is not a reservation id: cr- and 17 hexadecimal digits")
    if instance_type not in INSTANCE_TYPES:
        raise ValueError(f"{instance_type} is not an instance type")
    if not regions:
        raise ValueError(f"{zone} is not an Availability Zone or Local Zone")
    if count < 1:
        raise ValueError(f"a reservation has at least one instance, not {count}")
    start = datetime.now(UTC)
    reservation: Reservation = {
        "CapacityReservationId": reservation_id,
        "OwnerId": account,
        "CapacityReservationArn": f"arn:aws:ec2:{regions[0]}:{account}:capacity-reservation/{reservation_id}",
        "InstanceType": instance_type,
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": zone,
        "Tenancy": "default",
        "TotalInstanceCount": count,
        "AvailableInstanceCount": count,
        "EbsOptimized": True,
        "EphemeralStorage": False,
        "State": "active",
        "StartDate": start,
        "CreateDate": start,
        "InstanceMatchCriteria": "targeted",
        "ReservationType": kind,
        "EndDateType": "limited" if kind == "capacity-block" else "unlimited",
        "Tags": [],
    }
    if kind == "capacity-block":
        reservation["EndDate"] = start + timedelta(days=days)
    reservations_of(ec2_backends[account][regions[0]])[reservation_id] = reservation
    return reservation


def reservations_of(backend: Any) -> dict[str, Reservation]:
    """A Region's reservations by id, as DescribeCapacityReservations returns them."""
    found: dict[str, Reservation] = backend.__dict__.setdefault("capacity_reservations", {})
    return found


def matching(shape: str, items: list[dict[str, Any]], filters: dict[str, list[str]]) -> list[dict[str, Any]]:
    """The descriptions of a shape that EC2's filters name: by a member (instance-type), a tag (tag:KEY) or tag-key."""
    known = get_service_model("ec2").shape_for(shape).members
    for name, values in filters.items():
        member = "".join(word.capitalize() for word in name.split("-"))
        if name != "tag-key" and not name.startswith("tag:") and member not in known:
            raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")
        items = [item for item in items if any(fnmatchcase(has, each) for has in _has(item, name) for each in values)]
    return items


def _has(item: dict[str, Any], name: str) -> list[str]:
    tags = {tag["Key"]: tag["Value"] for tag in item["Tags"]}
    if name == "tag-key":
        return list(tags)
    if name.startswith("tag:"):
        return [tags.get(name.removeprefix("tag:"), "")]
    return [str(item.get("".join(word.capitalize() for word in name.split("-")), ""))]


@add(EC2Response, "describe_capacity_reservations")
def _describe(self: Any) -> ActionResult:
    there = reservations_of(self.ec2_backend)
    ids = self._get_param("CapacityReservationIds", [])
    for unknown in [found for found in ids if found not in there]:
        code, words = "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{unknown}' does not exist"
        raise EC2ClientError(code, words)
    found = [there[reservation_id] for reservation_id in ids or there]
    return ActionResult(
        {"CapacityReservations": matching("CapacityReservation", found, self._filters_from_querystring())}
    )
