"""EC2 instance types and UltraServers, as typed and frozen records."""

from collections.abc import Iterator, Mapping, Sequence
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
    """An NVLink domain: generation, and total bandwidth of its GPUs in TB/s, both directions together."""

    generation: int
    aggregate_tb_per_s: float


@dataclass(frozen=True)
class NetworkCard:
    """One network card: bandwidth in Gbps as EC2 reports it, and the interface types that it supports."""

    index: int
    gbps: float
    interface_types: tuple[InterfaceType, ...]
    max_interfaces: int


@dataclass(frozen=True)
class Efa:
    """Elastic Fabric Adapters of an instance type.

    `cards` are the network cards that together provide the whole EFA bandwidth, one EFA each at `gbps_per_card`.
    `generation` is None for a type outside the catalogue.

    Source: EC2 User Guide, "Maximize network bandwidth on EFA-enabled accelerated instances" (2026).
    """

    generation: int | None
    cards: tuple[int, ...]
    gbps_per_card: float
    max_interfaces: int

    @property
    def gb_per_s(self) -> float:
        """EFA bandwidth of one instance in GB/s, one direction."""
        return len(self.cards) * self.gbps_per_card / 8


@dataclass(frozen=True)
class InstanceStore:
    """Local NVMe disks. Sizes in GB, as EC2 reports them."""

    disks: int
    disk_gb: int

    @property
    def total_gb(self) -> int:
        """Total size of the disks in GB."""
        return self.disks * self.disk_gb


@dataclass(frozen=True)
class SoftwareMinima:
    """Minimum software versions that AWS supports on an instance type.

    Source: EC2 User Guide, "Get started with GPU instances" (2026).
    """

    nvidia_driver: str
    cuda: str
    gdrcopy: str
    efa_installer: str
    nccl: str


@dataclass(frozen=True)
class Published:
    """Figures from AWS's articles, some of which differ from EC2's own records. EC2's figures take precedence.

    Source: "Building blocks for foundation model training and inference on AWS" (May 2026).
    """

    gpu_memory_gb: int
    nvlink_tb_per_s: float | None
    efa_generation: int
    efa_gb_per_s: float


@dataclass(frozen=True)
class InstanceType:
    """One instance type, as EC2 describes it.

    `memory_gib` is host memory, `gpu_memory_mib` one GPU's memory. `accelerator` names devices of the type that are no
    whole NVIDIA GPUs, which nothing here uses. `efa` is None for a type without EFA. `topology_depth` is the number of
    network nodes that DescribeInstanceTopology returns, None if AWS does not document it. `ena_cards` are the cards
    above 0 that support an ENA interface beside their EFA without reducing its bandwidth.

    Source: EC2 DescribeInstanceTypes, and the EC2 User Guide for facts that the API lacks; `data/` names the source of
    each file.
    """

    name: str
    architecture: Architecture
    vcpus: int
    cores: int
    memory_gib: float
    gpu_model: str | None
    gpu_count: int
    gpu_memory_mib: int
    accelerator: str | None
    network_cards: tuple[NetworkCard, ...]
    max_interfaces: int
    ipv4_per_interface: int
    efa: Efa | None
    ena_cards: tuple[int, ...]
    instance_store: InstanceStore
    topology_depth: int | None
    usage_classes: frozenset[UsageClass]

    @property
    def family(self) -> str:
        """The part before the dot, for example `p6-b300`."""
        return self.name.partition(".")[0]

    @property
    def ultraserver_only(self) -> bool:
        """Whether the type is sold only in UltraServers."""
        return any(u.instance_type is self for u in ultraservers.values())

    @property
    def has_nvlink(self) -> bool:
        """Whether NVLink is known to connect the GPUs of one instance."""
        return False

    @property
    def max_pods(self) -> int:
        """Pods that EKS allows on a node, with an address each from the VPC CNI and without prefix delegation.

        Source: EKS User Guide, "Choose an optimal Amazon EC2 node instance type" (2026).
        """
        return self.max_interfaces * (self.ipv4_per_interface - 1) + 2


@dataclass(frozen=True)
class UltraClusterType(InstanceType):
    """An instance type of the catalogue: GPUs and EFA of EC2 UltraClusters, with what AWS and NVIDIA say of them."""

    efa: Efa
    gpu: Gpu
    software: SoftwareMinima
    published: Published

    @property
    def nvlink(self) -> NvLink | None:
        """NVLink between the GPUs of one instance; None for a single GPU."""
        if self.gpu_count == 1:
            return None
        return NvLink(self.gpu.nvlink_generation, round(self.gpu_count * self.gpu.nvlink_tb_per_s, 1))

    @property
    def has_nvlink(self) -> bool:
        """Whether NVLink connects the GPUs of one instance."""
        return self.nvlink is not None


@dataclass(frozen=True)
class UltraServer:
    """Several instances in one NVLink domain. `hbm_tb` is their total GPU memory in TB, as published.

    Source: EKS User Guide, "Use P6e-GB200 UltraServers with Amazon EKS" (2026).
    """

    name: str
    instance_type: UltraClusterType
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
        """NVLink between all GPUs of the domain."""
        gpu = self.instance_type.gpu
        return NvLink(gpu.nvlink_generation, round(self.gpus * gpu.nvlink_tb_per_s, 1))


class UnknownInstanceType(UltraclusterError, KeyError):
    """A name that is not in the catalogue. `nearest` are similar names, by default among `known`, closest first."""

    def __init__(self, name: str, known: Sequence[str] = (), nearest: Sequence[str] | None = None) -> None:
        self.name = name
        self.known = tuple(known)
        self.nearest = _similar(name, known) if nearest is None else tuple(nearest)
        super().__init__(name)

    def __str__(self) -> str:
        """The message, without KeyError's quotes."""
        known = f"; known names: {', '.join(self.known)}" if self.known else ""
        near = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else known
        return f"{self.name!r} is not in the catalogue{near}"


class Catalog(Mapping[str, Record]):
    """Records by name. An unknown name raises UnknownInstanceType with similar names."""

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


def _similar(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """Up to three names of a similar family: a size alone, as in c7i.48xlarge, is no similarity."""
    family = name.lower().partition(".")[0]
    alike = [each for each in known if get_close_matches(family, [each.partition(".")[0]])]
    return tuple(get_close_matches(name, alike, n=3, cutoff=0.4))


def _cards(ranges: list[dict[str, Any]]) -> Iterator[NetworkCard]:
    for alike in ranges:
        for index in range(alike["first"], alike["last"] + 1):
            yield NetworkCard(index, alike["gbps"], tuple(alike["interface_types"]), alike["max_interfaces"])


def _instance_type(name: str, ec2: dict[str, Any]) -> UltraClusterType:
    guide = records("ec2_user_guide")["instance_types"][name]
    model = ec2["gpu"]["model"]
    return UltraClusterType(
        name=name,
        architecture=ec2["architecture"],
        vcpus=ec2["vcpus"],
        cores=ec2["cores"],
        memory_gib=ec2["memory_gib"],
        gpu=Gpu(model, **records("gpus")["gpus"][model]),
        gpu_model=model,
        gpu_count=ec2["gpu"]["count"],
        gpu_memory_mib=ec2["gpu"]["memory_mib"],
        accelerator=None,
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


catalog: Mapping[str, UltraClusterType] = Catalog(
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
