"""Drains the Slurm nodes of alerts through a login node, and logs the outcome: a line of JSON for each alert."""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import boto3

NODE = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")
SINCE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
REASON = re.compile(r"[^A-Za-z0-9 ,.:=_-]")
UNFINISHED = ("Pending", "InProgress", "Delayed", "Cancelling")


def handler(event: dict[str, Any], _context: Any) -> None:
    """Takes messages of SNS, each with the alerts of one node. Raises if one was not drained: Lambda tries again."""
    ssm = boto3.client("ssm")
    alerts = [alert for record in event["Records"] for alert in json.loads(record["Sns"]["Message"])["alerts"]]
    outcomes = [drain(ssm, alert) for alert in alerts]
    if "failed" in outcomes:
        raise RuntimeError(f"{outcomes.count('failed')} of {len(outcomes)} alerts could not be acted on")


def drain(ssm: Any, alert: dict[str, str]) -> str:
    """Logs and returns the outcome. All calls ask the same login node first, which counts drained nodes for all."""
    audit = {"event": "drain", **alert}
    if not NODE.fullmatch(alert["node"]) or not SINCE.fullmatch(alert["since"]):
        return logged({**audit, "outcome": "ignored", "detail": "not a node, or not a time"})
    reason = REASON.sub(" ", f"{alert['alert']} {alert.get('gpu', '')} needs {alert['repair']}")[:150]
    said = {"outcome": "failed", "detail": "no login node is online"}
    for instance in login_nodes(ssm):
        said = ask(ssm, instance, {"node": [alert["node"]], "reason": [reason], "since": [alert["since"]]})
        if said["outcome"] != "failed":
            break
    return logged({**audit, "reason": reason, **said})


def login_nodes(ssm: Any) -> list[str]:
    """Instance IDs of the login nodes that Systems Manager reaches, in an order that is the same for all calls."""
    filters = [
        {"Key": "tag:ultracluster:environment", "Values": [os.environ["ENVIRONMENT"]]},
        {"Key": "tag:ultracluster:node-group", "Values": ["login"]},
        {"Key": "PingStatus", "Values": ["Online"]},
    ]
    pages = ssm.get_paginator("describe_instance_information").paginate(Filters=filters)
    return sorted(each["InstanceId"] for page in pages for each in page["InstanceInformationList"])


def ask(ssm: Any, instance: str, parameters: dict[str, list[str]]) -> dict[str, str]:
    """The outcome of the document on a login node. A command that is not delivered in 30 seconds expires."""
    document = os.environ["DOCUMENT"]
    sent = ssm.send_command(
        DocumentName=document, InstanceIds=[instance], Parameters=parameters, TimeoutSeconds=30, Comment="drain"
    )
    command = sent["Command"]["CommandId"]
    asked = {"instance": instance, "command": command}
    status = "no answer"
    for invocation in invocations(ssm, command, instance):
        status = invocation["Status"]
        if status not in UNFINISHED:
            lines = invocation["StandardOutputContent"].splitlines()
            return {**asked, **(json.loads(lines[-1]) if lines else {"outcome": "failed", "detail": status})}
    return {**asked, "outcome": "failed", "detail": status}


def invocations(ssm: Any, command: str, instance: str) -> Iterator[dict[str, Any]]:
    """The command's state, every two seconds, for longer than it may take."""
    for _ in range(90):
        time.sleep(2)
        try:
            yield ssm.get_command_invocation(CommandId=command, InstanceId=instance)
        except ssm.exceptions.InvocationDoesNotExist:
            continue  # not yet


def logged(entry: dict[str, str]) -> str:
    """Writes a line to the function's log, and returns its outcome."""
    sys.stdout.write(json.dumps(entry) + "\n")
    return entry["outcome"]
