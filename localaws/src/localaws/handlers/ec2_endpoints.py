"""AWS::EC2::VPCEndpoint and AWS::EC2::FlowLog."""

from typing import Any

from localaws.handlers.common import ec2_tags, json_text
from localaws.handlers.ec2_network import Ec2Handler, require_route_table, require_vpc
from localaws.handlers.logs import require_log_group
from localaws.resources import (
    Context,
    HandlerError,
    Properties,
    Resource,
    handler,
    pick,
    require_bucket,
    require_role,
    require_security_groups,
    require_subnets,
)

_LISTS = ("RouteTableIds", "SubnetIds", "SecurityGroupIds")


@handler
class VpcEndpoint(Ec2Handler):
    """AWS::EC2::VPCEndpoint, gateway or interface."""

    type = "AWS::EC2::VPCEndpoint"
    supported_properties = frozenset(
        {"VpcId", "ServiceName", "VpcEndpointType", "PolicyDocument", "PrivateDnsEnabled", "Tags", *_LISTS}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the endpoint. EC2 checks the service name."""
        self._check(context, properties)
        made = context.client("ec2").create_vpc_endpoint(
            TagSpecifications=ec2_tags(context, "vpc-endpoint", properties),
            VpcEndpointType=properties.get("VpcEndpointType", "Gateway"),
            **pick(properties, "VpcId", "ServiceName", *_LISTS),
            **self._settings(properties),
        )
        return self.describe(context, made["VpcEndpoint"]["VpcEndpointId"])

    def change(self, context: Context, physical_id: str, old: Properties, new: Properties) -> None:
        """Update policy, private DNS, subnets, route tables and security groups."""
        self._check(context, new)
        moves: dict[str, list[str]] = {}
        for name in _LISTS:
            before, after = old.get(name, []), new.get(name, [])
            moves[f"Add{name}"] = [item for item in after if item not in before]
            moves[f"Remove{name}"] = [item for item in before if item not in after]
        settings = self._settings(new)
        if "PolicyDocument" in old and "PolicyDocument" not in new:
            settings["ResetPolicy"] = True
        context.client("ec2").modify_vpc_endpoint(
            VpcEndpointId=physical_id, **{name: ids for name, ids in moves.items() if ids}, **settings
        )

    def _settings(self, properties: Properties) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        if "PolicyDocument" in properties:
            settings["PolicyDocument"] = json_text(properties["PolicyDocument"])
        if properties.get("VpcEndpointType") == "Interface":
            settings["PrivateDnsEnabled"] = properties.get("PrivateDnsEnabled", False)
        return settings

    def _check(self, context: Context, properties: Properties) -> None:
        vpc = properties["VpcId"]
        require_vpc(context, vpc)
        for table in properties.get("RouteTableIds", ()):
            require_route_table(context, table)
        if subnets := properties.get("SubnetIds"):
            _require_inside(vpc, require_subnets(context, subnets))
        if groups := properties.get("SecurityGroupIds"):
            _require_inside(vpc, require_security_groups(context, groups))
        if properties.get("PrivateDnsEnabled"):
            ec2 = context.client("ec2")
            for attribute in ("enableDnsSupport", "enableDnsHostnames"):
                answer = ec2.describe_vpc_attribute(VpcId=vpc, Attribute=attribute)
                if not answer[attribute[0].upper() + attribute[1:]]["Value"]:
                    raise HandlerError(f"private DNS needs {attribute} of VPC {vpc} to be true")

    def describe(self, context: Context, physical_id: str) -> Resource:
        """Id, network interfaces, and DNS names as `hosted zone:name`."""
        found = context.client("ec2").describe_vpc_endpoints(VpcEndpointIds=[physical_id])["VpcEndpoints"][0]
        attributes = {
            "Id": physical_id,
            "CreationTimestamp": found["CreationTimestamp"].isoformat(),
            "NetworkInterfaceIds": found["NetworkInterfaceIds"],
            "DnsEntries": [f"{entry['HostedZoneId']}:{entry['DnsName']}" for entry in found["DnsEntries"]],
        }
        return Resource(physical_id, attributes)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the endpoint with its routes and network interfaces."""
        context.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[physical_id])


def _require_inside(vpc: str, found: list[dict[str, Any]]) -> None:
    for item in found:
        if item["VpcId"] != vpc:
            raise HandlerError(f"{item.get('SubnetId') or item['GroupId']} is not in VPC {vpc}")


@handler
class FlowLog(Ec2Handler):
    """AWS::EC2::FlowLog to CloudWatch Logs or S3."""

    type = "AWS::EC2::FlowLog"
    supported_properties = frozenset(
        {"ResourceId", "ResourceType", "TrafficType", "LogDestinationType", "LogDestination", "LogGroupName", "Tags"}
        | {"DeliverLogsPermissionArn", "MaxAggregationInterval", "LogFormat"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the flow log. Destination and role must exist."""
        self._check_resource(context, properties)
        self._check_destination(context, properties)
        names = self.supported_properties - {"ResourceId", "Tags"}
        made = context.client("ec2").create_flow_logs(
            ResourceIds=[properties["ResourceId"]],
            TagSpecifications=ec2_tags(context, "vpc-flow-log", properties),
            **pick(properties, *names),
        )
        if made["Unsuccessful"]:
            raise HandlerError(made["Unsuccessful"][0]["Error"]["Message"])
        return self.describe(context, made["FlowLogIds"][0])

    def _check_resource(self, context: Context, properties: Properties) -> None:
        kind, resource = properties["ResourceType"], properties["ResourceId"]
        if kind == "VPC":
            require_vpc(context, resource)
        elif kind == "Subnet":
            require_subnets(context, [resource])
        else:
            raise HandlerError(f"the embedded AWS does not support flow logs of a {kind}")

    def _check_destination(self, context: Context, properties: Properties) -> None:
        destination = properties.get("LogDestination", "")
        kind = properties.get("LogDestinationType", "cloud-watch-logs")
        if kind == "s3":
            require_bucket(context, destination.removeprefix("arn:aws:s3:::").split("/")[0])
        elif kind == "cloud-watch-logs":
            name = properties.get("LogGroupName") or destination.split(":log-group:")[-1].removesuffix(":*")
            require_log_group(context, name)
            if "DeliverLogsPermissionArn" not in properties:
                raise HandlerError("DeliverLogsPermissionArn is needed for CloudWatch Logs")
            require_role(context, properties["DeliverLogsPermissionArn"])
        else:
            raise HandlerError(f"the embedded AWS does not deliver flow logs to {kind}")

    def describe(self, context: Context, physical_id: str) -> Resource:
        """Id."""
        return Resource(physical_id, {"Id": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the flow log. Its records stay."""
        context.client("ec2").delete_flow_logs(FlowLogIds=[physical_id])
