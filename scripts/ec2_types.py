"""Writes `catalog/data/ec2_types.json` and `ec2_offerings.json`: what EC2 says of every type, as moto records it.

`python -m scripts.ec2_types`, after an update of moto.
"""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import moto

RECORDS = Path(moto.__file__).parent / "ec2" / "resources" / "instance_types.json.gz"
OFFERINGS = RECORDS.parent / "instance_type_offerings" / "availability-zone"
TARGET = Path(__file__).parents[1] / "infra" / "ultracluster" / "catalog" / "data" / "ec2_types.json"
NOTES = (
    "Every type but Mac, by family and size. memory: GiB. gpus: whole GPUs and MiB of each; 0 GPUs are a part of one. "
    "disks: number and GB of each. interfaces and addresses: maximum, and IPv4 of each. cards: number of alike cards, "
    "Gbps, interfaces of each, and whether they support EFA. efa: EFA interfaces. bought: usage classes."
)
ACCELERATORS = {"NeuronInfo": "Neuron", "InferenceAcceleratorInfo": "inference", "FpgaInfo": "FPGA"}
ARCHITECTURES = ("x86_64", "arm64")
ACCELERATORS |= {"MediaAcceleratorInfo": "media"}


def described() -> dict[str, Any]:
    """DescribeInstanceTypes by name of the type."""
    records: dict[str, Any] = json.loads(gzip.decompress(RECORDS.read_bytes()))
    return records


def families(records: dict[str, Any]) -> dict[str, Any]:
    """The data file's families: what all sizes share, and each size."""
    found: dict[str, Any] = {}
    for name, record in sorted(records.items(), key=_order):
        architecture = [
            each for each in record["ProcessorInfo"]["SupportedArchitectures"] if each in ("x86_64", "arm64")
        ]
        if not architecture:
            continue
        family, _, size = name.partition(".")
        shared = {"architecture": architecture[0], **_accelerator(record)}
        found.setdefault(family, {**shared, "sizes": {}})["sizes"][size] = _size(record)
    return found


def _order(item: tuple[str, Any]) -> tuple[str, int, str]:
    name, record = item
    return name.partition(".")[0], record["VCpuInfo"]["DefaultVCpus"], name


def _accelerator(record: dict[str, Any]) -> dict[str, str]:
    if gpu := record.get("GpuInfo"):
        return {"gpu": gpu["Gpus"][0]["Name"]}
    other = next((word for key, word in ACCELERATORS.items() if key in record), None)
    return {"accelerator": other} if other else {}


def _size(record: dict[str, Any]) -> dict[str, Any]:
    network, memory = record["NetworkInfo"], record["MemoryInfo"]["SizeInMiB"] / 1024
    size: dict[str, Any] = {
        "vcpus": record["VCpuInfo"]["DefaultVCpus"],
        "cores": record["VCpuInfo"].get("DefaultCores") or record["VCpuInfo"]["DefaultVCpus"],
        "memory": int(memory) if memory.is_integer() else round(memory, 3),
    }
    if gpu := record.get("GpuInfo"):
        size["gpus"] = [gpu["Gpus"][0]["Count"], gpu["Gpus"][0]["MemoryInfo"]["SizeInMiB"]]
    if store := record.get("InstanceStorageInfo"):
        size["disks"] = [store["Disks"][0]["Count"], store["Disks"][0]["SizeInGB"]]
    size |= {"interfaces": network["MaximumNetworkInterfaces"], "addresses": network["Ipv4AddressesPerInterface"]}
    size["cards"] = list(_cards(network["NetworkCards"]))
    if network["EfaSupported"]:
        size["efa"] = network["EfaInfo"]["MaximumEfaInterfaces"]
    if record["SupportedUsageClasses"] != ["on-demand", "spot"]:
        size["bought"] = record["SupportedUsageClasses"]
    return size


def _cards(cards: list[dict[str, Any]]) -> Iterator[list[Any]]:
    """Runs of alike cards: their number, Gbps, interfaces, and whether they support EFA."""
    runs: list[list[Any]] = []
    for card in cards:
        gbps = card.get("PeakBandwidthInGbps")
        alike = [gbps and round(gbps, 3), card["MaximumNetworkInterfaces"], "efa" in card["InterfaceTypes"]]
        if runs and runs[-1][1:] == alike:
            runs[-1][0] += 1
        else:
            runs.append([1, *alike])
    yield from runs


def today() -> str:
    """The date of reading."""
    return datetime.now(UTC).date().isoformat()


def text() -> str:
    """The data file, with one size per line."""
    about = {
        "source": f"EC2 DescribeInstanceTypes, as recorded in moto {version('moto')} (2026)",
        "read": today(),
        "notes": [NOTES],
        "families": families(described()),
    }
    dump = json.dumps(about, indent=1)
    # a size on one line: objects without an object inside
    return re.sub(r"\{[^{}]*\}", lambda found: _one_line(found[0]), dump) + "\n"


def _one_line(found: str) -> str:
    return " ".join(found.split()).replace("[ ", "[").replace(" ]", "]")


def offerings(known: dict[str, Any]) -> dict[str, Any]:
    """By Region and letters of zones: families of which every size is offered there, and other types."""
    return {file.name.partition(".")[0]: _offered(file, known) for file in sorted(OFFERINGS.glob("*.json.gz"))}


def _offered(file: Path, known: dict[str, Any]) -> dict[str, list[str]]:
    region, letters = file.name.partition(".")[0], defaultdict(set)
    for each in json.loads(gzip.decompress(file.read_bytes())):
        letters[each["InstanceType"]].add(each["Location"].removeprefix(region))
    found: dict[str, list[str]] = defaultdict(list)
    for family, entry in known.items():
        sizes = {f"{family}.{size}": "".join(sorted(letters.get(f"{family}.{size}", ()))) for size in entry["sizes"]}
        alike = {family: next(iter(sizes.values()))} if len(set(sizes.values())) == 1 else sizes
        for name, zones in alike.items():
            found[zones].append(name)
    return {zones: found[zones] for zones in sorted(found) if zones}


def offerings_text() -> str:
    """The data file of offerings, with the types of the same zones on one line."""
    about = {
        "source": f"EC2 DescribeInstanceTypeOfferings by zone, as recorded in moto {version('moto')} (2026)",
        "read": today(),
        "notes": ["By Region and letters of its zones, which differ between accounts: families, and types of others."],
        "regions": offerings(families(described())),
    }
    return re.sub(r"\[[^\[\]]*\]", lambda found: _one_line(found[0]), json.dumps(about, indent=1)) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
    TARGET.with_name("ec2_offerings.json").write_text(offerings_text())
