"""`ultracluster validate`: errors and warnings of environment files, and what their nodes do at boot."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.files import complete_file, path_of

if TYPE_CHECKING:
    from ultracluster.config.findings import Reading

STANDARD_INPUT = "-"


def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Environment files or their names in environments/, folders of them, or - for standard input.",
            show_default=False,
            autocompletion=complete_file,
        ),
    ],
    explain: Annotated[bool, typer.Option("--explain", help="Print what each node group does at boot, too.")] = False,  # noqa: FBT002
    effects: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--effects",
            help="Print what a deployment of NEW changes: give OLD NEW, or one file to compare it with its last "
            "commit. OLD can be - for standard input, or REVISION:FILE.",
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings, too.")] = False,  # noqa: FBT002
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON list.")] = False,  # noqa: FBT002
) -> None:
    """Check environment files and report all errors and warnings.

    Exit code 1 if there are errors, with --strict also if there are warnings.

    With --effects, exit code 1 also if a change would replace a cluster or data.
    """
    if effects and explain:
        raise typer.BadParameter("--effects and --explain are two reports; give one of them")
    if effects:
        from ultracluster.cli.effects import print_effects

        print_effects([path_of(file) for file in files], as_json=as_json)
    from ultracluster.cli.console import coloured, terminal_width
    from ultracluster.config.layout import WIDTH
    from ultracluster.config.report import count, report, report_json

    readings = [reading for file in files for reading in _readings(path_of(file))]
    width = min(WIDTH, terminal_width())
    if explain:
        from ultracluster.cli.boot_plan import plan_json, plan_text

        text = plan_json(readings) if as_json else "\n".join(plan_text(reading, width=width) for reading in readings)
    else:
        text = report_json(readings) if as_json else "\n".join(report(reading, width=width) for reading in readings)
    typer.echo(text if as_json else coloured(text))
    if not (as_json or explain) and any(reading.findings for reading in readings):
        typer.echo(count(readings))
    raise typer.Exit(any(reading.errors or (strict and reading.warnings) for reading in readings))


def _readings(file: str) -> Iterator["Reading"]:
    """The file, each environment file of a folder, or standard input."""
    from ultracluster.config import loader, siblings

    if file == STANDARD_INPUT:
        yield loader.validate_stream(sys.stdin.buffer, "standard input")
    elif Path(file).is_dir():
        found = siblings.environment_files(Path(file))
        yield from map(loader.survey, found) if found else [loader.nothing_in(file)]
    else:
        yield loader.survey(file)
