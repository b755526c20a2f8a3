"""Rule files and the alert manager definition of a workspace: kept, replaced, and refused as AMP refuses them."""

from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from handler_parts import Stack
from localaws.services.aps_alerting import balanced, definition_problems, rule_problems

RULES, WORKSPACE = "AWS::APS::RuleGroupsNamespace", "AWS::APS::Workspace"
ALERT = {"alert": "GpuGone", "expr": 'up{job="dcgm"} == 0', "for": "5m", "labels": {"severity": "critical"}}
TOPIC = "arn:aws:sns:us-east-1:123456789012:oncall"
SNS = {"topic_arn": TOPIC, "sigv4": {"region": "us-east-1"}}
SECRET = {"secret_arn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:pd-a1b2c3", "secret_key": "key"}
PAGERDUTY = {"routing_key": {"aws_secrets_manager": SECRET}}


def file(*rules: dict[str, Any], **group: Any) -> str:
    return yaml.dump({"groups": [{"name": "gpu", "rules": list(rules) or [ALERT], **group}]}, Dumper=yaml.CSafeDumper)


def definition(**changes: Any) -> str:
    config = {
        "route": {"receiver": "oncall", "group_by": ["cluster"], "routes": [{"receiver": "pager"}]},
        "receivers": [{"name": "oncall", "sns_configs": [SNS]}, {"name": "pager", "pagerduty_configs": [PAGERDUTY]}],
        **changes,
    }
    return yaml.safe_dump({"alertmanager_config": yaml.safe_dump(config)})


@pytest.fixture
def workspace(stack: Stack) -> str:
    return stack.make(WORKSPACE, Alias="train")


def test_the_workspace_refuses_a_wrong_rule_file(stack: Stack, workspace: str) -> None:
    with pytest.raises(ClientError, match="groups must be a list"):
        stack.make(RULES, Name="gpu", Workspace=workspace, Data="groups: []")


def test_a_workspace_holds_2000_rules(stack: Stack, workspace: str) -> None:
    recording = {"record": "a:b", "expr": "up"}
    stack.make(RULES, Name="one", Workspace=workspace, Data=file(*[recording] * 1999))
    stack.make(RULES, Name="two", Workspace=workspace, Data=file(recording))
    with pytest.raises(ClientError, match="would have 2001 rules"):
        stack.make(RULES, Name="three", Workspace=workspace, Data=file(recording))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a", "must be a mapping"),
        ("a: [", "not valid YAML"),
        ("a: " + "[" * 50_000, "Nesting is deeper than 100 levels"),
        ("groups: [{rules: []}]", "needs a name"),
        (yaml.safe_dump({"groups": [{"name": "a"}, {"name": "a"}]}), "is repeated"),
        (file(interval="10s"), "at least 30s"),
        (file(interval="often"), "at least 30s"),
        (file(partial="yes"), "field partial not found"),
        (file({"expr": "up"}), "exactly one of"),
        (file({**ALERT, "record": "a"}), "exactly one of"),
        (file({"alert": "A"}), "'expr' must be set"),
        (file({**ALERT, "expr": "rate(up[5m)"}), "could not parse expression"),
        (file({**ALERT, "for": "soon"}), "not a valid duration"),
        (file({**ALERT, "keep_firing_for": "1.5h"}), "not a valid duration"),
        (file({**ALERT, "labels": {"a-b": "c"}}), "invalid label name"),
        (file({"record": "a b", "expr": "up"}), "invalid recording rule name"),
        (file({"record": "a", "expr": "up", "for": "5m"}), "invalid field 'for'"),
        (file({**ALERT, "annotations": {"summary": "x" * 1_000_000}}), "at most 1000000 bytes"),
    ],
)
def test_rule_files_that_amp_refuses(text: str, said: str) -> None:
    assert said in next(rule_problems(text))


def test_a_good_rule_file_has_no_problem() -> None:
    assert list(rule_problems(file(interval="1m"))) == []


def test_brackets_in_strings_and_comments_do_not_count() -> None:
    assert balanced('count(up{job=~"a|(b"}) # (')
    assert not balanced("count(up))")
    assert not balanced('up{job="a}')


def test_a_workspace_whose_alert_manager_is_refused_is_not_left_behind(stack: Stack) -> None:
    with pytest.raises(ClientError, match="undefined receiver"):
        stack.make(WORKSPACE, AlertManagerDefinition=definition(route={"receiver": "nobody"}))
    assert stack.client("amp").list_workspaces()["workspaces"] == []


def receiver(**configs: Any) -> str:
    return definition(route={"receiver": "a"}, receivers=[{"name": "a", **configs}])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("receivers: []", "field receivers not found"),
        ("alertmanager_config: {route: {}}", "as text"),
        (definition(route={"routes": []}), "no receiver"),
        (definition(route={"receiver": "oncall", "matchers": ["a=b"]}), "must not have any matchers"),
        (definition(route={"receiver": "oncall", "routes": [{"receiver": "b"}]}), 'undefined receiver "b"'),
        (definition(route={"receiver": "oncall", "group_wait": "a while"}), "not a valid duration"),
        (definition(route={"receiver": "oncall", "routes": [{}] * 100}), "at most 100 routes"),
        (definition(inhibit_rules=[{}] * 101), "at most 100 inhibition rules"),
        (definition(receivers=[{"name": "oncall"}, {"name": "oncall"}, {"name": "pager"}]), "is not unique"),
        (receiver(slack_configs=[{}]), "slack_configs is not supported"),
        (receiver(sns_configs=[{**SNS, "api_url": "https://sns"}]), "api_url is not allowed"),
        (receiver(sns_configs=[{"topic_arn": TOPIC}]), "sigv4.region must be set"),
        (receiver(sns_configs=[{**SNS, "topic_arn": f"{TOPIC}.fifo"}]), "standard SNS topic"),
        (receiver(pagerduty_configs=[{"routing_key": "plain"}]), "aws_secrets_manager"),
        (
            receiver(pagerduty_configs=[{"routing_key": {"aws_secrets_manager": {"secret_arn": "pd"}}}]),
            "not the ARN of a secret",
        ),
        (yaml.safe_dump({"alertmanager_config": "a: [", "template_files": {}}), "not valid YAML"),
        (yaml.safe_dump({"alertmanager_config": "a: b", "template_files": dict.fromkeys(range(101), "")}), "templates"),
        ("x" * 1_000_001, "at most 1000000 bytes"),
    ],
)
def test_definitions_that_amp_refuses(text: str, said: str) -> None:
    assert any(said in problem for problem in definition_problems(text))


def test_a_good_definition_has_no_problem() -> None:
    assert list(definition_problems(definition())) == []
