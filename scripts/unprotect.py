"""Switches off, on the embedded AWS only, what keeps the stacks of an assembly and their EKS clusters from deletion.

usage: unprotect.py CDK_OUT, with the variables of .localaws/env set.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

GONE = ("does not exist", "ResourceNotFoundException")


def tried(call: Any, **parameters: Any) -> Any:
    """The answer of the call, or None when what it is about is not there."""
    try:
        return call(**parameters)
    except ClientError as error:
        if not any(word in str(error) for word in GONE):
            raise
        return None


def unprotect(folder: Path, artifact: dict[str, Any], name: str) -> None:
    """Takes the protection off a stack, and off the clusters that its template makes."""
    region = urlsplit(artifact["environment"]).path.strip("/")
    cloudformation, eks = (boto3.client(service, region_name=region) for service in ("cloudformation", "eks"))
    if artifact["properties"].get("terminationProtection"):
        tried(cloudformation.update_termination_protection, StackName=name, EnableTerminationProtection=False)
    template = json.loads((folder / artifact["properties"]["templateFile"]).read_text())
    for logical_id, resource in template.get("Resources", {}).items():
        if resource["Type"] == "AWS::EKS::Cluster" and resource["Properties"].get("DeletionProtection"):
            found = tried(cloudformation.describe_stack_resource, StackName=name, LogicalResourceId=logical_id)
            if found:
                cluster = found["StackResourceDetail"]["PhysicalResourceId"]
                tried(eks.update_cluster_config, name=cluster, deletionProtection=False)


endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
if urlsplit(endpoint).hostname not in ("localhost", "127.0.0.1"):
    sys.exit("unprotect.py works on the embedded AWS only: AWS_ENDPOINT_URL is not on this machine")

assembly = Path(sys.argv[1])
for identifier, found in json.loads((assembly / "manifest.json").read_text())["artifacts"].items():
    if found["type"] == "aws:cloudformation:stack":
        unprotect(assembly, found, found["properties"].get("stackName", identifier))
