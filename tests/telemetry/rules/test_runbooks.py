"""Every alert has a page in docs/runbooks that agrees with its rule, and every page has its alert."""

import re
from pathlib import Path

import pytest

from tests.synthesis import ROOT
from tests.telemetry.rules.environments import PLANES, environment
from ultracluster.telemetry.rules import RUNBOOKS, alerts
from ultracluster.telemetry.rules.model import Alert

PAGES = ROOT / RUNBOOKS
ALERTS: dict[str, Alert] = {alert.name: alert for plane in PLANES for alert in alerts(environment(plane))}
SEVERAL = {"FaultWidespread"}
"""Alerts with rules of different severities."""


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_an_alert_has_a_page(alert: Alert):
    text = (PAGES / alert.runbook).read_text()
    repair = f" · repair: {alert.repair}" if alert.repair else ""
    said = f"Severity: {alert.severity} · fires after: {alert.sustained} · about: {alert.component}{repair}\n"
    assert text.startswith(f"# {alert.name}\n\n")
    assert said in text or alert.name in SEVERAL
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Meaning", "Check", "Action"]
    assert all(part.strip() for part in re.split(r"^## .*$", text, flags=re.MULTILINE))


def test_every_page_has_an_alert():
    assert {page.name for page in PAGES.glob("*.md")} == {alert.runbook for alert in ALERTS.values()} | {"README.md"}


def test_the_list_is_that_of_the_rules():
    rows = dict(re.findall(r"^\| \[(\w+)\]\(([\w-]+\.md)\)", (PAGES / "README.md").read_text(), re.MULTILINE))
    assert rows == {alert.name: alert.runbook for alert in ALERTS.values()}
    for alert in ALERTS.values():
        row = f"| [{alert.name}]({alert.runbook}) | {alert.severity} | {alert.sustained} | {alert.component} |"
        assert alert.name in SEVERAL or row in (PAGES / "README.md").read_text()


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path):
    for target, anchor in re.findall(r"\]\(([^)#:]+)(?:#([\w-]+))?\)", page.read_text()):
        linked = page.parent / target
        assert linked.exists(), target
        headings = {
            re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
        }
        assert not anchor or anchor in headings, f"{target}#{anchor}"
