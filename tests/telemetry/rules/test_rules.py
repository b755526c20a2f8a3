"""Rules files: what AMP takes, what a rule may read, and what an alert must say."""

import itertools
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.synthesis import FILES
from tests.telemetry.engines import Engines
from tests.telemetry.rules.environments import PLANES, environment
from tests.telemetry.rules.promtool import unit_tests
from ultracluster import load
from ultracluster.config.environment import Environment
from ultracluster.config.observability import Alerts, ExistingMetrics
from ultracluster.telemetry import labels, scrape
from ultracluster.telemetry.metrics import METRICS, UnknownMetric, metric
from ultracluster.telemetry.promql import matching, reading
from ultracluster.telemetry.rules import Alert, Recording, alerts, groups, rule_files
from ultracluster.telemetry.rules.catalogue import group as catalogue
from ultracluster.telemetry.rules.model import CLUSTER, FAULT, GPU, MANY, NODE, Style, fleet_alerts, rule_file
from ultracluster.telemetry.rules.site import site
from ultracluster.telemetry.xids import XIDS

ENVIRONMENTS = {
    **{f"test-{plane}": environment(plane) for plane in PLANES},
    **{name: load(file) for name, file in FILES.items()},
}
ALL = {
    (plane, rule.name, str(getattr(rule, "sustained", ""))): rule
    for plane in PLANES
    for group in groups(environment(plane))
    for rule in group.rules
}
EVERY = pytest.mark.parametrize("rule", ALL.values(), ids=["-".join(key) for key in ALL])
ADDED = {"fault", "severity", "component", "sustained", "repair", "job", "instance", "__name__"}
"""Labels that rules or Prometheus itself add."""


def _recorded(plane: str) -> set[str]:
    return {FAULT} | {
        rule.name
        for of, rule in ((key[0], each) for key, each in ALL.items())
        if of == plane and isinstance(rule, Recording)
    }


@cache
def _files(name: str) -> dict[str, str]:
    return rule_files(ENVIRONMENTS[name])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_promtool_accepts_the_files(name: str, engines: Engines, tmp_path: Path):
    files = {f"{each}.yml": text for each, text in _files(name).items()}
    ran = engines.check_rules(tmp_path, files)
    assert ran.ok, ran.said
    assert "duplicate" not in ran.said


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_files_fit_into_the_quotas_of_amp(name: str):
    """AMP User Guide, "Service quotas": files of 1 MB, 2,000 rules, intervals of 30 s, names of 64 characters."""
    files = _files(name)
    written = [group for text in files.values() for group in yaml.safe_load(text)["groups"]]
    assert all(len(text.encode()) < 1_000_000 for text in files.values())
    assert sum(len(group["rules"]) for group in written) <= 2000
    assert all(int(group["interval"].removesuffix("s")) >= 30 for group in written)
    assert all(len(f"{'e' * 20}-{each}") <= 64 for each in files)


@pytest.mark.parametrize("plane", PLANES)
def test_all_alerts_at_once_fit_into_an_alert_manager(plane: str):
    """AMP keeps 1,000 alerts. Alerts on the cluster have one series each, or one for each queue or target."""
    found = alerts(environment(plane))
    limited = sum(alert.limited for alert in found)
    assert limited * MANY + 5 * (len(found) - limited) <= 1000


@EVERY
def test_a_rule_reads_only_metrics_of_the_catalogue(rule: Alert | Recording):
    plane = next(key[0] for key, each in ALL.items() if each is rule)
    for name in reading(rule.expr).metrics - _recorded(plane) - set(scrape.UP):
        metric(name)


@EVERY
def test_a_rule_reads_only_labels_that_the_metrics_have(rule: Alert | Recording):
    read = reading(rule.expr)
    known = {each.name for part in (labels.COMMON, labels.NODE, labels.GPU) for each in part} | ADDED
    known |= set(re.findall(r', "(\w+)", "\$1", "', rule.expr))  # those that label_replace makes
    for name in read.metrics & set(METRICS):
        known |= set(METRICS[name].labels)
    for each in ALL.values():
        if each.name in read.metrics or (FAULT in read.metrics and isinstance(each, Alert)):
            known |= {label for name in reading(each.expr).metrics & set(METRICS) for label in METRICS[name].labels}
    assert read.labels <= known


