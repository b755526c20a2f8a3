"""Which alerts have a node drained, and that the function can read the message that the alert manager sends."""

import json
import re
from unittest.mock import patch

import pytest
import yaml

from tests.synthesis import FILES
from ultracluster import load
from ultracluster.constructs.handlers import drain
from ultracluster.nodes.steps import script
from ultracluster.telemetry.alertmanager import REPAIR, TEMPLATES, definition
from ultracluster.telemetry.rules import alerts

TOPIC = "arn:aws:sns:us-east-2:111122223333:repairs"
INVOCATION = {"Status": "Success", "StandardOutputContent": '{"outcome": "drained"}\n'}
NODE = {"alertname": "GpuXidReplace", "severity": "critical", "environment": "dev", "node": "train-1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("alertmanager")
    document = yaml.safe_load(definition(load(FILES["dev"]), topics=(), region="us-east-2", repair_topic=TOPIC))
    (made / TEMPLATES).write_text(document["template_files"][TEMPLATES])
    (made / "alertmanager.yml").write_text(document["alertmanager_config"])
    return made


def receivers(engines, folder, **labels):
    given = [f"{name}={value}" for name, value in labels.items()]
    ran = engines.amtool("config", "routes", "test", f"--config.file={folder / 'alertmanager.yml'}", *given)
    assert ran.ok, ran.said
    return ran.said.splitlines()[0].split(",")


def test_amtool_accepts_the_definition(engines, folder):
    ran = engines.amtool("check-config", folder / "alertmanager.yml")
    assert ran.ok, ran.said


def test_an_alert_that_needs_a_repair_drains_its_node_and_still_tells_people(engines, folder):
    assert receivers(engines, folder, **NODE, repair="replace") == ["repair", "oncall"]


@pytest.mark.parametrize(
    "labels",
    [
        NODE,
        {**NODE, "severity": "warning"},
        {"alertname": "FaultWidespread", "severity": "critical", "repair": "replace", "environment": "dev"},
    ],
)
def test_no_other_alert_drains_a_node(engines, folder, labels):
    assert "repair" not in receivers(engines, folder, **labels)


def test_a_fault_of_many_nodes_hides_the_alerts_that_would_drain_them(folder):
    configuration = yaml.safe_load((folder / "alertmanager.yml").read_text())
    hiding = [rule for rule in configuration["inhibit_rules"] if "FaultWidespread" in rule["source_matchers"][0]]
    assert hiding


@pytest.mark.parametrize("count", [1, 3])
def test_the_function_reads_what_the_alert_manager_writes(engines, folder, count, capsys):
    sent = [
        {
            "status": status,
            "labels": {**NODE, "repair": "reset", "gpu": str(gpu)},
            "startsAt": "2026-11-22T03:00:00Z",
        }
        for gpu, status in enumerate(["firing"] * count + ["resolved"])
    ]
    (folder / "data.json").write_text(json.dumps({"receiver": REPAIR, "status": "firing", "alerts": sent}))
    [text] = [
        config["message"]
        for receiver in yaml.safe_load((folder / "alertmanager.yml").read_text())["receivers"]
        for config in receiver.get("sns_configs", [])
    ]
    ran = engines.amtool(
        "template",
        "render",
        f"--template.glob={folder / TEMPLATES}",
        f"--template.data={folder / 'data.json'}",
        f"--template.text={text}",
    )
    assert ran.ok, ran.said
    with (
        patch.object(drain.boto3, "client") as client,
        patch.object(drain, "login_nodes", return_value=["i-1"]),
        patch.object(drain, "invocations", return_value=[INVOCATION]),
        patch.dict(drain.os.environ, {"DOCUMENT": "d"}),
    ):
        client.return_value.send_command.return_value = {"Command": {"CommandId": "c"}}
        drain.handler({"Records": [{"Sns": {"Message": ran.said}}]}, None)
        asked = [call.kwargs["Parameters"] for call in client.return_value.send_command.call_args_list]
    expected = {"node": ["train-1"], "reason": ["GpuXidReplace 0 needs reset"], "since": ["2026-11-22T03:00:00Z"]}
    assert (len(asked), asked[0]) == (count, expected)
    assert json.loads(capsys.readouterr().out.splitlines()[0])["since"] == "2026-11-22T03:00:00Z"


def test_no_rule_lets_an_alert_fire_for_an_hour_after_its_condition_ended():
    """The script drains for an alert from before the boot of the node if it still fires an hour after the boot."""
    assert "< 3600" in script("drain-node").text
    repairs = [alert for alert in alerts(load(FILES["dev"])) if alert.repair]
    assert len(repairs) > 10
    for alert in repairs:
        looks_back = re.findall(r"(?:\[|offset )(\d+[mh])", alert.expr)
        assert minutes(alert.keep) + max(map(minutes, looks_back), default=0) < 60, alert.name


def minutes(duration):
    return int(duration[:-1]) * {"m": 1, "h": 60}[duration[-1]]
