"""What PCS nodes may do to send metrics and logs, and what their agents are told."""

import json

import pytest

from ultracluster.config.observability import Observability
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.log_groups import log_group
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.constructs.node_telemetry import NodeTelemetry
from ultracluster.constructs.pcs_role import PcsNodeRole

WORKSPACE = "ws-0123abcd-4567-89ab-cdef-0123456789ab"


@pytest.fixture(scope="module")
def made(synth):
    found = {}

    def fill(stack):
        found["telemetry"] = NodeTelemetry(
            stack,
            "Telemetry",
            settings=Observability(scrape_interval_seconds=10),
            cluster_name="dev-cluster",
            metrics=MetricsWorkspace.from_workspace_id(stack, "Metrics", WORKSPACE),
            log_group=log_group(stack, "Logs", name="/nodes", key=DataKey(stack, "Key", description="x")),
            role=PcsNodeRole(stack, "Role"),
            environment="dev",
            slurm_metrics=True,
        )

    template = synth(fill)
    return template, found["telemetry"]


def test_nodes_write_to_one_workspace_and_one_log_group_and_read_nothing(made):
    template, _ = made
    [policy] = (
        found["Properties"]
        for name, found in template.find_resources("AWS::IAM::ManagedPolicy").items()
        if name.startswith("Telemetry")
    )
    metrics, logs = policy["PolicyDocument"]["Statement"]
    assert metrics["Action"] == "aps:RemoteWrite"
    assert json.dumps(metrics["Resource"]).count(WORKSPACE) == 1
    assert logs["Action"] == ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    assert "Logs" in logs["Resource"]["Fn::GetAtt"][0]


def test_the_agents_are_told_where_to_write_and_how_often(made):
    _, telemetry = made
    assert telemetry.agents.remote_write_url.endswith(f"/workspaces/{WORKSPACE}/api/v1/remote_write")
    assert (telemetry.agents.interval, telemetry.agents.cluster) == (10, "dev-cluster")
    assert telemetry.agents.slurm


def test_nodes_without_a_workspace_write_logs_only(synth):
    found = {}

    def fill(stack):
        telemetry = NodeTelemetry(
            stack,
            "Telemetry",
            settings=Observability(metrics="none"),
            cluster_name="dev-cluster",
            log_group=log_group(stack, "Logs", name="/nodes", key=DataKey(stack, "Key", description="x")),
            role=PcsNodeRole(stack, "Role"),
            environment="dev",
            slurm_metrics=True,
        )
        found["agents"] = telemetry.agents

    template = synth(fill)
    statements = [
        statement
        for name, policy in template.find_resources("AWS::IAM::ManagedPolicy").items()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if name.startswith("Telemetry")
    ]
    assert [statement["Action"] for statement in statements] == [
        ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    ]
    assert (found["agents"].remote_write_url, found["agents"].slurm) == (None, False)
