"""Disable termination protection of the stacks in an assembly and deletion protection of their EKS clusters.

Usage: unprotect.py CDK_OUT, with the variables of .localaws/env. Works on the embedded AWS only.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

NOT_FOUND = ("does not exist", "ResourceNotFoundException")


def call_if_exists(call: Any, **parameters: Any) -> Any:
    """The response of the call, or None when the resource does not exist."""
    try:
        return call(**parameters)
    except ClientError as error:
        if not any(word in str(error) for word in NOT_FOUND):
            raise
        return None


def unprotect(folder: Path, artifact: dict[str, Any], name: str) -> None:
    """Disable the protection of a stack and of the EKS clusters in its template."""
    region = urlsplit(artifact["environment"]).path.strip("/")
    cloudformation, eks = (boto3.client(service, region_name=region) for service in ("cloudformation", "eks"))
    if artifact["properties"].get("terminationProtection"):
        call_if_exists(cloudformation.update_termination_protection, StackName=name, EnableTerminationProtection=False)
    template = json.loads((folder / artifact["properties"]["templateFile"]).read_text())
    for logical_id, resource in template.get("Resources", {}).items():
        if resource["Type"] == "AWS::EKS::Cluster" and resource["Properties"].get("DeletionProtection"):
            found = call_if_exists(cloudformation.describe_stack_resource, StackName=name, LogicalResourceId=logical_id)
            if found:
                cluster = found["StackResourceDetail"]["PhysicalResourceId"]
                call_if_exists(eks.update_cluster_config, name=cluster, deletionProtection=False)


endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
if urlsplit(endpoint).hostname not in ("localhost", "127.0.0.1"):
    sys.exit("unprotect.py works on the embedded AWS only: set AWS_ENDPOINT_URL to it with `. .localaws/env`")

assembly = Path(sys.argv[1])
for identifier, found in json.loads((assembly / "manifest.json").read_text())["artifacts"].items():
    if found["type"] == "aws:cloudformation:stack":
        unprotect(assembly, found, found["properties"].get("stackName", identifier))
