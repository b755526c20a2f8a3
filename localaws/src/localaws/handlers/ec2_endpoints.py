"""EC2: VPC endpoints, and flow logs to CloudWatch Logs or S3."""

from typing import Any

from localaws.handlers.ec2_network import ec2
from localaws.resources import Context, HandlerError, Properties
from localaws.rows.existing import known
from localaws.rows.handler import register

_RESOURCES = {"Subnet": "subnet", "VPC": "VPC"}


def _with_defaults(given: Properties) -> Properties:
    """CloudFormation leaves private DNS of interface endpoints off."""
    private = {"PrivateDnsEnabled": False} if given.get("VpcEndpointType") == "Interface" else {}
    return {"VpcEndpointType": "Gateway", **private, **given}


def _dns_entries(_: Context, endpoint: Properties) -> dict[str, Any]:
    return {"DnsEntries": [f"{entry['HostedZoneId']}:{entry['DnsName']}" for entry in endpoint["DnsEntries"]]}


def _check_endpoint(context: Context, _: Properties, new: Properties) -> None:
    vpc = new["VpcId"]
    for kind, ids in (("subnet", new.get("SubnetIds")), ("security group", new.get("SecurityGroupIds"))):
        if outside := [each for each in ids or () if known(context, kind, each)["VpcId"] != vpc]:
            raise HandlerError(f"{outside[0]} is not in VPC {vpc}")
    for name in ("EnableDnsSupport", "EnableDnsHostnames") if new.get("PrivateDnsEnabled") else ():
        attribute = f"e{name[1:]}"
        if not context.client("ec2").describe_vpc_attribute(VpcId=vpc, Attribute=attribute)[name]["Value"]:
            raise HandlerError(f"private DNS needs {attribute} of VPC {vpc} to be true")


def _check_flow_log(context: Context, _: Properties, new: Properties) -> None:
    resource, destination = new["ResourceType"], new.get("LogDestinationType", "cloud-watch-logs")
    if resource not in _RESOURCES:
        raise HandlerError(f"the embedded AWS does not support flow logs of a {resource}")
    known(context, _RESOURCES[resource], new["ResourceId"])
    if destination not in ("cloud-watch-logs", "s3"):
        raise HandlerError(f"the embedded AWS does not deliver flow logs to {destination}")
    kind = "bucket" if destination == "s3" else "log group"
    name = new.get("LogGroupName") if kind == "log group" else None
    known(context, kind, name or new.get("LogDestination", ""))
    if kind == "log group" and "DeliverLogsPermissionArn" not in new:
        raise HandlerError("DeliverLogsPermissionArn is needed for CloudWatch Logs")


register(
    ec2(
        type="AWS::EC2::VPCEndpoint",
        properties="PolicyDocument PrivateDnsEnabled RouteTableIds SecurityGroupIds ServiceName SubnetIds Tags "
        "VpcEndpointType VpcId",
        update="ModifyVpcEndpoint",
        delete="DeleteVpcEndpoints",
        ref="{VpcEndpointId}",
        ident={"VpcEndpointId": "{ref}", "VpcEndpointIds": "{ref}"},
        removals={"PolicyDocument": {"ResetPolicy": True}},
        describe=_dns_entries,
        must_exist={"VpcId": "VPC", "RouteTableIds": "route table"},
        prepare=_with_defaults,
        check=_check_endpoint,
    ),
    ec2(
        type="AWS::EC2::FlowLog",
        properties="DeliverLogsPermissionArn LogDestination LogDestinationType LogFormat LogGroupName "
        "MaxAggregationInterval ResourceId ResourceType Tags TrafficType",
        create="CreateFlowLogs",
        delete="DeleteFlowLogs",
        ref="{FlowLogIds.0}",
        renames={"ResourceId": "ResourceIds"},
        tag_kind="vpc-flow-log",
        must_exist={"DeliverLogsPermissionArn": "role"},
        check=_check_flow_log,
    ),
)
