"""Dashboards: what they query, how they are laid out, and which an environment has."""

import json
import re
from itertools import combinations
from pathlib import Path

import pytest

from tests.synthesis import ROOT
from tests.telemetry.engines import Engines
from tests.telemetry.rules.environments import environment as environment_of_rules
from tests.telemetry.rules.promtool import unit_tests
from ultracluster import load
from ultracluster.telemetry import labels, thresholds
from ultracluster.telemetry.dashboards import dashboards, limits
from ultracluster.telemetry.dashboards.boards import boards
from ultracluster.telemetry.dashboards.panels import CloudWatch, Limits, Query, queries, scoped
from ultracluster.telemetry.dashboards.variables import VARIABLES
from ultracluster.telemetry.metrics import METRICS, UnknownMetric, metric
from ultracluster.telemetry.promql import reading
from ultracluster.telemetry.rules import Recording, groups, rule_files

FILES = ("environments/prod.yaml", "environments/staging.yaml", "examples/eks-volcano.yaml", "examples/eks-kai.yaml")
PROMETHEUS = {"up", "ALERTS", "ALERTS_FOR_STATE"}
"""Series that Prometheus itself writes."""
ALERT_LABELS = {"alertname", "alertstate", "severity"}


@pytest.fixture(scope="module", params=FILES)
def environment(request):
    return load(ROOT / request.param)


def made(environment):
    return {each.uid.removeprefix(f"{environment.name}-"): json.loads(each.text) for each in dashboards(environment)}


def recorded(environment):
    return {rule.name for group in groups(environment) for rule in group.rules if isinstance(rule, Recording)}


def unknown_metrics(expr, recordings):
    """Names in a query that are in no catalogue, recorded by no rule and written by no Prometheus."""
    found = set()
    for name in reading(expr).metrics - PROMETHEUS - recordings:
        try:
            metric(name)
        except UnknownMetric:
            found.add(name)
    return found


def plain(expr):
    """A query without Grafana's variables, which PromQL does not know."""
    return scoped(expr).replace("$__rate_interval", "5m").replace("$__range", "1d").replace("$gpu_hour", "5")


def exprs(environment):
    panels = [panel for board in boards(environment) for panel in board.panels]
    return [(panel.title, plain(q.expr)) for panel in panels for q in queries(panel) if isinstance(q, Query)]


def test_queries_read_metrics_of_the_catalogue_and_of_the_rules(environment):
    recordings = recorded(environment)
    wrong = {title: found for title, expr in exprs(environment) if (found := unknown_metrics(expr, recordings))}
    assert wrong == {}


def test_a_query_that_names_no_known_metric_is_found():
    assert unknown_metrics('sum(DCGM_FI_DEV_GPU_TEMPERATURE{cluster="a"}) / up', set()) == {
        "DCGM_FI_DEV_GPU_TEMPERATURE"
    }
    assert unknown_metrics("node:efa_rx_bits:rate", set()) == {"node:efa_rx_bits:rate"}


def test_queries_read_labels_that_their_metrics_have(environment):
    everywhere = {each.name for each in (*labels.COMMON, *labels.NODE, *labels.GPU)} | {"job", "le"} | ALERT_LABELS
    for title, expr in exprs(environment):
        read = reading(expr)
        own = {label for name in read.metrics & set(METRICS) for label in metric(name).labels}
        own |= {
            label
            for name in read.metrics - set(METRICS)
            if unknown_metrics(name, set()) == set() and name not in PROMETHEUS
            for label in metric(name).labels
        }
        targets = {"target"} if any(name.startswith("lustre_") for name in read.metrics) else set()
        assert read.labels <= everywhere | own | targets, title


def test_cloudwatch_queries_name_metrics_and_dimensions_of_the_catalogue(environment):
    for board in boards(environment):
        for panel in board.panels:
            for query in (q for q in queries(panel) if isinstance(q, CloudWatch)):
                known = METRICS[query.metric]
                assert known.exporter == "cloudwatch"
                assert {name for name, _ in query.dimensions} == set(known.labels), panel.title
                assert query.namespace == known.group, panel.title


def test_uids_are_stable_and_short_enough_for_grafana():
    assert [each.uid for each in dashboards(load(ROOT / "environments/prod.yaml"))] == [
        "prod-fleet",
        "prod-gpu-cluster",
        "prod-gpu-node",
        "prod-training",
        "prod-fabric",
        "prod-storage",
        "prod-slurm",
        "prod-idle",
    ]
    assert max(len(f"{'n' * 20}-{board.slug}") for board in boards(load(ROOT / "environments/staging.yaml"))) <= 40


@pytest.mark.parametrize(
    ("file", "shown", "hidden"),
    [
        ("environments/prod.yaml", {"slurm"}, {"queues", "inference"}),
        ("environments/staging.yaml", {"queues", "inference"}, {"slurm"}),
    ],
)
def test_the_control_plane_decides_between_slurm_and_kubernetes(file, shown, hidden):
    slugs = set(made(load(ROOT / file)))
    assert shown <= slugs
    assert not hidden & slugs


