"""What a place lets file systems be: their Region, their zone, quotas of the account, and the clients.

Lists and quotas age, so all of these are warnings.
"""

from collections.abc import Iterator, Sequence

from ultracluster.catalog import lustre, nfs
from ultracluster.catalog.regions import PARTITIONS
from ultracluster.config.file_systems import OpenZfs
from ultracluster.config.fleet import Fleet
from ultracluster.config.problems import Path, Problem


def file_system_problems(
    fleet: Fleet, region: str, zones: Sequence[str], *, local_zone: bool, on_eks: bool
) -> Iterator[Problem]:
    """Warnings about the file systems of `fleet`, at paths of the file. `zones` are those of node groups and pools."""
    if local_zone:
        yield from _lustre_in_local_zone(fleet)
        yield from _nfs_in_local_zone(fleet)
    elif region in PARTITIONS:
        yield from _openzfs_in_region(fleet, region)
    if local_zone or on_eks or len(zones) > 1:
        yield from _mount_targets(fleet, zones, local_zone=local_zone, on_eks=on_eks)
    yield from _existing_in_new_vpc(fleet)
    yield from _quotas(fleet, region)
    yield from _efa_connections(fleet)
    yield from _efa_client(fleet)


def _lustre_in_local_zone(fleet: Fleet) -> Iterator[Problem]:
    """FSx for Lustre in Local Zones has fewer tiers and no EFA."""
    tiers = " and ".join(map(str, lustre.LOCAL_ZONE_TIERS))
    for at, settings in fleet.storage.new_lustre:
        tier = settings.throughput_mbps_per_tib
        if settings.efa or not settings.ssd or (tier is not None and tier not in lustre.LOCAL_ZONE_TIERS):
            message = f"FSx was listed in Local Zones without EFA and with tiers {tiers} only"
            hint = "set efa: false and throughput_mbps_per_tib: 250"
            yield Problem("lustre-tier-not-in-local-zone", ("storage", *at), message, hint, "warning")


def _nfs_in_local_zone(fleet: Fleet) -> Iterator[Problem]:
    """AWS's guides name no Local Zone with OpenZFS or EFS; the features page of Local Zones may."""
    for at, each in fleet.storage.new_nfs:
        service = "FSx for OpenZFS" if each.type == "openzfs" else "EFS"
        message = f"{service} was not listed in Local Zones, and the file system is created in the zone of the nodes"
        hint = "check AWS Local Zones features, or name an existing OpenZFS file system of the Region"
        yield Problem("nfs-not-in-local-zone", ("storage", *at), message, hint, "warning")


def _mount_targets(fleet: Fleet, zones: Sequence[str], *, local_zone: bool, on_eks: bool) -> Iterator[Problem]:
    """The name of an EFS file system resolves only where it has a mount target, which no file shows.

    System nodes of EKS are in the zones of the control-plane subnets. Source: EFS User Guide, "Mounting on Amazon EC2
    with a DNS name" (2026).
    """
    places = [*zones, "the zones of the control-plane subnets"] if on_eks else list(zones)
    where = " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
    for at, name in fleet.storage.existing_efs:
        message = f"{name} is mounted only in zones where it has a mount target, and nodes are in {where}"
        hint = "create a mount target in each zone before you deploy; "
        hint += f"`aws efs describe-mount-targets --file-system-id {name}` lists those that exist"
        if local_zone:
            hint = f"check that EFS has mount targets in {zones[0]}, or name an existing OpenZFS file system"
        yield Problem("efs-mount-targets", ("storage", *at, "existing"), message, hint, "warning")


def _openzfs(fleet: Fleet) -> list[tuple[Path, OpenZfs]]:
    return [(at, each) for at, each in fleet.storage.new_nfs if isinstance(each, OpenZfs)]


