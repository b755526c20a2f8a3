"""Sets the root squash of an FSx for Lustre file system, and answers when it is in force. Delete leaves it as it is."""

import logging
import time
from typing import Any

import boto3
import cfnresponse

WAIT_SECONDS = 10
ATTEMPTS = 50


def handler(event: dict[str, Any], context: Any) -> None:
    """Answers CloudFormation. The resource is its file system, so another file system makes another resource."""
    properties = event["ResourceProperties"]
    file_system = properties["FileSystemId"]
    wanted = {"RootSquash": properties["RootSquash"], "NoSquashNids": properties.get("NoSquashNids", [])}
    try:
        if event["RequestType"] != "Delete":
            squash(boto3.client("fsx"), file_system, wanted)
    except Exception as error:
        logging.exception("root squash")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, file_system, reason=str(error))
        return
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, file_system)


def squash(fsx: Any, file_system: str, wanted: dict[str, Any]) -> None:
    """Asks for `wanted` unless it is in force already; raises TimeoutError when it does not come."""
    if in_force(fsx, file_system, wanted):
        return
    fsx.update_file_system(FileSystemId=file_system, LustreConfiguration={"RootSquashConfiguration": wanted})
    for _ in range(ATTEMPTS):
        if in_force(fsx, file_system, wanted):
            return
        time.sleep(WAIT_SECONDS)
    raise TimeoutError(f"{file_system} does not have {wanted} after {ATTEMPTS * WAIT_SECONDS} s")


def in_force(fsx: Any, file_system: str, wanted: dict[str, Any]) -> bool:
    """Whether root of the clients becomes the wanted UID:GID, except on the wanted clients."""
    found = fsx.describe_file_systems(FileSystemIds=[file_system])["FileSystems"][0]
    now = found["LustreConfiguration"].get("RootSquashConfiguration", {})
    return now.get("RootSquash") == wanted["RootSquash"] and sorted(now.get("NoSquashNids", [])) == sorted(
        wanted["NoSquashNids"]
    )
