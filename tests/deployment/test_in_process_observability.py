"""Alerts and Grafana, deployed in this process: what AMP, SNS, CloudWatch and Grafana hold then."""

import pytest
import yaml

from localaws import accounts
from localaws.services import grafana as grafana_service
from localaws.services.aps_alerting import definition_problems
from tests.deployment.in_process import client, deployed_as, needed
from tests.synthesis import FILES, templates
from ultracluster.config.loader import load
from ultracluster.telemetry.dashboards import dashboards
from ultracluster.telemetry.rules import rule_files

NAME = "prod"


@pytest.fixture(scope="module")
def prod():
    environment = load(FILES[NAME])
    parts = {name: each for part in ("alerts", "grafana") for name, each in needed(templates(NAME), part).items()}
    with deployed_as(environment, parts):
        yield environment


def workspace(environment):
    (found,) = client(environment, "grafana").list_workspaces()["workspaces"]
    return found["id"]


def inside(environment, workspace_id):
    """What is inside of a Grafana workspace."""
    return grafana_service.activate()[accounts.DEFAULT][environment.region].inside[workspace_id]


def test_every_rule_file_is_in_the_workspace(prod):
    amp = client(prod, "amp")
    (found,) = amp.list_workspaces()["workspaces"]
    listed = amp.list_rule_groups_namespaces(workspaceId=found["workspaceId"])["ruleGroupsNamespaces"]
    assert {each["name"] for each in listed} == {f"prod-{name}" for name in rule_files(prod)}
    one = amp.describe_rule_groups_namespace(workspaceId=found["workspaceId"], name="prod-gpu-health")
    assert one["ruleGroupsNamespace"]["data"].decode() == rule_files(prod)["gpu-health"]


def test_the_alert_manager_sends_to_the_topic_with_its_region(prod):
    amp = client(prod, "amp")
    (found,) = amp.list_workspaces()["workspaces"]
    text = amp.describe_alert_manager_definition(workspaceId=found["workspaceId"])["alertManagerDefinition"]["data"]
    assert list(definition_problems(text.decode())) == []
    config = yaml.safe_load(yaml.safe_load(text)["alertmanager_config"])
    (oncall,) = [each for each in config["receivers"] if each["name"] == "oncall"]
    topics = {each["TopicArn"] for each in client(prod, "sns").list_topics()["Topics"]}
    assert {each["sigv4"]["region"] for each in oncall["sns_configs"]} == {"us-east-2"}
    assert {each["topic_arn"] for each in oncall["sns_configs"]} <= topics


def test_the_address_of_the_file_is_subscribed(prod):
    found = client(prod, "sns").list_subscriptions()["Subscriptions"]
    assert [each["Endpoint"] for each in found if each["Protocol"] == "email"] == ["oncall@example.com"]


def test_alarms_on_the_workspace_and_the_file_system_notify_the_topic(prod):
    found = client(prod, "cloudwatch").describe_alarms(AlarmNamePrefix="prod-alerts-")["MetricAlarms"]
    queries = {each["Metrics"][0]["Expression"] for each in found}
    (workspace,) = client(prod, "amp").list_workspaces()["workspaces"]
    systems = client(prod, "fsx").describe_file_systems()["FileSystems"]
    ids = {each["FileSystemType"]: each["FileSystemId"] for each in systems}
    assert sum(f"Workspace = '{workspace['workspaceId']}'" in query for query in queries) == 6
    assert sum(f"FileSystemId = '{ids['LUSTRE']}'" in query for query in queries) == 5
    assert any(f"FileSystemId = '{ids['OPENZFS']}'" in query for query in queries)
    assert all(each["AlarmActions"] == each["OKActions"] != [] for each in found)


def test_grafana_has_every_dashboard_and_the_data_sources_that_they_name(prod):
    found = inside(prod, workspace(prod))
    stored = {uid: each["dashboard"] for uid, each in found["dashboards"].items()}
    assert set(stored) == {dashboard.uid for dashboard in dashboards(prod)}
    named = {
        source["uid"]
        for dashboard in stored.values()
        for panel in dashboard["panels"]
        for source in [panel.get("datasource") or {}]
        if "uid" in source and not source["uid"].startswith(("$", "-"))
    }
    assert named <= set(found["sources"]) == {"prod-metrics", "prod-cloudwatch"}
    endpoint = client(prod, "amp").list_workspaces()["workspaces"][0]["workspaceId"]
    assert endpoint in found["sources"]["prod-metrics"]["url"]


def test_no_service_account_is_left(prod):
    grafana = client(prod, "grafana")
    assert grafana.list_workspace_service_accounts(workspaceId=workspace(prod))["serviceAccounts"] == []


def test_the_group_of_the_file_administers_grafana(prod):
    permissions = client(prod, "grafana").list_permissions(workspaceId=workspace(prod))["permissions"]
    (group,) = prod.observability.grafana.admins
    assert permissions == [{"user": {"id": group, "type": "SSO_GROUP"}, "role": "ADMIN"}]
