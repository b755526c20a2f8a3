"""`ultracluster kubeconfig` and `ultracluster connect`: the commands that lead into a deployed environment."""

import os
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.errors import UltraclusterError

if TYPE_CHECKING:
    from ultracluster.config.environment import Environment

File = Annotated[str, typer.Argument(metavar="FILE", help="Environment file.", show_default=False)]
Run = Annotated[bool, typer.Option("--run", help="Run the command instead of printing it.")]


class NotReachable(UltraclusterError):
    """The environment is not deployed, has nothing to connect to, or belongs to another account."""


def kubeconfig(file: File, run: Run = False) -> None:  # noqa: FBT002
    """Print the command that adds the EKS cluster to your kubeconfig. Exit code 1: there is none."""
    _lead(file, run, _update_kubeconfig)


def connect(file: File, run: Run = False) -> None:  # noqa: FBT002
    """Print the command that opens a session on a login node of PCS. Exit code 1: there is none."""
    _lead(file, run, _start_session)


def _lead(file: str, run: bool, command: Any) -> None:  # noqa: FBT001
    from botocore.exceptions import BotoCoreError, ClientError

    from ultracluster.config.loader import RefusedEnvironment, load

    try:
        words = command(load(file))
    except (RefusedEnvironment, NotReachable) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except (BotoCoreError, ClientError) as error:
        typer.echo(f"AWS did not answer: {error}", err=True)
        raise typer.Exit(1) from None
    if run:
        _execute(words)
    typer.echo(shlex.join(words))


def _update_kubeconfig(environment: "Environment") -> list[str]:
    """Of the cluster whose name the control-plane stack puts out."""
    if environment.control_plane.type != "eks":
        raise NotReachable(f"{environment.name} has no Kubernetes. Run: ultracluster connect FILE")
    stack = f"{environment.name}-control-plane"
    found = _stack(_client(environment, "cloudformation"), stack)
    printed = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
    words = shlex.split(printed["Kubeconfig"])
    region = [] if "--region" in words else ["--region", environment.region]
    return [*words, *region, "--alias", environment.name]


def _start_session(environment: "Environment") -> list[str]:
    """On the login node that was launched last."""
    if environment.control_plane.type != "pcs":
        raise NotReachable(f"{environment.name} has no login nodes. Run: ultracluster kubeconfig FILE")
    name = f"{environment.name}-login"
    wanted = [{"Name": "tag:Name", "Values": [name]}, {"Name": "instance-state-name", "Values": ["running"]}]
    pages = _client(environment, "ec2").get_paginator("describe_instances").paginate(Filters=wanted)
    nodes = [node for page in pages for reservation in page["Reservations"] for node in reservation["Instances"]]
    if not nodes:
        raise NotReachable(f"no instance with the name {name} runs in {environment.region}: is it deployed?")
    newest = max(nodes, key=lambda node: node["LaunchTime"])
    return ["aws", "ssm", "start-session", "--region", environment.region, "--target", newest["InstanceId"]]


def _client(environment: "Environment", service: str) -> Any:
    """A client in the environment's Region. NotReachable when the credentials are another account's."""
    import boto3

    account = boto3.client("sts", region_name=environment.region).get_caller_identity()["Account"]
    if environment.account not in (None, account):
        place = f"{environment.name} is in {environment.account}"
        raise NotReachable(f"your credentials are for account {account}; {place}")
    return boto3.client(service, region_name=environment.region)


def _stack(cloudformation: Any, name: str) -> dict[str, Any]:
    from botocore.exceptions import ClientError

    try:
        (found,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        raise NotReachable(f"the stack {name} does not exist; deploy it: npx cdk deploy {name}") from None
    return dict(found)


def _execute(words: list[str]) -> None:
    """Become the command."""
    try:
        os.execvp(words[0], words)  # noqa: S606 - no shell
    except FileNotFoundError:
        typer.echo(f"{words[0]} is not installed: install the AWS CLI, version 2", err=True)
        raise typer.Exit(1) from None
