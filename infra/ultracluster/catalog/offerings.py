"""Where AWS was seen to sell an instance type. Ages quickly: good for a warning, never for a refusal."""

from ultracluster.catalog.records import records


def offered_zones(instance_type: str, region: str) -> tuple[str, ...]:
    """Availability Zones of `region` that listed `instance_type`; empty when none did.

    Source: EC2 DescribeInstanceTypeOfferings (`data/offerings.json`). Zone letters differ between accounts.
    """
    return tuple(records("offerings")["availability_zones"].get(instance_type, {}).get(region, ()))


def capacity_block_places(instance_type: str) -> tuple[str, ...]:
    """Regions and Local Zones where Capacity Blocks for `instance_type` are sold.

    Source: EC2 User Guide, "Capacity Blocks for ML" (`data/offerings.json`).
    """
    return tuple(records("offerings")["capacity_blocks"].get(instance_type, ()))
