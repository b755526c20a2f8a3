"""AWS::Logs: log groups, resource policies, and deliveries of a service's logs."""

from typing import Any

from ultracluster.localaws.handlers.common import json_text, retag, undo_on_failure
from ultracluster.localaws.resources import (
    Context,
    Handler,
    HandlerError,
    NotUpdatable,
    Properties,
    Resource,
    changed,
    handler,
    pick,
    require,
    require_bucket,
    require_key,
    tag_map,
)


def require_log_group(context: Context, name: str) -> dict[str, Any]:
    """The log group of this name; HandlerError when it does not exist."""
    groups = context.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    found = [group for group in groups if group["logGroupName"] == name]
    group: dict[str, Any] = require(lambda: found, f"log group {name} does not exist")[0]
    return group


def _tags(properties: Properties) -> dict[str, dict[str, str]]:
    tags = tag_map(properties.get("Tags"))
    return {"tags": tags} if tags else {}


@handler
class LogGroup(Handler):
    """AWS::Logs::LogGroup."""

    type = "AWS::Logs::LogGroup"
    supported_properties = frozenset(
        {"LogGroupName", "RetentionInDays", "KmsKeyId", "LogGroupClass", "DeletionProtectionEnabled", "Tags"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the group. Its key policy must allow CloudWatch Logs to use the key."""
        logs, name = context.client("logs"), properties.get("LogGroupName") or context.physical_name(512)
        self._check_key(context, properties)
        optional = {"KmsKeyId": "kmsKeyId", "LogGroupClass": "logGroupClass"}
        optional |= {"DeletionProtectionEnabled": "deletionProtectionEnabled"}
        given = {parameter: properties[found] for found, parameter in optional.items() if found in properties}
        logs.create_log_group(logGroupName=name, **given, **_tags(properties))
        with undo_on_failure(lambda: logs.delete_log_group(logGroupName=name)):
            self._set_retention(context, name, properties)
        return self._resource(context, name)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update retention, key, protection and tags. The class of a group cannot change."""
        logs = context.client("logs")
        if "LogGroupClass" in changed(old, new):
            raise NotUpdatable(self.type, {"LogGroupClass"})
        self._check_key(context, new)
        self._set_retention(context, physical_id, new)
        if key := new.get("KmsKeyId"):
            logs.associate_kms_key(logGroupName=physical_id, kmsKeyId=key)
        elif "KmsKeyId" in old:
            logs.disassociate_kms_key(logGroupName=physical_id)
        if "DeletionProtectionEnabled" in changed(old, new):
            protected = new.get("DeletionProtectionEnabled", False)
            logs.put_log_group_deletion_protection(logGroupIdentifier=physical_id, deletionProtectionEnabled=protected)
        retag(context.client("logs"), require_log_group(context, physical_id)["logGroupArn"], old, new)
        return self._resource(context, physical_id)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the group with its log events."""
        context.client("logs").delete_log_group(logGroupName=physical_id)

    def _resource(self, context: Context, name: str) -> Resource:
        return Resource(name, {"Arn": require_log_group(context, name)["arn"]})

    def _set_retention(self, context: Context, name: str, properties: Properties) -> None:
        logs = context.client("logs")
        if days := properties.get("RetentionInDays"):
            logs.put_retention_policy(logGroupName=name, retentionInDays=days)
        else:
            logs.delete_retention_policy(logGroupName=name)

    def _check_key(self, context: Context, properties: Properties) -> None:
        if key := properties.get("KmsKeyId"):
            require_key(context, key)
            policy = context.client("kms").get_key_policy(KeyId=key, PolicyName="default")["Policy"]
            # CloudWatch Logs User Guide, "Encrypt log data using KMS", "Set permissions on the KMS key".
            if "logs." not in policy:
                raise HandlerError(f"the policy of KMS key {key} does not allow CloudWatch Logs to use it")


@handler
class ResourcePolicy(Handler):
    """AWS::Logs::ResourcePolicy."""

    type = "AWS::Logs::ResourcePolicy"
    supported_properties = frozenset({"PolicyName", "PolicyDocument"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Put the policy."""
        document = json_text(properties["PolicyDocument"])
        context.client("logs").put_resource_policy(policyName=properties["PolicyName"], policyDocument=document)
        return Resource(properties["PolicyName"], {})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Replace the policy."""
        return self.create(context, new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the policy."""
        context.client("logs").delete_resource_policy(policyName=physical_id)


class DeliveryEnd(Handler):
    """A source or destination of deliveries: only its tags can change in place."""

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Retag. Nothing else can change in place."""
        if fixed := changed(old, new) - {"Tags"}:
            raise NotUpdatable(self.type, fixed)
        made = self.describe(context, physical_id)
        retag(context.client("logs"), made.attributes["Arn"], old, new)
        return made

    def describe(self, context: Context, name: str) -> Resource:
        """The source or destination as Ref and Fn::GetAtt see it."""
        raise NotImplementedError


@handler
class DeliverySource(DeliveryEnd):
    """AWS::Logs::DeliverySource: a resource and a log type."""

    type = "AWS::Logs::DeliverySource"
    supported_properties = frozenset({"Name", "ResourceArn", "LogType", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the source. Logs checks the log type; a PCS cluster must exist."""
        if missing := {"ResourceArn", "LogType"} - properties.keys():
            raise HandlerError(f"{', '.join(sorted(missing))} is missing")
        arn = properties["ResourceArn"]
        if ":pcs:" in arn:
            pcs, cluster = context.client("pcs"), arn.rsplit("/", 1)[-1]
            require(lambda: pcs.get_cluster(clusterIdentifier=cluster), f"PCS cluster {arn} does not exist")
        context.client("logs").put_delivery_source(
            name=properties["Name"], resourceArn=arn, logType=properties["LogType"], **_tags(properties)
        )
        return self.describe(context, properties["Name"])

    def describe(self, context: Context, name: str) -> Resource:
        """ARN, service and resource."""
        source = context.client("logs").get_delivery_source(name=name)["deliverySource"]
        about = {"Arn": source["arn"], "Service": source["service"], "ResourceArns": source["resourceArns"]}
        return Resource(name, about)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Logs refuses while a delivery uses it."""
        context.client("logs").delete_delivery_source(name=physical_id)


@handler
class DeliveryDestination(DeliveryEnd):
    """AWS::Logs::DeliveryDestination: a log group or bucket."""

    type = "AWS::Logs::DeliveryDestination"
    supported_properties = frozenset({"Name", "DestinationResourceArn", "OutputFormat", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the destination. Its log group or bucket must exist."""
        arn = properties.get("DestinationResourceArn", "")
        if ":log-group:" in arn:
            require_log_group(context, arn.split(":log-group:")[1].removesuffix(":*"))
        elif arn.startswith("arn:aws:s3:::"):
            require_bucket(context, arn.removeprefix("arn:aws:s3:::").split("/")[0])
        else:
            raise HandlerError(f"the embedded AWS does not deliver logs to {arn or 'an empty destination'}")
        context.client("logs").put_delivery_destination(
            name=properties["Name"],
            deliveryDestinationConfiguration={"destinationResourceArn": arn},
            **({"outputFormat": properties["OutputFormat"]} if "OutputFormat" in properties else {}),
            **_tags(properties),
        )
        return self.describe(context, properties["Name"])

    def describe(self, context: Context, name: str) -> Resource:
        """ARN and type of the destination."""
        found = context.client("logs").get_delivery_destination(name=name)["deliveryDestination"]
        return Resource(name, {"Arn": found["arn"], "DeliveryDestinationType": found["deliveryDestinationType"]})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Logs refuses while a delivery uses it."""
        context.client("logs").delete_delivery_destination(name=physical_id)


@handler
class Delivery(Handler):
    """AWS::Logs::Delivery from a source to a destination."""

    type = "AWS::Logs::Delivery"
    supported_properties = frozenset(
        {"DeliverySourceName", "DeliveryDestinationArn", "RecordFields", "FieldDelimiter", "S3SuffixPath", "Tags"}
        | {"S3EnableHiveCompatiblePath"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the delivery. Logs checks that source and destination exist."""
        made = context.client("logs").create_delivery(
            deliverySourceName=properties["DeliverySourceName"],
            deliveryDestinationArn=properties["DeliveryDestinationArn"],
            **self._format(properties),
            **_tags(properties),
        )["delivery"]
        return self._resource(made)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update fields, delimiter, path and tags."""
        logs, asked = context.client("logs"), self._format(new)
        if gone := self._format(old).keys() - asked.keys():
            raise NotUpdatable(self.type, gone)
        if asked:
            logs.update_delivery_configuration(id=physical_id, **asked)
        made = self._resource(logs.get_delivery(id=physical_id)["delivery"])
        retag(context.client("logs"), made.attributes["Arn"], old, new)
        return made

    def _format(self, properties: Properties) -> dict[str, Any]:
        names = {"RecordFields": "recordFields", "FieldDelimiter": "fieldDelimiter"}
        asked = {parameter: properties[name] for name, parameter in names.items() if name in properties}
        paths = {"S3SuffixPath": "suffixPath", "S3EnableHiveCompatiblePath": "enableHiveCompatiblePath"}
        if path := pick(properties, *paths):
            asked["s3DeliveryConfiguration"] = {paths[name]: value for name, value in path.items()}
        return asked

    def _resource(self, delivery: dict[str, Any]) -> Resource:
        about = {"DeliveryId": delivery["id"], "Arn": delivery["arn"]}
        return Resource(delivery["id"], {**about, "DeliveryDestinationType": delivery["deliveryDestinationType"]})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the delivery."""
        context.client("logs").delete_delivery(id=physical_id)


@handler
class MetricFilter(Handler):
    """AWS::Logs::MetricFilter: counts the events of a log group that match a pattern. Ref gives its name."""

    type = "AWS::Logs::MetricFilter"
    supported_properties = frozenset({"FilterName", "FilterPattern", "LogGroupName", "MetricTransformations"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the filter. A metric with dimensions has no default value (Logs User Guide, metric filters, 2026)."""
        name = properties.get("FilterName") or context.physical_name(512)
        return self._put(context, name, properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Replace the pattern and the metric."""
        self.delete(context, physical_id, old)  # moto would keep both
        return self._put(context, physical_id, new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the filter."""
        group = properties["LogGroupName"]
        context.client("logs").delete_metric_filter(logGroupName=group, filterName=physical_id)

    def _put(self, context: Context, name: str, properties: Properties) -> Resource:
        require_log_group(context, properties["LogGroupName"])
        transformations = []
        for found in properties["MetricTransformations"]:
            dimensions = {entry["Key"]: entry["Value"] for entry in found.get("Dimensions", [])}
            if dimensions and "DefaultValue" in found:
                raise HandlerError("a metric filter with dimensions takes no default value")
            if str(found["MetricNamespace"]).startswith("AWS/"):
                raise HandlerError("the namespace of a metric filter must not start with AWS/")
            plain = {key[:1].lower() + key[1:]: value for key, value in found.items() if key != "Dimensions"}
            transformations.append({**plain, **({"dimensions": dimensions} if dimensions else {})})
        context.client("logs").put_metric_filter(
            logGroupName=properties["LogGroupName"],
            filterName=name,
            filterPattern=properties["FilterPattern"],
            metricTransformations=transformations,
        )
        return Resource(name, {})