def test_an_unknown_metric_is_refused():
    with pytest.raises(UnknownMetric, match="did you mean"):
        metric(*reading("sum(DCGM_FI_DEV_GPU_TEMPERATURE) > 5").metrics)


@pytest.mark.parametrize(
    "rule", [each for each in ALL.values() if isinstance(each, Recording)], ids=lambda rule: rule.name
)
def test_recorded_names_have_level_metric_and_operation(rule: Recording):
    assert re.fullmatch(r"[a-z_]+:[a-z0-9_]+:[a-z0-9_]+", rule.name)


@pytest.mark.parametrize("rule", [each for each in ALL.values() if isinstance(each, Alert)], ids=lambda rule: rule.name)
def test_an_alert_says_what_broke_where_and_what_to_do(rule: Alert):
    duration = re.compile(r"\d+[mh]")
    assert duration.fullmatch(rule.sustained)
    assert duration.fullmatch(rule.keep)
    assert len(rule.name) <= 32, "subjects of SNS have 100 characters"
    for text in (rule.description, rule.action):
        assert text.endswith(".")
        assert text.isascii()
    assert rule.summary.isascii()
    assert not rule.summary.endswith(".")
    assert rule.repair is None or (rule.severity == "critical" and rule.scope in ("gpu", "node"))
    if rule.scope in ("gpu", "node"):
        assert "$labels.node" in rule.summary


@pytest.mark.parametrize("plane", PLANES)
def test_every_xid_is_in_exactly_one_alert(plane: str):
    exprs = {each.name: each.expr for each in alerts(environment(plane)) if each.name.startswith("GpuXid")}
    patterns = {name: re.findall(r'xid(=~|!~)"([\d|]+)"', expr) for name, expr in exprs.items()}
    codes = list(itertools.chain(*(p[0][1].split("|") for p in patterns.values() if p[0][0] == "=~")))
    assert sorted(codes, key=int) == [str(code) for code in sorted(XIDS)]
    ((_, known),) = patterns["GpuXidUnknown"]
    assert set(known.split("|")) == {str(code) for code in XIDS}


@pytest.mark.parametrize("seconds", [10, 30, 60, 120])
@pytest.mark.parametrize("plane", PLANES)
def test_windows_hold_four_scrapes(plane: str, seconds: int):
    shipped = environment(plane)
    observability = shipped.observability.model_copy(update={"scrape_interval_seconds": seconds})
    changed = shipped.model_copy(update={"observability": observability})
    for group in groups(changed):
        for rule in group.rules:
            for number, unit in re.findall(r"(?:rate|increase)\([^[]*\[(\d+)([mh])\]", rule.expr):
                assert int(number) * {"m": 60, "h": 3600}[unit] >= 4 * seconds, rule.expr


def test_gpu_counters_are_compared_without_the_labels_of_a_job():
    """increase() misses an error that ends the job, since its series ends with it."""
    for rule in ALL.values():
        for name in reading(rule.expr).metrics & {each.name for each in METRICS.values() if each.exporter == "dcgm"}:
            assert not re.search(rf"(?:rate|increase|delta)\({name}", rule.expr), rule.name


def test_an_alert_on_gpus_has_the_gpu_and_one_on_nodes_the_node():
    for rule in (each for each in ALL.values() if isinstance(each, Alert)):
        for scope, level in (("gpu", GPU), ("node", f"{CLUSTER}, node")):
            if rule.scope == scope and not reading(rule.expr).metrics <= _recorded("pcs") | _recorded("eks"):
                grouped = set(re.findall(r"by \(([^)]*)\)", rule.expr))
                assert any(set(level.split(", ")) <= set(each.split(", ")) for each in grouped), rule.name
    assert set(NODE.split(", ")) < set(GPU.split(", "))


