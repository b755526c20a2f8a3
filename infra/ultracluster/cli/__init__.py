"""The `ultracluster` command. Exit codes: 0 success, 1 findings, 2 wrong usage.

Each command imports its dependencies when it runs, so that `validate` and `--help` start fast.
"""

import gc
import os
import sys
from typing import Annotated

import typer

from ultracluster.cli import access, catalog, job, leftovers, local, quotas, schema, validate

app = typer.Typer(
    name="ultracluster",
    help="GPU UltraClusters on AWS from one environment file. Deploy with `npx cdk deploy --all -c env=NAME`.",
    no_args_is_help=True,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        from importlib.metadata import version

        typer.echo(f"ultracluster {version('ultracluster')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command("validate")(validate.validate)
app.command("catalog")(catalog.catalog)
app.command("quotas")(quotas.quotas)
app.command("schema")(schema.schema)
app.command("job")(job.job)
app.command("kubeconfig")(access.kubeconfig)
app.command("connect")(access.connect)
app.command("leftovers")(leftovers.leftovers)
app.add_typer(local.app, name="local")


def main() -> None:
    """Runs the command and exits."""
    # importing the models triggers many garbage collections, which find nothing in a command this short
    gc.disable()
    # escape characters of file names and values that the terminal cannot encode
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    finally:
        _close_stdout()
        # skip the garbage collection of all models at exit
        gc.freeze()


def _close_stdout() -> None:
    """Flushes stdout. A closed pipe, as after `head`, is not an error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
