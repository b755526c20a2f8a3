"""Service quotas of a new account in a Region that environments use up.

Source of every figure: `data/quotas.json`.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ultracluster.catalog.records import records

Market = Literal["on_demand", "spot"]


class Quota(NamedTuple):
    """A quota of a service. `code` is that of Service Quotas, None where it is not known; `unit` may be empty."""

    service: str
    name: str
    code: str | None
    default: int
    unit: str = ""


def vcpu_quota(instance_type: str, market: Market) -> Quota | None:
    """The quota of vCPUs that instances of a type count toward; None where there is no such quota.

    The longest prefix of the name of the type decides: hpc7a is not a type of the Standard family H.
    """
    found = [
        (prefix, entry)
        for entry in records("quotas")["vcpus"]
        for prefix in entry["prefixes"]
        if entry["market"] == market and instance_type.startswith(prefix)
    ]
    if not found:
        return None
    _, entry = max(found, key=lambda each: len(each[0]))
    return Quota("EC2", entry["name"], entry["code"], entry["default"], "vCPUs")


def service_quotas(region: str) -> Mapping[str, Quota]:
    """The other quotas by the keys of the data, with the defaults of a Region."""
    entries: dict[str, dict[str, Any]] = records("quotas")["services"]
    quotas = {key: Quota(**entry) for key, entry in entries.items()}
    larger = records("openzfs")["quotas"]["larger_capacity_gib"].get(region)
    return quotas | ({"openzfs_capacity": quotas["openzfs_capacity"]._replace(default=larger)} if larger else {})
