"""Every alert has a page in docs/runbooks that agrees with its rule, and every page has its alert."""

import json
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


SCRIPTS = ROOT / "infra/ultracluster/nodes/scripts"
IMAGE_UNITS = {"nvidia-fabricmanager", "nvidia-persistenced", "nvidia-imex", "chronyd"}
PACKAGE_UNITS = {"configure-efa-fsx-lustre-client", "fsx.mount"}
"""Units of AWS's Lustre package, and of the default mount path."""


def test_units_of_the_pages_are_on_the_nodes():
    scripts = "\n".join(script.read_text() for script in SCRIPTS.glob("*.sh"))
    ours = set(re.findall(r"/etc/systemd/system/([\w-]+)\.(?:service|timer) <<", scripts))
    ours |= set(re.findall(r"^ *write_unit ([\w-]+) ", scripts, re.MULTILINE))
    assert {"collect-efa", "dcgm-exporter", "metrics-agent"} <= ours
    pages = "\n".join(page.read_text() for page in PAGES.glob("*.md"))
    calls = re.findall(r"(?:systemctl (?:start|stop|status|restart)|journalctl -u|`-u) ([^`]+)`", pages)
    named = {unit for call in calls for unit in call.split()}
    assert named - ours - IMAGE_UNITS - PACKAGE_UNITS - {"UNIT"} == set()


def test_namespaces_of_the_pages_are_those_of_the_charts():
    charts = json.loads((ROOT / "infra/ultracluster/catalog/data/software.json").read_text())["charts"].values()
    pages = "\n".join(page.read_text() for page in PAGES.glob("*.md"))
    named = set(re.findall(r"kubectl -n ([\w-]+)", pages))
    assert named <= {chart["namespace"] for chart in charts} | {"NAMESPACE"}
    assert {"monitoring", "kube-system"} <= named
