"""The two zones of control-plane subnets, where the environment file names none."""

from ultracluster.catalog.eks import REFUSED_ZONE_IDS
from ultracluster.catalog.regions import ZONE_ID_PREFIXES


def control_plane_zones(region: str) -> tuple[str, ...]:
    """Ids of the Region's first two zones in which EKS accepts subnets; none for a Region whose ids are not recorded.

    An id is the same zone in every account, a name is not (AWS Regions and Availability Zones, "AZ IDs", 2026). These
    zones are also in the record of an account that sees no restricted zone, such as apne1-az3.
    """
    if region not in ZONE_ID_PREFIXES:
        return ()
    zones = (f"{ZONE_ID_PREFIXES[region]}-az{number}" for number in range(1, 7))
    return tuple(zone for zone in zones if zone not in REFUSED_ZONE_IDS.get(region, ()))[:2]
