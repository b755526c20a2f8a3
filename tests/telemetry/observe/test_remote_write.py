"""Remote write bodies, which a real Prometheus must understand: see test_tour.py. Here their bytes."""

import struct

import pytest

from scripts.observe import remote_write


def number(encoded):
    """A protocol buffers varint."""
    return sum((byte & 0x7F) << 7 * position for position, byte in enumerate(encoded))


def test_a_body_is_one_snappy_literal_of_a_write_request():
    series = (remote_write.labels({"__name__": "up", "empty": ""}), remote_write.samples([1795270200], [1.0]))
    label = b"\x0a\x08__name__\x12\x02up"
    sample = b"\x12\x10\x09" + struct.pack("<d", 1.0) + b"\x10"
    body = remote_write.body([series])
    message = body[6:]
    assert body[:6] == bytes([len(message), 63 << 2]) + struct.pack("<I", len(message) - 1)
    assert message[:-6] == bytes([0x0A, len(message) - 2, 0x0A, len(label)]) + label + sample
    assert number(message[-6:]) == 1795270200_000  # milliseconds


def test_a_gap_starts_with_the_mark_that_ends_a_series():
    packed = remote_write.samples([1795270200, 1795270500, 1795270800], [1.0, None, None])
    assert len(packed) == 2 * 18
    assert packed[18 + 3 : 18 + 11] == struct.pack("<Q", 0x7FF0000000000002)


def test_a_gap_at_the_start_of_a_slice_ends_a_series_that_was_there():
    assert remote_write.samples([1795270200], [None]) == b""
    assert len(remote_write.samples([1795270200], [None], there=True)) == 18


def test_a_time_outside_of_what_six_bytes_hold_is_refused():
    with pytest.raises(ValueError, match="not a time"):
        remote_write.samples([1], [1.0])
