"""The alert manager definition: amtool accepts it, routes as we say, and its messages fit into SNS."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.synthesis import FILES
from tests.telemetry.engines import Engines
from ultracluster import load
from ultracluster.config.environment import Environment
from ultracluster.config.observability import Alerts, PagerDuty
from ultracluster.telemetry.alertmanager import TEMPLATES, definition

TOPIC = "arn:aws:sns:us-east-2:111122223333:oncall"
PAGERDUTY = "arn:aws:secretsmanager:us-east-2:111122223333:secret:pagerduty-a1b2c3"
ALERT = {
    "status": "firing",
    "labels": {"alertname": "GpuXidReplace", "severity": "critical", "environment": "prod", "node": "n1"},
    "annotations": {"summary": "XID 79 on GPU 0", "description": "d", "action": "a", "runbook_url": "u"},
    "startsAt": "2026-11-22T03:00:00Z",
}


def _environment(alerts: Alerts | None) -> Environment:
    shipped = load(FILES["prod"])
    return shipped.model_copy(update={"observability": shipped.observability.model_copy(update={"alerts": alerts})})


def _parts(alerts: Alerts | None, *topics: str) -> tuple[dict[str, Any], str]:
    document = yaml.safe_load(definition(_environment(alerts), topics=topics, region="us-east-2"))
    assert set(document) == {"alertmanager_config", "template_files"}
    return yaml.safe_load(document["alertmanager_config"]), document["template_files"][TEMPLATES]


def _receiver(configuration: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in configuration["receivers"] if each["name"] == name)
    return found


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The definition as a file of Alertmanager, which has no secrets of AWS."""
    configuration, template = _parts(Alerts(pagerduty=PagerDuty(secret_arn=PAGERDUTY)), TOPIC)
    for page in _receiver(configuration, "oncall")["pagerduty_configs"]:
        page["routing_key"] = "0" * 32
    (tmp_path / TEMPLATES).write_text(template)
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(configuration))
    return tmp_path


def test_amtool_accepts_it(written: Path, engines: Engines):
    ran = engines.amtool("check-config", written / "alertmanager.yml")
    assert ran.ok, ran.said


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (["severity=critical", "node=n1"], "oncall"),
        (["severity=warning"], "team"),
        (["severity=info"], "nobody"),
        (["alertname=Watchdog", "severity=info"], "nobody"),
    ],
)
def test_who_is_told(labels: list[str], receiver: str, written: Path, engines: Engines):
    file = f"--config.file={written / 'alertmanager.yml'}"
    assert engines.amtool("config", "routes", "test", file, *labels).said.splitlines()[0] == receiver


def _rendered(written: Path, engines: Engines, name: str, alerts: list[dict[str, Any]]) -> str:
    common = {
        key: value for key, value in alerts[0]["labels"].items() if all(value == a["labels"].get(key) for a in alerts)
    }
    data = {"receiver": "oncall", "status": "firing", "alerts": alerts, "commonLabels": common}
    (written / "data.json").write_text(json.dumps(data))
    ran = engines.amtool(
        "template",
        "render",
        f"--template.glob={written / TEMPLATES}",
        f"--template.data={written / 'data.json'}",
        f'--template.text={{{{ template "ultracluster.{name}" . }}}}',
    )
    assert ran.ok, ran.said
    return ran.said.removesuffix("\n")


@pytest.mark.parametrize(
    ("alerts", "subject"),
    [
        ([ALERT], "FIRING critical: GpuXidReplace (prod, n1)"),
        (
            [ALERT, {**ALERT, "labels": {**ALERT["labels"], "node": "n2"}}],
            "FIRING critical: GpuXidReplace, 2 alerts (prod)",
        ),
    ],
)
def test_subjects_fit_into_sns(alerts: list[dict[str, Any]], subject: str, written: Path, engines: Engines):
    """SNS takes up to 100 printable ASCII characters (SNS API, Publish)."""
    assert _rendered(written, engines, "subject", alerts) == subject


