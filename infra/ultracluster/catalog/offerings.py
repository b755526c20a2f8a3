"""Zones in which AWS listed an instance type. The lists age quickly: use them for warnings, never for errors.

Zone letters differ between accounts.
"""

from typing import Any

from ultracluster.catalog.records import records


def offered_zones(instance_type: str, region: str) -> tuple[str, ...]:
    """Availability Zones of `region` that listed `instance_type`; empty if no zone did, or the Region is not listed.

    Source: EC2 DescribeInstanceTypeOfferings (`data/offerings.json` and `data/ec2_offerings.json`).
    """
    of_catalogue = records("offerings")["availability_zones"].get(instance_type)
    if of_catalogue is not None:
        return tuple(of_catalogue.get(region, ()))
    names = {instance_type, instance_type.partition(".")[0]}
    letters = next((letters for letters, offered in _region(region).items() if names & {*offered}), "")
    return tuple(f"{region}{letter}" for letter in letters)


def listed_zones(region: str) -> tuple[str, ...]:
    """Availability Zones of `region` that listed any instance type; empty for a Region that is not listed."""
    return tuple(f"{region}{letter}" for letter in sorted({*"".join(_region(region))}))


def capacity_block_places(instance_type: str) -> tuple[str, ...]:
    """Regions and Local Zones that sell Capacity Blocks of `instance_type`.

    Source: EC2 User Guide, "Capacity Blocks for ML" (`data/offerings.json`).
    """
    return tuple(records("offerings")["capacity_blocks"].get(instance_type, ()))


def _region(region: str) -> dict[str, Any]:
    found: dict[str, Any] = records("ec2_offerings")["regions"].get(region, {})
    return found
