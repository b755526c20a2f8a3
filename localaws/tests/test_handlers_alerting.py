"""Topics, composite alarms, dashboards and saved queries: read back through their APIs, changed in place, refused."""

import json

import pytest
from botocore.exceptions import ClientError

from handler_parts import own_tags
from localaws.resources import HandlerError

TOPIC, POLICY, SUBSCRIPTION = "AWS::SNS::Topic", "AWS::SNS::TopicPolicy", "AWS::SNS::Subscription"
ALARM, COMPOSITE, DASHBOARD = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm", "AWS::CloudWatch::Dashboard"
QUERY = "AWS::Logs::QueryDefinition"
SELECT = "SELECT SUM(DiscardedSamples) FROM \"AWS/Prometheus\" WHERE Workspace = 'ws-1'"


@pytest.fixture
def topic(stack):
    return stack.make(TOPIC, DisplayName="Alerts")


def policy(topic, **changes):
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "aps.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": topic,
        **changes,
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


def attributes(stack, topic):
    return stack.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]


def test_a_topic_keeps_its_key_and_policy_and_loses_them_again(stack):
    key = stack.client("kms").create_key()["KeyMetadata"]["Arn"]
    topic = stack.make(TOPIC, KmsMasterKeyId=key)
    made = stack.make(POLICY, Topics=[topic], PolicyDocument=policy(topic))
    assert attributes(stack, topic)["KmsMasterKeyId"] == key
    assert json.loads(attributes(stack, topic)["Policy"]) == policy(topic)
    stack.update(TOPIC, topic, {"KmsMasterKeyId": key}, {"DisplayName": "Paged"})
    assert not attributes(stack, topic).get("KmsMasterKeyId")
    assert attributes(stack, topic)["DisplayName"] == "Paged"
    stack.delete(POLICY, made, Topics=[topic])
    assert json.loads(attributes(stack, topic)["Policy"])["Id"] == "__default_policy_ID"
    stack.delete(TOPIC, topic)
    assert stack.client("sns").list_topics()["Topics"] == []


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"TopicName": "with space"}, "Topic Name"),
        ({"KmsMasterKeyId": "arn:aws:kms:us-east-1:123456789012:key/1"}, "KMS key"),
        ({"SignatureVersion": "3"}, "SignatureVersion"),
        ({"DisplayName": "x" * 101}, "at most 100"),
    ],
)
def test_a_topic_that_sns_refuses(stack, properties, said):
    with pytest.raises(HandlerError, match=said):
        stack.make(TOPIC, **properties)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"Action": "kms:Decrypt"}, "action out of service scope"),
        ({"Resource": "arn:aws:sns:us-east-1:123456789012:another"}, "the resource must be the topic"),
        ({"Principal": {"Service": "aps"}}, "PrincipalNotFound"),
    ],
)
def test_a_topic_policy_that_sns_refuses(stack, topic, changes, said):
    with pytest.raises(HandlerError, match=said):
        stack.make(POLICY, Topics=[topic], PolicyDocument=policy(topic, **changes))


def test_an_email_subscription_is_created_and_ended(stack, topic):
    made = stack.make(SUBSCRIPTION, TopicArn=topic, Protocol="email", Endpoint="oncall@example.com")
    (found,) = stack.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert (found["SubscriptionArn"], found["Endpoint"]) == (made, "oncall@example.com")
    stack.delete(SUBSCRIPTION, made)
    assert stack.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] == []


@pytest.mark.parametrize(
    ("protocol", "endpoint", "said"),
    [("email", "oncall", "Email endpoint"), ("https", "http://a", "Https endpoint"), ("sms", "+1", "by sms")],
)
def test_a_subscription_that_sns_refuses(stack, topic, protocol, endpoint, said):
    with pytest.raises(HandlerError, match=said):
        stack.make(SUBSCRIPTION, TopicArn=topic, Protocol=protocol, Endpoint=endpoint)


def insights(**changes):
    return {
        "Metrics": [{"Id": "a", "Expression": SELECT, "Period": 300, "ReturnData": True}],
        "EvaluationPeriods": 1,
        "Threshold": 0,
        "ComparisonOperator": "GreaterThanThreshold",
        **changes,
    }


def test_an_alarm_on_a_metrics_insights_query_notifies_a_topic(stack, topic):
    made = stack.make(ALARM, **insights(AlarmActions=[topic], OKActions=[topic]))
    (found,) = stack.client("cloudwatch").describe_alarms(AlarmNames=[made])["MetricAlarms"]
    assert found["Metrics"][0]["Expression"] == SELECT
    assert (found["AlarmActions"], found["OKActions"]) == ([topic], [topic])


def expression(text, **more):
    return {"Metrics": [{"Id": "a", "Expression": text, "ReturnData": True, **more}]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"AlarmActions": ["arn:aws:sns:eu-west-1:123456789012:oncall"]}, "Invalid region eu-west-1"),
        (expression('SELECT SUM(a) FROM b WHERE c = "d"'), "cannot parse"),
        (expression("SELECT TOTAL(a) FROM b"), "cannot parse"),
        (expression(SELECT, Period=45), "multiple of 60"),
        ({"Metrics": [{"Id": "a", "Expression": SELECT, "ReturnData": False}]}, "exactly one"),
        ({"Metrics": [{"Id": "a"}]}, "either Expression or MetricStat"),
        ({"Namespace": "AWS/Prometheus", "MetricName": "a"}, "cannot be given together"),
    ],
)
def test_an_alarm_that_cloudwatch_refuses(stack, changes, said):
    with pytest.raises(HandlerError, match=said):
        stack.make(ALARM, **insights(**changes))


