"""The tour in a real Prometheus: every query of every dashboard, the alerts of the day, the pictures, and the page."""

import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from scripts.observe.course import Day
from scripts.observe.drawing.board import draw, fetch, rows
from scripts.observe.page import STORY
from scripts.observe.tour import tour
from scripts.observe.website import contents, website
from tests.engines.folder import missing
from tests.synthesis import ROOT
from ultracluster import load

DAY = Day(1795270200, hours=8)
EXPECTED = {
    ("JobSlowGpu", "train-5"),
    ("GpuHot", "train-5"),
    ("GpuSingleBitErrorsHigh", "train-16"),
    ("GpuRowRemapPending", "train-16"),
    ("GpuMissing", "train-14"),
    ("JobHung", ""),
    ("LustreAlmostFull", ""),
    ("LustreOverTcp", "train-12"),
    ("Watchdog", ""),
}
"""Alerts that fire at the end of the day, with their node."""


@pytest.fixture(scope="module")
def made(engines):
    also = [load(ROOT / f"examples/{name}.yaml") for name in ("eks-volcano", "eks-kai")]  # Volcano with Karpenter
    with tour(DAY, [str(engines.programs / "prometheus")], also) as running:
        yield running


@pytest.fixture(scope="module")
def site(made):
    return contents(made)


def panels(made):
    for picture in made.pictures:
        for panel in picture.dashboard["panels"]:
            if panel["type"] != "row":
                yield picture, panel


def test_every_query_returns_series_with_the_labels_that_its_legend_shows(made):
    wrong = []
    for picture, panel in panels(made):
        found = {}
        for target in panel["targets"] if panel["type"] != "table" else ():
            found[target["refId"]] = series = fetch({**panel, "targets": [target]}, picture.look)
            named = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
            named -= {"team"}  # which jobs on PCS do not report
            only_faults = target.get("expr", "").endswith("> 0")  # and other queries of the panel have series
            if not (series or only_faults) or not all(each.values and named <= set(each.labels) for each in series):
                wrong.append((picture.slug, panel["title"], target["refId"]))
        if found and not any(found.values()):
            wrong.append((picture.slug, panel["title"], "all"))
    assert wrong == []


def test_every_column_of_every_table_has_values(made):
    wrong = []
    for picture, panel in panels(made):
        if panel["type"] == "table":
            found = rows(panel, picture.look)
            columns = {name for row in found for name, value in row.items() if value not in (None, "")}
            wrong += [(picture.slug, panel["title"], name) for name in set(found[0] if found else ["any"]) - columns]
    assert set(wrong) <= {
        # what no GPU of the day has: a table of faults shows its column empty
        ("gpu-cluster", "GPUs to reset or replace", "Remap failed"),
        ("gpu-cluster", "GPUs to reset or replace", "SRAM threshold"),
        ("gpu-node", "GPUs of the node", "Team"),  # the node is drained
        ("gpu-node", "GPUs of the node", "Job"),
        ("gpu-node", "Alerts of the node", "Team"),
        ("gpu-node", "Alerts of the node", "Job"),
    }


def test_the_faults_of_the_day_fire_and_what_is_over_does_not(made):
    firing = {(alert.name, alert.labels.get("node", "")) for alert in made.firing}
    assert firing >= EXPECTED
    assert not {name for name, _ in firing if name.startswith("Efa")}, "the packet loss of train-3 was four hours ago"
    assert not {name for name, _ in firing if name.startswith(("NodeCollector", "SlurmNodesUnwatched", "Fault"))}
    assert all(alert.summary and alert.runbook for alert in made.firing)
    order = [("critical", "warning", "info").index(alert.severity) for alert in made.firing]
    assert order == sorted(order)


def test_pictures_are_svg_with_every_panel_and_data_in_it(site, made):
    for picture in made.pictures:
        drawn = site[f"/dashboards/{picture.slug}.svg"][1]
        parsed = ElementTree.fromstring(drawn)  # noqa: S314 - drawn here
        texts = {element.text for element in parsed.iter() if element.text}
        assert {panel["title"] for panel in picture.dashboard["panels"]} <= texts
        assert "No data" not in texts, picture.slug


def test_a_picture_is_the_same_each_time(made):
    picture = made.pictures[0]
    assert draw(picture.dashboard, picture.look) == draw(picture.dashboard, picture.look)


def test_the_dashboards_of_all_schedulers_are_asked(made):
    rows = {panel["title"] for picture in made.pictures for panel in picture.dashboard["panels"]}
    assert {"Queues (Kueue)", "Queues (Volcano)", "Queues (KAI)", "Karpenter"} <= rows


def test_the_story_leads_to_dashboards_of_the_page(made):
    assert {slug for *_, slug in STORY} <= {picture.slug for picture in made.pictures}


def test_the_page_shows_alerts_and_every_dashboard_in_a_browser(site, made, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        missing("no browser on this machine: apt-get install chromium")
    with website(site) as address:
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1600,2400",
            "--virtual-time-budget=20000",
        ]
        seen = subprocess.run(
            [chromium, *options, f"--user-data-dir={tmp_path}", "--dump-dom", address],
            capture_output=True,
            text=True,
            timeout=600,
        ).stdout
    assert f'data-loaded="{len(made.pictures)}"' in seen, "pictures that the browser could draw"
    assert seen.count("<tr data-alert=") == len(made.firing)
    assert "JobHung" in seen


def test_the_site_has_a_runbook_for_each_alert(site, made):
    for alert in made.firing:
        assert f"/runbooks/{alert.runbook.rpartition('/')[2]}" in site
