"""`ultracluster schema`: the JSON Schema of the environment file."""

import json

import typer


def schema() -> None:
    """Print the JSON Schema of the environment file, for editors and other tools."""
    from ultracluster.config.schema import environment_schema

    typer.echo(json.dumps(environment_schema(), indent=2))
