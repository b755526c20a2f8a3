"""Samples in the form of Prometheus remote write 1.0: protocol buffers in a snappy block, written by hand.

Source: prometheus/prometheus prompb/{remote,types}.proto; google/snappy format_description.txt. A snappy block may
consist of literals alone, which saves a compressor.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import cache

_LITERAL_32 = bytes([63 << 2])
_STALE = struct.pack("<Q", 0x7FF0000000000002)
"""The value that ends a series, a NaN of its own (prometheus/prometheus model/value)."""


def body(series: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The body of a request: pairs of `labels()` and `samples()`."""
    message = b"".join(_field(1, labels + samples) for labels, samples in series)
    return _varint(len(message)) + _LITERAL_32 + struct.pack("<I", len(message) - 1) + message


def labels(values: Mapping[str, str]) -> bytes:
    """The labels of a series, `__name__` among them."""
    return b"".join(
        _field(1, _field(1, name.encode()) + _field(2, value.encode()))
        for name, value in sorted(values.items())
        if value
    )


def samples(times: Sequence[int], values: Sequence[float | None], *, there: bool = False) -> bytes:
    """Samples of a series; times in seconds, increasing. None is a gap, and starts with a mark that the series ended.

    `there` says whether the series had a value before the first time.
    """
    packed = []
    for time, value in zip(times, values, strict=True):
        if value is not None:
            packed.append(b"\x12\x10\x09" + struct.pack("<d", value) + _time(time))
        elif there:
            packed.append(b"\x12\x10\x09" + _STALE + _time(time))
        there = value is not None
    return b"".join(packed)


@cache
def _time(seconds: int) -> bytes:
    encoded = b"\x10" + _varint(seconds * 1000)
    if len(encoded) != 7:
        raise ValueError(f"{seconds} is not a time between 2004 and 2109")
    return encoded


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
