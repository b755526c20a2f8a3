"""The catalogue holds every figure of AWS's published tables, and EC2's own where both differ.

Tables typed off "Building blocks for foundation model training and inference on AWS" (May 2026) and the EC2 User Guide.
"""

import pytest

from ultracluster.catalog import capacity_block_places, catalog, ultraservers
from ultracluster.catalog.records import records

TYPES = list(catalog)

GPUS = [
    # GPU, BF16, FP8, FP4 (dense PFLOPS), HBM GB, HBM, TB/s
    ("H100", 0.9895, 1.979, None, 80, "HBM3", 3.35),
    ("H200", 0.9895, 1.979, None, 141, "HBM3e", 4.8),
    ("B200", 2.25, 4.5, 9, 180, "HBM3e", 8),
    ("B300", 2.25, 4.5, 13.5, 288, "HBM3e", 8),
]

INSTANCES = [
    # type, GPUs, GPU memory as published, NVLink generation and TB/s, EFA version as published, EFA GB/s
    ("p5.4xlarge", "1 H100", 80, None, 2, 12.5),
    ("p5.48xlarge", "8 H100", 640, (4, 7.2), 2, 400),
    ("p5e.48xlarge", "8 H200", 1128, (4, 7.2), 2, 400),
    ("p5en.48xlarge", "8 H200", 1128, (4, 7.2), 3, 400),
    ("p6-b200.48xlarge", "8 B200", 1440, (5, 14.4), 4, 400),
    ("p6-b300.48xlarge", "8 B300", 2100, (5, 14.4), 4, 800),
    ("p6e-gb200.36xlarge", "4 GB200", 740, (5, 7.2), 4, 200),
]

HOSTS = [
    # type, vCPUs, cores, memory GiB, architecture, GPU MiB each, local disks, GB each
    ("p5.4xlarge", 16, 8, 256, "x86_64", 81920, 1, 3800),
    ("p5.48xlarge", 192, 96, 2048, "x86_64", 81920, 8, 3800),
    ("p5e.48xlarge", 192, 96, 2048, "x86_64", 144384, 8, 3800),
    ("p5en.48xlarge", 192, 96, 2048, "x86_64", 144384, 8, 3800),
    ("p6-b200.48xlarge", 192, 96, 2048, "x86_64", 183359, 8, 3800),
    ("p6-b300.48xlarge", 192, 96, 4096, "x86_64", 275040, 8, 3800),
    ("p6e-gb200.36xlarge", 144, 144, 960, "arm64", 185 * 1024, 3, 7500),
]

NETWORKS = [
    # type, cards, EFA at the most, interfaces at the most, IPv4 each, EFA version (EC2), topology nodes
    ("p5.4xlarge", 1, 1, 4, 30, 2, None),
    ("p5.48xlarge", 32, 32, 64, 50, 2, 3),
    ("p5e.48xlarge", 32, 32, 64, 50, 2, 3),
    ("p5en.48xlarge", 16, 16, 64, 50, 3, 3),
    ("p6-b200.48xlarge", 8, 8, 32, 50, 4, 4),
    ("p6-b300.48xlarge", 17, 16, 68, 50, 4, 4),
    ("p6e-gb200.36xlarge", 17, 16, 39, 50, 3, 3),
]

SOFTWARE = [
    # type, NVIDIA driver, CUDA, GDRCopy, EFA installer, NCCL
    ("p5.4xlarge", "530", "12.1", "2.3", "1.43.1", "2.18.3"),
    ("p5.48xlarge", "530", "12.1", "2.3", "1.24.1", "2.18.3"),
    ("p5e.48xlarge", "550", "12.1", "2.3", "1.24.1", "2.18.3"),
    ("p5en.48xlarge", "550", "12.1", "2.3", "1.24.1", "2.18.3"),
    ("p6-b200.48xlarge", "570", "12.8", "2.5", "1.41.0", "2.26.2-1"),
    ("p6-b300.48xlarge", "580", "13.0", "2.5", "1.44.0", "2.28.3"),
    ("p6e-gb200.36xlarge", "570", "12.8", "2.5", "1.41.0", "2.26.2-1"),
]

ULTRASERVERS = [
    # name, instances, GPUs in one NVLink domain, HBM TB, EFA GB/s
    ("u-p6e-gb200x36", 9, 36, 6.7, 1800),
    ("u-p6e-gb200x72", 18, 72, 13.4, 3600),
]

CAPACITY_BLOCKS = [
    ("p5.4xlarge", 8),
    ("p5.48xlarge", 12),
    ("p5e.48xlarge", 12),
    ("p5en.48xlarge", 12),
    ("p6-b200.48xlarge", 7),
    ("p6-b300.48xlarge", 7),
    ("p6e-gb200.36xlarge", 1),
]


@pytest.mark.parametrize("table", [INSTANCES, HOSTS, NETWORKS, SOFTWARE, CAPACITY_BLOCKS])
def test_the_tables_name_every_type(table):
    assert [row[0] for row in table] == TYPES


@pytest.mark.parametrize(("model", "bf16", "fp8", "fp4", "hbm_gb", "hbm", "tb_per_s"), GPUS)
def test_gpu(model, bf16, fp8, fp4, hbm_gb, hbm, tb_per_s):
    gpu = next(entry.gpu for entry in catalog.values() if entry.gpu.model == model)
    assert (gpu.bf16_pflops, gpu.fp8_pflops, gpu.fp4_pflops) == (bf16, fp8, fp4)
    assert (gpu.hbm_gb, gpu.hbm, gpu.hbm_tb_per_s) == (hbm_gb, hbm, tb_per_s)


