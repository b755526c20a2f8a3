"""Deploys shipped environments in this process, through boto3's CloudFormation client and moto's services."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3

from infra.config.environment import Environment
from infra.config.loader import load
from infra.localaws import accounts, local_aws, seeds
from infra.localaws.services.capacity import seed_reservation
from tests.synthesis import FILES, templates

ORDER = ("network", "storage", "control-plane", "compute", "platform", "links", "observability")
CREATED_HERE = [name for name in FILES if not load(FILES[name]).network.existing]


FILE_OF = {load(file).name: name for name, file in FILES.items()}
"""The file of an environment, by the environment's name."""


@contextmanager
def deployed_whole(name: str) -> Iterator[Environment]:
    """The shipped environment `name`, every stack of it deployed."""
    environment = load(FILES[name])
    account = environment.account or accounts.DEFAULT
    with local_aws(account):
        for reservation in seeds.reservations(environment):
            seed_reservation(**reservation, account=account)
        seeds.make_reservation_groups(environment, client(environment, "resource-groups"))
        boto3.client("ssm", region_name=environment.region).put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
        )
        _publish_assets(environment, name)
        cloudformation = client(environment, "cloudformation")
        for part in [part for part in ORDER if part in templates(name)]:
            cloudformation.create_stack(
                StackName=f"{environment.name}-{part}",
                TemplateBody=json.dumps(templates(name)[part]),
                Capabilities=["CAPABILITY_NAMED_IAM"],
            )
        yield environment


def _publish_assets(environment: Environment, name: str) -> None:
    """Puts something under the name of each asset, as the CDK CLI would put the asset itself."""
    s3, account = client(environment, "s3"), environment.account or accounts.DEFAULT
    bucket = f"cdk-hnb659fds-assets-{account}-{environment.region}"
    place = {"LocationConstraint": environment.region}
    s3.create_bucket(
        Bucket=bucket, **({} if environment.region == "us-east-1" else {"CreateBucketConfiguration": place})
    )
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("index.py", "")
    for key in set(re.findall(r'"S3Key": "([^"]+)"', json.dumps(templates(name)))):
        s3.put_object(Bucket=bucket, Key=key, Body=archive.getvalue())


def client(environment: Environment, service: str) -> Any:
    """boto3's client of a service in the environment's region."""
    return boto3.client(service, region_name=environment.region)
