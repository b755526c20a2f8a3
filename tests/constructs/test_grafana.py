"""The Grafana workspace: authentication and permissions."""

import json
import re

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Match, Template

from tests.synthesis import FILES
from ultracluster import load
from ultracluster.config.observability import Grafana, Observability
from ultracluster.constructs.functions import uploaded_code
from ultracluster.constructs.grafana import GrafanaWorkspace, _authentication
from ultracluster.constructs.grafana_content import GrafanaContent, GrafanaUsers
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.errors import InvalidArgument
from ultracluster.stacks.grafana import GrafanaStack


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Metrics")
        metrics = MetricsWorkspace(stack, "Metrics", settings=Observability(), key=key)
        GrafanaWorkspace(stack, "Grafana", settings=Grafana(auth="identity_center"), metrics=metrics)

    return synth(fill)


def test_grafana_is_version_12_with_plugin_management(template):
    expected = {"GrafanaVersion": Match.string_like_regexp(r"^12\.\d+$"), "PluginAdminEnabled": True}
    template.has_resource_properties("AWS::Grafana::Workspace", expected)


def test_users_sign_in_with_identity_center_in_this_account(template):
    expected = {
        "AccountAccessType": "CURRENT_ACCOUNT",
        "AuthenticationProviders": ["AWS_SSO"],
        "PermissionType": "CUSTOMER_MANAGED",
    }
    template.has_resource_properties("AWS::Grafana::Workspace", expected)


def test_the_role_may_query_one_workspace_and_read_cloudwatch_metrics(template):
    (workspace,) = template.find_resources("AWS::APS::Workspace")
    (policy,) = template.find_resources("AWS::IAM::ManagedPolicy").values()
    query, every, decrypt = policy["Properties"]["PolicyDocument"]["Statement"]
    assert set(query["Action"]) == {
        *("aps:DescribeWorkspace", "aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics")
    }
    assert query["Resource"] == {"Fn::GetAtt": [workspace, "Arn"]}
    assert {"aps:ListWorkspaces", "cloudwatch:GetMetricData"} < set(every["Action"])
    assert all(re.match(r"\w+:(Describe|Get|List)", action) for action in every["Action"])
    assert not any(action.startswith("logs:") for action in every["Action"])
    (key,) = template.find_resources("AWS::KMS::Key")
    assert decrypt == {
        "Effect": "Allow",
        "Action": ["kms:Decrypt", "kms:DescribeKey"],
        "Resource": {"Fn::GetAtt": [key, "Arn"]},
        "Condition": {"StringEquals": {"kms:ViaService": "aps.us-east-2.amazonaws.com"}},
    }
    template.resource_count_is("AWS::IAM::Policy", 0)


def test_only_workspaces_of_this_account_may_assume_the_role(template):
    trust = {
        "Principal": {"Service": "grafana.amazonaws.com"},
        "Condition": {
            "StringEquals": {"aws:SourceAccount": "111122223333"},
            "StringLike": {"aws:SourceArn": "arn:aws:grafana:us-east-2:111122223333:/workspaces/*"},
        },
    }
    document = Match.object_like({"Statement": [Match.object_like(trust)]})
    template.has_resource_properties("AWS::IAM::Role", {"AssumeRolePolicyDocument": document})


def test_saml_uses_the_metadata_of_the_identity_provider():
    settings = Grafana(auth="saml", saml_metadata_url="https://idp.example.com/metadata")
    assert _authentication(settings) == {
        "authentication_providers": ["SAML"],
        "saml_configuration": {"idpMetadata": {"url": "https://idp.example.com/metadata"}},
    }


def test_saml_users_with_a_listed_value_are_admins_or_editors():
    settings = Grafana(
        auth="saml",
        saml_metadata_url="https://idp.example.com/metadata",
        saml_role_attribute="role",
        admins=("platform",),
    )
    saml = _authentication(settings)["saml_configuration"]
    assert saml["assertionAttributes"] == {"role": "role"}
    assert saml["roleValues"] == {"admin": ["platform"]}


GROUP = "9067642ac7-1234abcd-56ef-78ab-90cd-0123456789ab"
BOARD = '{"uid": "dev-fleet", "title": "Fleet"}'


@pytest.fixture(scope="module")
def filled(synth):
    """An existing workspace with content and users."""

    def fill(stack):
        key = DataKey(stack, "Key", description="Logs")
        metrics = MetricsWorkspace.from_workspace_id(stack, "Metrics", "ws-1")
        role = "arn:aws:iam::111122223333:role/service-role/Theirs"
        workspace = GrafanaWorkspace.from_workspace_id(stack, "Grafana", "g-0123456789", role_arn=role, metrics=metrics)
        GrafanaContent(
            stack,
            "Content",
            workspace=workspace,
            metrics=metrics,
            name="dev",
            dashboards={"dev-fleet": BOARD},
            sources=("dev-metrics", "dev-cloudwatch"),
            tag="environment:dev",
            owned=False,
            key=key,
            scrape_interval_seconds=60,
        )
        GrafanaUsers(stack, "Users", workspace=workspace, admins=[GROUP], key=key)

    return synth(fill)


