"""Instance types of a group of nodes, by EC2's records: they exist, are alike, and have the interfaces that are asked.

Source: EC2 DescribeInstanceTypes as moto records it; EC2 User Guide, "Network cards", "Elastic Fabric Adapter"; AWS PCS
User Guide, "Compute node groups" (2026).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES


def unlike(names: Sequence[str]) -> str | None:
    """How a type differs from the first in architecture, vCPUs or GPUs; None if all are alike."""
    first, *others = names
    for name in others:
        for what, mine, wanted in zip(("architecture", "vCPUs", "GPUs"), _facts(name), _facts(first), strict=True):
            if mine != wanted:
                return f"{name} has {what} {mine}, {first} has {wanted}."
    return None


def unsupported(name: str, interfaces: Iterable[Mapping[str, Any]]) -> str | None:
    """Which interface of a launch template the type cannot have; None if it can have all."""
    network = INSTANCE_TYPES[name]["NetworkInfo"]
    cards = {card["NetworkCardIndex"]: card for card in network["NetworkCards"]}
    used = Counter(int(interface.get("NetworkCardIndex") or 0) for interface in interfaces)
    for interface in interfaces:
        index, kind = int(interface.get("NetworkCardIndex") or 0), interface.get("InterfaceType") or "interface"
        if index not in cards:
            return f"{name} has no network card {index}."
        if kind not in cards[index]["InterfaceTypes"]:
            return f"network card {index} of {name} does not support {kind}."
        if used[index] > cards[index]["MaximumNetworkInterfaces"]:
            return f"network card {index} of {name} takes {cards[index]['MaximumNetworkInterfaces']} interfaces."
    efa = sum("efa" in str(interface.get("InterfaceType")) for interface in interfaces)
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    return f"{name} takes {most} EFA interfaces, not {efa}." if efa > most else None


def _facts(name: str) -> tuple[str, int, int]:
    record = INSTANCE_TYPES[name]
    gpus = sum(gpu["Count"] for gpu in record.get("GpuInfo", {}).get("Gpus", ()))
    return record["ProcessorInfo"]["SupportedArchitectures"][-1], record["VCpuInfo"]["DefaultVCpus"], gpus