def test_the_control_planes_have_rules_of_their_own():
    found = {plane: {group.name for group in groups(environment(plane))} for plane in PLANES}
    assert found["pcs"] - found["eks"] == {"slurm"}
    assert found["eks"] - found["pcs"] == {"kubernetes"}


def _changed(update: dict[str, Any]) -> Environment:
    shipped = environment("pcs")
    lustre = shipped.storage.lustre
    assert lustre is not None
    changed = None if update == {"lustre": None} else lustre.model_copy(update=update)
    return shipped.model_copy(update={"storage": shipped.storage.model_copy(update={"lustre": changed})})


@pytest.mark.parametrize(
    ("settings", "watched"),
    [({}, True), ({"slurm_version": "25.05"}, False), ({"slurm_settings": {"PrivateData": "jobs"}}, False)],
)
def test_a_controller_that_serves_no_metrics_is_not_reported_as_silent(settings: dict[str, Any], watched: bool):
    shipped = environment("pcs")
    plane = shipped.control_plane.model_copy(update=settings)
    names = {alert.name for alert in alerts(shipped.model_copy(update={"control_plane": plane}))}
    assert ("SlurmControllerSilent" in names) == watched


def test_a_repair_is_not_asked_for_again_because_an_alert_is_kept():
    """The node may have a new instance or be back by then: the alert manager repeats repairs after an hour."""
    kept = {alert.name: int(alert.keep[:-1]) for alert in alerts(environment("pcs")) if alert.repair}
    assert kept
    assert {name for name, minutes in kept.items() if minutes > 30} == set()
    assert all(alert.keep.endswith("m") for alert in alerts(environment("pcs")) if alert.repair)


@pytest.mark.parametrize("plane", PLANES)
def test_a_critical_alert_holds_through_a_missed_scrape(plane: str):
    """One that ends and comes back is a new page for somebody."""
    ends_at_once = {alert.name for alert in alerts(environment(plane)) if alert.keep == "0m"}
    assert ends_at_once & {alert.name for alert in alerts(environment(plane)) if alert.severity == "critical"} == set()


@pytest.mark.parametrize(("seconds", "severity", "repair"), [(600, "critical", "replace"), (30, "warning", None)])
def test_where_pcs_ends_idle_nodes_at_once_a_vanished_node_is_not_drained(
    seconds: int, severity: str, repair: str | None
):
    shipped = environment("pcs")
    plane = shipped.control_plane.model_copy(update={"idle_seconds": seconds})
    changed = shipped.model_copy(update={"control_plane": plane})
    (found,) = (alert for alert in alerts(changed) if alert.name == "NodeVanished")
    assert (found.severity, found.repair) == (severity, repair)


def test_rules_follow_the_file_system():
    names = {alert.name for alert in alerts(environment("pcs"))}
    assert {"LustreOverTcp", "LustreWritesSaturated", "LustreFull"} <= names
    assert names - {alert.name for alert in alerts(_changed({"efa": False}))} == {"LustreOverTcp"}
    assert names - {alert.name for alert in alerts(_changed({"compression": "lz4"}))} == {"LustreWritesSaturated"}
    assert not [alert.name for alert in alerts(_changed({"lustre": None})) if alert.component == "lustre"]


def test_disks_write_what_fsx_advertises():
    """96,000 GiB at 500 MB/s/TiB are 48,000 MB/s (FSx for Lustre User Guide, "performance", 1,000 GiB as a TiB)."""
    assert site(environment("pcs")).lustre_mb_per_s == 48000


def test_runbook_links_start_with_the_url_of_the_file():
    shipped = environment("pcs")
    receivers = Alerts(email=("a@example.com",), runbooks_url="https://wiki.example.com/alerts")
    observability = shipped.observability.model_copy(update={"alerts": receivers})
    text = rule_files(shipped.model_copy(update={"observability": observability}))["nodes"]
    assert "runbook_url: https://wiki.example.com/alerts/gpu-missing.md" in text
    assert "runbook_url: docs/runbooks/gpu-missing.md" in rule_files(shipped)["nodes"]


