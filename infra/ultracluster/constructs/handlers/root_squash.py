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
    file_system = event["ResourceProperties"]["FileSystemId"]
    try:
        if event["RequestType"] != "Delete":
            squash(boto3.client("fsx"), file_system, event["ResourceProperties"]["RootSquash"])
    except Exception as error:
        logging.exception("root squash")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, file_system, reason=str(error))
        return
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, file_system)


def squash(fsx: Any, file_system: str, wanted: str) -> None:
    """Asks for `wanted`, a UID:GID, unless it is in force already; raises TimeoutError when it does not come."""
    if current(fsx, file_system) == wanted:
        return
    settings = {"RootSquashConfiguration": {"RootSquash": wanted}}
    fsx.update_file_system(FileSystemId=file_system, LustreConfiguration=settings)
    for _ in range(ATTEMPTS):
        if current(fsx, file_system) == wanted:
            return
        time.sleep(WAIT_SECONDS)
    raise TimeoutError(f"{file_system} still has no root squash {wanted} after {ATTEMPTS * WAIT_SECONDS} s")


def current(fsx: Any, file_system: str) -> str | None:
    """The UID:GID that root becomes on the file system, or None."""
    found = fsx.describe_file_systems(FileSystemIds=[file_system])["FileSystems"][0]
    squash_now: str | None = found["LustreConfiguration"].get("RootSquashConfiguration", {}).get("RootSquash")
    return squash_now
