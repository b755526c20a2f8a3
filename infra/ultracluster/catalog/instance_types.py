"""Accelerated EC2 instance types and UltraServers, as typed and frozen records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

from ultracluster.catalog.records import records
from ultracluster.errors import UltraclusterError

Architecture = Literal["x86_64", "arm64"]
InterfaceType = Literal["interface", "efa", "efa-only"]
UsageClass = Literal["on-demand", "spot", "capacity-block"]

Record = TypeVar("Record")


@dataclass(frozen=True)
class Gpu:
    """One GPU. Peaks are dense PFLOPS of its Tensor Cores.

    Source: NVIDIA data sheets, halved where they count sparsity (`data/gpus.json`).
    """

    model: str
    bf16_pflops: float
    fp8_pflops: float
    fp4_pflops: float | None
    hbm: str
    hbm_gb: int
    hbm_tb_per_s: float
    nvlink_generation: int
    nvlink_tb_per_s: float


@dataclass(frozen=True)
class NvLink:
    """The NVLink domain inside one instance: its generation, and the sum over its GPUs in TB/s, both directions."""

    generation: int
    aggregate_tb_per_s: float


@dataclass(frozen=True)
class NetworkCard:
    """One network card: its rate in Gbps as EC2 reports it, and which interfaces it takes."""

    index: int
    gbps: int
    interface_types: tuple[InterfaceType, ...]
    max_interfaces: int


@dataclass(frozen=True)
class Efa:
    """Elastic Fabric Adapter of a type.

    `cards` are the network cards that together carry the whole EFA bandwidth, one EFA each at `gbps_per_card`.

    Source: EC2 User Guide, "Maximize network bandwidth on EFA-enabled accelerated instances" (2026).
    """

    generation: int
    cards: tuple[int, ...]
    gbps_per_card: int
    max_interfaces: int

    @property
    def gb_per_s(self) -> float:
        """EFA bandwidth of one instance in GB/s, one direction."""
        return len(self.cards) * self.gbps_per_card / 8


@dataclass(frozen=True)
class InstanceStore:
    """Local NVMe disks, sizes in GB as EC2 reports them."""

    disks: int
    disk_gb: int

    @property
    def total_gb(self) -> int:
        """All disks together, in GB."""
        return self.disks * self.disk_gb


@dataclass(frozen=True)
class SoftwareMinima:
    """Oldest software that AWS supports on a type.

    Source: EC2 User Guide, "Get started with GPU instances" (2026).
    """

    nvidia_driver: str
    cuda: str
    gdrcopy: str
    efa_installer: str
    nccl: str


@dataclass(frozen=True)
class Published:
    """Figures of AWS's articles, kept beside EC2's own records because some differ. EC2's are the ones shown.

    Source: "Building blocks for foundation model training and inference on AWS" (May 2026).
    """

    gpu_memory_gb: int
    nvlink_tb_per_s: float | None
    efa_generation: int
    efa_gb_per_s: float


@dataclass(frozen=True)
class InstanceType:
    """One instance type.

    `memory_gib` is host memory, `gpu_memory_mib` one GPU's memory as EC2 reports it. `topology_depth` is the number of
    network nodes that DescribeInstanceTopology returns, None where AWS does not say. `ena_cards` are the cards above 0
    that may carry an ENA interface beside their EFA without taking bandwidth from it.

    Source: EC2 DescribeInstanceTypes, and the EC2 User Guide for what the API lacks; see `data/` for each file's own.
    """

    name: str
    architecture: Architecture
    vcpus: int
    cores: int
    memory_gib: int
    gpu: Gpu
    gpu_count: int
    gpu_memory_mib: int
    network_cards: tuple[NetworkCard, ...]
    max_interfaces: int
    ipv4_per_interface: int
    efa: Efa
    ena_cards: tuple[int, ...]
    instance_store: InstanceStore
    topology_depth: int | None
    usage_classes: frozenset[UsageClass]
    software: SoftwareMinima
    published: Published

    @property
    def family(self) -> str:
        """The part before the dot, for example `p6-b300`."""
        return self.name.partition(".")[0]

    @property
    def nvlink(self) -> NvLink | None:
        """NVLink among the GPUs of one instance; None with a single GPU."""
        if self.gpu_count == 1:
            return None
        return NvLink(self.gpu.nvlink_generation, round(self.gpu_count * self.gpu.nvlink_tb_per_s, 1))

    @property
    def ultraserver_only(self) -> bool:
        """Whether the type is sold only as part of an UltraServer."""
        return any(u.instance_type is self for u in ultraservers.values())


@dataclass(frozen=True)
class UltraServer:
    """Several instances that share one NVLink domain. `hbm_tb` is their GPU memory together, in TB as published.

    Source: EKS User Guide, "Use P6e-GB200 UltraServers with Amazon EKS" (2026).
    """

    name: str
    instance_type: InstanceType
    instances: int
    hbm_tb: float

    @property
    def gpus(self) -> int:
        """GPUs of the NVLink domain."""
        return self.instances * self.instance_type.gpu_count

    @property
    def efa_gb_per_s(self) -> float:
        """EFA bandwidth of all instances in GB/s, one direction."""
        return self.instances * self.instance_type.efa.gb_per_s

    @property
    def nvlink(self) -> NvLink:
        """NVLink among all GPUs of the domain."""
        gpu = self.instance_type.gpu
        return NvLink(gpu.nvlink_generation, round(self.gpus * gpu.nvlink_tb_per_s, 1))


class UnknownInstanceType(UltraclusterError, KeyError):
    """A name that the catalogue does not hold. `nearest` lists names that look alike, the closest first."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name = name
        self.known = tuple(known)
        self.nearest = tuple(get_close_matches(name, known, n=3, cutoff=0.4))
        super().__init__(name)

    def __str__(self) -> str:
        """The message, without KeyError's quotes."""
        near = f"did you mean {' or '.join(self.nearest)}?" if self.nearest else f"it holds {', '.join(self.known)}."
        return f"{self.name!r} is not in the catalogue; {near}"