def _openzfs_in_region(fleet: Fleet, region: str) -> Iterator[Problem]:
    for at, settings in _openzfs(fleet):
        if region not in nfs.REGIONS[settings.deployment]:
            others = [name for name, regions in nfs.REGIONS.items() if region in regions]
            message = f"{settings.deployment} was not listed in {region} on {nfs.READ}"
            hint = f"set deployment: {' or '.join(others)}" if others else "set type: efs, or check with AWS"
            yield Problem("openzfs-not-in-region", ("storage", *at, "deployment"), message, hint, "warning")
        elif settings.capacity_gib and settings.capacity_gib > (most := nfs.largest_gib(settings.deployment, region)):
            message = f"{settings.deployment} was listed with at most {most} GiB in {region}"
            hint = f"set capacity_gib: {most}, or ask AWS"
            yield Problem("openzfs-not-in-region", ("storage", *at, "capacity_gib"), message, hint, "warning")


def _existing_in_new_vpc(fleet: Fleet) -> Iterator[Problem]:
    """An existing file system is in another VPC than the one that the environment creates."""
    if fleet.network.create is None:
        return
    for at, name in fleet.storage.existing:
        message = f"{name} is in another VPC than the one that network.create makes, and nodes mount it at first boot"
        hint = "use network.existing with its VPC, or route the VPCs to each other before nodes are launched"
        yield Problem("file-system-in-other-vpc", ("storage", *at, "existing"), message, hint, "warning")


def _quotas(fleet: Fleet, region: str) -> Iterator[Problem]:
    """Quotas of an account in a Region, which AWS raises on request. A sum is compared only where there are several."""
    new, openzfs = [each for _, each in fleet.storage.new_lustre], [each for _, each in _openzfs(fleet)]
    persistent = sum(each.capacity_gib or 0 for each in new if each.deployment == "persistent_2")
    tiering = sum(each.throughput_capacity_mbps or 0 for each in new)
    sums = (
        ("capacity of persistent_2 file systems", persistent, lustre.PERSISTENT_QUOTA_GIB, "GiB"),
        ("throughput of intelligent_tiering file systems", tiering, lustre.TIERING_QUOTA_MBPS, "MBps"),
        (
            "capacity of OpenZFS file systems",
            sum(each.capacity_gib or 0 for each in openzfs),
            nfs.capacity_quota_gib(region),
            "GiB",
        ),
        (
            "throughput of OpenZFS file systems",
            sum(each.throughput_mbps or 0 for each in openzfs),
            nfs.THROUGHPUT_QUOTA_MBPS,
            "MBps",
        ),
    )
    for what, value, quota, unit in sums:
        if value > quota:
            message = f"the {what} is {value} {unit}; an account has {quota} {unit} in a Region by default"
            hint = "ask for a higher quota of Amazon FSx in Service Quotas before you deploy"
            yield Problem("file-system-quota", "storage", message, hint, "warning")


def _efa_connections(fleet: Fleet) -> Iterator[Problem]:
    """A file system accepts 1024 EFA connections; AWS's client script opens several on each node."""
    connections = sum(
        group.max_count * lustre.efa_interfaces_per_client(group.hardware.name)
        for _, group in fleet.known_groups
        if group.lustre_over_efa
    )
    for at, settings in fleet.storage.all_lustre:
        if settings.efa and connections > lustre.MAXIMUM_EFA_CONNECTIONS:
            message = (
                f"the nodes open {connections} EFA connections; a file system accepts {lustre.MAXIMUM_EFA_CONNECTIONS}"
            )
            hint = "set efa: false, or split the fleet: environments of their own mount file systems of their own"
            yield Problem("lustre-efa-connections", ("storage", *at, "efa"), message, hint, "warning")


def _efa_client(fleet: Fleet) -> Iterator[Problem]:
    """Nodes download AWS's EFA client script for Lustre at first boot, unless the image includes it."""
    create = fleet.network.create
    if any(each.efa for _, each in fleet.storage.all_lustre) and create and not create.nat_gateways:
        message = "without NAT gateways nodes cannot download the EFA client of Lustre, so the mount fails"
        hint = "use an image that runs configure-efa-fsx-lustre-client.service, or set nat_gateways: 1"
        yield Problem("lustre-efa-without-internet", ("network", "create", "nat_gateways"), message, hint, "warning")
