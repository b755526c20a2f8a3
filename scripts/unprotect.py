"""Disable termination protection of the stacks in an assembly and deletion protection of their EKS clusters.

Usage: unprotect.py CDK_OUT, with the variables of .localaws/env. Works on the embedded AWS only, whatever `protect` in
the file says now: the stacks may have been deployed with another value.
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


def unprotect(region: str, stack: str) -> None:
    """Disable the protection of a stack and of its EKS clusters."""
    cloudformation, eks = (boto3.client(service, region_name=region) for service in ("cloudformation", "eks"))
    call_if_exists(cloudformation.update_termination_protection, StackName=stack, EnableTerminationProtection=False)
    deployed = call_if_exists(cloudformation.describe_stack_resources, StackName=stack) or {"StackResources": []}
    for resource in deployed["StackResources"]:
        if resource["ResourceType"] == "AWS::EKS::Cluster":
            name = resource.get("PhysicalResourceId")
            found = call_if_exists(eks.describe_cluster, name=name) if name else None
            if found and found["cluster"].get("deletionProtection"):
                eks.update_cluster_config(name=name, deletionProtection=False)


endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
if urlsplit(endpoint).hostname not in ("localhost", "127.0.0.1"):
    sys.exit("unprotect.py works on the embedded AWS only: set AWS_ENDPOINT_URL to it with `. .localaws/env`")

assembly = Path(sys.argv[1])
for identifier, found in json.loads((assembly / "manifest.json").read_text())["artifacts"].items():
    if found["type"] == "aws:cloudformation:stack":
        unprotect(urlsplit(found["environment"]).path.strip("/"), found["properties"].get("stackName", identifier))