def test_an_alarm_without_a_metric_is_refused(stack):
    without = {key: value for key, value in insights().items() if key != "Metrics"}
    with pytest.raises(HandlerError, match="exactly one of"):
        stack.make(ALARM, **without)


def test_a_composite_alarm_is_read_back_changed_and_deleted(stack):
    one = stack.make(ALARM, **insights(), AlarmName="one")
    made = stack.make(COMPOSITE, AlarmRule=f'ALARM("{one}") AND NOT FALSE')
    cloudwatch = stack.client("cloudwatch")
    names = {"AlarmNames": [made], "AlarmTypes": ["CompositeAlarm"]}
    assert cloudwatch.describe_alarms(**names)["CompositeAlarms"][0]["AlarmRule"] == f'ALARM("{one}") AND NOT FALSE'
    stack.update(COMPOSITE, made, {"AlarmRule": f"ALARM({one})"}, {"AlarmRule": f"OK({one})"})
    assert cloudwatch.describe_alarms(**names)["CompositeAlarms"][0]["AlarmRule"] == f"OK({one})"
    stack.delete(COMPOSITE, made)
    assert cloudwatch.describe_alarms(**names)["CompositeAlarms"] == []


@pytest.mark.parametrize(("rule", "said"), [("ALARM(none)", "does not exist"), ("BROKEN(one)", "must not contain")])
def test_a_composite_alarm_that_cloudwatch_refuses(stack, rule, said):
    with pytest.raises(HandlerError, match=said):
        stack.make(COMPOSITE, AlarmRule=rule)


WIDGET = {"type": "text", "x": 0, "y": 0, "width": 6, "height": 3, "properties": {"markdown": "a"}}


def test_a_dashboard_is_read_back_changed_and_deleted(stack):
    body = json.dumps({"widgets": [WIDGET]})
    given = {"DashboardBody": body, "Tags": [{"Key": "team", "Value": "a"}, {"Key": "old", "Value": "b"}]}
    made, cloudwatch = stack.make(DASHBOARD, **given), stack.client("cloudwatch")
    found = cloudwatch.get_dashboard(DashboardName=made)
    assert found["DashboardBody"] == body
    assert own_tags(cloudwatch.list_tags_for_resource(ResourceARN=found["DashboardArn"])["Tags"]) == {
        "team": "a",
        "old": "b",
    }
    changed = {"DashboardBody": '{"widgets": []}', "Tags": [{"Key": "team", "Value": "c"}]}
    stack.update(DASHBOARD, made, given, changed)
    assert json.loads(cloudwatch.get_dashboard(DashboardName=made)["DashboardBody"]) == {"widgets": []}
    assert own_tags(cloudwatch.list_tags_for_resource(ResourceARN=found["DashboardArn"])["Tags"]) == {"team": "c"}
    stack.delete(DASHBOARD, made)
    assert stack.client("cloudwatch").list_dashboards()["DashboardEntries"] == []


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"DashboardBody": "{}"}, "list of widgets"),
        ({"DashboardBody": "no JSON"}, "valid JSON"),
        ({"DashboardBody": '{"widgets": []}', "DashboardName": "a b"}, "letters, digits"),
    ],
)
def test_a_dashboard_that_cloudwatch_refuses(stack, properties, said):
    with pytest.raises(HandlerError, match=said):
        stack.make(DASHBOARD, **properties)


XIDS = 'fields @timestamp, @message | filter @message like /NVRM: Xid|a "b"/ # a comment | b\n| sort @timestamp desc'


def test_a_saved_query_is_read_back_changed_and_deleted(stack):
    stack.make("AWS::Logs::LogGroup", LogGroupName="/nodes")
    given = {"Name": "dev/XIDs", "QueryString": XIDS, "LogGroupNames": ["/nodes"]}
    made = stack.make(QUERY, **given)
    logs = stack.client("logs")
    (found,) = logs.describe_query_definitions(queryDefinitionNamePrefix="dev/")["queryDefinitions"]
    assert {key: found[key] for key in ("queryDefinitionId", "name", "queryString", "logGroupNames")} == {
        "queryDefinitionId": made,
        "name": "dev/XIDs",
        "queryString": XIDS,
        "logGroupNames": ["/nodes"],
    }
    stack.update(QUERY, made, given, {**given, "QueryString": "fields @message"})
    assert logs.describe_query_definitions()["queryDefinitions"][0]["queryString"] == "fields @message"
    stack.delete(QUERY, made)
    assert logs.describe_query_definitions()["queryDefinitions"] == []


@pytest.mark.parametrize("query", ["select * from a", "fields @message | | sort @timestamp", "fields a | grep b"])
def test_a_saved_query_that_cannot_be_parsed_is_refused(stack, query):
    with pytest.raises(ClientError, match="unexpected symbol") as caught:
        stack.make(QUERY, Name="a", QueryString=query)
    assert caught.value.response["Error"]["Code"] == "MalformedQueryException"


def test_a_saved_query_on_a_log_group_that_does_not_exist_is_refused(stack):
    with pytest.raises(HandlerError, match="log group /none does not exist"):
        stack.make(QUERY, Name="a", QueryString="fields @message", LogGroupNames=["/none"])