def test_the_role_of_an_existing_workspace_gets_a_policy_to_read_the_metrics(filled):
    filled.resource_count_is("AWS::Grafana::Workspace", 0)
    (policy,) = [
        each["Properties"]
        for name, each in filled.find_resources("AWS::IAM::ManagedPolicy").items()
        if name.startswith("GrafanaPolicy")
    ]
    assert policy["Roles"] == ["Theirs"]
    assert policy["PolicyDocument"]["Statement"][0]["Resource"] == "arn:aws:aps:us-east-2:111122223333:workspace/ws-1"


def test_content_names_the_workspace_its_data_sources_and_its_asset(filled):
    (content,) = filled.find_resources("Custom::GrafanaContent").values()
    found = content["Properties"]
    assert found["Url"] == "https://g-0123456789.grafana-workspace.us-east-2.amazonaws.com"
    assert (found["Owned"], found["Plugins"]) == ("false", ["grafana-amazonprometheus-datasource"])
    metrics, cloudwatch = map(json.loads, found["DataSources"])
    assert metrics["url"] == "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-1/"
    assert metrics["jsonData"] == {
        "httpMethod": "POST",
        "timeInterval": "60s",
        "sigV4Auth": True,
        "sigV4AuthType": "ec2_iam_role",
        "sigV4Region": "us-east-2",
    }
    assert (metrics["uid"], cloudwatch["uid"], cloudwatch["type"]) == ("dev-metrics", "dev-cloudwatch", "cloudwatch")
    functions = filled.find_resources("AWS::Lambda::Function").values()
    (code,) = [each["Properties"]["Code"] for each in functions if "S3Key" in each["Properties"]["Code"]]
    assert found["Content"] == code["S3Key"]


def test_rates_in_grafana_have_the_scrape_interval_of_the_environment():
    """Grafana takes 15 s unless it is told: a range of 60 s, which may hold one sample or none."""
    shipped = load(FILES["staging"])
    slow = shipped.model_copy(
        update={"observability": shipped.observability.model_copy(update={"scrape_interval_seconds": 120})}
    )
    app = cdk.App(analytics_reporting=False)
    metrics = MetricsWorkspace.from_workspace_id(cdk.Stack(app, "metrics"), "Metrics", "ws-1")
    template = Template.from_stack(GrafanaStack(app, slow, metrics=metrics))
    (content,) = template.find_resources("Custom::GrafanaContent").values()
    assert '"timeInterval": "120s"' in json.dumps(content["Properties"]["DataSources"]).replace('\\"', '"')


def test_the_functions_may_only_touch_this_workspace(filled):
    allowed = {}
    for name, each in filled.find_resources("AWS::IAM::ManagedPolicy").items():
        for statement in each["Properties"]["PolicyDocument"]["Statement"]:
            if "grafana:" in str(statement["Action"]):
                allowed[name.rstrip("0123456789ABCDEF")] = statement["Resource"]
    arn = "arn:aws:grafana:us-east-2:111122223333:/workspaces/g-0123456789"
    assert allowed == {"ContentPolicy": arn, "UsersPolicy": arn}


def test_users_are_groups_of_identity_center(filled):
    expected = {"WorkspaceId": "g-0123456789", "Admins": [GROUP], "Editors": []}
    filled.has_resource_properties("Custom::GrafanaUsers", expected)


def test_the_asset_has_the_code_and_each_dashboard(tmp_path):
    app = cdk.App(outdir=str(tmp_path), analytics_reporting=False)
    code = uploaded_code(cdk.Stack(app, "one"), "Code", {"index.py": "1", "dashboards/dev-fleet.json": BOARD})
    again = uploaded_code(cdk.Stack(app, "two"), "Code", {"dashboards/dev-fleet.json": BOARD, "index.py": "1"})
    other = uploaded_code(cdk.Stack(app, "three"), "Code", {"index.py": "2", "dashboards/dev-fleet.json": BOARD})
    app.synth()
    (folder,) = [each for each in tmp_path.glob("asset.*") if each.name.removeprefix("asset.") in code["s3Key"]]
    assert {file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*.*")} == {
        "index.py": "1",
        "dashboards/dev-fleet.json": BOARD,
    }
    assert code["s3Key"] == again["s3Key"] != other["s3Key"]


def test_without_authentication_a_workspace_is_refused():
    with pytest.raises(InvalidArgument, match="auth is none"):
        _authentication(Grafana())


def test_an_existing_prometheus_workspace_can_be_queried(synth):
    def fill(stack):
        metrics = MetricsWorkspace.from_workspace_id(stack, "Metrics", "ws-1")
        GrafanaWorkspace(stack, "Grafana", settings=Grafana(auth="identity_center"), metrics=metrics)

    template = synth(fill)
    template.resource_count_is("AWS::APS::Workspace", 0)
    (policy,) = template.find_resources("AWS::IAM::ManagedPolicy").values()
    statement, _ = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Resource"] == "arn:aws:aps:us-east-2:111122223333:workspace/ws-1"
