"""Root squash of the Lustre file system: whose root it maps, and whether anybody can still administer the file system.

A new file system belongs to root. Where root of every client is mapped to another user, nobody can create folders or
set owners, so some clients must be exempt: `no_squash_nids`.

Source: FSx for Lustre User Guide, "Lustre root squash"; FSx API Reference, LustreRootSquashConfiguration (2026).
"""

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

from ultracluster.config.problems import Path, Problem

OFF = "0:0"
"""UID:GID that disables root squash."""

LARGEST_ID = 4_294_967_294

NID = r"^({0}|\[{0}-{0}\])(\.({0}|\[{0}-{0}\])){{3}}@tcp$".format(r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)")
"""A client or a range of clients by IPv4 address. FSx takes TCP addresses only, in at most 43 characters."""

NID_FORM = "an IPv4 address or range such as 10.0.1.6@tcp or 10.0.[0-15].[0-255]@tcp"

Octets = tuple[tuple[int, int], ...]
"""Lowest and highest value of each of the four numbers of an address."""


def root_squash_problems(root_squash: str | None, nids: Sequence[str]) -> Iterator[Problem]:
    """Problems of the two settings with each other, at keys of storage.lustre."""
    yield from _ids(root_squash)
    if nids and root_squash in (None, OFF):
        message = "no client is squashed without root_squash, so no_squash_nids would be ignored"
        yield Problem("lustre-setting-ignored", "no_squash_nids", message, "remove no_squash_nids, or set root_squash")
    if root_squash not in (None, OFF) and not nids:
        message = f"root of every client becomes {root_squash}, so nobody can create folders or set owners"
        hint = "remove root_squash, or set no_squash_nids: [ADDRESS@tcp] with the host that administers the file system"
        yield Problem("root-squash-without-administrator", "root_squash", message, hint)
    for i, nid in enumerate(nids):
        if any(low > high for low, high in _octets(nid)):
            message = f"{nid} has a range whose end is before its start"
            yield Problem("invalid-format", ("no_squash_nids", i), message, "write each range from low to high")
        if nid in nids[:i]:
            message = f"{nid} is already no_squash_nids[{nids.index(nid)}]"
            yield Problem("duplicate-name", ("no_squash_nids", i), message, "remove the duplicate")


def node_problems(nids: Sequence[str], nodes: IPv4Network, at: Path) -> Iterator[Problem]:
    """A warning for each range with addresses that nodes get: root of their jobs is then root of the file system."""
    for i, nid in enumerate(nids):
        if _overlap(_octets(nid), _octets_of(nodes)):
            message = f"{nid} has addresses of the node subnet {nodes}: root on a node with one of them is not squashed"
            hint = "list addresses outside the node subnet"
            yield Problem("root-squash-of-nodes", (*at, i), message, hint, "warning")


def uncovered(nids: Sequence[str], networks: Sequence[IPv4Network]) -> list[IPv4Network]:
    """Networks with an address that is in none of the ranges."""
    return [network for network in networks if _rest([_octets_of(network)], [_octets(nid) for nid in nids])]


def nid_of(network: IPv4Network) -> str:
    """The range of all addresses of a network."""
    numbers = (f"[{low}-{high}]" if low < high else str(low) for low, high in _octets_of(network))
    return ".".join(numbers) + "@tcp"


def _ids(root_squash: str | None) -> Iterator[Problem]:
    ids = [int(number) for number in root_squash.split(":")] if root_squash else [0, 0]
    if any(ids) and not all(0 < number <= LARGEST_ID for number in ids):
        message = f"{root_squash} is not two numbers from 1 to {LARGEST_ID}, nor 0:0, which disables root squash"
        yield Problem("root-squash-ids", "root_squash", message, 'set root_squash: "65534:65534"')


def _octets(nid: str) -> Octets:
    numbers = re.findall(r"\[(\d+)-(\d+)\]|(\d+)", nid.removesuffix("@tcp"))
    return tuple((int(low or one), int(high or one)) for low, high, one in numbers)


def _octets_of(network: IPv4Network) -> Octets:
    """A network is a product of ranges too, because its prefix ends within one number."""
    return tuple(zip(network.network_address.packed, network.broadcast_address.packed, strict=True))


def _overlap(first: Octets, second: Octets) -> bool:
    return all(max(a[0], b[0]) <= min(a[1], b[1]) for a, b in zip(first, second, strict=True))


def _rest(boxes: list[Octets], covers: Sequence[Octets]) -> list[Octets]:
    """What is left of products of ranges without others."""
    for cover in covers:
        boxes = [piece for box in boxes for piece in _without(box, cover)]
    return boxes


def _without(box: Octets, cover: Octets) -> Iterator[Octets]:
    """Disjoint pieces of `box` outside `cover`."""
    if not _overlap(box, cover):
        yield box
        return
    for i, ((low, high), (first, last)) in enumerate(zip(box, cover, strict=True)):
        inside = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(box[:i], cover[:i], strict=True))
        if low < first:
            yield (*inside, (low, first - 1), *box[i + 1 :])
        if last < high:
            yield (*inside, (last + 1, high), *box[i + 1 :])
