"""The figures of the embedded AWS and of the catalogue, each from its own reading of AWS's documents, agree.

A difference stands in DIFFERENCES with its reason. Where the two differ without one, the document decides.
"""

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

import localaws
from localaws.records import FOLDER, enumeration, records
from localaws.services import eks_clusters, eks_network, eks_store, fsx_openzfs, fsx_rules, kubernetes, pcs_rules
from ultracluster.catalog import catalog, eks, lustre, nfs, pcs, software

DIFFERENCES = {
    "Kubernetes 1.31": "in extended support until 2026-11-26; the catalogue starts with 1.33, which its charts need",
    "Kubernetes 1.32": "in extended support until 2027-03-23; the catalogue starts with 1.33, which its charts need",
    "GPU of p6e-gb200.36xlarge": "EC2's guide names the GPU, B200; the catalogue the superchip, as NVIDIA's data sheet",
}
ABSENT = None


def figures() -> Iterator[tuple[str, Any, Any]]:
    """Name, figure of the embedded AWS and figure of the catalogue."""
    ends = records("eks")["versions"]["ends_of_support"]
    for version in sorted({*ends, *eks.KUBERNETES_VERSIONS}):
        ours = eks.KUBERNETES_VERSIONS.get(version)
        dates = (ours.standard_support_ends, ours.extended_support_ends, ours.image_release) if ours else ABSENT
        theirs = (*map(date.fromisoformat, ends[version]), eks_store.IMAGE_RELEASES[version])
        yield f"Kubernetes {version}", theirs, dates
    zones = {zone for listed in eks.REFUSED_ZONE_IDS.values() for zone in listed}
    yield "zones without EKS", set(eks_network.NO_CLUSTERS), zones
    yield "tiers of control planes", enumeration("eks", "ProvisionedControlPlaneTier"), eks.TIERS
    yield "types of control plane logs", eks_store.LOG_TYPES, eks.LOG_TYPES
    for scope in ("cluster_admin", "admin", "edit", "view"):
        policy = eks.access_policy("aws", scope).rpartition("/")[2]
        yield f"access policy {scope}", policy in kubernetes.ACCESS_POLICIES, True

    for name, chart in software.charts.items():
        yield f"API groups of {name}", set(kubernetes.CHART_GROUPS.get(name, ())), set(chart.api_groups)
        late = set(kubernetes.LATE_WEBHOOKS.get(name, ()))  # the catalogue also has those that helm --wait waits for
        yield f"late webhooks of {name}", late, late & set(chart.webhooks)
    yield "add-ons", kubernetes.ADD_ONS.keys() & software.addons.keys(), software.addons.keys()

    yield "Slurm versions", pcs_rules.SLURM_VERSIONS, pcs.SLURM_VERSIONS
    yield "sizes of PCS clusters", pcs_rules.MAX_NODES, {size.upper(): nodes for size, nodes in pcs.SIZES.items()}
    yield "node groups", pcs_rules.MAX_NODE_GROUPS, pcs.MAXIMUM_NODE_GROUPS
    yield "queues", pcs_rules.MAX_QUEUES, pcs.MAXIMUM_QUEUES
    lists = {
        "cluster": pcs.CLUSTER_SETTINGS,
        "queue": pcs.QUEUE_SETTINGS,
        "compute node group": pcs.NODE_GROUP_SETTINGS,
        "gres": pcs.GRES_SETTINGS,
        "cgroup": pcs.CGROUP_SETTINGS,
        "slurmdbd": pcs.SLURMDBD_SETTINGS,
    }
    for level in sorted({*pcs_rules.SETTINGS, *lists}):
        yield f"settings of a {level}", pcs_rules.SETTINGS[level], lists[level]
    since = pcs_rules.SINCE
    yield "since, cluster", since["cluster"], pcs.CLUSTER_SETTINGS_SINCE
    yield "since, values", pcs_rules.VALUES_SINCE, pcs.CLUSTER_VALUES_SINCE
    yield "since, queue", since["queue"], pcs.QUEUE_SETTINGS_SINCE
    yield "since, node group", since["compute node group"] | since["gres"], pcs.NODE_GROUP_SETTINGS_SINCE

    yield "MB/s per TiB", fsx_rules.UNIT_THROUGHPUT[("PERSISTENT_2", "SSD")], lustre.THROUGHPUT_TIERS
    yield "MB/s per TiB, local", fsx_rules.LESSER_PLACES["throughput_mbps_per_tib"], list(lustre.LOCAL_ZONE_TIERS)
    yield "step of capacity", fsx_rules.CAPACITY_STEP_GIB["PERSISTENT_2"], lustre.CAPACITY_STEP_GIB
    small = {*lustre.SMALL_CAPACITIES_GIB, lustre.CAPACITY_STEP_GIB}
    yield "small capacities", set(fsx_rules.SMALL_CAPACITIES_GIB), small
    yield "step with EFA", fsx_rules.EFA_STEP_GIB, lustre.EFA_STEP_GIB
    yield "step of throughput", fsx_rules.THROUGHPUT_CAPACITY_STEP_MBPS, lustre.THROUGHPUT_CAPACITY_STEP_MBPS
    yield "metadata IOPS", fsx_rules.METADATA_IOPS, lustre.METADATA_IOPS
    tiering = fsx_rules.INTELLIGENT_TIERING_METADATA_IOPS
    yield "metadata IOPS, tiering", tiering, lustre.INTELLIGENT_TIERING_METADATA_IOPS
    yield "associations", fsx_rules.MAXIMUM_LINKS, lustre.MAXIMUM_LINKS

    steps = {name.upper(): figures for name, figures in nfs.THROUGHPUTS_MBPS.items()}
    theirs = {name: figures for name, figures in fsx_openzfs.THROUGHPUT_MBPS.items() if name in steps}
    yield "MBps of OpenZFS", theirs, steps
    yield "OpenZFS", (fsx_openzfs.SMALLEST_GIB, fsx_openzfs.LARGEST_GIB), (nfs.SMALLEST_GIB, nfs.LARGEST_GIB)

    localaws.activate()
    for record in records("instance_types")["instance_types"]:
        name = record["InstanceType"]
        yield from hardware(name, INSTANCE_TYPES[name])


