"""Zones in which AWS listed an instance type. The list ages quickly: use it for warnings, never for errors."""

from ultracluster.catalog.records import records


def offered_zones(instance_type: str, region: str) -> tuple[str, ...]:
    """Availability Zones of `region` that listed `instance_type`; empty if no zone did.

    Source: EC2 DescribeInstanceTypeOfferings (`data/offerings.json`). Zone letters differ between accounts.
    """
    return tuple(records("offerings")["availability_zones"].get(instance_type, {}).get(region, ()))


def capacity_block_places(instance_type: str) -> tuple[str, ...]:
    """Regions and Local Zones that sell Capacity Blocks of `instance_type`.

    Source: EC2 User Guide, "Capacity Blocks for ML" (`data/offerings.json`).
    """
    return tuple(records("offerings")["capacity_blocks"].get(instance_type, ()))
