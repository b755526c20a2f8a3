"""`make cdk-corpus DIR=...`: deploys the templates of public CDK integration snapshots to the embedded AWS.

DIR is a folder that a person has fetched, such as a checkout of aws/aws-cdk or awslabs/aws-solutions-constructs. Of
each `*.snapshot` folder in it, the templates that use only supported types are created, updated without a change and
deleted in an empty embedded AWS. The report says what failed and why, and which types are missing for the others.
"""

import argparse
import io
import json
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from localaws import activate, local_aws
from localaws.resources import HANDLERS

ACCOUNT, REGION = "123456789012", "us-east-1"
ASSETS = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
TESTS_OF_CDK = "DefaultTestDeployAssert"
"""In the names of stacks that only check others, with types of the CDK's own test tool."""
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]


@dataclass
class Report:
    """Templates by outcome."""

    deployed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    unsupported: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)


def main() -> int:
    """Prints the report; 1 if a template with only supported types failed."""
    parser = argparse.ArgumentParser(prog="make cdk-corpus", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="only snapshots whose path contains this text")
    arguments = parser.parse_args()
    activate()
    report = Report()
    snapshots = sorted(found for found in arguments.folder.rglob("*.snapshot") if arguments.only in str(found))
    for snapshot in snapshots:
        _deploy(snapshot, snapshot.relative_to(arguments.folder), report)
    _print(report, len(snapshots))
    return 1 if report.failed else 0


def _deploy(snapshot: Path, name: Path, report: Report) -> None:
    """Deploy the supported templates of one snapshot, those without imports first."""
    templates = {}
    for file in sorted(snapshot.glob("*.template.json")):
        body = json.loads(file.read_text("utf-8"))
        if TESTS_OF_CDK in file.name or not body.get("Resources"):
            continue
        if lacking := {found["Type"] for found in body["Resources"].values() if not _supported(found["Type"])}:
            report.unsupported[", ".join(sorted(lacking))] += 1
            report.missing.update(lacking)
        else:
            templates[file] = body
    if not templates:
        return
    with local_aws(ACCOUNT):
        _bootstrap(templates)
        for file, body in sorted(templates.items(), key=lambda item: "Fn::ImportValue" in json.dumps(item[1])):
            if reason := _life(re.sub(r"[^A-Za-z0-9-]", "-", file.name.removesuffix(".template.json")), body):
                report.failed.append((f"{name}/{file.name}", reason))
            else:
                report.deployed += 1


def _supported(kind: str) -> bool:
    return kind in HANDLERS or kind.startswith("Custom::")


def _bootstrap(templates: dict[Path, Any]) -> None:
    """What the templates expect of `cdk bootstrap`: its version, and their assets in its bucket."""
    boto3.client("ssm", REGION).put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String")
    s3 = boto3.client("s3", REGION)
    s3.create_bucket(Bucket=ASSETS)
    for file, body in templates.items():
        for key in set(re.findall(r'"([0-9a-f]{64}\.\w+)"', json.dumps(body))):
            s3.put_object(Bucket=ASSETS, Key=key, Body=_asset(file.parent / f"asset.{key.partition('.')[0]}"))


def _asset(folder: Path) -> bytes:
    """A zip file of an asset's folder, empty if the snapshot has none."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("placeholder.txt", "")
        for file in folder.rglob("*") if folder.is_dir() else ():
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return content.getvalue()


def _life(name: str, body: dict[str, Any]) -> str | None:
    """Create, update without a change, delete: the reason of the first failure."""
    cloudformation = boto3.client("cloudformation", REGION)
    stack = {"StackName": name, "TemplateBody": json.dumps(body), "Capabilities": CAPABILITIES}
    try:
        stack_id = cloudformation.create_stack(**stack)["StackId"]
        if (status := _status(cloudformation, stack_id)) != "CREATE_COMPLETE":
            return f"{status}: {_reason(cloudformation, stack_id)}"
        try:
            cloudformation.update_stack(**stack)
            return "an update without a change was not refused"
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                return f"update without a change: {error}"
        if body.get("Outputs") and "Export" in json.dumps(body["Outputs"]):
            return None  # another stack of the snapshot may import from it
        cloudformation.delete_stack(StackName=stack_id)
        if (status := _status(cloudformation, stack_id)) != "DELETE_COMPLETE":
            return f"{status}: {_reason(cloudformation, stack_id)}"
    except ClientError as error:
        return f"{error.response['Error']['Code']}: {error.response['Error']['Message']}"
    except Exception as error:  # noqa: BLE001 - a fault of the embedded AWS is what this looks for
        return f"FAULT {type(error).__name__}: {error}"
    return None


def _status(cloudformation: Any, stack_id: str) -> str:
    return str(cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"])


def _reason(cloudformation: Any, stack_id: str) -> str:
    """The first failure among the events."""
    events = cloudformation.describe_stack_events(StackName=stack_id)["StackEvents"]
    return next(_failures(reversed(events)), "no reason")


def _failures(events: Any) -> Iterator[str]:
    for event in events:
        if event["ResourceStatus"].endswith("_FAILED") and "cancelled" not in event.get("ResourceStatusReason", ""):
            yield f"{event['LogicalResourceId']} ({event['ResourceType']}): {event.get('ResourceStatusReason')}"


def _print(report: Report, snapshots: int) -> None:
    other = sum(report.unsupported.values())
    print(f"{snapshots} snapshots: {report.deployed} templates deployed, {len(report.failed)} failed; ", end="")
    print(f"{other} have types without support")
    for name, reason in report.failed:
        print(f"  {name}\n    {reason}")
    print("Types without support, by number of templates:")
    for kind, count in report.missing.most_common(40):
        print(f"  {count:4} {kind}")


if __name__ == "__main__":
    sys.exit(main())