@pytest.mark.parametrize(
    ("file", "rows"),
    [
        ("environments/staging.yaml", {"Queues (Kueue)"}),
        ("examples/eks-volcano.yaml", {"Queues (Volcano)"}),
        ("examples/eks-kai.yaml", {"Queues (Kueue)", "Queues (KAI)"}),
    ],
)
def test_queues_are_those_of_the_scheduler(file, rows):
    panels = made(load(ROOT / file))["queues"]["panels"]
    assert {panel["title"] for panel in panels if panel["title"].startswith("Queues (")} == rows


def test_an_environment_without_lustre_has_no_dashboard_for_it():
    prod = load(ROOT / "environments/prod.yaml")
    without = prod.model_copy(update={"storage": prod.storage.model_copy(update={"lustre": None})})
    assert "storage" not in made(without)


def test_panels_fill_the_width_without_overlaps(environment):
    for slug, board in made(environment).items():
        places = [panel["gridPos"] for panel in board["panels"]]
        assert max(place["x"] + place["w"] for place in places) == 24, slug
        for one, other in combinations(places, 2):
            apart = (
                one["x"] + one["w"] <= other["x"]
                or other["x"] + other["w"] <= one["x"]
                or one["y"] + one["h"] <= other["y"]
                or other["y"] + other["h"] <= one["y"]
            )
            assert apart, (slug, one, other)


def test_each_dashboard_asks_one_question_and_each_panel_says_what_to_do(environment):
    for board in boards(environment):
        assert board.question.endswith("?")
        titles = [panel.title for panel in board.panels]
        assert len(set(titles)) == len(titles), board.slug
        assert all(panel.help.rstrip().endswith((".", "*")) for panel in board.panels), board.slug


def test_ids_and_references_are_unique(environment):
    for board in made(environment).values():
        numbers = [panel["id"] for panel in board["panels"]]
        assert len(set(numbers)) == len(numbers)
        for panel in board["panels"]:
            refs = [target["refId"] for target in panel.get("targets", ())]
            assert len(set(refs)) == len(refs)


def test_drill_downs_lead_to_dashboards_of_the_environment_and_set_variables_that_they_have(environment):
    found = made(environment)
    variables = {slug: {each["name"] for each in board["templating"]["list"]} for slug, board in found.items()}
    links = [part for board in found.values() for part in _urls(board)]
    assert links
    for url in links:
        slug = url.removeprefix(f"/d/{environment.name}-").partition("?")[0]
        assert slug in found
        for name in [part.partition("=")[0].removeprefix("var-") for part in url.split("&") if part.startswith("var-")]:
            assert name in variables[slug], url


def test_links_name_no_field_with_a_backslash(environment):
    """Grafana reads escapes in the quoted name: it finds no field `node\\gpu`, and the variable is empty."""
    urls = [url for board in made(environment).values() for url in _urls(board)]
    assert any("${__data.fields[0]}" in url for url in urls)
    assert not [url for url in urls if "\\" in url]


def _urls(node):
    if isinstance(node, dict):
        yield from ([node["url"]] if str(node.get("url", "")).startswith("/d/") else [])
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _urls(each)


def test_every_panel_reads_the_data_sources_of_the_environment(environment):
    known = {f"{environment.name}-metrics", f"{environment.name}-cloudwatch"}
    for board in made(environment).values():
        for panel in (each for each in board["panels"] if each["type"] != "row"):
            assert {panel["datasource"]["uid"], *(each["datasource"]["uid"] for each in panel["targets"])} <= known


def test_every_variable_of_a_query_is_on_its_dashboard(environment):
    for board in boards(environment):
        there = {"cluster", *board.variables}
        for panel in board.panels:
            for query in (q for q in queries(panel) if isinstance(q, Query)):
                used = set(re.findall(r"\$(\w+)", scoped(query.expr))) & set(VARIABLES)
                assert used <= there, (board.slug, panel.title)


def test_limits_are_those_of_the_alert_rules():
    board = made(load(ROOT / "environments/prod.yaml"))["gpu-node"]
    panel = next(each for each in board["panels"] if each["title"] == "GPU temperature")
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps == [{"value": None, "color": "green"}, {"value": thresholds.GPU_TEMPERATURE.value, "color": "orange"}]


