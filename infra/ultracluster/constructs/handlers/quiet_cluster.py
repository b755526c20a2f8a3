"""Switches the logs of an EKS cluster off before it is deleted.

EKS writes the last events late. It would make the log group again that its stack has just deleted.
"""

import logging
import time
from typing import Any

import boto3
import cfnresponse

TAG, VALUE = "ultracluster:retain", "false"
WAIT_SECONDS, ANSWER_MILLISECONDS = 5, 60_000


def handler(event: dict[str, Any], context: Any) -> None:
    """Answers CloudFormation. The resource is its cluster, so another cluster makes another resource."""
    cluster = event["ResourceProperties"]["ClusterName"]
    try:
        if event["RequestType"] == "Delete":
            disable_logs(boto3.client("eks"), cluster, context)
    except Exception as error:
        logging.exception("cluster")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, cluster, reason=str(error))
        return
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, cluster)


def disable_logs(eks: Any, name: str, context: Any) -> None:
    """Waits until the update ends. The update to retain: true removes the tag before it deletes this resource."""
    try:
        cluster = eks.describe_cluster(name=name)["cluster"]
    except eks.exceptions.ResourceNotFoundException:
        return
    kinds = [kind for setup in cluster["logging"]["clusterLogging"] if setup["enabled"] for kind in setup["types"]]
    if cluster.get("tags", {}).get(TAG) != VALUE or not kinds:
        return
    setup = {"clusterLogging": [{"types": kinds, "enabled": False}]}
    update = eks.update_cluster_config(name=name, logging=setup)["update"]
    while update["status"] == "InProgress":
        if context.get_remaining_time_in_millis() < ANSWER_MILLISECONDS:
            raise RuntimeError(f"EKS still updates {name}: delete the stack again")
        time.sleep(WAIT_SECONDS)
        update = eks.describe_update(name=name, updateId=update["id"])["update"]
    if update["status"] != "Successful":
        raise RuntimeError(f"{name}: update {update['id']} {update['status']}")
