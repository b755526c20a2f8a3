"""Alerts and Grafana, deployed in this process: existing workspaces, deletion, and receivers that change."""

import json
from contextlib import contextmanager

from localaws import accounts, local_aws
from localaws.services import grafana as grafana_service
from tests.deployment.in_process import change, client, create, deployed_as, failures, needed, prepare
from tests.synthesis import FILES, synthesise, templates
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load
from ultracluster.telemetry.dashboards import dashboards

NAME = "prod"
SECRET = "arn:aws:secretsmanager:us-east-2:111122223333:secret:pagerduty-a1b2c3"  # noqa: S105 - an ARN


def with_settings(**settings):
    """The shipped environment with other settings of observability."""
    data = load(FILES[NAME]).model_dump(mode="json", exclude_unset=True)
    return Environment.model_validate(data | {"observability": settings})


def parts_of(environment, *parts):
    """Templates of the parts, and of those that they import from."""
    found = synthesise(environment) if environment != load(FILES[NAME]) else templates(NAME)
    return {name: template for part in parts for name, template in needed(found, part).items()}


def inside(environment, workspace_id):
    """What is inside of a Grafana workspace."""
    return grafana_service.activate()[accounts.DEFAULT][environment.region].inside[workspace_id]


def test_the_stack_of_grafana_can_be_deleted():
    environment = load(FILES[NAME])
    with deployed_as(environment, parts_of(environment, "grafana")):
        client(environment, "cloudformation").delete_stack(StackName="prod-grafana")
        assert client(environment, "grafana").list_workspaces()["workspaces"] == []


# existing workspaces


@contextmanager
def theirs(**settings):
    """An account with workspaces of somebody else, and an environment that uses them."""
    with local_aws(accounts.DEFAULT):
        prod = load(FILES[NAME])
        trust = json.dumps({"Version": "2012-10-17", "Statement": []})
        role = client(prod, "iam").create_role(
            Path="/service-role/", RoleName="Theirs", AssumeRolePolicyDocument=trust
        )["Role"]["Arn"]
        made = client(prod, "grafana").create_workspace(
            accountAccessType="CURRENT_ACCOUNT",
            permissionType="CUSTOMER_MANAGED",
            workspaceRoleArn=role,
            authenticationProviders=["SAML"],
            configuration='{"plugins": {"pluginAdminEnabled": true}}',
        )["workspace"]["id"]
        metrics = client(prod, "amp").create_workspace(alias="theirs")["workspaceId"]
        known = {"existing": made, "role_arn": role}
        environment = with_settings(grafana=known, metrics={"existing": metrics}, **settings)
        parts = parts_of(environment, "alerts", "grafana")
        prepare(environment, parts)
        for part in ("network", "storage", "alerts", "grafana"):
            if part in parts:
                assert create(environment, part, parts[part]) == "CREATE_COMPLETE", failures(environment, part)
        yield environment, parts, made, metrics


def test_existing_workspaces_get_rules_data_sources_and_dashboards_and_lose_them_again():
    with theirs() as (environment, parts, made, metrics):
        assert "observability" not in parts
        amp, cloudformation = client(environment, "amp"), client(environment, "cloudformation")
        assert len(amp.list_rule_groups_namespaces(workspaceId=metrics)["ruleGroupsNamespaces"]) > 5
        found = inside(environment, made)
        assert metrics in found["sources"]["prod-metrics"]["url"]
        assert set(found["dashboards"]) == {dashboard.uid for dashboard in dashboards(environment)}
        attached = client(environment, "iam").list_attached_role_policies(RoleName="Theirs")["AttachedPolicies"]
        assert len(attached) == 1
        for part in ("grafana", "alerts"):
            cloudformation.delete_stack(StackName=f"prod-{part}")
        found = inside(environment, made)
        assert (found["sources"], found["dashboards"], found["folders"]) == ({}, {}, {})
        assert amp.list_rule_groups_namespaces(workspaceId=metrics)["ruleGroupsNamespaces"] == []
        assert client(environment, "iam").list_attached_role_policies(RoleName="Theirs")["AttachedPolicies"] == []


def test_a_workspace_without_plugin_management_is_filled_and_says_what_is_left_to_do():
    with theirs() as (environment, parts, made, _):
        client(environment, "cloudformation").delete_stack(StackName="prod-grafana")
        state = grafana_service.activate()[accounts.DEFAULT][environment.region]
        state.configurations[made]["plugins"]["pluginAdminEnabled"] = False
        state.inside[made].clear()
        assert create(environment, "grafana", parts["grafana"]) == "CREATE_COMPLETE"
        found = client(environment, "cloudformation").describe_stacks(StackName="prod-grafana")["Stacks"][0]
        said = {output["OutputKey"]: output["OutputValue"] for output in found["Outputs"]}
        assert "plugin" in said["ManualStep"].lower()
        assert state.inside[made].get("accounts") == {}


# changes


def test_receivers_come_and_go():
    """Stacks in the order in which the CDK CLI updates them: the one with the topic first."""
    environment = load(FILES[NAME])
    given = "arn:aws:sns:us-east-2:444455556666:oncall"
    alerts = {"sns_topic_arn": given, "pagerduty": {"secret_arn": SECRET, "secret_key": "key"}}
    without, other = (synthesise(with_settings(**each)) for each in ({"auto_repair": False}, {"alerts": alerts}))
    with deployed_as(environment, needed(templates(NAME), "alerts")):
        for parts in (without, other, templates(NAME)):
            for part in ("observability", "alerts"):
                assert change(environment, part, parts[part]) == "UPDATE_COMPLETE", failures(environment, part)
            names = {each["TopicArn"].rsplit(":", 1)[1] for each in client(environment, "sns").list_topics()["Topics"]}
            alarms = client(environment, "cloudwatch").describe_alarms(AlarmNamePrefix="prod-alerts-")["MetricAlarms"]
            actions = {arn for alarm in alarms for arn in alarm["AlarmActions"]}
            text = definition(environment)
            if parts is without:
                # without this topic, the stack that drains nodes would lose its subscription for good
                assert (names, actions) == ({"prod-repairs"}, set())
                assert "sns_configs" not in text
            elif parts is other:
                assert (names, actions) == ({"prod-repairs"}, {given})
                assert given in text
                assert SECRET in text
            else:
                assert names == {"prod-alerts", "prod-repairs"}
                assert {arn.rsplit(":", 1)[1] for arn in actions} == {"prod-alerts"}


def definition(environment):
    amp = client(environment, "amp")
    (found,) = amp.list_workspaces()["workspaces"]
    described = amp.describe_alert_manager_definition(workspaceId=found["workspaceId"])
    return described["alertManagerDefinition"]["data"].decode()
