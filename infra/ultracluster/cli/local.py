"""`ultracluster local`: the embedded AWS, which deploys an environment without an AWS account."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.cli.files import complete_file, path_of

if TYPE_CHECKING:
    from localaws.inventory import InventoryRow
    from localaws.server import Server
    from ultracluster.config.environment import Environment

REGION = "us-east-1"
SIDE_BY_SIDE = 20
"""Stacks that the CDK CLI deploys at a time, as docs/operations-kubernetes.md proposes."""
PACKAGES = ("localaws", "cfnlint", "flask", "jsonschema", "moto", "regex")  # localaws and what it needs
NOT_INSTALLED = (
    "The embedded AWS is not installed here. It comes with the repository of ultracluster, not from PyPI: "
    "run make install in a clone, or pip install CLONE/localaws"
)

app = typer.Typer(
    help="The embedded AWS on this machine: deploy an environment without an AWS account.", no_args_is_help=True
)


@app.command()
def up(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="Environment file to deploy later, or the name of one in environments/.",
            show_default=False,
            parser=path_of,
            autocompletion=complete_file,
        ),
    ] = None,
) -> None:
    """Start the embedded AWS unless it runs, and write .localaws/env for AWS clients.

    With FILE, .localaws/env sets the file's account and Region, and what the file names as existing is made: VPC and
    subnets, buckets, scripts, file systems, keys, secrets, directories, policies, roles, reservations and placement
    groups, images, workspaces. The content of a script is a placeholder.
    """
    _prepare()
    from localaws import accounts, server
    from ultracluster.cli import seeds
    from ultracluster.config.loader import RefusedEnvironment, load

    try:
        environment = load(file) if file else None
        region = environment.region if environment else REGION
        account = (environment.account if environment else None) or accounts.DEFAULT
        running = server.serve(region, account)
        if environment:
            running.forget_operations()  # so that the estimate is for this deployment
            for reservation in seeds.reservations(environment):
                running.seed(reservation, account)
            _make_existing(running, environment, account)
            _name_retained_cluster(running, environment, account, str(file))
    except (RefusedEnvironment, server.ServerError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo(f"The embedded AWS runs at {running.url}. To use it in this shell, run: . .localaws/env")


@app.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False) -> None:  # noqa: FBT002
    """List the resources in the embedded AWS. Exits with 1 when it does not run."""
    _prepare()
    from localaws import server
    from localaws.inventory import everything

    running = server.status()
    if running is None:
        typer.echo("The embedded AWS does not run. Start it: ultracluster local up", err=True)
        raise typer.Exit(1)
    found = everything(running)
    if as_json:
        import json
        from dataclasses import asdict

        typer.echo(json.dumps([asdict(row) for row in found], indent=2))
    else:
        _print(f"In the embedded AWS at {running.url}", found, _environments(running))
        _print_estimate(running)


@app.command()
def down(
    force: Annotated[bool, typer.Option("--force", help="Stop it also while stacks are deployed.")] = False,  # noqa: FBT002
) -> None:
    """List the retained resources and stop the embedded AWS, unless a stack is still deployed."""
    _prepare()
    from localaws import server
    from localaws.inventory import everything, without_stack

    running = server.status()
    if running is None:
        typer.echo("The embedded AWS does not run")
        return
    stacks = running.stacks()
    if stacks and not force:
        typer.echo(f"The embedded AWS keeps running, because these stacks are deployed: {', '.join(stacks)}")
        typer.echo("Destroy them with make down ENV=NAME, or lose them with ultracluster local down --force")
        if kept := without_stack(running):
            _print("Beside them, in no stack: a real account keeps what a destroyed environment retained", kept)
        return
    if not stacks and (retained := everything(running)):
        _print("Retained resources: a real account would keep them, the embedded AWS deletes them now", retained)
    server.stop()
    typer.echo("The embedded AWS has stopped")


def _make_existing(running: "Server", environment: "Environment", account: str) -> None:
    """Make what the file names as existing, once, and print a line for each."""
    import boto3

    from ultracluster.cli import seeds

    def client(service: str, region: str, owner: str) -> Any:
        return boto3.client(service, region_name=region, **running.connection(owner))

    for each in seeds.existing(environment):
        made = seeds.make(each, client, running.create, account=account, region=environment.region)
        typer.echo(f"{'Made' if made else 'There is'} the {each.kind} {each.id}, which the file names as existing")


def _name_retained_cluster(running: "Server", environment: "Environment", account: str, file: str) -> None:
    """Say so when a PCS cluster that an earlier deployment retained has the name that a new one takes."""
    import boto3

    from ultracluster.cli import remains

    def client(service: str) -> Any:
        return boto3.client(service, region_name=environment.region, **running.connection(account))

    if environment.control_plane.type == "pcs" and f"{environment.name}-control-plane" not in running.stacks():
        for _, name in remains.pcs_clusters(client, environment.name):
            typer.echo(f"The PCS cluster {name}, which an earlier deployment retained, has the name of the new one.")
            typer.echo(f"Delete it: . .localaws/env; ultracluster leftovers {file} --delete")


def _prepare() -> None:
    """Exit with 2 without the embedded AWS. Otherwise set the user's proxy and AWS profile aside, in this process."""
    if not all(find_spec(name) for name in PACKAGES):
        typer.echo(NOT_INSTALLED, err=True)
        raise typer.Exit(2)
    from localaws.server import stay_on_this_machine

    stay_on_this_machine()


def _print_estimate(running: "Server") -> None:
    """How long the last deployment would take in an account, and how long with stacks side by side."""
    alone, beside = running.estimate(), running.estimate(concurrency=SIDE_BY_SIDE)
    typer.echo(str(alone))
    if beside.likely < alone.likely:
        typer.echo(f"With cdk deploy --concurrency {SIDE_BY_SIDE}: {beside.time}")


def _environments(running: "Server") -> dict[tuple[str, str], list[str]]:
    """Names of the environments with stacks, by account and Region."""
    import boto3

    found = {}
    for deployment in running.deployments():
        connection = running.connection(deployment.account)
        client = boto3.client("cloudformation", region_name=deployment.region, **connection)
        tags = [tag for stack in client.describe_stacks()["Stacks"] for tag in stack.get("Tags", [])]
        names = sorted({tag["Value"] for tag in tags if tag["Key"] == "ultracluster:environment"})
        found[deployment.account, deployment.region] = names
    return found


def _print(
    title: str, found: "list[InventoryRow]", environments: dict[tuple[str, str], list[str]] | None = None
) -> None:
    from rich import box
    from rich.table import Table

    from ultracluster.cli.console import console

    out = console(whole_lines=True)
    out.print(title, style="bold")
    for account, region in dict.fromkeys((row.account, row.region) for row in found):
        names = (environments or {}).get((account, region), [])
        place = f"Account {account}, {region}" + (f": {', '.join(names)}" if names else "")
        table = Table(title=place, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
        table.add_column("What", no_wrap=True)
        table.add_column("Name", overflow="fold")
        table.add_column("Details", overflow="fold")
        rows = [row for row in found if (row.account, row.region) == (account, region)]
        for before, row in zip([None, *rows], rows, strict=False):
            table.add_row("" if before and before.kind == row.kind else row.kind, row.name, row.details)
        out.print(table)