def hardware(name: str, record: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The figures of one instance type: EC2's record, and the catalogue's entry."""
    ours, (gpu,), network = catalog[name], record["GpuInfo"]["Gpus"], record["NetworkInfo"]
    processor = record["VCpuInfo"]["DefaultVCpus"], record["VCpuInfo"]["DefaultCores"]
    yield f"processor of {name}", processor, (ours.vcpus, ours.cores)
    yield f"architecture of {name}", record["ProcessorInfo"]["SupportedArchitectures"], [ours.architecture]
    yield f"memory of {name}", record["MemoryInfo"]["SizeInMiB"], ours.memory_gib * 1024
    yield f"GPU of {name}", gpu["Name"], ours.gpu.model
    yield f"GPUs of {name}", (gpu["Count"], gpu["MemoryInfo"]["SizeInMiB"]), (ours.gpu_count, ours.gpu_memory_mib)
    disks = record["InstanceStorageInfo"]["Disks"][0]
    yield (
        f"disks of {name}",
        (disks["Count"], disks["SizeInGB"]),
        (ours.instance_store.disks, ours.instance_store.disk_gb),
    )
    cards = [
        (
            card["NetworkCardIndex"],
            int(card["PeakBandwidthInGbps"]),
            tuple(card["InterfaceTypes"]),
            card["MaximumNetworkInterfaces"],
        )
        for card in network["NetworkCards"]
    ]
    entries = [(card.index, card.gbps, card.interface_types, card.max_interfaces) for card in ours.network_cards]
    yield f"network cards of {name}", cards, entries
    yield f"interfaces of {name}", network["MaximumNetworkInterfaces"], ours.max_interfaces
    yield f"EFA interfaces of {name}", network["EfaInfo"]["MaximumEfaInterfaces"], ours.efa.max_interfaces
    yield f"purchase of {name}", set(record["SupportedUsageClasses"]), ours.usage_classes


FIGURES = {name: (theirs, ours) for name, theirs, ours in figures()}


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_agree_or_differ_for_a_reason(name):
    theirs, ours = FIGURES[name]
    if name in DIFFERENCES:
        assert theirs != ours, f"the reason is out of date: {DIFFERENCES[name]}"
    else:
        assert theirs == ours


def test_every_reason_is_about_a_figure():
    assert DIFFERENCES.keys() <= FIGURES.keys()


def test_figures_that_only_the_embedded_aws_needs_are_named():
    """A new block of data comes with a comparison above, or stands here because the catalogue has no such figure."""
    alone = {
        "eks": {"default"},  # a file always states its version
        "kubernetes": {"api_groups"},  # the catalogue lists those of charts only
        "pcs": {"updates"},  # a synth does not know the version of a cluster that exists
        "fsx": set(),
    }
    compared = {
        "eks": "versions images zones",
        "kubernetes": "access_policies add_ons charts late_webhooks",
        "pcs": "versions sizes quotas since settings",
        "fsx": "capacity throughput_mbps_per_tib efa lesser_places intelligent_tiering metadata associations",
    }
    expected = {name: alone[name] | {*compared[name].split()} for name in alone}
    assert {name: {*records(name)} for name in alone} == expected


def test_enumerations_are_the_model_s():
    assert set(eks_clusters.AUTHENTICATION_MODES) == set(enumeration("eks", "AuthenticationMode"))
    assert pcs_rules.MAX_NODES.keys() == set(enumeration("pcs", "Size"))
    assert pcs_rules.MARKETS.keys() == set(enumeration("pcs", "PurchaseOption"))
    assert fsx_rules.STORAGE.keys() == set(enumeration("fsx", "LustreDeploymentType"))
    assert {kind for kinds in fsx_rules.STORAGE.values() for kind in kinds} == set(enumeration("fsx", "StorageType"))


BY_ROW = {"durations", "service_roles"}  # each row names its source, the file the day
FILES = {file.stem for file in FOLDER.glob("*.json")} - BY_ROW


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_block_names_its_source_and_the_day_of_reading(name):
    content = records(name)
    blocks = [content] if "source" in content else [*content.values()]
    nested = [each for block in blocks for each in ([block] if "source" in block else block.values())]
    for block in nested:
        assert len(block["source"]) > 20
        assert date(2026, 11, 1) <= date.fromisoformat(block["read"]) <= date(2027, 11, 1)
