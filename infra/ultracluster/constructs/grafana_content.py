"""What is inside a Grafana workspace: users, data sources and dashboards. CloudFormation has no types for them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.catalog.grafana import METRICS_PLUGIN
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.functions import FunctionResource, InlineResource, handler_code, uploaded_code
from ultracluster.constructs.grafana import ManagedGrafana
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.constructs.names import REGION
from ultracluster.constructs.references import expect, expect_list

TOKEN_ACTIONS = (
    *("grafana:CreateWorkspaceServiceAccount", "grafana:CreateWorkspaceServiceAccountToken"),
    *("grafana:DeleteWorkspaceServiceAccount", "grafana:DescribeWorkspace", "grafana:ListWorkspaceServiceAccounts"),
)
"""Making and deleting a service account with a token."""

DIRECTORY_ACTIONS = (
    *("sso:DescribeRegisteredRegions", "sso:GetManagedApplicationInstance", "sso:GetProfile"),
    *("sso:GetSharedSsoConfiguration", "sso:ListDirectoryAssociations", "sso:ListProfileAssociations"),
    *("sso:ListProfiles", "sso-directory:DescribeGroup", "sso-directory:DescribeUser"),
)
"""What UpdatePermissions reads in IAM Identity Center (AWS policy AWSGrafanaWorkspacePermissionManagementV2)."""

ASSIGNMENT_ACTIONS = (
    *("sso:AssociateProfile", "sso:CreateApplicationAssignment"),
    *("sso:DeleteApplicationAssignment", "sso:DisassociateProfile"),
)
"""What UpdatePermissions writes there: it assigns the workspace's application to users and groups.

Source: Amazon Managed Grafana User Guide, "AWS managed policies", "Additional policy needed" (2026), for the assignment
of applications; AWS policy AWSGrafanaWorkspacePermissionManagement for profiles.
"""


class GrafanaContent(FunctionResource):
    """Data sources for `metrics` and CloudWatch, and `dashboards`, in a folder of a Grafana workspace.

    `name` is that of the environment: uid and title of the folder come from it, and the uids of all dashboards, the
    keys of `dashboards`, begin with it. `sources` are the uids of the data sources for metrics and for CloudWatch.
    Dashboards of the environment that are no longer in `dashboards` are deleted, if they carry `tag`. With `owned`, the
    workspace is deleted together with its content; otherwise deleting this resource deletes the content. Grafana takes
    `scrape_interval_seconds` for the range of rates: with less than the metrics have, charts of rates are empty.

    The function makes a service account with a token for each call, and deletes it when the call ends. It installs the
    plugin of the data source for metrics. Where Grafana refuses that, `manual_step` says what to do.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        workspace: ManagedGrafana,
        metrics: PrometheusWorkspace,
        name: str,
        dashboards: Mapping[str, str],
        sources: tuple[str, str],
        tag: str,
        owned: bool,
        key: IKeyRef,
        scrape_interval_seconds: int = 30,
    ) -> None:
        expect(workspace, ManagedGrafana, "workspace")
        expect(metrics, PrometheusWorkspace, "metrics")
        files = {f"dashboards/{uid}.json": text for uid, text in dashboards.items()}
        code = uploaded_code(scope, f"{id}Code", {"index.py": handler_code("grafana_content"), **files})
        super().__init__(
            scope,
            id,
            handler="grafana_content",
            code=code,
            resource_type="Custom::GrafanaContent",
            properties={
                "WorkspaceId": workspace.workspace_id,
                "Url": f"https://{workspace.workspace_endpoint}",
                "Owned": json.dumps(owned),
                "Plugins": [METRICS_PLUGIN],
                "DataSources": [
                    json.dumps(source) for source in data_sources(name, metrics, sources, scrape_interval_seconds)
                ],
                "FolderUid": name,
                "FolderTitle": f"UltraCluster {name}",
                "UidPrefix": f"{name}-",
                "Dashboards": sorted(dashboards),
                "Tag": tag,
                # another asset is another update
                "Content": code["s3Key"],
            },
            statements=[{"Action": list(TOKEN_ACTIONS), "Resource": workspace.workspace_arn}],
            key=key,
            timeout_seconds=900,
        )

    @property
    def manual_step(self) -> str:
        """The manual step in Grafana, known at deployment, or "none"."""
        return self.resource.get_att("ManualStep").to_string()


class GrafanaUsers(InlineResource):
    """Groups of IAM Identity Center, by id, that are admins or editors of a Grafana workspace."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        workspace: ManagedGrafana,
        admins: Sequence[str],
        editors: Sequence[str] = (),
        key: IKeyRef,
    ) -> None:
        expect(workspace, ManagedGrafana, "workspace")
        expect_list(admins, "admins")
        expect_list(editors, "editors")
        super().__init__(
            scope,
            id,
            handler="grafana_users",
            resource_type="Custom::GrafanaUsers",
            properties={"WorkspaceId": workspace.workspace_id, "Admins": list(admins), "Editors": list(editors)},
            statements=[
                {
                    "Action": ["grafana:ListPermissions", "grafana:UpdatePermissions"],
                    "Resource": workspace.workspace_arn,
                },
                # Grafana makes the application, and its ARN is known to Identity Center only
                {"Action": [*DIRECTORY_ACTIONS, *ASSIGNMENT_ACTIONS], "Resource": "*"},
            ],
            key=key,
            timeout_seconds=120,
        )
        reason = "IAM Identity Center: most actions take no resource, and no attribute names Grafana's application."
        acknowledge(self, {"AwsSolutions-IAM5[Resource::*]": reason})


def data_sources(
    name: str, metrics: PrometheusWorkspace, uids: tuple[str, str], scrape_interval_seconds: int
) -> tuple[dict[str, Any], ...]:
    """The data sources, as Grafana's API takes them. Both sign requests with the role of the workspace.

    `$__rate_interval` is at least four times `timeInterval`, the scrape interval, which Grafana takes for 15 s unless
    it is told. A rate needs two samples in that range.

    Source: Grafana 12, data source plugins for Amazon Managed Service for Prometheus and CloudWatch, "Prometheus data
    source", Interval behavior (2026).
    """
    signs = {"sigV4Auth": True, "sigV4AuthType": "ec2_iam_role", "sigV4Region": REGION}
    return (
        {
            "uid": uids[0],
            "name": f"{name} metrics",
            "type": METRICS_PLUGIN,
            "access": "proxy",
            "url": metrics.prometheus_endpoint,
            "jsonData": {"httpMethod": "POST", "timeInterval": f"{scrape_interval_seconds}s", **signs},
        },
        {
            "uid": uids[1],
            "name": f"{name} CloudWatch",
            "type": "cloudwatch",
            "access": "proxy",
            "jsonData": {"authType": "ec2_iam_role", "defaultRegion": REGION},
        },
    )