def test_one_fleet_alert_for_each_severity_and_duration():
    found = alerts(environment("eks"))
    kinds = {(alert.severity, alert.sustained) for alert in found if alert.limited}
    assert {(alert.severity, alert.sustained) for alert in fleet_alerts(found)} == kinds


def test_a_file_is_the_same_every_time():
    first, second = (rule_file(groups(environment("eks")), Style("x", {})) for _ in range(2))
    assert first == second


def _in_a_shared_workspace(plane: str) -> Environment:
    shipped = environment(plane)
    existing = ExistingMetrics(existing="ws-01234567-89ab-cdef-0123-456789abcdef")
    observability = shipped.observability.model_copy(update={"metrics": existing, "alerts": None})
    return shipped.model_copy(update={"observability": observability})


@pytest.mark.parametrize("plane", PLANES)
def test_in_an_existing_workspace_every_selector_names_the_environment(plane: str, engines: Engines, tmp_path: Path):
    files = rule_files(_in_a_shared_workspace(plane))
    for text in files.values():
        for rule in yaml.safe_load(text)["groups"][0]["rules"]:
            read = {name for name in reading(rule["expr"]).metrics if not name.startswith("instance_type:")}
            uses = [use for name in read for use in re.findall(rf"(?<![\w:]){name}(?![\w:])(.{{0,25}})", rule["expr"])]
            assert all(use.startswith('{environment="test"') for use in uses), rule["expr"]
    ran = engines.check_rules(tmp_path, {f"{name}.yml": text for name, text in files.items()})
    assert ran.ok, ran.said


def test_in_an_existing_workspace_another_environment_raises_no_alert(engines: Engines, tmp_path: Path):
    text = rule_files(_in_a_shared_workspace("pcs"))["gpu-health"]
    (tmp_path / "rules.yml").write_text(text)
    labels = (
        'cluster="other", environment="{}", node="n1", node_group="g", instance_type="p5.48xlarge", gpu="0", UUID="G"'
    )
    failed = [f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{labels.format(name)}}}" for name in ("test", "other")]
    firing = 'count by (cluster, environment) (ALERTS{alertname="GpuRowRemapFailed"})'
    expected = [{"labels": '{cluster="other", environment="test"}', "value": 1}]
    check = {"expr": firing, "eval_time": "5m", "exp_samples": expected}
    inputs = [{"series": each, "values": "1x10"} for each in failed]
    test = {"name": "shared", "interval": "1m", "input_series": inputs, "promql_expr_test": [check]}
    ran = unit_tests(engines, tmp_path, [tmp_path / "rules.yml"], [test])
    assert ran.ok, ran.said


@pytest.mark.parametrize(
    ("expr", "restricted"),
    [
        ("a", 'a{e="1"}'),
        ('a{b="c"} offset 5m', 'a{e="1", b="c"} offset 5m'),
        ("a{}", 'a{e="1"}'),
        ("rate(a_total[5m])", 'rate(a_total{e="1"}[5m])'),
        ("sum by (a) (a) > on (b) group_left (c) d", 'sum by (a) (a{e="1"}) > on (b) group_left (c) d{e="1"}'),
        ("vector(1)", "vector(1)"),
        ("skipped:x:y * a", 'skipped:x:y * a{e="1"}'),
    ],
)
def test_matchers_go_into_every_selector(expr: str, restricted: str):
    assert matching(expr, 'e="1"', lambda name: not name.startswith("skipped:")) == restricted


def test_rules_know_the_types_of_karpenters_pools_and_which_of_them_reach_lustre_over_tcp():
    facts = site(load(FILES["eks-karpenter"]))
    assert {"g6e.2xlarge", "g6e.12xlarge", "c7i.48xlarge", "m7i.large"} <= {each.name for each in facts.types}
    assert facts.lustre_tcp_groups == ("elastic-prep", "elastic-eval")
    assert facts.karpenter is True
    expected = {
        rule.labels["instance_type"]: rule.expr
        for rule in catalogue(facts).rules
        if rule.name == "instance_type:gpus:expected"
    }
    assert expected["g6e.24xlarge"] == "vector(4)"
