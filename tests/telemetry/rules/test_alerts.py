"""Every alert fires on its fault, stays quiet on what looks like it, and clears. promtool evaluates the rules."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.telemetry.engines import Engines
from tests.telemetry.rules import gpu_cases, job_cases, node_cases, scheduler_cases
from tests.telemetry.rules.case import Case
from tests.telemetry.rules.environments import PLANES, environment
from tests.telemetry.rules.promtool import reported, unit_tests
from tests.telemetry.rules.series import gone, on_gpu, steady, then
from ultracluster.telemetry.promql import reading
from ultracluster.telemetry.rules import groups, rule_files
from ultracluster.telemetry.rules.model import FAULT, Alert, Group, Recording

MORE = gpu_cases.MORE_CASES
CASES: tuple[Case, ...] = (*gpu_cases.CASES, *MORE, *node_cases.CASES, *job_cases.CASES, *scheduler_cases.CASES)
GROUPS = {(plane, group.name): group for plane in PLANES for group in groups(environment(plane))}
ALERTS = [(*place, rule) for place, group in GROUPS.items() for rule in group.rules if isinstance(rule, Alert)]
NEVER_CLEARS = {"Watchdog"}

Files = Callable[..., list[Path]]


def _rule(case: Case) -> tuple[str, str, Alert]:
    """Control plane, rules file and rule of a case."""
    return next(
        each
        for each in ALERTS
        if each[2].name == case.alert and case.sustained in (None, each[2].sustained) and case.plane in (None, each[0])
    )


@cache
def _needed(plane: str, name: str) -> tuple[str, ...]:
    """The rules file `name` and those that record what it reads."""
    by_name = {group: rules for (of, group), rules in GROUPS.items() if of == plane}
    recorded_in = {metric: group for group, rules in by_name.items() for metric in _recorded(rules)}
    wanted, found = [name], []
    while wanted:
        found.append(wanted.pop())
        read = {metric for rule in by_name[found[-1]].rules for metric in reading(rule.expr).metrics}
        wanted += sorted({recorded_in[metric] for metric in read if metric in recorded_in} - {*found, *wanted})
    return tuple(reversed(found))


def _recorded(group: Group) -> set[str]:
    return {rule.name for rule in group.rules if isinstance(rule, Recording)}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Writes the files that a rules file needs."""
    folder = tmp_path_factory.mktemp("rules")
    for plane in PLANES:
        for name, text in rule_files(environment(plane)).items():
            (folder / f"{plane}-{name}.yml").write_text(text)
    return lambda plane, *names: [
        folder / f"{plane}-{each}.yml"
        for each in dict.fromkeys(need for name in names for need in _needed(plane, name))
    ]


def _read_by(alert: str, files: list[Path], folder: Path) -> list[Path]:
    """The rules files with the rules of one alert and what they read; promtool would evaluate all others in each test.

    A fault of another alert is left out where the alert reads its own only.
    """
    documents = [yaml.load(file.read_text(), yaml.CSafeLoader) for file in files]
    rules = [rule for document in documents for group in document["groups"] for rule in group["rules"]]
    kept: list[dict[str, Any]] = []
    wanted = [rule for rule in rules if rule.get("alert") == alert]
    while wanted:
        kept += wanted
        names = {name for rule in wanted for name in reading(rule["expr"]).metrics}
        own = all(f'{FAULT}{{fault="{alert}"}}' in rule["expr"] for rule in wanted)
        wanted = [
            rule
            for rule in rules
            if rule not in kept
            and rule.get("record") in names
            and (rule["record"] != FAULT or not own or rule["labels"]["fault"] == alert)
        ]
    for file, document in zip(files, documents, strict=True):
        for group in document["groups"]:
            group["rules"] = [rule for rule in group["rules"] if rule in kept]
        (folder / file.name).write_text(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False))
    return [folder / file.name for file in files]


def _added(rule: Alert) -> dict[str, str]:
    fault = {"fault": rule.name, "sustained": rule.sustained} if rule.limited else {}
    return {"environment": "test", **rule.labels, **fault}


