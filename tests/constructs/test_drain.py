"""Draining of nodes on alerts: who may run what, and what the function asks for."""

import json
import re
from typing import Any
from unittest.mock import patch

import pytest

from tests.synthesis import ROOT
from ultracluster.config.loader import load
from ultracluster.config.observability import Alerts
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
    document, instances, reads, logs = statements
    assert json.dumps(document["Resource"]).count("DrainDocument") == 1
    tags = {"ssm:resourceTag/ultracluster:environment": "dev", "ssm:resourceTag/ultracluster:node-group": "login"}
    assert instances["Condition"] == {"StringEquals": tags}
    assert {statement["Action"] for statement in (document, instances)} == {"ssm:SendCommand"}
    assert reads["Action"] == ["ssm:DescribeInstanceInformation", "ssm:GetCommandInvocation"]
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
    assert second == "set -- '{{ node }}' '{{ reason }}' '{{ since }}'"
    for name, parameter in content["parameters"].items():
        for text in ("a'; reboot; '", "$(reboot)", "a\nb", "`x`", ""):
            assert not re.fullmatch(parameter["allowedPattern"], text), name


# the function


class Ssm:
    """Systems Manager with login nodes, each of which says a line, or has a status other than Success."""

    class exceptions:  # noqa: N801 - as boto3 calls it
        InvocationDoesNotExist = type("InvocationDoesNotExist", (Exception,), {})

    def __init__(self, nodes: dict[str, dict[str, str] | str]) -> None:
        self.nodes, self.sent, self.filters, self.asked = nodes, [], [], 0

    def get_paginator(self, name: str) -> "Ssm":
        assert name == "describe_instance_information"
        return self

    def paginate(self, **asked: Any) -> list[Any]:
        self.filters = asked["Filters"]
        return [{"InstanceInformationList": [{"InstanceId": name}]} for name in self.nodes]

    def send_command(self, **asked: Any) -> dict[str, Any]:
        self.sent.append(asked)
        return {"Command": {"CommandId": f"c-{len(self.sent)}"}}

    def get_command_invocation(self, **asked: Any) -> dict[str, Any]:
        self.asked += 1
        if self.asked == 1:
            raise self.exceptions.InvocationDoesNotExist
        if self.asked == 2:
            return {"Status": "InProgress", "StandardOutputContent": ""}
        said = self.nodes[asked["InstanceId"]]
        if isinstance(said, str):
            return {"Status": said, "StandardOutputContent": ""}
        status = "Failed" if said["outcome"] == "failed" else "Success"
        return {"Status": status, "StandardOutputContent": json.dumps(said) + "\n"}


DRAINED = {"node": "train-1", "outcome": "drained", "detail": "", "reason": "auto-repair: x"}


def call(*alerts, capsys, nodes=None):
    """Calls the function; returns what it sent, its log, and the error that it raised."""
    ssm = Ssm({"i-1": DRAINED} if nodes is None else nodes)
    event = {"Records": [{"Sns": {"Message": json.dumps({"alerts": list(alerts)})}}]}
    raised = None
    with (
        patch.object(drain.boto3, "client", lambda _: ssm),
        patch.object(drain.time, "sleep"),
        patch.dict(drain.os.environ, {"DOCUMENT": "drain-doc", "ENVIRONMENT": "dev"}),
    ):
        try:
            drain.handler(event, None)
        except (KeyError, RuntimeError) as error:
            raised = error
    return ssm, [json.loads(line) for line in capsys.readouterr().out.splitlines()], raised


def test_an_alert_has_a_login_node_run_the_document_and_the_log_has_what_it_said(capsys):
    ssm, log, raised = call(ALERT, capsys=capsys)
    [asked] = ssm.sent
    assert (asked["DocumentName"], asked["InstanceIds"]) == ("drain-doc", ["i-1"])
    reason = "GpuXidReplace 3 needs replace"
    assert asked["Parameters"] == {"node": ["train-1"], "reason": [reason], "since": [ALERT["since"]]}
    tags = {each["Key"]: each["Values"] for each in ssm.filters}
    assert tags == {
        "tag:ultracluster:environment": ["dev"],
        "tag:ultracluster:node-group": ["login"],
        "PingStatus": ["Online"],
    }
    assert log == [{**ALERT, "event": "drain", "instance": "i-1", "command": "c-1", **DRAINED}]
    assert raised is None


