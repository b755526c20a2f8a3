"""When alerts fire over a day, and what they say."""

import math

import pytest

from scripts.observe.replay import active_since, expanded

TIMES = [0, 60, 120, 180, 240, 300, 360]


def firing(values, sustained, keep):
    since = active_since(values, TIMES, sustained, keep)
    return [start is not None and time - start >= sustained for time, start in zip(TIMES, since, strict=True)]


@pytest.mark.parametrize(
    ("values", "sustained", "keep", "expected"),
    [
        ([None, 1, 1, 1, 1, None, None], 120, 0, "...xx.."),  # fires when the condition has held for two minutes
        ([None, 1, 1, None, 1, 1, None], 120, 0, "......."),  # a gap starts over
        ([None, 1, 1, 1, None, None, None], 120, 120, "...xxx."),  # fires two minutes longer
        ([None, 1, None, None, None, None, None], 120, 120, "......."),  # what never fired is not kept
        ([None, 1, 1, 1, None, 1, None], 120, 60, "...xxxx"),  # a gap shorter than keep_firing_for does not end it
    ],
)
def test_an_alert_fires_after_for_and_is_kept(values, sustained, keep, expected):
    assert "".join("x" if each else "." for each in firing(values, sustained, keep)) == expected


def test_a_summary_is_expanded_as_prometheus_does():
    labels = {"node": "train-5", "gpu": "3"}
    assert expanded("GPU {{ $labels.gpu }} of {{$labels.node}} at {{ $value }}", labels, 88.123456) == (
        "GPU 3 of train-5 at 88.12"
    )
    assert expanded("{{ $value | humanizePercentage }} full", {}, 0.9321) == "93.21% full"


def test_a_template_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="is not expanded here"):
        expanded("{{ printf $value }}", {}, math.nan)
