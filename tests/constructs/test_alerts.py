"""Alert delivery: the topic, what may publish to it, rule files, and alarms of CloudWatch."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Match, Template

from localaws.handlers.cloudwatch import _QUERY
from tests.synthesis import resources
from ultracluster.config.observability import Observability
from ultracluster.constructs.alarms import Alarms, Watch, file_system_watches, workspace_watches
from ultracluster.constructs.alerts import AlertTopic, RuleFiles
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.errors import InvalidArgument

ACCOUNT = "111122223333"


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Metrics")
        topic = AlertTopic(stack, "Alerts", key=key, email=["a@example.com", "b@example.com"])
        settings = Observability(max_series=1_000_000)
        metrics = MetricsWorkspace(
            stack, "Metrics", settings=settings, key=key, environment="prod", alert_manager=f"topic: {topic.topic_arn}"
        )
        topic.grant_publish_alerts(metrics)
        topic.grant_publish_alerts(metrics)
        RuleFiles(stack, "Rules", metrics=metrics, files={"gpu": "groups: []"})
        watches = [*workspace_watches(metrics.workspace_id, pagerduty=True)]
        Alarms(stack, "Alarms", name="metrics", watches=watches, topics=[topic.topic_arn])

    return synth(fill)


def logical_id(template, kind):
    (found,) = template.find_resources(kind)
    return found


def statements(template):
    (policy,) = template.find_resources("AWS::SNS::TopicPolicy").values()
    return {each["Sid"]: each for each in policy["Properties"]["PolicyDocument"]["Statement"]}


def test_the_topic_is_encrypted_and_each_address_is_subscribed(template):
    key, topic = logical_id(template, "AWS::KMS::Key"), logical_id(template, "AWS::SNS::Topic")
    template.has_resource_properties("AWS::SNS::Topic", {"KmsMasterKeyId": {"Fn::GetAtt": [key, "Arn"]}})
    found = template.find_resources("AWS::SNS::Subscription").values()
    assert [each["Properties"] for each in found] == [
        {"Endpoint": f"{name}@example.com", "Protocol": "email", "TopicArn": {"Ref": topic}} for name in "ab"
    ]


def test_the_subscription_of_an_address_outlives_changes_of_the_others():
    """Replaced by itself, it would be deleted: Subscribe returns the subscription that an address already has."""

    def ids(*email):
        stack = cdk.Stack(cdk.App(analytics_reporting=False), "one")
        AlertTopic(stack, "Alerts", key=DataKey(stack, "Key", description="Metrics"), email=email)
        found = Template.from_stack(stack).find_resources("AWS::SNS::Subscription")
        return {each["Properties"]["Endpoint"]: name for name, each in found.items()}

    both = ids("a@example.com", "b@example.com")
    assert both == ids("b@example.com", "a@example.com") == both | ids("b@example.com")


def test_only_this_workspace_and_alarms_of_this_account_may_publish(template):
    topic, workspace = logical_id(template, "AWS::SNS::Topic"), logical_id(template, "AWS::APS::Workspace")
    found = statements(template)
    assert found.keys() == {"OnlyTls", "Alarms", "AlertManager"}
    assert found["AlertManager"] == {
        "Sid": "AlertManager",
        "Effect": "Allow",
        "Principal": {"Service": "aps.amazonaws.com"},
        "Action": ["sns:Publish", "sns:GetTopicAttributes"],
        "Resource": {"Ref": topic},
        "Condition": {
            "ArnLike": {"aws:SourceArn": {"Fn::GetAtt": [workspace, "Arn"]}},
            "StringEquals": {"aws:SourceAccount": ACCOUNT},
        },
    }
    assert found["Alarms"]["Condition"] == {
        "ArnLike": {"aws:SourceArn": f"arn:aws:cloudwatch:us-east-2:{ACCOUNT}:alarm:*"},
        "StringEquals": {"aws:SourceAccount": ACCOUNT},
    }
    assert (found["OnlyTls"]["Effect"], found["OnlyTls"]["Principal"]) == ("Deny", "*")


def test_both_services_may_use_the_key_of_the_topic(template):
    account = {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    (key,) = template.find_resources("AWS::KMS::Key").values()
    granted = {
        each["Principal"]["Service"]: each["Condition"]
        for each in key["Properties"]["KeyPolicy"]["Statement"]
        if each["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]
    }
    assert granted == {
        "aps.amazonaws.com": account,
        "cloudwatch.amazonaws.com": {
            "ArnLike": {"aws:SourceArn": f"arn:aws:cloudwatch:us-east-2:{ACCOUNT}:alarm:*"},
            **account,
        },
    }


def test_amp_has_the_same_principal_in_opt_in_regions():
    """For a topic in the workspace's Region; KMS refuses a key policy whose principal does not exist."""
    stack = cdk.Stack(cdk.App(analytics_reporting=False), "one", env=cdk.Environment(region="eu-south-2"))
    key = DataKey(stack, "Key", description="Metrics")
    metrics = MetricsWorkspace(stack, "Metrics", settings=Observability(), key=key)
    AlertTopic(stack, "Alerts", key=key).grant_publish_alerts(metrics)
    template = Template.from_stack(stack)
    assert statements(template)["AlertManager"]["Principal"] == {"Service": "aps.amazonaws.com"}
    assert '"eu-south-2.aps' not in json.dumps(template.to_json())


