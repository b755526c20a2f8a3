"""Numbers, axes and texts in the pictures."""

import math

import pytest

from scripts.observe.course import Day
from scripts.observe.drawing.charts import Box, bars, lines, threshold, value
from scripts.observe.drawing.queries import Look, Series, cloudwatch, natural
from scripts.observe.drawing.svg import fit, path, runs, width
from scripts.observe.drawing.units import format_value, ticks

DAY = Day(1795270200, hours=1)
LOOK = Look(None, DAY, {"cluster": "a"}, {})


@pytest.mark.parametrize(
    ("number", "unit", "decimals", "text"),
    [
        (0.4234, "percentunit", 0, "42 %"),
        (1.36e12, "bps", None, "1.36 Tb/s"),
        (128 * 2**30, "bytes", None, "128 GiB"),
        (88.64, "celsius", 0, "89 °C"),
        (0.0574, "s", None, "57.4 ms"),
        (5400, "s", None, "1.5 h"),
        (812000, "dtdurations", None, "9.4 days"),
        (2127.4, "currencyUSD", 0, "$2,127"),
        (52600, "watt", None, "52.6 kW"),
        (1000, "Bps", None, "1 kB/s"),
        (127, "short", None, "127"),
        (1540, "short", None, "1.54 K"),
        (math.nan, "short", None, "\N{EN DASH}"),
        (math.inf, "short", None, "∞"),
    ],
)
def test_numbers_have_units(number, unit, decimals, text):
    assert format_value(number, unit, decimals) == text


@pytest.mark.parametrize(
    ("low", "high", "unit", "expected"),
    [
        (0, 0.93, "percentunit", [0, 0.2, 0.4, 0.6, 0.8]),
        (0, 2.2 * 3600, "s", [0, 1800, 3600, 5400, 7200]),
        (0, 2.1 * 2**40, "bytes", [0, 0.5 * 2**40, 2**40, 1.5 * 2**40, 2 * 2**40]),
    ],
)
def test_axes_have_round_marks(low, high, unit, expected):
    assert ticks(low, high, 5, unit) == pytest.approx(expected)


def test_axes_of_whole_numbers_have_whole_marks():
    assert ticks(0, 1.06, 5, "short", whole=True) == [0, 1]
    assert ticks(0, 14.8, 7, "short", whole=True) == [0, 5, 10]


def test_texts_fit_into_their_room():
    assert fit("train-1", 200) == "train-1"
    cut = fit("a name that is far too long for its column", 80)
    assert cut.endswith("…")
    assert width(cut) <= 80


def test_nodes_are_sorted_by_number():
    assert sorted(["train-10", "train-2", "train-1"], key=natural) == ["train-1", "train-2", "train-10"]


def test_lines_have_gaps_and_short_paths():
    assert runs([(0, 0), None, (1, 1), (2, 1)]) == [[(0, 0)], [(1, 1), (2, 1)]]
    assert path([(1, 1), (2, 1), (2.5, 0.5)]) == "M1 1h1l0.5 -0.5"


def test_variables_of_grafana_and_of_the_dashboard_are_replaced():
    assert LOOK.expression('rate(x{c="$cluster"}[$__rate_interval])[$__range:]') == 'rate(x{c="a"}[1200s])[3600s:]'
    with pytest.raises(KeyError):
        LOOK.expression("$unknown")


def test_a_cloudwatch_query_reads_its_stand_in():
    target = {"namespace": "AWS/FSx", "metricName": "M", "statistic": "Sum", "dimensions": {"A": "1", "B": "*"}}
    assert cloudwatch(target) == 'cloudwatch{namespace="AWS/FSx", metric="M", A="1", B!="", statistic="Sum"}'


STEPS = {"steps": [{"value": None, "color": "green"}, {"value": 80, "color": "orange"}, {"value": 90, "color": "red"}]}


@pytest.mark.parametrize(("number", "colour"), [(10, "green"), (80, "orange"), (95, "red")])
def test_values_have_the_colour_of_their_threshold(number, colour):
    assert threshold(STEPS, number) == colour


def panel(kind="timeseries", **defaults):
    custom = {"thresholdsStyle": {"mode": "dashed"}, "stacking": {"mode": "none"}, "fillOpacity": 8}
    config = {"unit": "celsius", "thresholds": STEPS, "custom": custom, **defaults}
    options = {"legend": {"calcs": ["max", "lastNotNull"]}, "graphMode": "area"}
    return {"type": kind, "fieldConfig": {"defaults": config, "overrides": []}, "options": options}


def line(name="GPU 0", top=85.0):
    return Series(name, {}, [(time, top) for time in range(DAY.start, DAY.end + 1, LOOK.step)], "A")


def test_a_chart_draws_lines_thresholds_and_a_legend_with_units():
    drawn = "".join(lines(panel(), [line(), line("GPU 1", 60)], Box(0, 0, 600, 260), LOOK, [DAY.ago(0.5)]))
    assert drawn.count('class="line"') == 2 + 2  # two series, two thresholds
    assert drawn.count('class="mark"') == 1
    assert "GPU 1" in drawn
    assert ">85.0 °C<" in drawn or ">85 °C<" in drawn


def test_a_chart_names_what_its_legend_has_no_room_for():
    drawn = "".join(lines(panel(), [line(f"GPU {number}") for number in range(20)], Box(0, 0, 600, 260), LOOK, []))
    assert "and 17 more" in drawn


@pytest.mark.parametrize("kind", ["value", "bars", "lines"])
def test_a_panel_without_data_says_so(kind):
    box = Box(0, 0, 300, 200)
    empty = {"value": lambda: value(panel("stat"), [], box), "bars": lambda: bars(panel("bargauge"), [], box)}
    drawn = empty.get(kind, lambda: lines(panel(), [], box, LOOK, []))()
    assert "No data" in "".join(drawn)
