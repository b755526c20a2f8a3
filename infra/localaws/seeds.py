"""What an environment says was bought elsewhere: reservations that must exist before its templates name them."""

from collections.abc import Iterator
from typing import Any

from infra.config.environment import Environment
from infra.config.launch import decide


def reservations(environment: Environment) -> Iterator[dict[str, Any]]:
    """The capacity reservations that the node groups launch into, as `seed_reservation` takes them."""
    for group in environment.launched_groups:
        launch = decide(group).launch
        if launch.reservation_id:
            yield {
                "reservation_id": launch.reservation_id,
                "instance_type": group.instance_type,
                "zone": environment.availability_zone,
                "count": group.max_count,
                "kind": "capacity-block" if launch.market == "capacity-block" else "default",
            }
