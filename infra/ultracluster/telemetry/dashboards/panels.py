"""What a panel shows, without Grafana: title, queries, unit and limits. `grafana.py` turns panels into JSON."""

import re
from dataclasses import dataclass, field
from typing import Literal

SCOPES = {
    "fleet": 'cluster="$cluster"',
    "groups": 'cluster="$cluster", node_group=~"$node_group"',
    "node": 'cluster="$cluster", node="$node"',
    "teams": 'cluster="$cluster", team=~"$team"',
    "work": 'cluster="$cluster", workload=~"$workload"',
    "models": 'cluster="$cluster", model_name=~"$model"',
    "alerts": 'environment="ENVIRONMENT"',
}
"""Label matchers by name. A selector in a query starts with a name: `DCGM_FI_DEV_GPU_TEMP{groups, gpu="0"}`.

ENVIRONMENT is the environment's name. Alerts on missing series have no label `cluster`.
"""

Display = Literal["text", "colour", "gauge"]


def scoped(expr: str) -> str:
    """The PromQL of a query: names of scopes replaced by their matchers, white space by single blanks."""
    named = re.sub(r"\{(\w+)(?=\s*[,}])", lambda found: "{" + SCOPES[found[1]], expr)
    return " ".join(named.split())


@dataclass(frozen=True)
class Query:
    """A PromQL query. `legend` names each series and may hold `{{label}}`."""

    expr: str
    legend: str = ""
    colour: str = ""
    """Grafana's name of a fixed colour; empty: the next one of the palette."""


@dataclass(frozen=True)
class CloudWatch:
    """Metrics of an AWS service. A dimension with value `*` gives one series for each of its values."""

    namespace: str
    metric: str
    statistic: Literal["Average", "Maximum", "Minimum", "Sum"]
    dimensions: tuple[tuple[str, str], ...]
    legend: str = ""
    """May hold `${PROP('Dim.Name')}`, CloudWatch's form of a dimension's value."""


@dataclass(frozen=True)
class Limits:
    """Where a value turns orange and red. `above`: high values are bad."""

    warning: float | None = None
    critical: float | None = None
    above: bool = True


@dataclass(frozen=True)
class Link:
    """A drill-down to another dashboard, which shows what was clicked on: `carry` are labels that set its variables."""

    dashboard: str
    carry: tuple[str, ...]


TO_NODE = Link("gpu-node", ("node",))
TO_WORK = Link("training", ("workload",))


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What all panels have. Width in columns of 24, height in rows of 30 pixels."""

    title: str
    help: str
    """The panel's meaning and what to do: the text behind its (i)."""
    unit: str = "short"
    """Grafana's id of the unit, such as `percentunit`, `bps` or `celsius`."""
    decimals: int | None = None
    limits: Limits = Limits()
    width: int = 8
    height: int = 8


@dataclass(frozen=True, kw_only=True)
class Value(Panel):
    """One number now, with its course behind it."""

    query: Query | CloudWatch
    width: int = 4
    height: int = 4
    names: tuple[tuple[str, str], ...] = ()
    """Texts in place of numbers: (number, text)."""
    course: bool = True


@dataclass(frozen=True, kw_only=True)
class Lines(Panel):
    """Values over time."""

    queries: tuple[Query | CloudWatch, ...]
    stack: bool = False
    bars: bool = False
    """Bars in place of lines: for events."""
    minimum: float | None = 0
    maximum: float | None = None
    link: Link | None = None
    calculations: tuple[Literal["mean", "max", "min", "lastNotNull", "sum"], ...] = ("mean", "max", "lastNotNull")
    """Columns of the legend; none: a legend with names only."""


@dataclass(frozen=True, kw_only=True)
class Bars(Panel):
    """Values now, one bar each."""

    query: Query
    maximum: float | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table. Its query aggregates by the labels of the table."""

    title: str
    expr: str
    unit: str = "short"
    limits: Limits = Limits()
    display: Display = "text"
    decimals: int | None = None
    maximum: float | None = None
    names: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Table(Panel):
    """One row for each combination of `labels`, with columns of numbers."""

    labels: tuple[tuple[str, str], ...]
    """Labels and their headings."""
    columns: tuple[Column, ...]
    sort: str
    """Heading of the column that sorts the table."""
    descending: bool = True
    links: tuple[tuple[str, Link], ...] = ()
    """Links of label columns, by heading."""
    names: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """Texts in place of label values, by heading: (value, text)."""
    colours: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """Colours of label values, by heading: (value, colour)."""


@dataclass(frozen=True, kw_only=True)
class Matrix(Panel):
    """One coloured cell for each pair of labels, such as node and GPU."""

    query: Query
    rows: str
    columns: str
    link: Link | None = None
    scale: tuple[tuple[float, str], ...] = ()
    """Steps (from, colour) in place of limits."""


@dataclass(frozen=True)
class Row:
    """A heading with the panels under it, from left to right."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Board:
    """A dashboard. `question` is what it answers first."""

    slug: str
    title: str
    question: str
    rows: tuple[Row, ...]
    variables: tuple[str, ...] = ("node_group",)
    """Names of `variables.VARIABLES` beside `cluster`."""
    period: str = "6h"
    tags: tuple[str, ...] = field(default=())

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels, from top to bottom."""
        return tuple(panel for row in self.rows for panel in row.panels)


def queries(panel: Panel) -> tuple[Query | CloudWatch, ...]:
    """The queries of a panel, in the order of Grafana's A, B, C."""
    match panel:
        case Value(query=query) | Bars(query=query) | Matrix(query=query):
            return (query,)
        case Lines(queries=several):
            return several
        case Table(columns=columns):
            return tuple(Query(column.expr) for column in columns)
    raise TypeError(panel)