def test_the_workspace_has_its_alert_manager_and_the_limit_of_the_environment(template):
    limit = {"LabelSet": [{"Name": "environment", "Value": "prod"}], "Limits": {"MaxSeries": 1_000_000}}
    expected = {
        "AlertManagerDefinition": {"Fn::Join": ["", ["topic: ", {"Ref": logical_id(template, "AWS::SNS::Topic")}]]},
        "WorkspaceConfiguration": {"LimitsPerLabelSets": [limit], "RetentionPeriodInDays": 150},
    }
    template.has_resource_properties("AWS::APS::Workspace", expected)


def test_a_rule_file_is_a_namespace_of_the_workspace(template):
    workspace = {"Fn::GetAtt": [logical_id(template, "AWS::APS::Workspace"), "Arn"]}
    expected = {"Name": "gpu", "Data": "groups: []", "Workspace": workspace}
    template.has_resource_properties("AWS::APS::RuleGroupsNamespace", expected)


def test_a_rule_file_of_over_a_megabyte_is_refused(synth):
    def fill(stack):
        metrics = MetricsWorkspace.from_workspace_id(stack, "Metrics", "ws-1")
        RuleFiles(stack, "Rules", metrics=metrics, files={"large": "#" * 1_000_001})

    with pytest.raises(InvalidArgument, match="large has 1000001 bytes"):
        synth(fill)


def test_alarms_notify_the_topic_and_end(template):
    topic = [{"Ref": logical_id(template, "AWS::SNS::Topic")}]
    for alarm in template.find_resources("AWS::CloudWatch::Alarm").values():
        assert (alarm["Properties"]["AlarmActions"], alarm["Properties"]["OKActions"]) == (topic, topic)


def test_silence_is_an_alarm_where_an_alert_must_always_arrive(template):
    silent = {
        "AlarmDescription": Match.string_like_regexp("^The alert that always fires did not arrive"),
        "ComparisonOperator": "LessThanThreshold",
        "TreatMissingData": "breaching",
    }
    template.has_resource_properties("AWS::CloudWatch::Alarm", silent)
    assert "AlertsSilent" not in {watch.id for watch in workspace_watches("ws-1", watchdog=False)}


def test_only_with_pagerduty_an_alarm_watches_its_secret():
    assert "SecretNotRead" not in {watch.id for watch in workspace_watches("ws-1")}
    assert "SecretNotRead" in {watch.id for watch in workspace_watches("ws-1", pagerduty=True)}


def test_only_with_links_an_alarm_watches_their_queue():
    queued = {watch.id for watch in file_system_watches("fs-1", links=True)}
    assert queued - {watch.id for watch in file_system_watches("fs-1", links=False)} == {"LinkQueue"}


@pytest.mark.parametrize(
    "watch",
    [*workspace_watches("ws-1", pagerduty=True), *file_system_watches("fs-1", links=True)],
    ids=lambda watch: watch.id,
)
def test_metrics_insights_can_parse_each_query(watch):
    assert _QUERY.fullmatch(watch.query)


def test_alarms_without_topics_only_show_their_state(synth):
    watch = Watch("Full", "SELECT MAX(A) FROM B", "It is full", 80)
    template = synth(lambda stack: Alarms(stack, "Alarms", name="disk", watches=[watch]))
    (alarm,) = template.find_resources("AWS::CloudWatch::Alarm").values()
    assert alarm["Properties"].keys().isdisjoint({"AlarmActions", "OKActions"})
    assert "It is full (disk)" in json.dumps(alarm)


@pytest.mark.parametrize(("name", "told"), [("prod", True), ("staging", True), ("dev", False)])
def test_every_alarm_of_an_environment_tells_its_receivers(name, told):
    alarms = resources(name, "AWS::CloudWatch::Alarm")
    assert {place.partition("/")[0].partition("-")[0] for place in alarms} == {"alerts", "compute"}
    for alarm in alarms.values():
        text = json.dumps(alarm["Properties"].get("AlarmActions", []))
        assert (f":{name}-alerts" in text) == told
