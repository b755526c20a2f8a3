"""Deletes an FSx for OpenZFS file system with its volumes and snapshots, and without the final backup.

FSx makes that backup unless it is told otherwise, and CloudFormation does not tell it.
"""

import logging
import time
from typing import Any

import boto3
import cfnresponse

TAG = {"Key": "ultracluster:retain", "Value": "false"}
OPTIONS = {"SkipFinalBackup": True, "Options": ["DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"]}
WAIT_SECONDS, ANSWER_MILLISECONDS = 10, 60_000


def handler(event: dict[str, Any], context: Any) -> None:
    """Answers CloudFormation. The resource is its file system, so another one makes another resource."""
    system = event["ResourceProperties"]["FileSystemId"]
    try:
        if event["RequestType"] == "Delete":
            delete(boto3.client("fsx"), system, context)
    except Exception as error:
        logging.exception("file system")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, system, reason=str(error))
        return
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, system)


def delete(fsx: Any, system: str, context: Any) -> None:
    """Waits until it is gone. The update to retain: true removes the tag before it deletes this resource."""
    found = described(fsx, system)
    if not found or TAG not in found.get("Tags", []):
        return
    if found["Lifecycle"] != "DELETING":
        fsx.delete_file_system(FileSystemId=system, OpenZFSConfiguration=OPTIONS)
    while described(fsx, system):
        if context.get_remaining_time_in_millis() < ANSWER_MILLISECONDS:
            raise RuntimeError(f"FSx still deletes {system}: delete the stack again")
        time.sleep(WAIT_SECONDS)


def described(fsx: Any, system: str) -> dict[str, Any] | None:
    """The file system; None when it is gone."""
    try:
        (found,) = fsx.describe_file_systems(FileSystemIds=[system])["FileSystems"]
    except fsx.exceptions.FileSystemNotFound:
        return None
    return dict(found)