def test_gb200_has_a_b200_class_gpu_with_185_usable_gb():
    gb200, b200 = catalog["p6e-gb200.36xlarge"].gpu, catalog["p6-b200.48xlarge"].gpu
    assert gb200.hbm_gb == 185
    assert (gb200.bf16_pflops, gb200.fp8_pflops, gb200.fp4_pflops) == (
        b200.bf16_pflops,
        b200.fp8_pflops,
        b200.fp4_pflops,
    )


@pytest.mark.parametrize(("name", "gpus", "memory", "nvlink", "efa_version", "efa_gb"), INSTANCES)
def test_instance_type(name, gpus, memory, nvlink, efa_version, efa_gb):
    entry = catalog[name]
    assert f"{entry.gpu_count} {entry.gpu.model}" == gpus
    assert entry.published.gpu_memory_gb == memory
    assert (entry.nvlink and (entry.nvlink.generation, entry.nvlink.aggregate_tb_per_s)) == nvlink
    assert entry.published.efa_generation == efa_version
    assert entry.efa.gb_per_s == entry.published.efa_gb_per_s == efa_gb


@pytest.mark.parametrize("name", [name for name in TYPES if name != "p6e-gb200.36xlarge"])
def test_nvlink_as_published(name):
    entry = catalog[name]
    assert (entry.nvlink and entry.nvlink.aggregate_tb_per_s) == entry.published.nvlink_tb_per_s


def test_nvlink_of_gb200_spans_the_ultraserver():
    assert catalog["p6e-gb200.36xlarge"].published.nvlink_tb_per_s is None
    assert ultraservers["u-p6e-gb200x72"].nvlink.aggregate_tb_per_s == pytest.approx(72 * 1.8)


@pytest.mark.parametrize(("name", "vcpus", "cores", "memory", "architecture", "gpu_mib", "disks", "disk_gb"), HOSTS)
def test_host(name, vcpus, cores, memory, architecture, gpu_mib, disks, disk_gb):
    entry = catalog[name]
    assert (entry.vcpus, entry.cores, entry.memory_gib, entry.architecture) == (vcpus, cores, memory, architecture)
    assert entry.gpu_memory_mib == gpu_mib
    assert (entry.instance_store.disks, entry.instance_store.disk_gb) == (disks, disk_gb)
    assert entry.instance_store.total_gb == disks * disk_gb


@pytest.mark.parametrize(("name", "cards", "efa", "interfaces", "ipv4", "efa_version", "depth"), NETWORKS)
def test_network(name, cards, efa, interfaces, ipv4, efa_version, depth):
    entry = catalog[name]
    assert [card.index for card in entry.network_cards] == list(range(cards))
    assert (entry.efa.max_interfaces, entry.max_interfaces, entry.ipv4_per_interface) == (efa, interfaces, ipv4)
    assert (entry.efa.generation, entry.topology_depth) == (efa_version, depth)
    assert sum(card.max_interfaces for card in entry.network_cards) >= interfaces


@pytest.mark.parametrize("row", SOFTWARE, ids=TYPES)
def test_minimum_software(row):
    name, *minima = row
    software = catalog[name].software
    assert [software.nvidia_driver, software.cuda, software.gdrcopy, software.efa_installer, software.nccl] == minima


@pytest.mark.parametrize(("name", "instances", "gpus", "hbm_tb", "efa_gb"), ULTRASERVERS)
def test_ultraserver(name, instances, gpus, hbm_tb, efa_gb):
    entry = ultraservers[name]
    assert (entry.instances, entry.gpus, entry.hbm_tb, entry.efa_gb_per_s) == (instances, gpus, hbm_tb, efa_gb)
    assert entry.instance_type is catalog["p6e-gb200.36xlarge"]
    assert records("published")["ultraservers"][name]["efa_gb_per_s"] == efa_gb
    assert entry.hbm_tb == pytest.approx(entry.gpus * entry.instance_type.gpu.hbm_gb / 1000, rel=0.01)


def test_every_ultraserver_is_listed():
    assert list(ultraservers) == [row[0] for row in ULTRASERVERS]


def test_ec2_is_shown_where_published_figures_differ():
    b300, gb200 = catalog["p6-b300.48xlarge"], catalog["p6e-gb200.36xlarge"]
    assert (b300.gpu_memory_mib * b300.gpu_count // 1024, b300.published.gpu_memory_gb) == (2148, 2100)
    assert (gb200.efa.generation, gb200.published.efa_generation) == (3, 4)


def test_only_gb200_is_sold_in_ultraservers_only():
    assert [name for name in TYPES if catalog[name].ultraserver_only] == ["p6e-gb200.36xlarge"]


@pytest.mark.parametrize(
    "name",
    [
        "ec2_instance_types",
        "ec2_user_guide",
        "gpus",
        "published",
        "offerings",
        "ultraservers",
        "lustre",
        "pcs",
        "eks",
        "software",
    ],
)
def test_every_data_file_names_its_source_and_day(name):
    data = records(name)
    assert len(data["source"]) > 20
    assert data["read"][:4] >= "2026"


@pytest.mark.parametrize(("name", "places"), CAPACITY_BLOCKS)
def test_capacity_block_places(name, places):
    found = capacity_block_places(name)
    assert len(found) == len(set(found)) == places


def test_gb200_blocks_are_sold_in_one_local_zone():
    assert capacity_block_places("p6e-gb200.36xlarge") == ("us-east-1-dfw-2a",)
