"""Grafana's JSON of dashboards (schema 42, Grafana 10 to 12), through the models of the Grafana Foundation SDK.

This module and `grafana_fields` are the only ones that import the SDK.
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ultracluster.telemetry.dashboards.grafana_fields import (
    CELLS,
    CRITICAL,
    bar_panel,
    defaults_of,
    known_to_grafana,
    mapping_of,
    override_of,
    panel_of,
    stat_panel,
    thresholds_of,
)
from ultracluster.telemetry.dashboards.panels import (
    Bars,
    Board,
    CloudWatch,
    Lines,
    Link,
    Matrix,
    Panel,
    Query,
    Row,
    Table,
    Value,
    queries,
    scoped,
)
from ultracluster.telemetry.dashboards.variables import VARIABLES, Variable

with warnings.catch_warnings():  # the SDK advertises a newer schema, which AMG is not known to import
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import (
        cloudwatch,
        common,
        dashboard,
        prometheus,
        table,
        timeseries,
    )

COLUMNS = 24
HEADING_HEIGHT = 1


class Sources(NamedTuple):
    """Uids of the data sources of an environment."""

    metrics: str
    cloudwatch: str
    metrics_type: str = "grafana-amazonprometheus-datasource"
    cloudwatch_type: str = "cloudwatch"


def dashboard_json(board: Board, uids: dict[str, str], sources: Sources, environment: str) -> str:
    """The JSON of a dashboard. `uids` are those of all dashboards of the environment by slug."""
    return _Writer(uids, sources, environment).text(board)


class _Writer:
    """Turns panels into Grafana's models."""

    def __init__(self, uids: dict[str, str], sources: Sources, environment: str) -> None:
        self._uids, self._sources, self._environment = uids, sources, environment
        self._tag = f"environment:{environment}"

    def text(self, board: Board) -> str:
        made = dashboard.Dashboard(
            uid=self._uids[board.slug],
            title=board.title,
            description=board.question,
            tags=["ultracluster", self._tag, *board.tags],
            editable=True,
            graph_tooltip=dashboard.DashboardCursorSync.CROSSHAIR,
            time=dashboard.DashboardDashboardTime(f"now-{board.period}", "now"),
            refresh="1m",
            panels=list(self._panels(board.rows)),
            templating=dashboard.DashboardDashboardTemplating(
                [self._variable(VARIABLES[name]) for name in ("cluster", *board.variables)]
            ),
            annotations=dashboard.AnnotationContainer([self._alerts()]),
            links=[
                dashboard.DashboardLink(
                    title="Dashboards",
                    type_val=dashboard.DashboardLinkType.DASHBOARDS,
                    icon="external link",
                    tags=[self._tag],
                    as_dropdown=True,
                    include_vars=True,
                    keep_time=True,
                )
            ],
        )
        return json.dumps(known_to_grafana(json.loads(JSONEncoder().encode(made))), indent=1, sort_keys=True) + "\n"

    @property
    def _metrics(self) -> common.DataSourceRef:
        return common.DataSourceRef(self._sources.metrics_type, self._sources.metrics)

    @property
    def _cloudwatch(self) -> common.DataSourceRef:
        return common.DataSourceRef(self._sources.cloudwatch_type, self._sources.cloudwatch)

    def _alerts(self) -> dashboard.AnnotationQuery:
        """Marks in all charts where a critical alert fires."""
        expr = f'ALERTS{{alertstate="firing", severity="critical", environment="{self._environment}"}}'
        target: Any = prometheus.Dataquery(expr=expr, ref_id="Anno", datasource=self._metrics)
        return dashboard.AnnotationQuery(
            name="Critical alerts",
            datasource=self._metrics,
            icon_color=CRITICAL,
            target=target,
            text_format="{{node}}",
            title_format="{{alertname}}",
        )

    def _variable(self, variable: Variable) -> dashboard.VariableModel:
        if variable.kind == "number":
            return dashboard.VariableModel(
                type_val=dashboard.VariableType.TEXTBOX,
                name=variable.name,
                label=variable.label,
                description=variable.help,
                query=variable.query,
                current=dashboard.VariableOption(text=variable.query, value=variable.query),
            )
        query: dict[str, object]
        if variable.kind == "cloudwatch":
            namespace, metric, dimension = variable.query.split()
            query = {
                "queryType": "dimensionValues",
                "region": "default",
                "namespace": namespace,
                "metricName": metric,
                "dimensionKey": dimension,
                "dimensionFilters": {},
                "refId": variable.name,
            }
        else:
            query = {
                "query": variable.query.replace("ENVIRONMENT", self._environment),
                "refId": variable.name,
                "qryType": 1,
            }
        return dashboard.VariableModel(
            type_val=dashboard.VariableType.QUERY,
            name=variable.name,
            label=variable.label,
            query=query,
            datasource=self._cloudwatch if variable.kind == "cloudwatch" else self._metrics,
            multi=variable.several,
            include_all=variable.several,
            all_value=".*" if variable.several else None,
            current=dashboard.VariableOption(text=["All"], value=["$__all"]) if variable.several else None,
            refresh=dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED,
            sort=dashboard.VariableSort.NATURAL_ASC,
        )

    def _panels(self, rows: Sequence[Row]) -> Iterator[dashboard.Panel | dashboard.RowPanel]:
        """Each row under its heading; each panel as high up as it fits, then as far left."""
        top, number = 0, 0
        for row in rows:
            if row.title:
                number += 1
                position = dashboard.GridPos(h=HEADING_HEIGHT, w=COLUMNS, x=0, y=top)
                yield dashboard.RowPanel(title=row.title, grid_pos=position, id_val=number, panels=[])
                top += HEADING_HEIGHT
            used = [top] * COLUMNS
            for panel in row.panels:
                number += 1
                y, x = min((max(used[x : x + panel.width]), x) for x in range(COLUMNS - panel.width + 1))
                used[x : x + panel.width] = [y + panel.height] * panel.width
                made = self._panel(panel)
                made.id_val = number
                made.grid_pos = dashboard.GridPos(h=panel.height, w=panel.width, x=x, y=y)
                yield made
            top = max(used)

    def _panel(self, panel: Panel) -> dashboard.Panel:
        match panel:
            case Value():
                made = stat_panel(panel)
            case Lines():
                made = self._lines(panel)
            case Bars():
                made = bar_panel(panel)
            case Table():
                made = self._table(panel)
            case Matrix():
                made = self._matrix(panel)
            case _:
                raise TypeError(panel)
        first = queries(panel)[0]
        made.title, made.description = panel.title, panel.help
        made.datasource = self._cloudwatch if isinstance(first, CloudWatch) else self._metrics
        instant = isinstance(panel, Table | Matrix | Bars) or (isinstance(panel, Value) and not panel.course)
        rows = isinstance(panel, Table | Matrix)
        made.targets = [
            self._cloudwatch_target(query, ref)
            if isinstance(query, CloudWatch)
            else self._target(query, ref, instant=instant, rows=rows)
            for ref, query in zip("ABCDEFGHIJKL", queries(panel), strict=False)
        ]
        return made

    def _target(self, query: Query, ref: str, *, instant: bool, rows: bool) -> Any:
        return prometheus.Dataquery(
            datasource=self._metrics,
            editor_mode=prometheus.QueryEditorMode.CODE,
            expr=scoped(query.expr).replace("ENVIRONMENT", self._environment),
            format_val=prometheus.PromQueryFormat.TABLE if rows else prometheus.PromQueryFormat.TIME_SERIES,
            instant=instant,
            range_val=not instant,
            legend_format=query.legend or None,
            ref_id=ref,
        )

    def _cloudwatch_target(self, query: CloudWatch, ref: str) -> Any:
        return cloudwatch.MetricsQuery(
            datasource=self._cloudwatch,
            query_mode=cloudwatch.QueryMode.METRICS,
            metric_query_type=cloudwatch.MetricQueryType.SEARCH,
            metric_editor_mode=cloudwatch.MetricEditorMode.BUILDER,
            region="default",
            namespace=query.namespace,
            metric_name=query.metric,
            statistic=query.statistic,
            dimensions=dict(query.dimensions),
            match_exact=True,
            label=query.legend or None,
            ref_id=ref,
        )

    def _lines(self, panel: Lines) -> dashboard.Panel:
        custom = timeseries.FieldConfig(
            draw_style=common.GraphDrawStyle.BARS if panel.bars else common.GraphDrawStyle.LINE,
            line_width=1.5,
            fill_opacity=70 if panel.bars else 35 if panel.stack else 8,
            show_points=common.VisibilityMode.NEVER,
            span_nulls=False,
            axis_soft_min=panel.minimum,
            thresholds_style=common.GraphThresholdsStyleConfig(
                common.GraphThresholdsStyleMode.DASHED
                if panel.limits.warning is not None or panel.limits.critical is not None
                else common.GraphThresholdsStyleMode.OFF
            ),
            stacking=common.StackingConfig(
                mode=common.StackingMode.NORMAL if panel.stack else common.StackingMode.NONE, group="A"
            ),
        )
        defaults = defaults_of(panel, custom=custom)
        defaults.max_val = panel.maximum
        defaults.min_val = panel.minimum
        defaults.color = dashboard.FieldColor(mode=dashboard.FieldColorModeId.PALETTE_CLASSIC)
        if panel.link:
            defaults.links = [self._link(panel.link, "__field.labels")]
        overrides = [
            override_of("byFrameRefID", ref, color={"mode": "fixed", "fixedColor": query.colour})
            for ref, query in zip("ABCDEFGHIJKL", panel.queries, strict=False)
            if isinstance(query, Query) and query.colour
        ]
        options = timeseries.Options(
            legend=common.VizLegendOptions(
                show_legend=True,
                display_mode=common.LegendDisplayMode.TABLE if panel.calculations else common.LegendDisplayMode.LIST,
                placement=common.LegendPlacement.BOTTOM,
                calcs=list(panel.calculations),
            ),
            tooltip=common.VizTooltipOptions(mode=common.TooltipDisplayMode.MULTI, sort=common.SortOrder.DESCENDING),
        )
        return panel_of("timeseries", options, defaults, overrides)

    def _table(self, panel: Table) -> dashboard.Panel:
        values = [f"Value #{ref}" for ref, _ in zip("ABCDEFGHIJKL", panel.columns, strict=False)]
        if len(values) == 1:
            values = ["Value"]  # Grafana numbers the columns of several queries only
        order = [label for label, _ in panel.labels] + values
        rename = dict(panel.labels) | dict(zip(values, (column.title for column in panel.columns), strict=True))
        organize = {
            "excludeByName": {"Time": True},
            "indexByName": {name: position for position, name in enumerate(order)},
            "renameByName": rename,
        }
        overrides = []
        for column in panel.columns:
            properties: dict[str, object] = {"unit": column.unit, "thresholds": thresholds_of(column.limits)}
            if column.decimals is not None:
                properties["decimals"] = column.decimals
            if column.maximum is not None:
                properties |= {"min": 0, "max": column.maximum}
            if column.names:
                properties["mappings"] = [mapping_of(column.names)]
            if column.display != "text":
                properties["custom.cellOptions"] = CELLS[column.display]
            overrides.append(override_of("byName", column.title, **properties))
        looks: dict[str, dict[str, object]] = {}
        texts = dict(panel.names)
        for heading, names in panel.names:
            looks.setdefault(heading, {})["mappings"] = [mapping_of(names)]
        for heading, colours in panel.colours:
            looks.setdefault(heading, {}).update(
                {
                    "mappings": [mapping_of(texts.get(heading) or [(v, v) for v, _ in colours], dict(colours))],
                    "custom.cellOptions": {"type": "color-text"},
                }
            )
        for heading, link in panel.links:
            label = next(label for label, name in panel.labels if name == heading)
            looks.setdefault(heading, {})["links"] = [self._link(link, "__data.fields", {label: f'"{heading}"'})]
        overrides += [override_of("byName", heading, **properties) for heading, properties in looks.items()]
        made = panel_of(
            "table",
            table.Options(
                show_header=True,
                cell_height=common.TableCellHeight.SM,
                sort_by=[common.TableSortByFieldState(panel.sort, desc=panel.descending)],
            ),
            defaults_of(
                panel,
                custom=table.FieldConfig(
                    align=common.FieldTextAlignment.AUTO, cell_options=common.TableAutoCellOptions()
                ),
            ),
            overrides,
        )
        made.transformations = [
            dashboard.DataTransformerConfig("merge", options={}),
            dashboard.DataTransformerConfig("organize", options=organize),
        ]
        return made

    def _matrix(self, panel: Matrix) -> dashboard.Panel:
        corner = f"{panel.rows}\\{panel.columns}"
        properties: dict[str, object] = {"custom.cellOptions": {"type": "auto"}, "custom.width": 150}
        if panel.link:
            # by position: between quotes the backslash in the name of the corner would be an escape
            properties["links"] = [self._link(panel.link, "__data.fields", {panel.rows: "0"})]
        defaults = defaults_of(
            panel,
            custom=table.FieldConfig(
                align=common.FieldTextAlignment.CENTER,
                cell_options=common.TableColoredBackgroundCellOptions(mode=common.TableCellBackgroundDisplayMode.BASIC),
            ),
        )
        if panel.scale:
            defaults.thresholds = dashboard.ThresholdsConfig(
                dashboard.ThresholdsMode.ABSOLUTE,
                [
                    dashboard.Threshold(None if number == 0 else start, colour)
                    for number, (start, colour) in enumerate(panel.scale)
                ],
            )
        made = panel_of(
            "table",
            table.Options(
                show_header=True,
                cell_height=common.TableCellHeight.SM,
                sort_by=[common.TableSortByFieldState(corner, desc=False)],
            ),
            defaults,
            [override_of("byName", corner, **properties)],
        )
        matrix = {"rowField": panel.rows, "columnField": panel.columns, "valueField": "Value"}
        made.transformations = [
            dashboard.DataTransformerConfig("sortBy", options={"sort": [{"field": panel.columns}]}),
            dashboard.DataTransformerConfig("groupingToMatrix", options=matrix),
        ]
        return made

    def _link(self, link: Link, labels: str, keys: dict[str, str] | None = None) -> Any:
        """A link with the clicked labels and the dashboard's cluster and time in its address.

        `keys` are where labels stand in `labels`: a quoted name or a position. Others stand under their own name.
        """
        places = {name: f'"{name}"' for name in link.carry} | (keys or {})
        carried = "".join(f"&var-{name}=${{{labels}[{places[name]}]}}" for name in link.carry)
        address = f"/d/{self._uids[link.dashboard]}?${{cluster:queryparam}}{carried}&${{__url_time_range}}"
        title = f"Open: {link.dashboard.replace('-', ' ')}"
        return {"title": title, "url": address, "targetBlank": False}
