"""`ultracluster quotas FILE`: service quotas that an environment needs, and the defaults of a new account."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.files import File

if TYPE_CHECKING:
    from ultracluster.cli.needs import Need


def quotas(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002
) -> None:
    """Show the service quotas that an environment needs, at the maximum count of every group. Makes no call to AWS.

    Exit code 1: the file has errors.
    """
    from ultracluster.cli.needs import quota_needs
    from ultracluster.config.loader import RefusedEnvironment, load

    try:
        environment = load(file)
    except RefusedEnvironment as refused:
        typer.echo(refused, err=True)
        raise typer.Exit(1) from None
    needs = quota_needs(environment)
    if as_json:
        typer.echo(json.dumps([_facts(need) for need in needs], indent=2))
        return
    from ultracluster.cli.tables import print_quotas

    print_quotas(environment.name, needs)


def _facts(need: "Need") -> dict[str, object]:
    quota = need.quota
    return {
        **quota._asdict(),
        "needed": need.needed,
        "purpose": need.purpose,
        "exceeds_default": need.exceeds,
    }
