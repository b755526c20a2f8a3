"""`ultracluster validate`: errors and warnings of environment files."""

from typing import Annotated

import typer


def validate(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Environment files.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON list.")] = False,  # noqa: FBT002
) -> None:
    """Check environment files and report all errors and warnings. Exit code 1 if there are errors."""
    from ultracluster.cli.console import terminal_width
    from ultracluster.config import loader
    from ultracluster.config.layout import WIDTH
    from ultracluster.config.report import report, report_json

    readings, width = [loader.survey(file) for file in files], min(WIDTH, terminal_width())
    typer.echo(report_json(readings) if as_json else "\n".join(report(reading, width=width) for reading in readings))
    raise typer.Exit(any(reading.errors for reading in readings))
