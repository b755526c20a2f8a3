"""`ultracluster kubeconfig` and `ultracluster connect`: the commands that lead into a deployed environment."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.cli.aws_errors import in_words
from ultracluster.cli.files import File
from ultracluster.errors import UltraclusterError

if TYPE_CHECKING:
    from ultracluster.config.environment import Environment

Run = Annotated[bool, typer.Option("--run", help="Run the command instead of printing it.")]
Port = Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of this machine for --api.")]
Tunnel = Annotated[
    int | None,
    typer.Option("--port", min=1, max=65535, help="Use the tunnel that `connect --api --port` opened at this port."),
]

LOCAL_PORT = 8443
REMOTE_PORTS, SSH = "AWS-StartPortForwardingSessionToRemoteHost", "AWS-StartSSHSession"
"""Documents of Session Manager (Systems Manager User Guide, "Start a session", 2026)."""

Command = list[str]


class NotReachable(UltraclusterError):
    """The environment is not deployed, has nothing to connect to, or belongs to another account."""


def kubeconfig(file: File, run: Run = False, port: Tunnel = None) -> None:  # noqa: FBT002
    """Print the command that adds the EKS cluster to your kubeconfig. Exit code 1: there is none."""
    _lead(file, run, lambda environment: _update_kubeconfig(environment, port))


def connect(
    file: File,
    run: Run = False,  # noqa: FBT002
    *,
    host: Annotated[bool, typer.Option("--host", help="The access host instead of a login node.")] = False,
    api: Annotated[bool, typer.Option("--api", help="A tunnel to the Kubernetes API through the access host.")] = False,
    port: Port = LOCAL_PORT,
    ssh_config: Annotated[
        bool, typer.Option("--ssh-config", help="Print hosts for ~/.ssh/config: SSH over Session Manager.")
    ] = False,
) -> None:
    """Print the command that opens a session on a login node of PCS, or on the access host. Exit code 1: there is none.

    With --api, the command that forwards a port of this machine to the Kubernetes API.
    """
    if host + api + ssh_config > 1:
        raise typer.BadParameter("give one of --host, --api and --ssh-config")
    if ssh_config:
        if run:
            raise typer.BadParameter("--ssh-config prints a file: there is nothing to run")
        typer.echo("\n".join(_asked(file, _ssh_config)))
    elif api:
        _lead(file, run, lambda environment: [_forward_port(environment, port)])
    else:
        _lead(file, run, lambda environment: [_start_session(environment, host=host)])


def _lead(file: str, run: bool, commands: "Callable[[Environment], list[Command]]") -> None:  # noqa: FBT001
    """Prints the commands, or runs them: the last one takes the place of this process."""
    found = _asked(file, commands)
    if not run:
        typer.echo("\n".join(map(shlex.join, found)))
        return
    for words in found[:-1]:
        try:
            code = subprocess.run(words).returncode  # noqa: S603 - no shell
        except FileNotFoundError:
            raise _not_installed(words[0]) from None
        if code:
            raise typer.Exit(1)
    _execute(found[-1])


def _asked(file: str, question: "Callable[[Environment], Any]") -> Any:
    """The answer for the environment in `file`. Prints why there is none, and exits."""
    from botocore.exceptions import BotoCoreError, ClientError

    from ultracluster.config.loader import RefusedEnvironment, load

    try:
        return question(load(file))
    except RefusedEnvironment as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except NotReachable as error:
        typer.echo(str(error).replace(" FILE", f" {file}"), err=True)  # a command to paste
        raise typer.Exit(1) from None
    except (BotoCoreError, ClientError) as error:
        typer.echo(in_words(error), err=True)
        raise typer.Exit(1) from None


def _update_kubeconfig(environment: "Environment", port: int | None) -> list[Command]:
    """Of the cluster whose name the control-plane stack puts out.

    Through a tunnel, kubectl connects to this machine and expects the certificate of the API server.
    """
    words = _kubeconfig_command(environment)
    if port is None:
        return [words]
    cluster = _cluster(environment, words)
    server = ["--server", f"https://localhost:{port}", "--tls-server-name", _endpoint_name(cluster)]
    return [words, ["kubectl", "config", "set-cluster", cluster["arn"], *server]]


def _kubeconfig_command(environment: "Environment") -> Command:
    if environment.control_plane.type != "eks":
        raise NotReachable(f"{environment.name} has no Kubernetes. Run: ultracluster connect FILE")
    stack = f"{environment.name}-control-plane"
    found = _stack(_client(environment, "cloudformation"), stack)
    printed = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
    words = shlex.split(printed["Kubeconfig"])
    region = [] if "--region" in words else ["--region", environment.region]
    return [*words, *region, "--alias", environment.name]


def _cluster(environment: "Environment", kubeconfig_command: Command) -> dict[str, Any]:
    name = kubeconfig_command[kubeconfig_command.index("--name") + 1]
    return dict(_client(environment, "eks").describe_cluster(name=name)["cluster"])


def _endpoint_name(cluster: dict[str, Any]) -> str:
    return str(cluster["endpoint"]).removeprefix("https://").split(":")[0].rstrip("/")


def _start_session(environment: "Environment", *, host: bool) -> Command:
    """On the login node that was launched last; on EKS and with `host`, on the access host."""
    if environment.control_plane.type == "pcs" and not host:
        return _session(environment, _newest(environment, "login"))
    if environment.access.access_host is None:
        none = "no access host (access.host: true)"
        if environment.control_plane.type == "pcs":
            raise NotReachable(f"{environment.name} has {none}. Run: ultracluster connect FILE")
        raise NotReachable(f"{environment.name} has no login nodes, and {none}. Run: ultracluster kubeconfig FILE")
    return _session(environment, _newest(environment, "host"))


def _forward_port(environment: "Environment", port: int) -> Command:
    """From `port` of this machine to the Kubernetes API, through the access host."""
    if environment.control_plane.type != "eks":
        raise NotReachable(f"{environment.name} has no Kubernetes. Run: ultracluster connect FILE")
    if environment.access.access_host is None:
        raise NotReachable(f"{environment.name} has no access host: set access.host: true, and deploy it")
    target = _newest(environment, "host")
    endpoint = _endpoint_name(_cluster(environment, _kubeconfig_command(environment)))
    parameters = {"host": [endpoint], "portNumber": ["443"], "localPortNumber": [str(port)]}
    document = ["--document-name", REMOTE_PORTS, "--parameters", json.dumps(parameters)]
    return [*_session(environment, target), *document]


def _session(environment: "Environment", instance: dict[str, Any]) -> Command:
    return ["aws", "ssm", "start-session", "--region", environment.region, "--target", instance["InstanceId"]]


def _ssh_config(environment: "Environment") -> list[str]:
    """Sections of ~/.ssh/config for the login nodes and the access host that run, each with its instance id.

    The id is the host name, so that a new instance is a new entry of known_hosts.
    """
    kinds = ["login"] if environment.control_plane.type == "pcs" else []
    kinds += ["host"] if environment.access.access_host else []
    if not kinds:
        reason = "no login nodes and no access host: set access.host: true, and deploy it"
        raise NotReachable(f"{environment.name} has {reason}")
    proxy = f"aws ssm start-session --region {environment.region} --target %h"
    lines: list[str] = []
    for kind in kinds:
        for number, instance in enumerate(_running(environment, kind), start=1):
            alias = f"{environment.name}-{kind}" + (f"-{number}" if number > 1 else "")
            if kind == "login" and environment.access.private_ranges:
                address = instance["PrivateIpAddress"]
                lines.append(f"# from one of access.private_ranges: HostName {address}, without ProxyCommand")
            lines += [
                f"Host {alias}",
                f"    HostName {instance['InstanceId']}",
                f"    ProxyCommand {proxy} --document-name {SSH} --parameters portNumber=%p",
                "    StrictHostKeyChecking accept-new",
            ]
    return lines


def _newest(environment: "Environment", kind: str) -> dict[str, Any]:
    return _running(environment, kind)[0]


def _running(environment: "Environment", kind: str) -> list[dict[str, Any]]:
    """Instances with the name <env>-<kind>, the newest first. NotReachable when there are none."""
    name = f"{environment.name}-{kind}"
    wanted = [{"Name": "tag:Name", "Values": [name]}, {"Name": "instance-state-name", "Values": ["running"]}]
    pages = _client(environment, "ec2").get_paginator("describe_instances").paginate(Filters=wanted)
    nodes = [node for page in pages for reservation in page["Reservations"] for node in reservation["Instances"]]
    if not nodes:
        raise NotReachable(f"no instance with the name {name} runs in {environment.region}: is it deployed?")
    return sorted(nodes, key=lambda node: node["LaunchTime"], reverse=True)


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


def _execute(words: Command) -> None:
    """Become the command."""
    try:
        os.execvp(words[0], words)  # noqa: S606 - no shell
    except FileNotFoundError:
        raise _not_installed(words[0]) from None


def _not_installed(program: str) -> typer.Exit:
    name = "the AWS CLI, version 2" if program == "aws" else program
    typer.echo(f"{program} is not installed: install {name}", err=True)
    return typer.Exit(1)