class Catalog(Mapping[str, Record]):
    """Records by name; an unknown name raises UnknownInstanceType with the nearest ones."""

    def __init__(self, entries: dict[str, Record]) -> None:
        self._entries = entries

    def __getitem__(self, name: str) -> Record:
        """The record called `name`."""
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownInstanceType(name, list(self._entries)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _cards(ranges: list[dict[str, Any]]) -> Iterator[NetworkCard]:
    for alike in ranges:
        for index in range(alike["first"], alike["last"] + 1):
            yield NetworkCard(index, alike["gbps"], tuple(alike["interface_types"]), alike["max_interfaces"])


def _instance_type(name: str, ec2: dict[str, Any]) -> InstanceType:
    guide = records("ec2_user_guide")["instance_types"][name]
    model = ec2["gpu"]["model"]
    return InstanceType(
        name=name,
        architecture=ec2["architecture"],
        vcpus=ec2["vcpus"],
        cores=ec2["cores"],
        memory_gib=ec2["memory_gib"],
        gpu=Gpu(model, **records("gpus")["gpus"][model]),
        gpu_count=ec2["gpu"]["count"],
        gpu_memory_mib=ec2["gpu"]["memory_mib"],
        network_cards=tuple(_cards(ec2["network_cards"])),
        max_interfaces=ec2["max_interfaces"],
        ipv4_per_interface=ec2["ipv4_per_interface"],
        efa=Efa(guide["efa_generation"], tuple(guide["efa_cards"]), guide["efa_gbps"], ec2["max_efa_interfaces"]),
        ena_cards=tuple(guide["ena_cards"]),
        instance_store=InstanceStore(**ec2["instance_store"]),
        topology_depth=guide["topology_depth"],
        usage_classes=frozenset(ec2["usage_classes"]),
        software=SoftwareMinima(**guide["software"]),
        published=Published(**records("published")["instance_types"][name]),
    )


catalog: Mapping[str, InstanceType] = Catalog(
    {name: _instance_type(name, ec2) for name, ec2 in records("ec2_instance_types")["instance_types"].items()}
)
ultraservers: Mapping[str, UltraServer] = Catalog(
    {
        name: UltraServer(
            name,
            catalog[entry["instance_type"]],
            entry["instances"],
            records("published")["ultraservers"][name]["hbm_tb"],
        )
        for name, entry in records("ultraservers")["ultraservers"].items()
    }
)
