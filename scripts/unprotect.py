"""Switches termination protection off for the stacks of an assembly, on the embedded AWS only.

usage: unprotect.py CDK_OUT, with the variables of .localaws/env set.
"""

import json
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
if urlsplit(endpoint).hostname not in ("localhost", "127.0.0.1"):
    sys.exit("unprotect.py works on the embedded AWS only: AWS_ENDPOINT_URL is not on this machine")

manifest = json.loads(Path(sys.argv[1], "manifest.json").read_text())
for identifier, artifact in manifest["artifacts"].items():
    if artifact["type"] != "aws:cloudformation:stack" or not artifact["properties"].get("terminationProtection"):
        continue
    region = urlsplit(artifact["environment"]).path.strip("/")
    cloudformation = boto3.client("cloudformation", region_name=region)
    name = artifact["properties"].get("stackName", identifier)
    try:
        cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
