"""Rows for alert delivery and for the functions that fill a Grafana workspace."""

from tests.access.account import ACCOUNT, Account, Found, Role
from tests.access.table import OTHER_ACCOUNT, Call, may, never

OURS = "least privilege"
AMP_SNS = "AMP User Guide, Giving Amazon Managed Service for Prometheus permission to send alert messages to your topic"
ALARMS_SNS = "SNS Developer Guide, Enable compatibility between event sources from AWS services and encrypted topics"
USERS = "AWS managed policy AWSGrafanaWorkspacePermissionManagementV2"
ASSIGNS = "Amazon Managed Grafana User Guide, AWS managed policies, Additional policy needed"
IDENTITY_CENTER = (
    *("sso:ListDirectoryAssociations", "sso:ListProfileAssociations", "sso:ListProfiles", "sso:GetProfile"),
    *("sso:DescribeRegisteredRegions", "sso:GetManagedApplicationInstance", "sso:GetSharedSsoConfiguration"),
    *("sso-directory:DescribeGroup", "sso-directory:DescribeUser"),
)


def alerts(account: Account) -> list[Call]:
    """AMP and alarms of CloudWatch on the topic and its key, where there is a topic."""
    calls = []
    alarm = f"arn:aws:cloudwatch:{account.region}:{ACCOUNT}:alarm:any"
    for topic in account.of_type("AWS::SNS::Topic"):
        (workspace,) = account.of_type("AWS::APS::Workspace")
        key = topic.properties["KmsMasterKeyId"]
        sources = {"aps.amazonaws.com": (workspace.arn, AMP_SNS), "cloudwatch.amazonaws.com": (alarm, ALARMS_SNS)}
        for service, (source, why) in sources.items():
            context = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": source}
            calls += may(service, "sns:Publish", topic.arn, why, context={**context, "aws:SecureTransport": "true"})
            calls += may(service, ("kms:Decrypt", "kms:GenerateDataKey"), key, why, context=context)
            calls += never(service, ("sns:Subscribe", "sns:DeleteTopic"), topic.arn, OURS, context=context)
            calls += never(service, ("kms:CreateGrant", "kms:Encrypt"), key, OURS, context=context)
            elsewhere = source.replace(ACCOUNT, OTHER_ACCOUNT)
            for foreign in ({"aws:SourceAccount": OTHER_ACCOUNT}, {"aws:SourceArn": elsewhere}):
                calls += never(service, "sns:Publish", topic.arn, "confused deputy", context={**context, **foreign})
                if service != "aps.amazonaws.com" or "aws:SourceAccount" in foreign:
                    calls += never(service, "kms:Decrypt", key, "confused deputy", context={**context, **foreign})
            plain = {**context, "aws:SecureTransport": "false"}
            calls += never(service, "sns:Publish", topic.arn, "TLS only", context=plain)
        reads = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": workspace.arn, "aws:SecureTransport": "true"}
        calls += may("aps.amazonaws.com", "sns:GetTopicAttributes", topic.arn, AMP_SNS, context=reads)
        other = f"arn:aws:aps:{account.region}:{ACCOUNT}:workspace/ws-other"
        context = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": other}
        calls += never("aps.amazonaws.com", "sns:Publish", topic.arn, "this workspace only", context=context)
        calls += never("events.amazonaws.com", "sns:Publish", topic.arn, OURS, context=context)
    return calls


def fills_grafana(account: Account, role: Role, resource: Found) -> list[Call]:
    """The function that puts content into a workspace."""
    own = f"arn:aws:grafana:{account.region}:{ACCOUNT}:/workspaces/{resource.properties['WorkspaceId']}"
    source = "handlers/grafana_content.py"
    makes = (
        *("grafana:CreateWorkspaceServiceAccount", "grafana:CreateWorkspaceServiceAccountToken"),
        *("grafana:DeleteWorkspaceServiceAccount", "grafana:ListWorkspaceServiceAccounts", "grafana:DescribeWorkspace"),
    )
    other = f"arn:aws:grafana:{account.region}:{ACCOUNT}:/workspaces/g-other"
    return [
        *may(role, makes, own, source),
        *never(role, makes, other, OURS),
        *never(role, ("grafana:UpdatePermissions", "grafana:DeleteWorkspace", "grafana:UpdateWorkspace"), own, OURS),
    ]


def assigns_users(account: Account, role: Role, resource: Found) -> list[Call]:
    """The function that gives groups their roles in a workspace."""
    own = f"arn:aws:grafana:{account.region}:{ACCOUNT}:/workspaces/{resource.properties['WorkspaceId']}"
    other = f"arn:aws:grafana:{account.region}:{ACCOUNT}:/workspaces/g-other"
    application = f"arn:aws:sso::{ACCOUNT}:application/ssoins-1/apl-1"
    changes = ("grafana:UpdatePermissions", "grafana:ListPermissions")
    return [
        *may(role, changes, own, "handlers/grafana_users.py"),
        *may(role, IDENTITY_CENTER, "*", USERS),
        *may(role, ("sso:AssociateProfile", "sso:DisassociateProfile"), "*", ASSIGNS),
        *may(role, ("sso:CreateApplicationAssignment", "sso:DeleteApplicationAssignment"), application, ASSIGNS),
        *never(role, changes, other, OURS),
        *never(role, ("grafana:CreateWorkspaceServiceAccountToken", "grafana:DeleteWorkspace"), own, OURS),
        *never(role, ("sso:CreateAccountAssignment", "sso-directory:CreateUser"), "*", OURS),
    ]
