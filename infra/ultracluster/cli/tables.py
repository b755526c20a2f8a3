"""The catalogue as text tables. A table that is wider than the terminal continues below, with its first column."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from ultracluster.catalog import (
    InstanceType,
    Interface,
    Profile,
    UltraClusterType,
    UltraServer,
    addresses,
    capacity_block_places,
    catalog,
    efa_devices,
    instance_types,
    interface_layout,
    ultraservers,
)
from ultracluster.catalog.ec2_types import family_types
from ultracluster.catalog.records import records
from ultracluster.catalog.training import COMPONENTS, default_image, minima
from ultracluster.cli.console import console
from ultracluster.cli.hardware import PROFILES, facts_of, find, gpu_types, refusal, sources

if TYPE_CHECKING:
    from ultracluster.cli.needs import Need


def print_everything() -> None:
    """Prints the tables of instance types and UltraServers."""
    out = console()
    for table in (*_instance_types(out.width), *_ultraservers(out.width)):
        out.print(table)
    out.print(
        "Figures are per instance or UltraServer. FLOPS are dense; EFA GB/s is one direction, NVLink both. "
        "Sold: O On-Demand, S Spot, B capacity blocks. Details: ultracluster catalog TYPE"
    )


def print_one(name: str) -> None:
    """Prints the details of one type or UltraServer, or the types of a family or GPU. Raises UnknownInstanceType."""
    if sizes := family_types(name):
        _print_family(f"Family {name}", [instance_types[size] for size in sizes])
        return
    if types := gpu_types(name):
        _print_family(f"GPU {name.upper()}", [instance_types[each] for each in types])
        return
    found = find(name)
    if isinstance(found, UltraServer):
        sections = _of_ultraserver(found)
    else:
        sections = _of_instance_type(found) if isinstance(found, UltraClusterType) else _described(found)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for section, entries in sections:
        for number, (key, value) in enumerate(entries):
            table.add_row("" if number else section, key, value)
        table.add_row()
    out = console()
    out.print(name, style="bold", end="\n\n")
    out.print(table)


def _print_family(title: str, kinds: Sequence[InstanceType]) -> None:
    columns = ("Instance type", "vCPU", "Memory\nGiB", "GPUs", "EFA\nGbps", "Sold")
    rows = []
    for kind in kinds:
        gpus = f"{kind.gpu_count} {kind.gpu_model}" if kind.gpu_count else "-"
        efa = f"{len(kind.efa.cards)}x{kind.efa.gbps_per_card:g}" if kind.efa else "-"
        sold = "".join(letter for usage, letter in _SOLD.items() if usage in kind.usage_classes)
        rows.append((kind.name, str(kind.vcpus), _number(kind.memory_gib), gpus, efa, sold))
    out = console()
    for table in _tables(title, columns, rows, out.width):
        out.print(table)
    if refused := refusal(kinds[0]):
        out.print(f"Node groups and pools refuse this family: {refused}")
    out.print("Sold: O On-Demand, S Spot, B capacity blocks. Details: ultracluster catalog TYPE")


def print_quotas(name: str, needs: "Sequence[Need]") -> None:
    """Prints what the environment called `name` needs of each quota; a star marks those that a new account lacks."""
    columns = ("Quota", "Code", "Default", "Needed", "For")
    rows = []
    for need in needs:
        quota = need.quota
        title = f"{quota.service}, {quota.name}{f', {quota.unit}' if quota.unit else ''}"
        amount = f"{need.needed:,}{' *' if need.exceeds else ''}"
        rows.append((title, quota.code or "-", f"{quota.default:,}", amount, need.purpose))
    out = console()
    for table in _tables(f"Service quotas of {name}", columns, rows, out.width):
        out.print(table)
    out.print(
        f"* more than a new account has. Defaults of {records('quotas')['read']}; yours may be higher. What other"
    )
    out.print("environments of the account use in the Region comes on top. Capacity Blocks need no quota of vCPUs.")


def _tables(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[Table]:
    """The table in as many parts as its columns need to fit into `width`. Each part has the first column."""
    needed = [max(map(len, [*column.split("\n"), *cells])) + 2 for column, *cells in zip(columns, *rows, strict=True)]
    parts: list[list[int]] = [[0]]
    for number in range(1, len(columns)):
        if sum(needed[each] for each in parts[-1]) + needed[number] > width - 1:
            parts.append([0])
        parts[-1].append(number)
    for part in parts:
        shown = title if part is parts[0] else f"{title}, continued"
        table = Table(title=shown, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for number in part:
            table.add_column(columns[number], justify="right" if number else "left", no_wrap=True, vertical="bottom")
        for row in rows:
            table.add_row(*(row[number] for number in part))
        yield table


def _instance_types(width: int) -> Iterator[Table]:
    columns = (
        "Instance type",
        "vCPU",
        "Memory\nGiB",
        "CPU",
        "GPUs",
        "GPU mem\nGiB",
        "HBM\nTB/s",
        "BF16\nPFLOPS",
        "FP8",
        "FP4",
        "NVLink\nTB/s",
        "EFA\nGbps",
        "EFA\nGB/s",
        "NVMe\nTB",
        "Sold",
    )
    rows = []
    for entry in catalog.values():
        gpu, count = entry.gpu, entry.gpu_count
        cells = (
            entry.name,
            str(entry.vcpus),
            _number(entry.memory_gib),
            "arm" if entry.architecture == "arm64" else "x86",
            f"{count} {gpu.model}",
            _number(entry.gpu_memory_mib * count // 1024),
            _number(gpu.hbm_tb_per_s * count),
            _number(gpu.bf16_pflops * count),
            _number(gpu.fp8_pflops * count),
            _number(gpu.fp4_pflops * count) if gpu.fp4_pflops else "-",
            _number(entry.nvlink.aggregate_tb_per_s) if entry.nvlink else "-",
            f"v{entry.efa.generation} {len(entry.efa.cards)}x{entry.efa.gbps_per_card}",
            _number(entry.efa.gb_per_s),
            _number(entry.instance_store.total_gb / 1000),
            "".join(letter for usage, letter in _SOLD.items() if usage in entry.usage_classes),
        )
        rows.append(cells)
    yield from _tables("Instance types", columns, rows, width)


_SOLD = {"on-demand": "O", "spot": "S", "capacity-block": "B"}


def _ultraservers(width: int) -> Iterator[Table]:
    columns = (
        "UltraServer",
        "Instances",
        "GPUs",
        "HBM\nTB",
        "HBM\nTB/s",
        "BF16\nPFLOPS",
        "FP8",
        "FP4",
        "NVLink\nTB/s",
        "EFA\nGB/s",
    )
    rows = []
    for entry in ultraservers.values():
        gpu, count = entry.instance_type.gpu, entry.gpus
        cells = (
            entry.name,
            f"{entry.instances} {entry.instance_type.name}",
            f"{count} {gpu.model}",
            _number(entry.hbm_tb),
            _number(gpu.hbm_tb_per_s * count),
            _number(gpu.bf16_pflops * count),
            _number(gpu.fp8_pflops * count),
            _number(gpu.fp4_pflops * count) if gpu.fp4_pflops else "-",
            _number(entry.nvlink.aggregate_tb_per_s),
            _number(entry.efa_gb_per_s),
        )
        rows.append(cells)
    yield from _tables("UltraServers: one NVLink domain each", columns, rows, width)


Section = tuple[str, list[tuple[str, str]]]


def _of_instance_type(entry: UltraClusterType) -> Iterator[Section]:
    yield from _compute(entry)
    yield from _network(entry)
    yield from _purchase(entry)
    needed, image = minima(entry), default_image(entry)
    yield "Minimum software", [(title, needed[component]) for component, title in COMPONENTS.items()]
    yield "Jobs", [("default image", image.name if image else "none, set --image")]
    yield "Sources", list(sources(entry).items())


def _described(entry: InstanceType) -> Iterator[Section]:
    """A type outside UltraClusters: what EC2 says of it."""
    store, efa = entry.instance_store, entry.efa
    gpus = f"{entry.gpu_count} x NVIDIA {entry.gpu_model}, {entry.gpu_memory_mib // 1024} GiB each"
    host = [
        ("CPU", f"{entry.vcpus} vCPUs on {entry.cores} cores, {entry.architecture}"),
        ("Memory", f"{entry.memory_gib:,} GiB"),
        ("Local disks", f"{store.disks} x {store.disk_gb:,} GB" if store.disks else "none"),
    ]
    yield "Host", host
    yield "GPUs", [("Model", gpus if entry.gpu_count else entry.accelerator or "none")]
    cards = f"{len(efa.cards)} x {efa.gbps_per_card:g} Gbps, at most {efa.max_interfaces}" if efa else "none"
    pods = f"{entry.max_pods} by EKS's rule"
    yield "Network", [("EFA", cards), ("Interfaces", f"at most {entry.max_interfaces}"), ("Pods", pods)]
    yield "Network cards", list(_cards(entry))
    yield "Sold", [("Usage classes", ", ".join(sorted(entry.usage_classes)))]
    if refused := refusal(entry):
        yield "Node groups", [("Refused", refused)]
    yield "Sources", list(facts_of(entry.name)["sources"].items())


def _compute(entry: UltraClusterType) -> Iterator[Section]:
    gpu, store, published = entry.gpu, entry.instance_store, entry.published
    yield (
        "Host",
        [
            ("CPU", f"{entry.vcpus} vCPUs on {entry.cores} cores, {entry.architecture}"),
            ("Memory", f"{entry.memory_gib:,} GiB"),
            ("Local NVMe", f"{store.disks} x {store.disk_gb:,} GB = {store.total_gb:,} GB"),
        ],
    )
    fp4 = f", FP4 {gpu.fp4_pflops}" if gpu.fp4_pflops else ""
    yield (
        "GPUs",
        [
            (
                "Model",
                f"{entry.gpu_count} x NVIDIA {gpu.model}, {gpu.hbm_gb} GB {gpu.hbm} at {gpu.hbm_tb_per_s} TB/s each",
            ),
            ("Dense PFLOPS each", f"BF16 {gpu.bf16_pflops}, FP8 {gpu.fp8_pflops}{fp4}"),
            (
                "Total memory",
                f"{entry.gpu_memory_mib * entry.gpu_count // 1024:,} GiB in EC2's records, "
                f"{published.gpu_memory_gb:,} GB as published",
            ),
            ("NVLink", _nvlink(entry)),
        ],
    )


def _nvlink(entry: UltraClusterType) -> str:
    if entry.nvlink is None:
        return "none (one GPU)"
    text = f"generation {entry.nvlink.generation}, {entry.nvlink.aggregate_tb_per_s} TB/s within the instance"
    return f"{text}; extends over the UltraServer" if entry.ultraserver_only else text


def _network(entry: UltraClusterType) -> Iterator[Section]:
    efa = entry.efa
    other = entry.published.efa_generation
    generation = f"v{efa.generation}" if other == efa.generation else f"v{efa.generation} (published as v{other})"
    yield (
        "Network",
        [
            ("EFA", f"{generation}, {len(efa.cards)} x {efa.gbps_per_card} Gbps = {efa.gb_per_s:g} GB/s per direction"),
            ("Interfaces", f"at most {entry.max_interfaces}, at most {efa.max_interfaces} with EFA"),
            ("IPv4 addresses", f"at most {entry.ipv4_per_interface} per interface"),
            ("Topology nodes", str(entry.topology_depth or "not listed by EC2")),
        ],
    )
    yield "Network cards", list(_cards(entry))
    yield "Interface layouts", [(profile, _layout(entry, profile)) for profile in PROFILES]


def _cards(entry: InstanceType) -> Iterator[tuple[str, str]]:
    """Identical cards, grouped."""
    alike: dict[str, list[int]] = {}
    for card in entry.network_cards:
        most = f"{card.max_interfaces} interface{'s' if card.max_interfaces > 1 else ''}"
        text = f"{card.gbps} Gbps, supports {', '.join(card.interface_types)}; at most {most}"
        alike.setdefault(text, []).append(card.index)
    for text, cards in alike.items():
        yield f"{'cards' if len(cards) > 1 else 'card'} {_numbers(cards)}", text


def _layout(entry: InstanceType, profile: Profile) -> str:
    layout = interface_layout(entry, profile)
    if profile == "max_bandwidth" and not entry.ena_cards:
        return "as fewest_ips: AWS documents no further ENA interfaces for this type"
    efa = efa_devices(layout)
    count = addresses(layout)
    head = f"{len(layout)} interfaces, {efa} EFA, {count} IPv4 address{'es' if count > 1 else ''}"
    return "\n".join([head, *(f"  {line}" for line in _alike(layout))])


def _alike(layout: tuple[Interface, ...]) -> Iterator[str]:
    """Interfaces of one kind and device, grouped."""
    alike: dict[tuple[str, int], list[int]] = {}
    for interface in layout:
        alike.setdefault((interface.kind, interface.device), []).append(interface.card)
    for (kind, device), cards in alike.items():
        yield f"{kind} at device {device} of card{'s' if len(cards) > 1 else ''} {_numbers(cards)}"


def _purchase(entry: InstanceType) -> Iterator[Section]:
    zones = records("offerings")["availability_zones"].get(entry.name, {})
    listed = ", ".join(f"{region} {' '.join(zone[-1] for zone in found)}" for region, found in zones.items())
    sold = ", ".join(sorted(entry.usage_classes))
    yield (
        "Sold",
        [
            ("Usage classes", f"{sold}, in UltraServers only" if entry.ultraserver_only else sold),
            ("Capacity blocks in", ", ".join(capacity_block_places(entry.name)) or "not listed"),
            ("Listed in zones", listed or "not listed"),
        ],
    )


def _of_ultraserver(entry: UltraServer) -> Iterator[Section]:
    gpu, count = entry.instance_type.gpu, entry.gpus
    fp4 = f", FP4 {_number(gpu.fp4_pflops * count)}" if gpu.fp4_pflops else ""
    yield (
        "Composition",
        [
            ("Instances", f"{entry.instances} x {entry.instance_type.name}"),
            ("GPUs", f"{count} x NVIDIA {gpu.model} in one NVLink domain"),
            ("HBM", f"{entry.hbm_tb} TB of {gpu.hbm} at {_number(gpu.hbm_tb_per_s * count)} TB/s"),
            ("Dense PFLOPS", f"BF16 {_number(gpu.bf16_pflops * count)}, FP8 {_number(gpu.fp8_pflops * count)}{fp4}"),
        ],
    )
    yield (
        "Interconnect",
        [
            ("NVLink", f"generation {entry.nvlink.generation}, {_number(entry.nvlink.aggregate_tb_per_s)} TB/s"),
            ("EFA", f"{_number(entry.efa_gb_per_s)} GB/s per direction"),
        ],
    )
    yield "Sold", [("Capacity blocks in", ", ".join(capacity_block_places(entry.instance_type.name)))]
    yield "Sources", [("ultraservers", f"{records('ultraservers')['source']}; read {records('ultraservers')['read']}")]


def _number(value: float) -> str:
    """Three significant digits or a whole number: 7.92, 26.8, 2,148."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _numbers(cards: list[int]) -> str:
    """Card numbers with ranges: 0, or 1-15, or 4, 8, 12."""
    runs: list[list[int]] = []
    for card in sorted(cards):
        if runs and card == runs[-1][-1] + 1:
            runs[-1].append(card)
        else:
            runs.append([card])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
