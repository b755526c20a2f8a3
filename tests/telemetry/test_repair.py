"""Which alerts have a node drained, and that the function can read the message that the alert manager sends."""

import json
from unittest.mock import patch

import pytest
import yaml

from tests.synthesis import FILES
from ultracluster import load
from ultracluster.constructs.handlers import drain
from ultracluster.telemetry.alertmanager import REPAIR, TEMPLATES, definition

TOPIC = "arn:aws:sns:us-east-2:111122223333:repairs"
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
    alerts = [
        {
            "status": status,
            "labels": {**NODE, "repair": "reset", "gpu": str(gpu)},
            "startsAt": "2026-11-22T03:00:00Z",
        }
        for gpu, status in enumerate(["firing"] * count + ["resolved"])
    ]
    (folder / "data.json").write_text(json.dumps({"receiver": REPAIR, "status": "firing", "alerts": alerts}))
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
        patch.dict(drain.os.environ, {"DOCUMENT": "d", "ENVIRONMENT": "dev"}),
    ):
        client.return_value.send_command.return_value = {"Command": {"CommandId": "c"}}
        drain.handler({"Records": [{"Sns": {"Message": ran.said}}]}, None)
        asked = [call.kwargs["Parameters"] for call in client.return_value.send_command.call_args_list]
    assert [each["node"] for each in asked] == [["train-1"]] * count
    assert asked[0]["reason"] == ["GpuXidReplace 0 needs reset"]
    assert json.loads(capsys.readouterr().out.splitlines()[0])["since"] == "2026-11-22T03:00:00Z"
