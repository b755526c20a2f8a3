"""Ranges of clients whose root is not squashed, compared with the addresses themselves."""

import re
from ipaddress import IPv4Network

import pytest
from botocore.loaders import Loader

from ultracluster.config.root_squash import NID, nid_of, node_problems, root_squash_problems, uncovered

NETWORK = IPv4Network("10.0.0.0/20")


def codes(problems):
    return [problem.code for problem in problems]


@pytest.mark.parametrize(
    ("nids", "covered"),
    [
        (["10.0.[0-15].[0-255]@tcp"], True),
        (["10.0.[0-7].[0-255]@tcp", "10.0.[8-15].[0-255]@tcp"], True),
        (["10.0.[0-15].[0-127]@tcp", "10.0.[0-15].[128-255]@tcp"], True),
        (["10.0.[0-9].[0-255]@tcp", "10.0.[5-15].[0-200]@tcp", "10.0.[10-15].[201-255]@tcp"], True),
        (["[0-255].[0-255].[0-255].[0-255]@tcp"], True),
        (["10.0.[0-14].[0-255]@tcp"], False),
        (["10.0.[0-15].[1-255]@tcp"], False),
        (["10.0.[0-15].[0-255]@tcp", "10.0.1.6@tcp"], True),
        (["10.0.1.6@tcp"], False),
        ([], False),
    ],
)
def test_ranges_cover_a_network_when_no_address_is_left(nids, covered):
    assert uncovered(nids, [NETWORK]) == ([] if covered else [NETWORK])


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "10.0.128.0/17", "192.168.4.64/28", "10.0.0.0/8", "10.1.2.3/32"])
def test_the_range_of_a_network_covers_it_and_nothing_beside_it(cidr):
    network = IPv4Network(cidr)
    assert re.fullmatch(NID, nid_of(network))
    assert uncovered([nid_of(network)], [network]) == []
    if network.prefixlen > 8:
        assert uncovered([nid_of(network)], [network.supernet()]) == [network.supernet()]


@pytest.mark.parametrize("nid", ["10.0.1.6@tcp", "10.0.[2-10].[1-255]@tcp", "255.255.255.255@tcp"])
def test_our_pattern_accepts_what_fsx_accepts(nid):
    """The examples of the FSx API Reference."""
    shape = Loader().load_service_model("fsx", "service-2")["shapes"]["LustreNoSquashNid"]
    assert re.fullmatch(NID, nid)
    assert re.fullmatch(shape["pattern"], nid)
    assert shape["min"] <= len(nid) <= shape["max"]


@pytest.mark.parametrize(
    "nid",
    ["10.0.1.6", "10.0.1.6@efa", "10.0.1.256@tcp", "10.0.1@tcp", "10.0.0.0/16@tcp", "10.0.[1].2@tcp", "a.b.c.d@tcp"],
)
def test_what_is_no_range_of_addresses_is_refused(nid):
    assert not re.fullmatch(NID, nid)


def test_a_range_in_the_node_subnet_is_warned_of_wherever_it_overlaps():
    nodes = IPv4Network("10.0.128.0/17")
    nids = ["10.0.1.6@tcp", "10.0.[100-128].0@tcp", "10.0.200.7@tcp", "10.1.200.7@tcp"]
    found = list(node_problems(nids, nodes, ("nids",)))
    assert [problem.path for problem in found] == [("nids", 1), ("nids", 2)]
    assert {problem.severity for problem in found} == {"warning"}


@pytest.mark.parametrize(
    ("squash", "nids", "found"),
    [
        (None, (), []),
        ("0:0", (), []),
        ("65534:65534", ("10.0.1.6@tcp",), []),
        ("4294967294:1", ("10.0.1.6@tcp",), []),
        ("4294967295:1", ("10.0.1.6@tcp",), ["root-squash-ids"]),
        ("0:1", ("10.0.1.6@tcp",), ["root-squash-ids"]),
        ("65534:65534", (), ["root-squash-without-administrator"]),
        ("0:0", ("10.0.1.6@tcp",), ["lustre-setting-ignored"]),
        (None, ("10.0.1.6@tcp",), ["lustre-setting-ignored"]),
        ("1:1", ("10.0.[9-2].1@tcp",), ["invalid-format"]),
        ("1:1", ("10.0.1.6@tcp", "10.0.1.6@tcp"), ["duplicate-name"]),
    ],
)
def test_root_squash_and_exempt_clients_fit_each_other(squash, nids, found):
    assert codes(root_squash_problems(squash, nids)) == found
