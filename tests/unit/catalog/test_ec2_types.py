"""All EC2 instance types against EC2's records in moto."""

import gzip
import json

import pytest

from scripts import ec2_types as script
from ultracluster.catalog import InstanceType, UnknownInstanceType, catalog, instance_types, listed_zones, offered_zones
from ultracluster.catalog.ec2_types import nearest
from ultracluster.catalog.records import records

DESCRIBED = script.described()
LISTED = [name for name in instance_types if name in DESCRIBED]


def test_the_data_file_is_what_the_script_writes():
    assert records("ec2_types")["families"] == script.families(DESCRIBED)
    assert script.TARGET.read_text() == script.text().replace(script.today(), records("ec2_types")["read"])


def test_all_types_but_mac_are_listed():
    assert set(DESCRIBED) - set(instance_types) == {name for name in DESCRIBED if name.startswith("mac")}
    assert set(instance_types) - set(DESCRIBED) == {"p6e-gb200.36xlarge"}
    assert len(instance_types) == len(LISTED) + 1


def test_types_have_the_figures_of_their_records():
    for name in LISTED:
        ours, record = instance_types[name], DESCRIBED[name]
        network, gpu = record["NetworkInfo"], record.get("GpuInfo", {"Gpus": [{"Count": 0}]})["Gpus"][0]
        assert ours.name == name
        assert ours.architecture in record["ProcessorInfo"]["SupportedArchitectures"]
        assert ours.vcpus == record["VCpuInfo"]["DefaultVCpus"]
        assert ours.memory_gib == pytest.approx(record["MemoryInfo"]["SizeInMiB"] / 1024, abs=0.001)
        assert ours.gpu_count == gpu["Count"]
        assert ours.gpu_model == (gpu["Name"] if gpu["Count"] else None)
        assert ours.max_interfaces == network["MaximumNetworkInterfaces"]
        assert ours.instance_store.total_gb == record.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0)
        assert sorted(ours.usage_classes) == record["SupportedUsageClasses"]
        assert bool(ours.efa) == network["EfaSupported"]
        cards = [(card["NetworkCardIndex"], card["MaximumNetworkInterfaces"]) for card in network["NetworkCards"]]
        assert [(card.index, card.max_interfaces) for card in ours.network_cards] == cards


def test_efa_is_on_cards_that_support_it():
    for name in LISTED:
        ours = instance_types[name]
        for card in ours.efa.cards if ours.efa else ():
            assert "efa" in ours.network_cards[card].interface_types
        if ours.efa and name not in catalog:
            assert len(ours.efa.cards) == DESCRIBED[name]["NetworkInfo"]["EfaInfo"]["MaximumEfaInterfaces"]


@pytest.mark.parametrize(
    ("name", "accelerator"),
    [("trn2.48xlarge", "Neuron"), ("f2.6xlarge", "FPGA"), ("vt1.3xlarge", "media"), ("g6f.large", "part of a GPU")],
)
def test_other_accelerators_are_told(name, accelerator):
    assert instance_types[name].accelerator == accelerator
    assert not instance_types[name].gpu_count


def test_types_of_the_catalogue_are_the_same_objects():
    assert all(instance_types[name] is catalog[name] for name in catalog)


@pytest.mark.parametrize(
    ("name", "pods"), [("t3.micro", 4), ("t3.medium", 17), ("m5.large", 29), ("m5.4xlarge", 234), ("m7i.2xlarge", 58)]
)
def test_pods_are_those_of_awss_list(name, pods):
    """Source: amazon-eks-ami, eni-max-pods.txt."""
    found = instance_types[name]
    assert isinstance(found, InstanceType)
    assert found.max_pods == pods


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("m7i.larg", "m7i.large"),
        ("m7i.2xlrge", "m7i.2xlarge"),
        ("m7ii.large", "m7i.large"),
        ("p5n.48xlarge", "p5en.48xlarge"),
        ("P5.48xlarge", "p5.48xlarge"),
        ("g6e.13xlarge", "g6e.12xlarge"),
        ("p6e-gb200.48xlarge", "p6e-gb200.36xlarge"),
    ],
)
def test_the_nearest_type_is_of_the_same_or_of_a_similar_family(asked, meant):
    assert meant in nearest(asked)
    with pytest.raises(UnknownInstanceType, match="did you mean"):
        instance_types[asked]


def test_a_name_like_no_other_has_no_nearest():
    assert nearest("zz9.large") == ()
    assert "zz9.large" not in instance_types
    assert "m7i" not in instance_types


def test_the_offerings_are_what_the_script_writes():
    assert records("ec2_offerings")["regions"] == script.offerings(script.families(DESCRIBED))


@pytest.mark.parametrize("name", ["c7i.48xlarge", "g6e.48xlarge", "hpc7a.96xlarge", "t3.nano", "x1.32xlarge"])
def test_zones_of_a_type_are_those_of_ec2(name):
    for file in script.OFFERINGS.glob("*.json.gz"):
        offered = json.loads(gzip.decompress(file.read_bytes()))
        expected = sorted({each["Location"] for each in offered if each["InstanceType"] == name})
        assert list(offered_zones(name, file.name.partition(".")[0])) == expected


def test_zones_of_a_region_are_those_that_offer_anything():
    assert listed_zones("us-east-2") == ("us-east-2a", "us-east-2b", "us-east-2c")
    assert listed_zones("us-gov-west-1") == ()
