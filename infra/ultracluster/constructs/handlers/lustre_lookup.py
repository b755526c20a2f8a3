"""Reads the mount name and the DNS name of an existing FSx for Lustre file system. Delete does nothing."""

import logging
from typing import Any

import boto3
import cfnresponse

USABLE = ("AVAILABLE", "UPDATING")


def handler(event: dict[str, Any], context: Any) -> None:
    """Answers CloudFormation. The resource is its file system, so another file system makes another resource."""
    properties = event["ResourceProperties"]
    file_system = properties["FileSystemId"]
    found: dict[str, str] = {}
    try:
        if event["RequestType"] != "Delete":
            found = names(boto3.client("fsx"), file_system, efa=properties["Efa"] == "true")
    except Exception as error:
        logging.exception("lustre lookup")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, file_system, reason=str(error))
        return
    cfnresponse.send(event, context, cfnresponse.SUCCESS, found, file_system)


def names(fsx: Any, file_system: str, *, efa: bool) -> dict[str, str]:
    """The names of a file system that nodes can mount; raises ValueError for another one."""
    found = fsx.describe_file_systems(FileSystemIds=[file_system])["FileSystems"][0]
    if found["FileSystemType"] != "LUSTRE":
        raise ValueError(f"{file_system} is a file system of type {found['FileSystemType']}, not LUSTRE")
    if found["Lifecycle"] not in USABLE:
        raise ValueError(f"{file_system} is {found['Lifecycle']}, so it cannot be mounted")
    lustre = found["LustreConfiguration"]
    if efa and not lustre.get("EfaEnabled"):
        raise ValueError(f"{file_system} has no EFA. Remove efa from the environment file")
    return {"MountName": lustre["MountName"], "DNSName": found["DNSName"]}
