"""Unknown names in the catalogue, and the figures of Lustre and PCS."""

import dataclasses
from datetime import date

import pytest

from ultracluster.catalog import (
    UnknownInstanceType,
    capacity_block_places,
    catalog,
    lustre,
    offered_zones,
    pcs,
    ultraservers,
)


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("p5n.48xlarge", "p5en.48xlarge"), ("p6-b300.48xl", "p6-b300.48xlarge"), ("P5.48xlarge", "p5.48xlarge")],
)
def test_an_unknown_type_gives_the_nearest_names(asked, nearest):
    with pytest.raises(UnknownInstanceType) as caught:
        catalog[asked]
    assert caught.value.nearest[0] == nearest
    assert f"did you mean {nearest}" in str(caught.value)


@pytest.mark.parametrize("name", ["c7i.48xlarge", "m7i.4xlarge", "g6e.48xlarge"])
def test_a_size_alone_is_no_similarity(name):
    with pytest.raises(UnknownInstanceType) as caught:
        catalog[name]
    assert caught.value.nearest == ()


def test_a_name_like_no_other_gives_all_names():
    with pytest.raises(UnknownInstanceType, match=r"'zzz' is not in the catalogue; known names: p5\.4xlarge, "):
        catalog["zzz"]


def test_an_unknown_ultraserver_gives_the_nearest_names():
    with pytest.raises(UnknownInstanceType) as caught:
        ultraservers["u-p6e-gb200x144"]
    assert set(caught.value.nearest) == set(ultraservers)


def test_an_unknown_type_is_a_key_error_as_of_any_mapping():
    assert catalog.get("m7i.large") is None
    assert "m7i.large" not in catalog
    assert len(catalog) == 7


def test_records_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        catalog["p5.48xlarge"].vcpus = 1  # type: ignore[misc]


@pytest.mark.parametrize("name", catalog)
def test_a_name_finds_its_own_record(name):
    assert catalog[name].name == name
    assert name.startswith(f"{catalog[name].family}.")


def test_offerings_of_unknown_places_are_empty():
    assert offered_zones("p5.48xlarge", "eu-central-1") == ()
    assert offered_zones("m7i.large", "us-gov-west-1") == ()
    assert offered_zones("m99i.large", "us-east-2") == ()
    assert capacity_block_places("m7i.large") == ()


@pytest.mark.parametrize(
    ("capacity", "tier", "efa", "servers"),
    [
        (1200, 125, False, 2),
        (2400, 125, False, 2),
        (4800, 125, False, 3),
        (4800, 1000, True, 2),
        (96000, 500, True, 14),
    ],
)
def test_file_servers(capacity, tier, efa, servers):
    assert lustre.file_servers(capacity, tier, efa=efa) == servers


def test_provisioned_metadata_takes_a_server_for_each_12000_iops():
    assert lustre.file_servers(1200, 125, efa=False, metadata_iops=1500) == 2
    assert lustre.file_servers(1200, 125, efa=False, metadata_iops=192000) == 17


@pytest.mark.parametrize("name", catalog)
def test_efa_clients_open_no_more_connections_than_they_have_cards_for(name):
    assert 1 <= lustre.efa_interfaces_per_client(name) <= catalog[name].efa.max_interfaces


def test_lustre_figures():
    assert lustre.EFA_STEP_GIB == {1000: 4800, 500: 9600, 250: 19200, 125: 38400}
    assert lustre.THROUGHPUT_TIERS == (125, 250, 500, 1000)
    assert lustre.METADATA_IOPS[:5] == (1500, 3000, 6000, 12000, 24000)
    assert lustre.METADATA_IOPS[-1] == 192000
    assert all(figure % 12000 == 0 for figure in lustre.METADATA_IOPS[3:])
    assert lustre.INTELLIGENT_TIERING_METADATA_IOPS == (6000, 12000)
    assert (lustre.MAXIMUM_LINKS, lustre.MAXIMUM_EFA_CONNECTIONS) == (8, 1024)


@pytest.mark.parametrize(
    ("nodes", "size"),
    [(1, "small"), (32, "small"), (33, "medium"), (512, "medium"), (513, "large"), (2048, "large"), (2049, None)],
)
def test_smallest_pcs_size(nodes, size):
    assert pcs.smallest_size(nodes) == size


def test_slurm_versions_end_in_the_order_in_which_they_came():
    assert list(pcs.SLURM_VERSIONS.values()) == sorted(pcs.SLURM_VERSIONS.values())
    assert pcs.SLURM_VERSIONS["25.11"] == date(2027, 5, 31)
