"""`metrics: none` in the embedded AWS: a new environment, and one that gives its metrics up and takes them back."""

import json
import re

import pytest
from botocore.exceptions import ClientError

from tests.deployment.conftest import changed
from tests.deployment.in_process import (
    change,
    client,
    create,
    deployed_as,
    deployed_whole,
    failures,
    in_order,
    objects,
    status,
    update,
)
from tests.synthesis import synthesise, templates

FILES = ("dev", "staging")
"""A file of each control plane: dev is on PCS, staging on EKS."""

LEFT = ("grafana", "collection", "observability")
"""Stacks that the CDK CLI leaves, in the order in which docs/observability.md deletes them."""


def give_up(data):
    data["observability"] = {"metrics": "none"}


def exists(environment, part):
    try:
        return status(environment, part) != "DELETE_COMPLETE"
    except ClientError:
        return False


def put(environment, parts):
    """Creates or updates every stack, in the order of the CDK CLI."""
    for part in in_order(parts):
        try:
            (change if exists(environment, part) else create)(environment, part, parts[part])
        except ClientError as error:
            assert "No updates are to be performed" in str(error)  # noqa: PT017 - one of two outcomes that are fine
        assert status(environment, part) in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), failures(environment, part)


def workspaces(environment):
    return [each["workspaceId"] for each in client(environment, "amp").list_workspaces()["workspaces"]]


def endpoints(environment):
    found = client(environment, "ec2").describe_vpc_endpoints()["VpcEndpoints"]
    return {each["ServiceName"].rpartition(f"{environment.region}.")[2] for each in found}


def exporters(environment):
    kinds = [item for item in objects(environment) if item["kind"] in ("DaemonSet", "Deployment")]
    return {item["metadata"]["name"] for item in kinds if "exporter" in item["metadata"]["name"]}


def notified(environment):
    """Topics that alarms of the stacks which the file still has notify."""
    alarms = client(environment, "cloudwatch").describe_alarms()["MetricAlarms"]
    left = tuple(f"{environment.name}-{part}-" for part in LEFT)
    return {arn for alarm in alarms if not alarm["AlarmName"].startswith(left) for arn in alarm["AlarmActions"]}


@pytest.mark.parametrize("name", FILES)
def test_a_new_environment_without_metrics_has_nothing_that_collects_or_stores_them(name):
    environment = changed(name, give_up)
    parts = synthesise(environment)
    assert not set(LEFT) & parts.keys()
    assert not re.findall(r"AWS::APS|aps:[A-Z]|aps-workspaces|aps\.amazonaws", json.dumps(parts))
    with deployed_as(environment, parts):
        for part in parts:
            assert status(environment, part) == "CREATE_COMPLETE", failures(environment, part)
        assert workspaces(environment) == []
        assert "aps-workspaces" not in endpoints(environment)
        assert client(environment, "cloudwatch").describe_alarms()["MetricAlarms"]
        if environment.control_plane.type == "eks":
            assert exporters(environment) == set()


@pytest.mark.parametrize("name", [*FILES, "prod"])
def test_metrics_are_given_up_and_taken_back(name):
    """prod has receivers of alerts and Grafana, which go with the metrics."""
    none, eks = changed(name, give_up), name == "staging"
    with deployed_whole(name) as environment:
        (first,) = workspaces(environment)
        amp = client(environment, "amp")
        assert amp.list_rule_groups_namespaces(workspaceId=first)["ruleGroupsNamespaces"]
        update(none)
        assert amp.list_rule_groups_namespaces(workspaceId=first)["ruleGroupsNamespaces"] == []
        assert notified(environment) == set()
        if eks:
            assert exporters(environment) == set()
        else:
            assert "aps-workspaces" not in endpoints(environment)
        # back at once: the workspace that the stack still has goes on
        put(environment, templates(name))
        assert workspaces(environment) == [first]
        update(none)
        for part in LEFT:
            if exists(environment, part):
                cloudformation = client(environment, "cloudformation")
                cloudformation.delete_stack(StackName=f"{environment.name}-{part}")
                assert not exists(environment, part), failures(environment, part)
        # retained, with its key
        assert workspaces(environment) == [first]
        assert amp.list_scrapers()["scrapers"] == []
        # back later: a workspace beside the retained one
        put(environment, templates(name))
        second = set(workspaces(environment)) - {first}
        assert len(second) == 1
        assert amp.list_rule_groups_namespaces(workspaceId=second.pop())["ruleGroupsNamespaces"]
        assert len(amp.list_scrapers()["scrapers"]) == eks
