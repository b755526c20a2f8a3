"""Has a login node drain the Slurm nodes that alerts name, and logs what it asked for: a line of JSON for each node."""

import json
import os
import re
import sys
from typing import Any

import boto3

NODE = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")
REASON = re.compile(r"[^A-Za-z0-9 ,.:=_-]")


def handler(event: dict[str, Any], _context: Any) -> None:
    """Takes messages of SNS, each with the alerts of one node. An error has Lambda try again."""
    for message in event["Records"]:
        for alert in json.loads(message["Sns"]["Message"])["alerts"]:
            drain(boto3.client("ssm"), alert)


def drain(ssm: Any, alert: dict[str, str]) -> None:
    """Runs the document on login nodes, one after the other: on a node that is drained it changes nothing."""
    audit = {"event": "drain", **alert}
    if not NODE.fullmatch(alert.get("node", "")):
        record({**audit, "outcome": "ignored: not the name of a node"})
        return
    reason = REASON.sub(" ", f"{alert['alert']} {alert.get('gpu', '')} needs {alert['repair']}")[:150]
    command = ssm.send_command(
        DocumentName=os.environ["DOCUMENT"],
        Targets=[
            {"Key": "tag:ultracluster:environment", "Values": [os.environ["ENVIRONMENT"]]},
            {"Key": "tag:ultracluster:node-group", "Values": ["login"]},
        ],
        Parameters={"node": [alert["node"]], "reason": [reason]},
        MaxConcurrency="1",
        # one login node that fails does not keep the next from it
        MaxErrors="100%",
        TimeoutSeconds=300,
        Comment=f"drain {alert['node']}",
    )
    record({**audit, "outcome": "asked", "command": command["Command"]["CommandId"], "reason": reason})


def record(entry: dict[str, str]) -> None:
    """Writes a line to the function's log."""
    sys.stdout.write(json.dumps(entry) + "\n")
