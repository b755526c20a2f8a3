"""Grafana's models of what panels share: fields, limits, overrides. Imports the Grafana Foundation SDK."""

import warnings
from collections.abc import Sequence
from typing import Any

from ultracluster.telemetry.dashboards.panels import Bars, Limits, Panel, Value

with warnings.catch_warnings():  # the SDK advertises a newer schema, which AMG is not known to import
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.models import (
        bargauge,
        common,
        dashboard,
        stat,
    )

GOOD, WARNING, CRITICAL = "green", "orange", "red"
NEUTRAL = "blue"
"""Colour of a number that is neither good nor bad."""

CELLS: dict[str, dict[str, str]] = {
    "colour": {"type": "color-background", "mode": "basic"},
    "gauge": {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"},
}


def known_to_grafana(made: dict[str, Any]) -> dict[str, Any]:
    """The dashboard without fields that the SDK writes and Grafana 12 does not have."""
    for variable in made["templating"]["list"]:
        for name in ("auto", "auto_min", "auto_count"):
            variable.pop(name, None)
    for panel in made["panels"]:
        if panel["type"] == "table":
            panel["options"].pop("footer", None)
    return made


def stat_panel(panel: Value) -> dashboard.Panel:
    """A panel with one number and its course."""
    options = stat.Options(
        graph_mode=common.BigValueGraphMode.AREA if panel.course else common.BigValueGraphMode.NONE,
        color_mode=common.BigValueColorMode.VALUE,
        justify_mode=common.BigValueJustifyMode.AUTO,
        text_mode=common.BigValueTextMode.VALUE,
        reduce_options=common.ReduceDataOptions(values=False, calcs=["lastNotNull"], fields=""),
        orientation=common.VizOrientation.AUTO,
    )
    defaults = defaults_of(panel)
    defaults.color = dashboard.FieldColor(mode=dashboard.FieldColorModeId.THRESHOLDS)
    if panel.names:
        defaults.mappings = [mapping_of(panel.names)]
    return panel_of("stat", options, defaults)


def bar_panel(panel: Bars) -> dashboard.Panel:
    """A panel with a bar for each series."""
    options = bargauge.Options(
        display_mode=common.BarGaugeDisplayMode.BASIC,
        value_mode=common.BarGaugeValueMode.COLOR,
        name_placement=common.BarGaugeNamePlacement.LEFT,
        sizing=common.BarGaugeSizing.AUTO,
        reduce_options=common.ReduceDataOptions(values=False, calcs=["lastNotNull"], fields=""),
        orientation=common.VizOrientation.HORIZONTAL,
    )
    defaults = defaults_of(panel)
    defaults.min_val, defaults.max_val = 0, panel.maximum
    defaults.color = dashboard.FieldColor(mode=dashboard.FieldColorModeId.THRESHOLDS)
    return panel_of("bargauge", options, defaults)


def panel_of(
    kind: str,
    options: object,
    defaults: dashboard.FieldConfig,
    overrides: list[dashboard.DashboardFieldConfigSourceOverrides] | None = None,
) -> dashboard.Panel:
    """A panel of a kind with its options and fields."""
    config = dashboard.FieldConfigSource(defaults, overrides or [])
    return dashboard.Panel(type_val=kind, options=options, field_config=config)


def defaults_of(panel: Panel, custom: object = None) -> dashboard.FieldConfig:
    """Unit, decimals and limits of all fields of a panel."""
    return dashboard.FieldConfig(
        unit=panel.unit, decimals=panel.decimals, thresholds=thresholds_of(panel.limits), custom=custom
    )


def thresholds_of(limits: Limits) -> dashboard.ThresholdsConfig:
    """Steps from low to high. Where low values are bad, the lowest step is the critical one. No limits: neutral."""
    marks = ((limits.warning, WARNING), (limits.critical, CRITICAL))
    given = [(value, colour) for value, colour in marks if value is not None]
    if limits.above:
        steps = [(None, GOOD if given else NEUTRAL), *given]
    else:
        colours = [colour for _, colour in reversed(given)] + [GOOD]
        steps = list(zip([None, *sorted(value for value, _ in given)], colours, strict=True))
    return dashboard.ThresholdsConfig(
        dashboard.ThresholdsMode.ABSOLUTE, [dashboard.Threshold(value, colour) for value, colour in steps]
    )


def mapping_of(names: Sequence[tuple[str, str]], colours: dict[str, str] | None = None) -> dashboard.ValueMap:
    """Texts, with colours, in place of values."""
    colours = colours or {}
    return dashboard.ValueMap(
        {
            value: dashboard.ValueMappingResult(text=text, color=colours.get(value), index=index)
            for index, (value, text) in enumerate(names)
        }
    )


def override_of(matcher: str, what: str, **properties: object) -> dashboard.DashboardFieldConfigSourceOverrides:
    """Properties of the fields that match."""
    return dashboard.DashboardFieldConfigSourceOverrides(
        matcher=dashboard.MatcherConfig(matcher, what),
        properties=[dashboard.DynamicConfigValue(id_val=name, value=value) for name, value in properties.items()],
    )
