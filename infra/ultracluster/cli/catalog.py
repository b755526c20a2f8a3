"""`ultracluster catalog`: instance types and UltraServers as tables or JSON."""

import json
from typing import Annotated

import typer

from ultracluster.cli.files import complete_hardware


def catalog(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[TYPE]",
            help="Instance type, family, GPU or UltraServer.",
            show_default=False,
            autocompletion=complete_hardware,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002
) -> None:
    """Show all accelerated instance types and UltraServers, those of a family or with a GPU, or the details of one."""
    from ultracluster.catalog import UnknownInstanceType
    from ultracluster.cli import hardware

    try:
        facts = hardware.everything() if name is None else hardware.facts_of(name)
    except UnknownInstanceType as unknown:
        typer.echo(unknown, err=True)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    from ultracluster.cli import tables

    if name is None:
        tables.print_everything()
    else:
        tables.print_one(name)