def test_low_values_are_bad_where_the_limits_say_so():
    board = made(load(ROOT / "environments/prod.yaml"))["fleet"]
    panel = next(each for each in board["panels"] if each["title"] == "GPUs in use by jobs")
    colours = [step["color"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]
    assert colours == ["red", "orange", "green"]


def test_the_menu_of_clusters_has_those_of_the_environment_only():
    """Several environments may share a Prometheus workspace."""
    for board in made(load(ROOT / "environments/prod.yaml")).values():
        menu = next(each for each in board["templating"]["list"] if each["name"] == "cluster")
        assert menu["query"]["query"] == 'label_values(up{environment="prod"}, cluster)'


@pytest.mark.parametrize("slug", ["fleet", "idle"])
def test_charts_of_the_whole_fleet_read_recorded_series(slug):
    """A chart over a day of every GPU of 10,000 nodes would read more samples than AMP allows for a query."""
    for panel in made(load(ROOT / "environments/prod.yaml"))[slug]["panels"]:
        for target in panel.get("targets", ()):
            if target.get("range"):
                assert "DCGM_" not in target["expr"], panel["title"]


def test_a_number_without_limits_is_neither_good_nor_bad():
    for board in made(load(ROOT / "environments/prod.yaml")).values():
        for panel in (each for each in board["panels"] if each["type"] == "stat"):
            steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
            assert (steps[0]["color"] == "blue") == (len(steps) == 1), panel["title"]


def test_an_xid_has_its_meaning_in_the_colour_of_its_severity():
    board = made(load(ROOT / "environments/prod.yaml"))["gpu-cluster"]
    panel = next(each for each in board["panels"] if each["title"].startswith("Errors by GPU"))
    override = next(each for each in panel["fieldConfig"]["overrides"] if each["matcher"]["options"] == "XID")
    looks = {each["id"]: each["value"] for each in override["properties"]}
    texts = looks["mappings"][0]["options"]
    assert looks["custom.cellOptions"] == {"type": "color-text"}
    assert (texts["79"]["text"], texts["79"]["color"]) == ("79  The GPU has fallen off the bus", "red")
    assert (texts["63"]["color"], texts["13"]["color"]) == ("orange", "text")


def test_charts_draw_every_limit_that_dashboards_take_from_the_rules():
    """A limit that no chart draws was forgotten."""
    shared = {name: value for name, value in vars(limits).items() if isinstance(value, Limits)}
    drawn = {panel.limits for board in boards(load(ROOT / "environments/prod.yaml")) for panel in board.panels}
    assert {name for name, value in shared.items() if value not in drawn} == set()


def test_shares_of_jobs_and_nodes_compare_the_same_things():
    panels = {panel.title: panel for board in boards(load(ROOT / "environments/prod.yaml")) for panel in board.panels}
    rates = queries(panels["EFA against line rate: busiest, mean and quietest node"])
    assert all("> 0.005" in query.expr for query in rates[1:])
    (lost,) = queries(panels["Time lost, by reason"])
    assert "/ scalar(count(count by (team, workload)" in lost.expr


def test_a_node_with_an_efa_alert_shows_its_errors_with_the_limit_of_the_rule():
    panels = {panel.title: panel for board in boards(load(ROOT / "environments/prod.yaml")) for panel in board.panels}
    errors = panels["EFA errors in 5 minutes"]
    assert errors.limits.warning == thresholds.EFA_EVENTS.value
    assert errors.limits.critical is None
    (table,) = [column.limits for column in panels["Errors in the last 24 hours, by node"].columns[:1]]
    assert table == errors.limits
    assert "retrans_timeout_events{node}" in queries(errors)[0].expr


def _asked(slug: str, title: str) -> str:
    """The query of a panel, for the cluster `c` and all node groups."""
    board = made(environment_of_rules("pcs"))[slug]
    panel = next(each for each in board["panels"] if each["title"] == title)
    return panel["targets"][0]["expr"].replace("$cluster", "c").replace("$node_group", ".*")


NODE = 'cluster="c", environment="test", node_group="train", instance_type="p5.48xlarge", node="n1"'
PREP = 'cluster="c", environment="test", node_group="prep", instance_type="c7i.48xlarge", node="n2"'
DOWN = {f'up{{job="node", {NODE}}}': "0x30"}


@pytest.mark.parametrize(
    ("slug", "title", "group", "series", "value"),
    [
        # the alert on a silent controller has no label cluster
        ("fleet", "Critical alerts", "slurm", {}, 1),
        ("fleet", "GPUs missing", "catalogue", DOWN, 8),
        ("gpu-cluster", "GPUs missing", "catalogue", DOWN, 8),
        ("fabric", "EFA devices missing", "catalogue", DOWN, 32),
        # the type can have EFA, and the group has none
        ("fabric", "EFA devices missing", "catalogue", {**DOWN, f'up{{job="node", {PREP}}}': "1x30"}, 32),
        (
            "fabric",
            "Busiest node against line rate",
            "efa",
            {**DOWN, f'node_amazonefa_rx_bytes{{{NODE}, device="d", port="1"}}': "0+24e12x30"},
            1,
        ),
    ],
)
def test_the_first_row_tells_of_nodes_and_controllers_that_do_not_answer(
    slug: str, title: str, group: str, series: dict[str, str], value: float, engines: Engines, tmp_path: Path
):
    files = [tmp_path / f"{name}.yml" for name in dict.fromkeys(("catalogue", group))]
    for file in files:
        file.write_text(rule_files(environment_of_rules("pcs"))[file.stem])
    asked = {"expr": _asked(slug, title), "eval_time": "25m", "exp_samples": [{"labels": "{}", "value": value}]}
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    test = {"name": title, "interval": "1m", "input_series": inputs, "promql_expr_test": [asked]}
    ran = unit_tests(engines, tmp_path, files, [test])
    assert ran.ok, ran.said