@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case.alert}" for number, case in enumerate(CASES)])
def test_alert(case: Case, files: Files, engines: Engines, tmp_path: Path):
    plane, group, rule = _rule(case)
    read = _read_by(case.alert, files(plane, *case.also, group), tmp_path)
    ran = unit_tests(engines, tmp_path, read, case.tests(_added(rule), rule.sustained))
    assert ran.ok, ran.said


@pytest.mark.parametrize(("plane", "group"), GROUPS)
def test_texts(plane: str, group: str, files: Files, engines: Engines, tmp_path: Path):
    cases = [case for case in CASES if _rule(case)[:2] == (plane, group)]
    also = {name for case in cases for name in case.also}
    told = unit_tests(engines, tmp_path, files(plane, *also, group), [case.report() for case in cases])
    told_summaries = [each["summary"] for each in reported(told.said)]
    assert told_summaries == [case.summary for case in cases for _ in case.labels]


def test_every_alert_has_a_case_with_look_alikes():
    assert {case.alert for case in CASES} | NEVER_CLEARS == {rule.name for _, _, rule in ALERTS}
    assert {case.alert for case in CASES if case not in MORE} == {case.alert for case in CASES if case.look_alikes}


def test_an_alert_holds_through_a_gap_and_flapping_data(files: Files, engines: Engines, tmp_path: Path):
    """`keep_firing_for`: without it the alert ends at minutes 15 and 20, and a node is drained for each new one."""
    gap = then(steady(0, 5), steady(1, 8), gone(4), steady(1, 3), steady(0, 4), steady(1, 2), steady(0, 60))
    inputs = on_gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE", gap)
    firing = 'ALERTS{alertname="GpuRowRemapFailed", alertstate="firing"}'
    held = [
        {"expr": f"count({firing})", "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": 1}]}
        for minute in (6, 15, 22, 30)
    ]
    ended = {"expr": firing, "eval_time": "45m", "exp_samples": []}
    series = [{"series": name, "values": values} for name, values in inputs.items()]
    test = {"name": "gap", "interval": "1m", "input_series": series, "promql_expr_test": [*held, ended]}
    ran = unit_tests(engines, tmp_path, files("pcs", "gpu-health"), [test])
    assert ran.ok, ran.said


def test_one_node_keeps_its_alerts_whatever_number_of_gpus_and_xids_it_has(
    files: Files, engines: Engines, tmp_path: Path
):
    """Many series of one node are no widespread fault: its alerts would go, and with them its drain."""
    inputs = node_cases.xids_of(1)
    count = {"expr": 'count(ALERTS{alertname="GpuXidReplace", alertstate="firing", node="n0"})', "eval_time": "12m"}
    check = {**count, "exp_samples": [{"labels": "{}", "value": len(inputs)}]}
    series = [{"series": name, "values": values} for name, values in inputs.items()]
    test = {"name": "one node", "interval": "1m", "input_series": series, "promql_expr_test": [check]}
    ran = unit_tests(engines, tmp_path, files("pcs", "gpu-health"), [test])
    assert ran.ok, ran.said


@pytest.mark.parametrize("plane", PLANES)
def test_the_watchdog_always_fires(plane: str, files: Files, engines: Engines, tmp_path: Path):
    firing = 'ALERTS{alertname="Watchdog", alertstate="firing"}'
    sample = f'{firing[:-1]}, __name__="ALERTS", component="telemetry", environment="test", severity="info"}}'
    checks = [
        {"expr": firing, "eval_time": time, "exp_samples": [{"labels": sample.removeprefix("ALERTS"), "value": 1}]}
        for time in ("0m", "1h", "1d")
    ]
    ran = unit_tests(
        engines,
        tmp_path,
        _read_by("Watchdog", files(plane, "telemetry"), tmp_path),
        [{"name": "nothing", "interval": "1m", "promql_expr_test": checks}],
    )
    assert ran.ok, ran.said
