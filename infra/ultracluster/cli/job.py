"""`ultracluster job`: a multi-node job, ready to submit."""

from typing import Annotated

import typer


def job(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Environment file.", show_default=False)],
    team: Annotated[str, typer.Option(metavar="NAME", help="Team that runs the job.", show_default=False)],
    gpus: Annotated[int, typer.Option(metavar="N", help="Number of GPUs, in whole nodes.", show_default=False)],
    node_group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Node group. Default: the team's first.", show_default=False)
    ] = None,
    image: Annotated[
        str | None, typer.Option(help="Container image. Default: AWS's PyTorch image with EFA.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a Kubernetes List as JSON.")] = False,  # noqa: FBT002
) -> None:
    """Print a gang-scheduled training job over EFA that fits the team's quota and the hardware.

    Submit it with `kubectl apply -f`. Exit code 1: the file has errors. Exit code 2: the job is not possible.
    """
    from ultracluster.config.loader import RefusedEnvironment, load
    from ultracluster.kubernetes.jobs import JobRefused, example_job

    try:
        objects = example_job(load(file), team, gpus, node_group=node_group, image=image)
    except RefusedEnvironment as refused:
        typer.echo(str(refused), err=True)
        raise typer.Exit(1) from None
    except JobRefused as refused:
        typer.echo(str(refused), err=True)
        raise typer.Exit(2) from None
    if as_json:
        import json

        typer.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2))
    else:
        import yaml

        typer.echo(yaml.safe_dump_all(objects, sort_keys=False, width=120), nl=False)
