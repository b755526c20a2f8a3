"""Managed Prometheus: workspaces, rule files and scrapers. Ref gives the ARN."""

import base64
import binascii

from localaws.resources import HandlerError, Properties
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting


def _decoded(new: Properties) -> Properties:
    """A template has the scraper's configuration in base64."""
    try:
        blob = base64.b64decode(new["ScrapeConfiguration"]["ConfigurationBlob"], validate=True)
    except binascii.Error as error:
        raise HandlerError(f"ConfigurationBlob is not base64: {error}") from error
    return {**new, "ScrapeConfiguration": {"ConfigurationBlob": blob}}


register(
    Row(
        type="AWS::APS::Workspace",
        service="amp",
        ref="{arn}",
        ident={"workspaceId": "{ref/}"},
        settings=(
            Setting("Alias", put="UpdateWorkspaceAlias", at_creation=False),
            Setting(
                "LoggingConfiguration",
                create="CreateLoggingConfiguration",
                put="UpdateLoggingConfiguration",
                remove="DeleteLoggingConfiguration",
                spread=True,
            ),
            Setting(
                "QueryLoggingConfiguration",
                create="CreateQueryLoggingConfiguration",
                put="UpdateQueryLoggingConfiguration",
                remove="DeleteQueryLoggingConfiguration",
                spread=True,
            ),
            Setting(
                "WorkspaceConfiguration",
                put="UpdateWorkspaceConfiguration",
                spread=True,
                renames={"LimitsPerLabelSets": "limitsPerLabelSet"},
                reset={
                    "RetentionPeriodInDays": 150,
                    "OutOfOrderTimeWindowInSeconds": 60,
                    "RuleQueryOffsetInSeconds": 60,
                    "LimitsPerLabelSets": [],
                },
            ),
            Setting(
                "AlertManagerDefinition",
                create="CreateAlertManagerDefinition",
                put="PutAlertManagerDefinition",
                remove="DeleteAlertManagerDefinition",
                renames={"AlertManagerDefinition": "data"},
            ),
        ),
    ),
    Row(
        type="AWS::APS::RuleGroupsNamespace",
        service="amp",
        update="PutRuleGroupsNamespace",
        ref="{arn}",
        ident={"workspaceId": "{Workspace/}", "name": "{Name}"},
    ),
    Row(
        type="AWS::APS::Scraper",
        service="amp",
        whole=True,
        ref="{arn}",
        ident={"scraperId": "{ref/}"},
        settings=(
            Setting(
                "ScraperLoggingConfiguration",
                put="UpdateScraperLoggingConfiguration",
                remove="DeleteScraperLoggingConfiguration",
                spread=True,
            ),
        ),
        prepare=_decoded,
    ),
)