def test_alerts_of_one_time_ask_the_same_login_node_whose_lock_and_count_then_hold(capsys):
    for nodes in ({"i-2": DRAINED, "i-1": DRAINED}, {"i-1": DRAINED, "i-2": DRAINED}):
        ssm, _, _ = call(ALERT, {**ALERT, "node": "train-2"}, capsys=capsys, nodes=nodes)
        assert [asked["InstanceIds"] for asked in ssm.sent] == [["i-1"], ["i-1"]]


def test_a_login_node_that_fails_does_not_keep_the_next_from_it(capsys):
    ssm, log, raised = call(ALERT, capsys=capsys, nodes={"i-1": "TimedOut", "i-2": DRAINED})
    assert [asked["InstanceIds"] for asked in ssm.sent] == [["i-1"], ["i-2"]]
    assert {asked["TimeoutSeconds"] for asked in ssm.sent} == {30}, "a command that comes late would race with the next"
    assert (log[0]["outcome"], log[0]["instance"], raised) == ("drained", "i-2", None)


@pytest.mark.parametrize(
    ("nodes", "detail"),
    [
        ({}, "no login node is online"),
        ({"i-1": "TimedOut"}, "TimedOut"),
        ({"i-1": {"outcome": "failed", "detail": "Slurm does not answer"}}, "Slurm does not answer"),
    ],
)
def test_a_node_that_nobody_drained_is_recorded_and_an_error_that_lambda_tries_again(capsys, nodes, detail):
    _, log, raised = call(ALERT, {**ALERT, "node": "-x"}, capsys=capsys, nodes=nodes)
    assert [entry["outcome"] for entry in log] == ["failed", "ignored"]
    assert log[0]["detail"] == detail
    assert isinstance(raised, RuntimeError)


def test_what_the_function_sends_matches_the_patterns_of_the_document(capsys):
    odd = {**ALERT, "alert": "Odd'; reboot; '", "gpu": "$(x)\n"}
    ssm, _, _ = call(odd, capsys=capsys)
    for name, [value] in ssm.sent[0]["Parameters"].items():
        assert re.fullmatch(document_content()["parameters"][name]["allowedPattern"], value)


@pytest.mark.parametrize("node", ["", "a b", "x;reboot", "-x", "n" * 64])
def test_what_is_no_node_is_recorded_and_not_drained(capsys, node):
    ssm, log, _ = call({**ALERT, "node": node}, capsys=capsys)
    assert (ssm.sent, log[0]["outcome"]) == ([], "ignored")


@pytest.mark.parametrize("since", ["", "yesterday", "2026-11-20T00:00:00Z; reboot"])
def test_what_is_no_time_is_recorded_and_not_drained(capsys, since):
    ssm, log, _ = call({**ALERT, "since": since}, capsys=capsys)
    assert (ssm.sent, log[0]["outcome"]) == ([], "ignored")


def test_a_message_without_what_an_alert_needs_is_an_error(capsys):
    assert isinstance(call({"node": "train-1"}, capsys=capsys)[2], KeyError)


# the environment


def stacks(**observability):
    environment = load(ROOT / "environments/dev.yaml")
    settings = environment.observability.model_copy(update=observability)
    app = build_app(environment.model_copy(update={"observability": settings}))
    return {stack.stack_name: stack.template for stack in app.synth().stacks}


@pytest.mark.parametrize("given", [{}, {"auto_repair": False}])
def test_alerts_drain_nodes_only_where_the_file_asks_for_it_and_the_topic_stays_for_its_subscription(given):
    with_repair, without = stacks(auto_repair=True), stacks(**given)
    assert "dev-repair" in with_repair
    assert "dev-repair" not in without
    assert "- name: repair" in json.dumps(with_repair["dev-observability"])
    assert "- name: repair" not in json.dumps(without["dev-observability"])
    for template in (with_repair["dev-observability"], without["dev-observability"]):
        topics = [each for each in template["Resources"].values() if each["Type"] == "AWS::SNS::Topic"]
        assert [topic["Properties"]["TopicName"] for topic in topics] == ["dev-repairs"]


def test_an_alarm_tells_people_of_alerts_that_could_not_drain():
    template = stacks(alerts=Alerts(email=("oncall@example.com",)), auto_repair=True)["dev-repair"]
    [alarm] = [each for each in template["Resources"].values() if each["Type"] == "AWS::CloudWatch::Alarm"]
    query = json.dumps(alarm["Properties"]["Metrics"][0]["Expression"])
    assert "SUM(Errors)" in query
    assert "DrainFunction" in query
    assert alarm["Properties"]["AlarmActions"]
