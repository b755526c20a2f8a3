"""The `ultracluster` command: exit code 0 is fine, 1 means findings, 2 wrong usage.

Each command imports what it needs when it runs, so that `validate` and `--help` answer at once.
"""

import gc
import os
import sys

import typer

from ultracluster.cli import catalog, job, local, schema, validate

app = typer.Typer(
    name="ultracluster",
    help="GPU UltraClusters on AWS from one environment file. Deploy with `npx cdk deploy --all -c env=NAME`.",
    no_args_is_help=True,
    add_completion=False,
)
app.command("validate")(validate.validate)
app.command("catalog")(catalog.catalog)
app.command("schema")(schema.schema)
app.command("job")(job.job)
app.add_typer(local.app, name="local")


def main() -> None:
    """Runs the command that the arguments name, and exits."""
    # importing pydantic's models sets the collector off again and again, and a command is over before it finds anything
    gc.disable()
    # a file name or value that the terminal cannot show is shown escaped
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    finally:
        _close_stdout()
        # as it ends, Python would look through all of the models once more
        gc.freeze()


def _close_stdout() -> None:
    """Flushes what is left; a reader that went away, as `head` does, is no failure to speak of."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
