"""The catalogue agrees with EC2's own records, in ec2_records.json."""

import json
from pathlib import Path

import pytest

from ultracluster.catalog import catalog, interface_layout, offered_zones

EC2 = json.loads(Path(__file__).with_name("ec2_records.json").read_text("utf-8"))
NOT_IN_THE_API = "p6e-gb200.36xlarge"
NAMES = [name for name in catalog if name != NOT_IN_THE_API]
B200_EFA_GBPS = 400
"""EC2 reports the ENA rate of this type's cards, 200; the User Guide gives EFA's."""


@pytest.mark.parametrize("name", NAMES)
def test_host_and_gpus(name):
    entry, ec2 = catalog[name], EC2["instance_types"][name]
    assert entry.vcpus == ec2["VCpuInfo"]["DefaultVCpus"]
    assert entry.cores == ec2["VCpuInfo"]["DefaultCores"]
    assert entry.memory_gib * 1024 == ec2["MemoryInfo"]["SizeInMiB"]
    assert [entry.architecture] == ec2["ProcessorInfo"]["SupportedArchitectures"]
    (gpu,) = ec2["GpuInfo"]["Gpus"]
    assert (entry.gpu.model, entry.gpu_count) == (gpu["Name"], gpu["Count"])
    assert entry.gpu_memory_mib == gpu["MemoryInfo"]["SizeInMiB"]
    assert entry.gpu_memory_mib * entry.gpu_count == ec2["GpuInfo"]["TotalGpuMemoryInMiB"]


@pytest.mark.parametrize("name", NAMES)
def test_instance_store(name):
    store, ec2 = catalog[name].instance_store, EC2["instance_types"][name]["InstanceStorageInfo"]
    (disks,) = ec2["Disks"]
    assert (store.disks, store.disk_gb, store.total_gb) == (disks["Count"], disks["SizeInGB"], ec2["TotalSizeInGB"])


@pytest.mark.parametrize("name", NAMES)
def test_usage_classes(name):
    assert sorted(catalog[name].usage_classes) == EC2["instance_types"][name]["SupportedUsageClasses"]


@pytest.mark.parametrize("name", NAMES)
def test_network_cards(name):
    entry, ec2 = catalog[name], EC2["instance_types"][name]["NetworkInfo"]
    assert entry.max_interfaces == ec2["MaximumNetworkInterfaces"]
    assert entry.efa.max_interfaces == ec2["EfaInfo"]["MaximumEfaInterfaces"]
    assert entry.ipv4_per_interface == ec2["Ipv4AddressesPerInterface"]
    ours = [(card.index, card.gbps, card.interface_types, card.max_interfaces) for card in entry.network_cards]
    theirs = [
        (
            card["NetworkCardIndex"],
            card["PeakBandwidthInGbps"],
            tuple(card["InterfaceTypes"]),
            card["MaximumNetworkInterfaces"],
        )
        for card in ec2["NetworkCards"]
    ]
    assert ours == theirs


@pytest.mark.parametrize("name", NAMES)
def test_efa_carries_the_network_performance(name):
    entry, ec2 = catalog[name], EC2["instance_types"][name]["NetworkInfo"]
    assert len(entry.efa.cards) * entry.efa.gbps_per_card == int(ec2["NetworkPerformance"].split()[0])


@pytest.mark.parametrize("name", NAMES)
def test_efa_rate_is_the_rate_of_its_cards(name):
    entry = catalog[name]
    rates = {entry.network_cards[index].gbps for index in entry.efa.cards}
    if name == "p6-b200.48xlarge":
        assert (rates, entry.efa.gbps_per_card) == ({200}, B200_EFA_GBPS)
    else:
        assert rates == {entry.efa.gbps_per_card}


def test_gb200_is_what_the_spec_sheet_says():
    entry, sheet = catalog[NOT_IN_THE_API], EC2["not_in_the_api"][NOT_IN_THE_API]
    assert NOT_IN_THE_API not in EC2["instance_types"]
    assert (entry.architecture, entry.vcpus, entry.memory_gib) == (
        sheet["architecture"],
        sheet["vcpus"],
        sheet["memory_gib"],
    )
    assert entry.gpu_count == sheet["gpu"]["count"]
    assert entry.gpu_memory_mib == sheet["gpu"]["memory_gib_each"] * 1024
    assert (entry.instance_store.disks, entry.instance_store.disk_gb) == (
        sheet["instance_store"]["count"],
        sheet["instance_store"]["size_gb"],
    )
    assert entry.max_interfaces == sheet["max_network_interfaces"]
    assert entry.efa.max_interfaces == sheet["max_efa_interfaces"]
    assert len(entry.efa.cards) * entry.efa.gbps_per_card == sheet["efa_aggregate_gbps"]
    for card in sheet["cards"]:
        ours = entry.network_cards[card["index"]]
        theirs = (card["gbps"], card["types"], card["max_interfaces"])
        assert (ours.gbps, list(ours.interface_types), ours.max_interfaces) == theirs


def test_gb200_has_one_efa_card_for_each_pair_of_its_gpu():
    pairs = EC2["not_in_the_api"][NOT_IN_THE_API]["gpu_card_pairs"]
    assert [sum(card in pair for card in catalog[NOT_IN_THE_API].efa.cards) for pair in pairs] == [1] * 4


@pytest.mark.parametrize(
    ("name", "profile", "recommended"),
    [
        ("p5.4xlarge", "fewest_ips", "default"),
        *[(name, "fewest_ips", "save_ip") for name in NAMES[1:]],
        *[(name, "max_bandwidth", "max_bandwidth") for name in NAMES[1:] if name != "p5en.48xlarge"],
        (NOT_IN_THE_API, "fewest_ips", "efa_4x400"),
    ],
)
def test_layout_is_the_recommended_one(name, profile, recommended):
    layout = sorted(map(list, interface_layout(catalog[name], profile)))
    assert layout == sorted(EC2["layouts"][name][recommended])


@pytest.mark.parametrize("name", NAMES)
def test_zones_are_the_offered_ones(name):
    regions = EC2["offerings"][name]
    assert {region: offered_zones(name, region) for region in regions} == {
        region: tuple(zones) for region, zones in regions.items()
    }
