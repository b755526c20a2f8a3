"""Deploys shipped environments in this process, through boto3's CloudFormation client and moto's services."""

import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError

from localaws import accounts, local_aws
from localaws.resources import client as in_account
from localaws.services import given
from localaws.services.capacity import seed_reservation
from localaws.services.kubernetes import contents
from tests.synthesis import FILES, synthesise, templates
from ultracluster.cli import seeds
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load
from ultracluster.constructs.functions import handler_code
from ultracluster.constructs.kubectl import RETRIES
from ultracluster.telemetry.dashboards import dashboards

Templates = dict[str, dict[str, Any]]
"""Templates by the part that their stack is named for."""

ORDER = ("network", "storage", "control-plane", "access", "platform", "links", "observability", "alerts", "grafana")
"""Parts in an order of deployment. Those of compute come last."""

FILE_OF = {load(file).name: name for name, file in FILES.items()}
"""Name of the environment to name of its file."""


@contextmanager
def deployed_whole(*names: str) -> Iterator[Environment]:
    """Deploy all stacks of the shipped environments `names`. Yields the first environment."""
    found = [load(FILES[name]) for name in names]
    with local_aws(found[0].account or accounts.DEFAULT):
        for environment, name in zip(found, names, strict=True):
            _deploy(environment, templates(name))
        yield found[0]


@contextmanager
def prepared(name: str) -> Iterator[Environment]:
    """An account that is ready for the stacks of a shipped environment, without any of them."""
    environment = load(FILES[name])
    with local_aws(environment.account or accounts.DEFAULT):
        prepare(environment, templates(name))
        yield environment


@contextmanager
def deployed_as(environment: Environment, parts: Templates) -> Iterator[None]:
    """Deploy the given templates of an environment."""
    with local_aws(environment.account or accounts.DEFAULT):
        _deploy(environment, parts)
        yield


@contextmanager
def deployed_for(name: str, part: str) -> Iterator[Environment]:
    """Deploy one stack of a shipped environment, with the stacks whose exports it imports, and theirs."""
    environment = load(FILES[name])
    with deployed_as(environment, needed(templates(name), part)):
        yield environment


def needed(parts: Templates, part: str) -> Templates:
    """The template of a part, and those that it depends on by imports."""
    exporters = {
        output["Export"]["Name"]: exporter
        for exporter, template in parts.items()
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }
    imported = {exporters[name] for name in re.findall(r'"Fn::ImportValue": "([^"]+)"', json.dumps(parts[part]))}
    return {part: parts[part]} | {name: found for each in imported for name, found in needed(parts, each).items()}


def create(environment: Environment, part: str, template: dict[str, Any]) -> str:
    """Create one stack of an environment. Returns its status."""
    return _apply(environment, part, template, client(environment, "cloudformation").create_stack)


def change(environment: Environment, part: str, template: dict[str, Any]) -> str:
    """Update one stack of an environment. Returns its status."""
    return _apply(environment, part, template, client(environment, "cloudformation").update_stack)


def _apply(environment: Environment, part: str, template: dict[str, Any], call: Any) -> str:
    """Calls with the template and with the tags of the stack, as the CDK CLI does; see EnvironmentStack."""
    own = {"ultracluster:environment": environment.name}
    tags = own if part.startswith("compute") else {**environment.tags, **own}
    call(
        StackName=f"{environment.name}-{part}",
        TemplateBody=json.dumps(template),
        Capabilities=["CAPABILITY_NAMED_IAM"],
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )
    return status(environment, part)


def status(environment: Environment, part: str) -> str:
    """The status of one stack of an environment."""
    stacks = client(environment, "cloudformation").describe_stacks(StackName=f"{environment.name}-{part}")["Stacks"]
    return str(stacks[0]["StackStatus"])


def failures(environment: Environment, part: str) -> dict[str, str]:
    """Reasons of the resources of a stack that failed, by logical id."""
    events = client(environment, "cloudformation").describe_stack_events(StackName=f"{environment.name}-{part}")
    return {
        event["LogicalResourceId"]: event["ResourceStatusReason"]
        for event in events["StackEvents"]
        if event["ResourceStatus"].endswith("_FAILED")
    }


def prepare(environment: Environment, parts: Templates) -> None:
    """Create what the CDK CLI and AWS would have made: reservations, the bootstrap version, assets."""
    for reservation in seeds.reservations(environment):
        seed_reservation(**reservation, account=environment.account or accounts.DEFAULT)
    account = environment.account or accounts.DEFAULT
    for each in seeds.existing(environment):
        seeds.make(each, in_account, given.create, account=account, region=environment.region)
    client(environment, "ssm").put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String", Overwrite=True
    )
    _publish_assets(environment, parts)


def _deploy(environment: Environment, parts: Templates) -> None:
    prepare(environment, parts)
    for part in in_order(parts):
        create(environment, part, parts[part])


def update(environment: Environment) -> None:
    """Update every stack to a changed environment. Raises AssertionError when one fails."""
    parts = synthesise(environment)
    _publish_assets(environment, parts)
    for part in in_order(parts):
        try:
            change(environment, part, parts[part])
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
        complete = status(environment, part) in ("CREATE_COMPLETE", "UPDATE_COMPLETE")
        assert complete, failures(environment, part)


def in_order(parts: Iterable[str]) -> list[str]:
    """Parts of an environment, each after those that it depends on."""
    return sorted(parts, key=lambda part: (ORDER.index(part) if part in ORDER else len(ORDER), part))


def _publish_assets(environment: Environment, parts: Templates) -> None:
    """Upload an archive for each asset that is code, and the scripts of nodes, where the CDK CLI would upload them."""
    s3, account = client(environment, "s3"), environment.account or accounts.DEFAULT
    bucket = f"cdk-hnb659fds-assets-{account}-{environment.region}"
    create_bucket(environment, bucket)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("index.py", handler_code("grafana_content"))
        for dashboard in dashboards(environment):
            content.writestr(f"dashboards/{dashboard.uid}.json", dashboard.text)
        content.write(RETRIES / "python" / "patient.py", "python/patient.py")
    for key in set(re.findall(r'"S3Key": "([^"]+)"', json.dumps(parts))):
        s3.put_object(Bucket=bucket, Key=key, Body=archive.getvalue())
    for key in set(re.findall(r"/([0-9a-f]{64}\.sh)", json.dumps(parts))):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")


def create_bucket(environment: Environment, name: str) -> None:
    """Create a bucket in the environment's region, unless it exists."""
    s3 = client(environment, "s3")
    if name not in {found["Name"] for found in s3.list_buckets()["Buckets"]}:
        place = {"CreateBucketConfiguration": {"LocationConstraint": environment.region}}
        s3.create_bucket(Bucket=name, **({} if environment.region == "us-east-1" else place))


def client(environment: Environment, service: str) -> Any:
    """A client of a service in the environment's account and region."""
    return in_account(service, environment.region, environment.account or accounts.DEFAULT)


def cluster(environment: Environment) -> dict[str, Any]:
    """EKS's only cluster."""
    eks = client(environment, "eks")
    (name,) = eks.list_clusters()["clusters"]
    return eks.describe_cluster(name=name)["cluster"]


def objects(environment: Environment) -> list[dict[str, Any]]:
    """The Kubernetes objects in that cluster."""
    return contents(cluster(environment)["arn"])["objects"]