def test_the_longest_subject_fits_into_sns(written: Path, engines: Engines):
    longest = {"alertname": "G" * 32, "severity": "critical", "environment": "e" * 20, "node": "i" * 19}
    assert len(_rendered(written, engines, "subject", [{**ALERT, "labels": longest}])) <= 100


def test_messages_say_what_to_do(written: Path, engines: Engines):
    text = _rendered(written, engines, "message", [ALERT, {**ALERT, "status": "resolved"}])
    assert "What to do: a" in text
    assert text.index("XID 79") < text.index("Resolved:") < text.rindex("XID 79")


def test_an_alert_manager_of_nobody_without_alerts():
    configuration, _ = _parts(None)
    assert configuration["receivers"] == [{"name": "nobody"}, {"name": "oncall"}, {"name": "team"}]


def test_topics_have_a_region_and_nothing_that_amp_refuses():
    """AMP refuses api_url and http_config, and cannot sign without a Region (AMP User Guide, SNS receivers)."""
    configuration, _ = _parts(Alerts(email=("oncall@example.com",)), TOPIC, f"{TOPIC}2")
    for name in ("oncall", "team"):
        topics = _receiver(configuration, name)["sns_configs"]
        assert [each["topic_arn"] for each in topics] == [TOPIC, f"{TOPIC}2"]
        assert all(each["sigv4"] == {"region": "us-east-2"} for each in topics)
        assert not [each for each in topics if {"api_url", "http_config"} & set(each)]


@pytest.mark.parametrize("key", [None, "routing"])
def test_pagerduty_gets_critical_alerts_with_a_key_from_secrets_manager(key: str | None):
    configuration, _ = _parts(Alerts(pagerduty=PagerDuty(secret_arn=PAGERDUTY, secret_key=key)))
    (page,) = _receiver(configuration, "oncall")["pagerduty_configs"]
    secret = {"secret_arn": PAGERDUTY, "refresh_interval": "5m", **({"secret_key": key} if key else {})}
    assert page["routing_key"] == {"aws_secrets_manager": secret}
    assert "pagerduty_configs" not in _receiver(configuration, "team")


def test_it_fits_into_the_quotas_of_amp():
    """AMP User Guide, "Service quotas": 1 MB, 100 nodes of the routing tree, 100 inhibitions, repeats within 5 days."""
    configuration, _ = _parts(Alerts(email=("oncall@example.com",)), TOPIC)
    assert len(definition(_environment(None), topics=(TOPIC,), region="us-east-2").encode()) < 1_000_000
    assert 1 + len(configuration["route"]["routes"]) <= 100
    assert len(configuration["inhibit_rules"]) <= 100
    repeats = {
        configuration["route"]["repeat_interval"],
        *(r.get("repeat_interval", "1d") for r in configuration["route"]["routes"]),
    }
    assert repeats <= {"1d", "4h"}


def test_jobs_of_the_same_name_in_two_teams_have_messages_of_their_own():
    configuration, _ = _parts(None)
    critical = next(each for each in configuration["route"]["routes"] if each["receiver"] == "oncall")
    about_jobs = [each["equal"] for each in configuration["inhibit_rules"] if "workload" in each["equal"]]
    assert {"team", "workload"} <= set(critical["group_by"])
    assert about_jobs == [["environment", "team", "workload"]]


def test_an_alert_that_explains_others_hides_them():
    configuration, _ = _parts(None)
    hidden = {rule["source_matchers"][0]: rule["target_matchers"][0] for rule in configuration["inhibit_rules"]}
    assert hidden['alertname = "CollectionSilent"'] == 'alertname =~ "TargetsDown|SlurmNodesUnwatched"'
    assert hidden['alertname = "SlurmManyNodesDown"'] == 'alertname = "SlurmNodesLost"'


def test_no_alert_hides_alerts_elsewhere():
    """Two missing labels are equal: without the matchers one critical alert would hide all alerts without a node."""
    configuration, _ = _parts(None)
    for rule in configuration["inhibit_rules"]:
        for label in {"node", "workload"} & set(rule["equal"]):
            assert f'{label} =~ ".+"' in rule["source_matchers"]
            assert f'{label} =~ ".+"' in rule["target_matchers"]
