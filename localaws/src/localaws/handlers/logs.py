"""CloudWatch Logs: groups, resource policies, deliveries of a service's logs, metric filters and saved queries."""

from localaws.resources import Context, HandlerError, Properties
from localaws.rows.existing import known
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting


def _check_source(context: Context, _: Properties, new: Properties) -> None:
    if missing := {"ResourceArn", "LogType"} - new.keys():
        raise HandlerError(f"{', '.join(sorted(missing))} is missing")
    if ":pcs:" in (arn := new["ResourceArn"]):
        known(context, "PCS cluster", arn)


def _check_destination(context: Context, _: Properties, new: Properties) -> None:
    arn = new.get("DestinationResourceArn", "")
    if ":log-group:" in arn:
        known(context, "log group", arn)
    elif arn.startswith("arn:aws:s3:::"):
        known(context, "bucket", arn)
    else:
        raise HandlerError(f"the embedded AWS does not deliver logs to {arn or 'an empty destination'}")


def _check_filter(_: Context, __: Properties, new: Properties) -> None:
    """Logs User Guide, metric filters (2026)."""
    for found in new["MetricTransformations"]:
        if found.get("Dimensions") and "DefaultValue" in found:
            raise HandlerError("a metric filter with dimensions takes no default value")
        if str(found["MetricNamespace"]).startswith("AWS/"):
            raise HandlerError("the namespace of a metric filter must not start with AWS/")


register(
    Row(
        type="AWS::Logs::LogGroup",
        service="logs",
        name=("LogGroupName", 512),
        ref="{LogGroupName}",
        ident={"logGroupName": "{ref}", "logGroupNamePrefix": "{ref}", "logGroupIdentifier": "{ref}"},
        arn="{logGroupArn}",
        settings=(
            Setting("RetentionInDays", put="PutRetentionPolicy", remove="DeleteRetentionPolicy"),
            Setting("KmsKeyId", put="AssociateKmsKey", remove="DisassociateKmsKey", at_creation=False),
            Setting(
                "DeletionProtectionEnabled",
                put="PutLogGroupDeletionProtection",
                reset={"DeletionProtectionEnabled": False},
                at_creation=False,
            ),
        ),
    ),
    Row(
        type="AWS::Logs::ResourcePolicy",
        service="logs",
        create="PutResourcePolicy",
        update="PutResourcePolicy",
        ref="{PolicyName}",
        ident={"policyName": "{ref}"},
        tags=None,
    ),
    Row(
        type="AWS::Logs::DeliverySource",
        service="logs",
        ignored="DeliverySourceConfiguration",
        create="PutDeliverySource",
        ref="{Name}",
        check=_check_source,
    ),
    Row(
        type="AWS::Logs::DeliveryDestination",
        service="logs",
        ignored="DeliveryDestinationType",
        create="PutDeliveryDestination",
        ref="{Name}",
        renames={"DestinationResourceArn": "deliveryDestinationConfiguration.destinationResourceArn"},
        check=_check_destination,
    ),
    Row(
        type="AWS::Logs::Delivery",
        service="logs",
        update="UpdateDeliveryConfiguration",
        renames={
            "S3SuffixPath": "s3DeliveryConfiguration.suffixPath",
            "S3EnableHiveCompatiblePath": "s3DeliveryConfiguration.enableHiveCompatiblePath",
        },
    ),
    Row(
        type="AWS::Logs::MetricFilter",
        service="logs",
        read=None,
        ignored="ApplyOnTransformedLogs EmitSystemFieldDimensions FieldSelectionCriteria",
        name=("FilterName", 512),
        create="PutMetricFilter",
        update="PutMetricFilter",
        ref="{FilterName}",
        ident={"filterName": "{ref}", "logGroupName": "{LogGroupName}"},
        tags=None,
        must_exist={"LogGroupName": "log group"},
        check=_check_filter,
    ),
    Row(
        type="AWS::Logs::QueryDefinition",
        service="logs",
        ignored="Parameters QueryLanguage",
        create="PutQueryDefinition",
        update="PutQueryDefinition",
        tags=None,
        must_exist={"LogGroupNames": "log group"},
    ),
)
