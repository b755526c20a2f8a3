"""`ultracluster leftovers`: what a destroyed environment left in its account, and its deletion."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.cli.aws_errors import in_words
from ultracluster.cli.files import File
from ultracluster.errors import UltraclusterError

if TYPE_CHECKING:
    from ultracluster.cli.remains import Survey
    from ultracluster.config.environment import Environment


class NotDestroyed(UltraclusterError):
    """The environment still has stacks, or belongs to another account than the credentials."""


def leftovers(
    file: File,
    *,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete them, after you typed the environment's name.")
    ] = False,
    yes: Annotated[
        str | None,
        typer.Option("--yes", metavar="NAME", help="With --delete: the name, for scripts.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List what a destroyed environment left: data, logs, keys and network with the environment's tag.

    Exit code 1: its stacks still exist, or something could not be deleted.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from ultracluster.cli import remains
    from ultracluster.config.loader import RefusedEnvironment, load

    if yes is not None and not delete:
        raise typer.BadParameter("--yes is for --delete")
    try:
        environment = load(file)
        if yes is not None:
            _check_name(environment.name, yes)
        account = _account(environment)
        _refuse_stacks(environment)
        named = [*remains.named_in(environment.model_dump(mode="json", exclude={"name", "tags", "node_tags"}))]

        def client(service: str) -> Any:
            return _client(environment, service)

        left = remains.leftovers(client, environment.name, named)
        failed: list[str] = []
        deletable = [each for each in left.found if each.deletable]
        if delete and deletable:
            if not as_json:
                _print(environment, account, left)
            _confirm(environment.name, yes, len(deletable), f"{account}, {environment.region}")
            failed = remains.delete(client, environment.name, deletable, _say)
            left = remains.leftovers(client, environment.name, named)
    except (RefusedEnvironment, NotDestroyed) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except (BotoCoreError, ClientError) as error:
        typer.echo(in_words(error), err=True)
        raise typer.Exit(1) from None
    _print_json(environment, account, left, failed) if as_json else _print(environment, account, left)
    for line in failed:
        typer.echo(f"not deleted: {line}", err=True)
    raise typer.Exit(bool(delete and (failed or any(each.deletable for each in left.found))))


def _say(text: str) -> None:
    """Progress, beside the list that JSON readers take."""
    typer.echo(text, err=True)


def _confirm(name: str, typed: str | None, count: int, place: str) -> None:
    if typed is None:
        typed = typer.prompt(f"This deletes {count} resources in {place} for good. Type {name} to go on", err=True)
    _check_name(name, typed)


def _check_name(name: str, typed: str) -> None:
    if typed != name:
        raise NotDestroyed(f"{typed} is not {name}: nothing was deleted")


def _client(environment: "Environment", service: str) -> Any:
    import boto3

    return boto3.client(service, region_name=environment.region)


def _account(environment: "Environment") -> str:
    """The account of the credentials. NotDestroyed when the file names another."""
    account = str(_client(environment, "sts").get_caller_identity()["Account"])
    if environment.account not in (None, account):
        place = f"{environment.name} is in {environment.account}"
        raise NotDestroyed(f"your credentials are for account {account}; {place}")
    return account


def _refuse_stacks(environment: "Environment") -> None:
    """Stacks that carry the environment's tag, or that it would deploy by name."""
    from ultracluster.cli.remains import TAG

    pages = _client(environment, "cloudformation").get_paginator("describe_stacks").paginate()
    own = {"Key": TAG, "Value": environment.name}
    stacks = [each for page in pages for each in page["Stacks"] if own in each.get("Tags", [])]
    if names := sorted(each["StackName"] for each in stacks if each["StackStatus"] != "DELETE_COMPLETE"):
        hint = f"Destroy them first: npx cdk destroy --all -c env={environment.name}"
        raise NotDestroyed(f"{environment.name} still has stacks: {', '.join(names)}. {hint}")


def _print_json(environment: "Environment", account: str, left: "Survey", failed: list[str]) -> None:
    import json
    from dataclasses import asdict

    place = {"environment": environment.name, "account": account, "region": environment.region}
    lists = {"leftovers": [asdict(each) for each in left.found], "unread_keys": left.unread_keys, "failed": failed}
    typer.echo(json.dumps({**place, **lists}, indent=2))


def _print(environment: "Environment", account: str, left: "Survey") -> None:
    place = f"{environment.name} in account {account}, Region {environment.region}"
    if not left.found:
        typer.echo(f"Nothing is left of {place}")
        _print_unread(left.unread_keys)
        return
    from rich import box
    from rich.table import Table

    from ultracluster.cli.console import console

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
    table.add_column("What", no_wrap=True)
    table.add_column("Id", overflow="fold")
    table.add_column("Details", overflow="fold")
    for each in left.found:
        table.add_row(each.kind, each.id, each.details)
    out = console()
    out.print(f"Left of {place}", style="bold")
    out.print(table)
    _print_unread(left.unread_keys)


def _print_unread(keys: int) -> None:
    if keys:
        counted, them = ("1 KMS key is", "it") if keys == 1 else (f"{keys} KMS keys are", "them")
        typer.echo(f"{counted} not considered: your credentials may not describe {them}, or list tags")
