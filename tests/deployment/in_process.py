"""Deploys shipped environments in this process, through boto3's CloudFormation client and moto's services."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.exceptions import ClientError

from tests.synthesis import FILES, synthesise, templates
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load
from ultracluster.constructs.kubectl import RETRIES
from ultracluster.localaws import accounts, local_aws, seeds
from ultracluster.localaws.services.capacity import seed_reservation
from ultracluster.localaws.services.kubernetes import contents

ORDER = (
    "network",
    "storage",
    "control-plane",
    "compute",
    "compute-cpu",
    "platform",
    "links",
    "observability",
    "grafana",
)
CREATED_HERE = [name for name in FILES if not load(FILES[name]).network.existing]


FILE_OF = {load(file).name: name for name, file in FILES.items()}
"""Name of the environment to name of its file."""


@contextmanager
def deployed_whole(*names: str) -> Iterator[Environment]:
    """Deploy all stacks of the shipped environments `names`. Yields the first environment."""
    found = [load(FILES[name]) for name in names]
    with local_aws(found[0].account or accounts.DEFAULT):
        for environment, name in zip(found, names, strict=True):
            _deploy(environment, name)
        yield found[0]


@contextmanager
def prepared(name: str) -> Iterator[Environment]:
    """An account that is ready for the stacks of a shipped environment, without any of them."""
    environment = load(FILES[name])
    with local_aws(environment.account or accounts.DEFAULT):
        _prepare(environment, name)
        yield environment


def _prepare(environment: Environment, name: str) -> None:
    """Create what the CDK CLI and AWS would have made: reservations, the bootstrap version, assets."""
    for reservation in seeds.reservations(environment):
        seed_reservation(**reservation, account=environment.account or accounts.DEFAULT)
    seeds.make_reservation_groups(environment, client(environment, "resource-groups"))
    client(environment, "ssm").put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String", Overwrite=True
    )
    _publish_assets(environment, name)


def _deploy(environment: Environment, name: str) -> None:
    _prepare(environment, name)
    cloudformation = client(environment, "cloudformation")
    for part in [part for part in ORDER if part in templates(name)]:
        cloudformation.create_stack(
            StackName=f"{environment.name}-{part}",
            TemplateBody=json.dumps(templates(name)[part]),
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )


def update(environment: Environment) -> None:
    """Update every stack to a changed environment. Raises AssertionError when one fails."""
    cloudformation, changed = client(environment, "cloudformation"), synthesise(environment)
    for part in [part for part in ORDER if part in changed]:
        name = f"{environment.name}-{part}"
        try:
            cloudformation.update_stack(
                StackName=name, TemplateBody=json.dumps(changed[part]), Capabilities=["CAPABILITY_NAMED_IAM"]
            )
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        assert stack["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), stack


def _publish_assets(environment: Environment, name: str) -> None:
    """Upload an archive for each asset that is code, and the scripts of nodes, where the CDK CLI would upload them."""
    s3, account = client(environment, "s3"), environment.account or accounts.DEFAULT
    bucket = f"cdk-hnb659fds-assets-{account}-{environment.region}"
    place = {"LocationConstraint": environment.region}
    if bucket not in {found["Name"] for found in s3.list_buckets()["Buckets"]}:
        elsewhere = {} if environment.region == "us-east-1" else {"CreateBucketConfiguration": place}
        s3.create_bucket(Bucket=bucket, **elsewhere)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("index.py", "")
        content.write(RETRIES / "python" / "patient.py", "python/patient.py")
    for key in set(re.findall(r'"S3Key": "([^"]+)"', json.dumps(templates(name)))):
        s3.put_object(Bucket=bucket, Key=key, Body=archive.getvalue())
    for key in set(re.findall(r"/([0-9a-f]{64}\.sh)", json.dumps(templates(name)))):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")


def client(environment: Environment, service: str) -> Any:
    """boto3's client of a service in the environment's region."""
    return boto3.client(service, region_name=environment.region)


def cluster(environment: Environment) -> dict[str, Any]:
    """EKS's only cluster."""
    eks = client(environment, "eks")
    (name,) = eks.list_clusters()["clusters"]
    return eks.describe_cluster(name=name)["cluster"]


def objects(environment: Environment) -> list[dict[str, Any]]:
    """The Kubernetes objects in that cluster."""
    return contents(cluster(environment)["arn"])["objects"]
