"""Rules about the Region, the zones and the account of an environment, and about ARNs in its file."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from ultracluster.catalog import eks, regions
from ultracluster.catalog.zones import control_plane_zones
from ultracluster.config.fields import from_cdk
from ultracluster.config.network import is_zone_id
from ultracluster.config.problems import Path, Problem


class Arn(NamedTuple):
    """An ARN in the file.

    `own_account` is True if IAM refuses another account; otherwise another account is only a warning.
    """

    at: Path
    text: str
    own_account: bool


def region_problems(region: str) -> Iterator[Problem]:
    """Problem of a Region that does not exist."""
    if region in regions.PARTITIONS:
        return
    close = get_close_matches(region, regions.PARTITIONS, n=2, cutoff=0.88)
    near = close or get_close_matches(region, regions.PARTITIONS, n=1, cutoff=0)
    message = f"{region} is not an AWS Region (list of {regions.READ})"
    yield Problem("region-unknown", "region", message, f"did you mean {' or '.join(sorted(near))}?")


def service_problems(region: str, *, pcs: bool, grafana: bool) -> Iterator[Problem]:
    """Warnings about services that the Region was not listed with. AWS adds Regions, so the lists age."""
    if region not in regions.PARTITIONS:
        return
    if pcs and region not in regions.PCS_REGIONS:
        message = f"AWS PCS was not listed in {region} on {regions.READ}"
        hint = "check with AWS that PCS is in the Region, or set type: eks"
        yield Problem("pcs-not-in-region", ("control_plane", "type"), message, hint, "warning")
    if grafana and region not in regions.GRAFANA_REGIONS:
        message = f"Amazon Managed Grafana was not listed in {region} on {regions.READ}"
        hint = "set observability.grafana.auth: none, or check with AWS that Grafana is in the Region"
        yield Problem("grafana-not-in-region", ("observability", "grafana", "auth"), message, hint, "warning")


def arn_problems(arns: Iterable[Arn], region: str, account: str | None) -> Iterator[Problem]:
    """Problems of ARNs of another partition, Region or account than the environment's."""
    expected = regions.PARTITIONS.get(region)
    for arn in arns:
        if from_cdk(arn.text) or not re.match(r"arn:([^:]*:){4}", arn.text):
            continue
        _, partition, _, place, owner, _ = arn.text.split(":", 5)
        if ":role/aws-service-role/" in arn.text:
            message = f"{arn.text} is a service-linked role, which EKS refuses in an access entry"
            yield Problem("invalid-format", arn.at, message, "use a role of yours")
        elif expected and partition != expected:
            message = f"{arn.text} is in the partition {partition}; {region} is in {expected}"
            yield Problem("arn-partition", arn.at, message, f"use an ARN that begins with arn:{expected}:")
        elif place and place != region and expected:  # an unknown Region is an error of its own
            message = f"{arn.text} is in {place}; the environment is in {region}"
            yield Problem("arn-region", arn.at, message, f"use a resource of {region}")
        elif account and owner not in (account, "aws", ""):
            yield _other_account(arn, owner, account)


def _other_account(arn: Arn, owner: str, account: str) -> Problem:
    message = f"{arn.text} belongs to account {owner}; the environment is in account {account}"
    if arn.own_account:
        return Problem("arn-account", arn.at, message, f"use an ARN of the account {account}")
    hint = f"use an ARN of the account {account}, unless the other account is intended"
    return Problem("arn-other-account", arn.at, message, hint, "warning")


def control_plane_zone_problems(zones: Sequence[str], region: str, *, on_eks: bool) -> Iterator[Problem]:
    """Problems of `network.create.control_plane_zones`: zones of another Region, and zones that EKS refuses."""
    at: Path = ("network", "create", "control_plane_zones")
    refused = eks.REFUSED_ZONE_IDS.get(region, ()) if on_eks else ()
    prefix = regions.ZONE_ID_PREFIXES.get(region)
    for i, zone in enumerate(zones):
        inside = zone.startswith(f"{prefix}-") if is_zone_id(zone) else zone[:-1] == region
        if from_cdk(zone) or (is_zone_id(zone) and prefix is None):
            continue
        if not inside:
            message = f"{zone} is not an Availability Zone of {region}"
            hint = f"set zones such as {region}a" + (f" or {prefix}-az1" if prefix else "")
            yield Problem("control-plane-zones", (*at, i), message, hint)
        elif zone in refused:
            message = f"EKS refuses control-plane subnets in {zone}"
            hint = "set another zone; `aws ec2 describe-availability-zones` lists the ids of your zones"
            yield Problem("control-plane-zones", (*at, i), message, hint)
    defaults = control_plane_zones(region)
    if refused and not any(map(is_zone_id, zones or defaults)):
        chosen = "zone names" if zones else "control-plane subnets are in the Region's first two zones, which"
        message = f"{chosen} differ between accounts; EKS refuses {' and '.join(refused)}, which may be one of them"
        ids = f"two ids, such as [{', '.join(defaults)}]" if defaults else "two ids that EKS does not refuse"
        hint = f"set control_plane_zones to {ids}"
        yield Problem("control-plane-zones-unknown", at if zones else at[:2], message, hint, "warning")
