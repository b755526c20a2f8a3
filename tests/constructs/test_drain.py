"""Draining of nodes on alerts: who may run what, and what the function asks for."""

import json
import re
from unittest.mock import Mock, patch

import pytest

from tests.synthesis import ROOT
from ultracluster.config.loader import load
from ultracluster.constructs.drain import NodeDrain, document_content
from ultracluster.constructs.handlers import drain
from ultracluster.constructs.keys import DataKey
from ultracluster.nodes.steps import script
from ultracluster.stacks.app import build_app

TOPIC = "arn:aws:sns:us-east-2:111122223333:repairs"
ALERT = {"node": "train-1", "alert": "GpuXidReplace", "gpu": "3", "repair": "replace", "since": "2026-11-20T00:00:00Z"}


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        NodeDrain(stack, "Drain", environment="dev", topic_arn=TOPIC, key=DataKey(stack, "Key", description="x"))

    return synth(fill)


def only(template, kind):
    (found,) = template.find_resources(kind).values()
    return found["Properties"]


def test_the_function_may_run_one_document_on_login_nodes_of_the_environment(template):
    statements = only(template, "AWS::IAM::ManagedPolicy")["PolicyDocument"]["Statement"]
    document, instances, logs = statements
    assert json.dumps(document["Resource"]).count("DrainDocument") == 1
    tags = {"ssm:resourceTag/ultracluster:environment": "dev", "ssm:resourceTag/ultracluster:node-group": "login"}
    assert instances["Condition"] == {"StringEquals": tags}
    assert {statement["Action"] for statement in (document, instances)} == {"ssm:SendCommand"}
    assert logs["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]


def test_only_the_topic_calls_the_function(template):
    permission = only(template, "AWS::Lambda::Permission")
    assert (permission["Principal"], permission["SourceArn"]) == ("sns.amazonaws.com", TOPIC)
    assert only(template, "AWS::SNS::Subscription")["TopicArn"] == TOPIC


def test_the_document_runs_the_script_with_parameters_that_hold_no_shell(template):
    content = only(template, "AWS::SSM::Document")["Content"]
    assert content == document_content()
    [step] = content["mainSteps"]
    first, second, *lines = step["inputs"]["runCommand"]
    assert [first, *lines] == script("drain-node").text.splitlines()
    assert second == "set -- '{{ node }}' '{{ reason }}'"
    for name, parameter in content["parameters"].items():
        for text in ("a'; reboot; '", "$(reboot)", "a\nb", "`x`", ""):
            assert not re.fullmatch(parameter["allowedPattern"], text), name


# the function


def call(*alerts, capsys):
    ssm = Mock()
    ssm.send_command.return_value = {"Command": {"CommandId": "c-1"}}
    event = {"Records": [{"Sns": {"Message": json.dumps({"alerts": list(alerts)})}}]}
    with (
        patch.object(drain.boto3, "client", lambda _: ssm),
        patch.dict(drain.os.environ, {"DOCUMENT": "drain-doc", "ENVIRONMENT": "dev"}),
    ):
        drain.handler(event, None)
    return ssm.send_command, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_an_alert_has_one_login_node_after_the_other_run_the_document(capsys):
    send, log = call(ALERT, capsys=capsys)
    asked = send.call_args.kwargs
    assert asked["DocumentName"] == "drain-doc"
    assert asked["Parameters"] == {"node": ["train-1"], "reason": ["GpuXidReplace 3 needs replace"]}
    tags = {target["Key"]: target["Values"] for target in asked["Targets"]}
    assert tags == {"tag:ultracluster:environment": ["dev"], "tag:ultracluster:node-group": ["login"]}
    assert asked["MaxConcurrency"] == "1"
    assert asked["MaxErrors"] == "100%", "by default Run Command stops at the first login node that fails"
    assert log == [
        {
            **ALERT,
            "event": "drain",
            "outcome": "asked",
            "command": "c-1",
            "reason": "GpuXidReplace 3 needs replace",
        }
    ]


def test_what_the_function_sends_matches_the_patterns_of_the_document(capsys):
    odd = {**ALERT, "alert": "Odd'; reboot; '", "gpu": "$(x)\n"}
    send, _ = call(odd, capsys=capsys)
    for name, [value] in send.call_args.kwargs["Parameters"].items():
        assert re.fullmatch(document_content()["parameters"][name]["allowedPattern"], value)


@pytest.mark.parametrize("node", ["", "a b", "x;reboot", "-x", "n" * 64])
def test_what_is_no_node_is_recorded_and_not_drained(capsys, node):
    send, log = call({**ALERT, "node": node}, capsys=capsys)
    assert not send.called
    assert log[0]["outcome"].startswith("ignored")


def test_an_error_of_the_service_is_raised_so_that_lambda_tries_again(capsys):
    with pytest.raises(KeyError):
        call({"node": "train-1"}, capsys=capsys)


# the environment


def stacks(**observability):
    environment = load(ROOT / "environments/dev.yaml")
    settings = environment.observability.model_copy(update=observability)
    app = build_app(environment.model_copy(update={"observability": settings}))
    return {stack.stack_name: stack.template for stack in app.synth().stacks}


def test_auto_repair_false_leaves_no_way_to_drain_a_node():
    with_repair, without = stacks(), stacks(auto_repair=False)
    assert "dev-repair" in with_repair
    assert "dev-repair" not in without
    assert "ultracluster.repair" in json.dumps(with_repair["dev-observability"])
    assert not [r for r in without["dev-observability"]["Resources"].values() if r["Type"] == "AWS::SNS::Topic"]
    assert '"repair"' not in json.dumps(without["dev-observability"])
