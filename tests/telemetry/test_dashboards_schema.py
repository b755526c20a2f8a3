"""Dashboards against Grafana's own types, which the TypeScript compiler checks."""

import json
import subprocess

import pytest

from tests.synthesis import ROOT
from ultracluster import load
from ultracluster.telemetry.dashboards import dashboards

TYPES = ROOT / "node_modules/@grafana/schema/dist"
ENVIRONMENTS = ROOT / "environments"
COMPILER = ROOT / "node_modules/typescript/bin/tsc"

SETTINGS = {
    "compilerOptions": {
        "strict": True,
        "noEmit": True,
        "skipLibCheck": True,
        "module": "esnext",
        "moduleResolution": "bundler",
        "target": "es2022",
        "types": [],
    },
    "include": ["*.ts"],
}

PRELUDE = f"""
import type {{ AnnotationQuery, Dashboard, FieldConfig, Panel, RowPanel, VariableModel }}
  from "{TYPES}/types/raw/dashboard/x/types.gen";
import type * as timeseries from "{TYPES}/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";
import type * as stat from "{TYPES}/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as table from "{TYPES}/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as bargauge from "{TYPES}/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen";
import type * as cloudwatch from "{TYPES}/esm/raw/composable/cloudwatch/dataquery/x/CloudWatchDataQuery_types.gen";
// a type as JSON spells it: the values of an enum in place of its members
type Json<T> = T extends string ? `${{T}}`
  : T extends number ? (number extends T ? number : `${{T}}` extends `${{infer N extends number}}` ? N : never)
  : T extends (infer U)[] ? Json<U>[]
  : T extends object ? {{ [K in keyof T]: Json<T[K]> }} : T;
"""
OF_PROMETHEUS = ("target", "titleFormat", "textFormat")
"""Keys of an annotation that its data source defines."""
WITH_FIELDS = ("timeseries", "table")


def parts(board):
    """Each part of a dashboard with its type, outermost first. Contents with types of their own are parts too."""
    panels = board["panels"]
    yield "Dashboard", {**board, "panels": [], "annotations": {"list": []}}
    for annotation in board["annotations"]["list"]:
        yield "AnnotationQuery", {name: value for name, value in annotation.items() if name not in OF_PROMETHEUS}
    for variable in board["templating"]["list"]:
        yield "VariableModel", variable
    for panel in panels:
        if panel["type"] == "row":
            yield "RowPanel", panel
            continue
        defaults = dict(panel["fieldConfig"]["defaults"])
        custom = defaults.pop("custom", None)
        yield "Panel", {**panel, "fieldConfig": {**panel["fieldConfig"], "defaults": {}}}
        yield "FieldConfig", defaults
        yield f"{panel['type']}.Options", panel["options"]
        if panel["type"] in WITH_FIELDS:
            yield f"{panel['type']}.FieldConfig", custom
        for target in panel["targets"]:
            if "namespace" in target:
                yield "cloudwatch.CloudWatchMetricsQuery", target


def compiled(folder, boards):
    """What the compiler says of dashboards, '' if it accepts them."""
    (folder / "tsconfig.json").write_text(json.dumps(SETTINGS))
    for number, board in enumerate(boards):
        lines = [
            f"export const part{position}: Json<{kind}> = {json.dumps(content)};"
            for position, (kind, content) in enumerate(parts(board))
        ]
        (folder / f"board{number}.ts").write_text("\n".join([PRELUDE, *lines]))
    return subprocess.run(["node", COMPILER, "-p", folder], capture_output=True, text=True, cwd=folder).stdout


@pytest.fixture(scope="module")
def boards():
    """Every dashboard once, from the environment that has it."""
    found = [
        json.loads(each.text)
        for name in ("prod", "staging")
        for each in dashboards(load(ENVIRONMENTS / f"{name}.yaml"))
    ]
    return list({board["title"]: board for board in found}.values())


def test_grafana_types_accept_every_dashboard(tmp_path, boards):
    assert {panel["type"] for board in boards for panel in board["panels"]} == {
        "row",
        "stat",
        "timeseries",
        "table",
        "bargauge",
    }
    assert compiled(tmp_path, boards) == ""


WRONG = {
    ("refreshes",): "1m",
    ("panels", 0, "gridPos", "width"): 3,
    ("panels", 0, "options", "graphMode"): "columns",
    ("panels", 0, "fieldConfig", "defaults", "thresholds", "mode"): "relative",
    ("templating", "list", 0, "type"): "menu",
}


def test_grafana_types_refuse_what_grafana_does_not_know(tmp_path, boards):
    broken = []
    for path, wrong in WRONG.items():
        board = place = json.loads(json.dumps(boards[0]))
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = wrong
        broken.append({**board, "panels": board["panels"][:1]})
    said = compiled(tmp_path, broken)
    for number, path in enumerate(WRONG):
        assert f"board{number}.ts" in said, path
