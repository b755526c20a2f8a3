"""Courses of values over a day: the shapes that synthetic series are made of."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

Values = list[float | None]


@dataclass(frozen=True)
class Day:
    """Sample times of the tour, oldest first, in seconds. `end` is the moment at which the tour looks."""

    end: int
    hours: float = 24
    step: int = 300

    @property
    def start(self) -> int:
        """The start of what is looked at. Samples begin an hour earlier, so that windows are full."""
        return self.ago(self.hours)

    @property
    def times(self) -> list[int]:
        """Times of the samples."""
        return list(range(self.start - 3600, self.end + 1, self.step))

    def ago(self, hours: float) -> int:
        """The time this many hours before the end."""
        return int(self.end - hours * 3600)


def noise(name: str, count: int, spread: float) -> list[float]:
    """Slow noise around 0, the same for the same name. `spread` is its standard deviation."""
    source = random.Random(crc32(name.encode()))  # noqa: S311
    value, values = 0.0, []
    for _ in range(count):
        value = 0.8 * value + 0.6 * source.gauss(0, spread)
        values.append(value)
    return values


def gauge(
    name: str,
    times: Sequence[int],
    level: Callable[[int], float | None],
    *,
    spread: float = 0.0,
    low: float = 0.0,
    high: float = math.inf,
) -> Values:
    """A level with noise relative to it, within bounds. None is a gap."""
    wobble = noise(name, len(times), spread) if spread else [0.0] * len(times)
    values: Values = []
    for time, extra in zip(times, wobble, strict=True):
        now = level(time)
        values.append(None if now is None else min(high, max(low, now * (1 + extra))))
    return values


def counter(
    name: str, times: Sequence[int], rate: Callable[[int], float | None], *, start: float = 0.0, spread: float = 0.0
) -> Values:
    """What accumulates at `rate` per second. It stops while the rate is None."""
    wobble = noise(name, len(times), spread) if spread else [0.0] * len(times)
    values: Values = []
    total, before = start, times[0]
    for time, extra in zip(times, wobble, strict=True):
        now = rate(time)
        if now is None:
            values.append(None)
        else:
            total += max(0.0, now * (1 + extra)) * (time - before)
            values.append(total)
        before = time
    return values


def steps(*changes: tuple[int, float], before: float = 0.0) -> Callable[[int], float]:
    """A level that changes at times: (time, level from then on), oldest first."""

    def level(time: int) -> float:
        now = before
        for start, value in changes:
            if time >= start:
                now = value
        return now

    return level


def ramp(start: int, end: int, low: float, high: float) -> Callable[[int], float]:
    """A level that rises from `low` before `start` to `high` after `end`."""
    return lambda time: low + (high - low) * min(1.0, max(0.0, (time - start) / (end - start)))


def tide(time: int, *, peak_hour: float = 15, depth: float = 0.4) -> float:
    """Load of people over a day, 1 at its peak."""
    hour = time / 3600 % 24
    return 1 - depth * (1 - math.cos((hour - peak_hour) / 12 * math.pi)) / 2
