"""`ultracluster job`: a multi-node job, ready to submit."""

import secrets
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from datetime import date


def job(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Environment file.", show_default=False)],
    team: Annotated[str, typer.Option(metavar="NAME", help="Team that runs the job.", show_default=False)],
    gpus: Annotated[
        int | None, typer.Option(metavar="N", help="Number of GPUs, in whole nodes.", show_default=False)
    ] = None,
    cpus: Annotated[
        int | None, typer.Option(metavar="N", help="CPUs of a CPU node, for prepare.", show_default=False)
    ] = None,
    kind: Annotated[
        Literal["train", "nccl-test", "prepare"],
        typer.Option(help="torchrun on every GPU, all_reduce_perf over EFA, or a script on a CPU node."),
    ] = "train",
    node_group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Node group. Default: the team's first.", show_default=False)
    ] = None,
    image: Annotated[
        str | None, typer.Option(help="Container image. Default: AWS's PyTorch image with EFA.", show_default=False)
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the job. Default: one that is not in use.", show_default=False)
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(help="Script with arguments, in quotes. Default: train.py or prepare.py.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a Kubernetes List as JSON.")] = False,  # noqa: FBT002
) -> None:
    """Print a job that fits the team's quota and the hardware: by default gang-scheduled training over EFA.

    Submit it with `kubectl apply -f`. Exit code 1: the file has errors. Exit code 2: the job is not possible.
    """
    from ultracluster.config.loader import RefusedEnvironment, load
    from ultracluster.kubernetes.jobs import JobRefused, example_job, prepare_job

    words = _words(command)
    try:
        environment = load(file)
        if kind == "prepare":
            amount = _needed("--cpus", cpus, kind)
            name = name or _name(kind, amount, "cpus")
            objects = prepare_job(environment, team, amount, name=name, image=image, command=words)
        else:
            amount = _needed("--gpus", gpus, kind)
            name = name or _name(kind, amount, "gpus")
            objects = example_job(
                environment, team, amount, kind=kind, name=name, node_group=node_group, image=image, command=words
            )
    except RefusedEnvironment as refused:
        typer.echo(str(refused), err=True)
        raise typer.Exit(1) from None
    except JobRefused as refused:
        typer.echo(str(refused), err=True)
        raise typer.Exit(2) from None
    text = _as_json(objects) if as_json else _as_yaml(objects)
    if image is None and (ended := _end_of_patch(text)):
        typer.echo(f"warning: AWS patches the default image until {ended} only; set --image", err=True)
    typer.echo(text, nl=False)


def _words(command: str | None) -> list[str]:
    """A command in words, as a shell divides it. Exits with 2 for none, and for a quote that is not closed."""
    import shlex

    if command is None:
        return []
    try:
        words = shlex.split(command)
    except ValueError as error:
        words, reason = [], str(error).lower()
    else:
        reason = "there is no command in it"
    if not words:
        typer.echo(f"--command {command!r}: {reason}", err=True)
        raise typer.Exit(2)
    return words


def _as_json(objects: list[dict[str, Any]]) -> str:
    import json

    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n"


def _as_yaml(objects: list[dict[str, Any]]) -> str:
    import yaml

    return yaml.safe_dump_all(objects, sort_keys=False, width=120)


def _end_of_patch(text: str) -> "date | None":
    """When AWS stopped patching a public image that the job names, if it has."""
    from ultracluster.catalog.training import IMAGES
    from ultracluster.config.clock import today

    used = (image for image in IMAGES if image.name.partition("/")[2] in text)
    return next((image.end_of_patch for image in used if image.end_of_patch and image.end_of_patch < today()), None)


def _needed(option: str, value: int | None, kind: str) -> int:
    if value is None:
        raise typer.BadParameter(f"{kind} needs {option} N")
    return value


def _name(kind: str, amount: int, unit: str) -> str:
    """A name with five random characters, as Kubernetes appends them: no vowels, so no words."""
    suffix = "".join(secrets.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))
    return f"{kind}-{amount}-{unit}-{suffix}"
