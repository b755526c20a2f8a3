"""Every layout of every type follows EC2's rules for interfaces and uses all of its EFA bandwidth.

Rules: EC2 User Guide, "Elastic Fabric Adapter" and "Maximize network bandwidth on EFA-enabled accelerated instances".
"""

from collections import Counter
from itertools import product
from typing import get_args

import pytest

from ultracluster.catalog import Interface, Profile, addresses, catalog, instance_types, interface_layout

PROFILES = get_args(Profile)
WITH_EFA = [profile for profile in PROFILES if profile != "without_efa"]
EVERY = pytest.mark.parametrize(("name", "profile"), list(product(catalog, PROFILES)))
EVERY_WITH_EFA = pytest.mark.parametrize(("name", "profile"), list(product(catalog, WITH_EFA)))
GPU_PAIRS = ((1, 3), (5, 7), (9, 11), (13, 15))
"""Network cards that serve one GPU of P6e-GB200 together."""


def layout_of(name, profile):
    return interface_layout(catalog[name], profile)


def is_efa(interface):
    return interface.kind in ("efa", "efa-only")


@EVERY
def test_primary_is_first_on_card_0_device_0_and_has_an_address(name, profile):
    primary = layout_of(name, profile)[0]
    assert (primary.card, primary.device) == (0, 0)
    assert primary.kind in ("interface", "efa")


@EVERY
def test_no_two_interfaces_share_card_and_device(name, profile):
    places = [(interface.card, interface.device) for interface in layout_of(name, profile)]
    assert len(places) == len(set(places))


@EVERY
def test_device_0_is_the_first_of_a_card_that_takes_one(name, profile):
    for interface in layout_of(name, profile):
        assert interface.device in (0, 1)
        assert interface.device < catalog[name].network_cards[interface.card].max_interfaces


@EVERY_WITH_EFA
def test_a_card_has_one_efa_at_the_most(name, profile):
    assert max(Counter(i.card for i in layout_of(name, profile) if is_efa(i)).values()) == 1


@EVERY
def test_cards_support_their_interfaces(name, profile):
    for interface in layout_of(name, profile):
        assert interface.kind in catalog[name].network_cards[interface.card].interface_types


@EVERY
def test_limits_of_cards_and_instance_hold(name, profile):
    entry, layout = catalog[name], layout_of(name, profile)
    for card, count in Counter(interface.card for interface in layout).items():
        assert count <= entry.network_cards[card].max_interfaces
    assert len(layout) <= entry.max_interfaces
    assert sum(map(is_efa, layout)) <= entry.efa.max_interfaces


@EVERY_WITH_EFA
def test_the_layout_uses_the_whole_efa_bandwidth(name, profile):
    entry = catalog[name]
    wired = [interface.card for interface in layout_of(name, profile) if is_efa(interface)]
    assert len(wired) * entry.efa.gbps_per_card / 8 == entry.published.efa_gb_per_s


@EVERY
def test_every_interface_but_efa_only_takes_an_address(name, profile):
    layout = layout_of(name, profile)
    assert addresses(layout) == len(layout) - sum(interface.kind == "efa-only" for interface in layout)


@pytest.mark.parametrize("name", catalog)
def test_fewest_ips_is_one_address(name):
    assert addresses(layout_of(name, "fewest_ips")) == 1


@pytest.mark.parametrize(
    ("name", "profile", "interfaces", "efa", "ips"),
    [
        ("p5.4xlarge", "fewest_ips", 2, 1, 1),
        ("p5.48xlarge", "fewest_ips", 33, 32, 1),
        ("p5.48xlarge", "max_bandwidth", 40, 32, 8),
        ("p5.48xlarge", "efa_with_ip", 32, 32, 32),
        ("p5e.48xlarge", "max_bandwidth", 40, 32, 8),
        ("p5en.48xlarge", "fewest_ips", 17, 16, 1),
        ("p5en.48xlarge", "efa_with_ip", 16, 16, 16),
        ("p6-b200.48xlarge", "fewest_ips", 9, 8, 1),
        ("p6-b200.48xlarge", "max_bandwidth", 16, 8, 8),
        ("p6-b200.48xlarge", "efa_with_ip", 8, 8, 8),
        ("p6-b300.48xlarge", "fewest_ips", 17, 16, 1),
        ("p6-b300.48xlarge", "max_bandwidth", 33, 16, 17),
        ("p6-b300.48xlarge", "efa_with_ip", 17, 16, 17),
        ("p6e-gb200.36xlarge", "fewest_ips", 5, 4, 1),
    ],
)
def test_counts_as_documented(name, profile, interfaces, efa, ips):
    layout = layout_of(name, profile)
    assert (len(layout), sum(map(is_efa, layout)), addresses(layout)) == (interfaces, efa, ips)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["p6-b300.48xlarge", "p6e-gb200.36xlarge"])
def test_b300_and_gb200_keep_card_0_free_of_efa(name, profile):
    assert [interface for interface in layout_of(name, profile) if interface.card == 0] == [
        Interface(0, 0, "interface")
    ]


@pytest.mark.parametrize("profile", WITH_EFA)
def test_gb200_has_one_efa_for_each_gpu(profile):
    efa = {interface.card for interface in layout_of("p6e-gb200.36xlarge", profile) if is_efa(interface)}
    assert [len(efa & set(pair)) for pair in GPU_PAIRS] == [1, 1, 1, 1]
    assert len(efa) == catalog["p6e-gb200.36xlarge"].gpu_count


@pytest.mark.parametrize("name", [name for name in catalog if not name.startswith("p6e")])
def test_efa_with_ip_needs_no_efa_only(name):
    assert all(interface.kind != "efa-only" for interface in layout_of(name, "efa_with_ip"))


def test_efa_with_ip_sits_at_device_1_behind_an_efa_primary():
    assert layout_of("p5.48xlarge", "efa_with_ip")[:3] == ((0, 0, "efa"), (1, 1, "efa"), (2, 1, "efa"))
    assert layout_of("p6-b300.48xlarge", "efa_with_ip")[:3] == ((0, 0, "interface"), (1, 0, "efa"), (2, 0, "efa"))


@pytest.mark.parametrize("name", [*catalog, "c7i.48xlarge", "g6e.48xlarge"])
def test_without_efa_a_node_has_one_plain_interface(name):
    assert interface_layout(instance_types[name], "without_efa") == (Interface(0, 0, "interface"),)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_type_without_efa_has_one_plain_interface(profile):
    assert interface_layout(instance_types["m7i.4xlarge"], profile) == (Interface(0, 0, "interface"),)


@pytest.mark.parametrize(("name", "cards"), [("g6e.12xlarge", 1), ("g6e.48xlarge", 4), ("p4d.24xlarge", 4)])
def test_other_types_have_every_efa_card_wired(name, cards):
    for profile in WITH_EFA:
        assert sum(map(is_efa, interface_layout(instance_types[name], profile))) == cards
