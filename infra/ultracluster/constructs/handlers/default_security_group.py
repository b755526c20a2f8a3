"""Takes away the two rules that AWS gives a VPC's default security group. Delete leaves the group as it is."""

import logging
from collections.abc import Callable
from typing import Any

import boto3
import cfnresponse
from botocore.exceptions import ClientError


def handler(event: dict[str, Any], context: Any) -> None:
    """Answers CloudFormation. The resource is its group, so another group makes another resource."""
    group = event["ResourceProperties"]["GroupId"]
    try:
        if event["RequestType"] != "Delete":
            close(boto3.client("ec2"), group)
    except Exception as error:
        logging.exception("default security group")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, group, reason=str(error))
        return
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, group)


def close(ec2: Any, group: str) -> None:
    """Revokes everything from members and everything to 0.0.0.0/0; rules that are gone already are no error."""
    members = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    anywhere = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    revoke(ec2.revoke_security_group_ingress, group, members)
    revoke(ec2.revoke_security_group_egress, group, anywhere)


def revoke(call: Callable[..., Any], group: str, permission: dict[str, Any]) -> None:
    """Revokes one rule unless it is gone."""
    try:
        call(GroupId=group, IpPermissions=[permission])
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidPermission.NotFound":
            raise
