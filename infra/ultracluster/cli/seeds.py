"""Capacity that an environment's templates refer to and that must exist before they are deployed."""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from ultracluster.config.environment import Environment


def reservations(environment: Environment) -> Iterator[dict[str, Any]]:
    """The capacity reservations of the node groups, as arguments of `seed_reservation`."""
    for group in environment.launched_groups:
        launch = group.launch
        if launch.reservation_id:
            yield {
                "reservation_id": launch.reservation_id,
                "instance_type": group.instance_type,
                "zone": environment.availability_zone,
                "count": group.max_count,
                "kind": "capacity-block" if launch.market == "capacity-block" else "default",
            }


def make_reservation_groups(environment: Environment, client: Any) -> None:
    """Create the resource groups that node groups launch into; `client` is boto3's for resource-groups."""
    for group in environment.node_groups:
        if arn := group.purchase.reservation_group_arn:
            pool = [{"Type": "AWS::EC2::CapacityReservationPool"}]
            try:
                client.create_group(Name=arn.rpartition("/")[2], Configuration=pool)
            except ClientError as error:
                if "already exists" not in str(error):
                    raise
