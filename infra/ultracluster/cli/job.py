"""`ultracluster job`: a multi-node job, ready to submit."""

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from datetime import date

    from ultracluster.config.environment import Environment
    from ultracluster.jobs.request import Script


Kind = Literal["train", "nccl-test", "nccl-pairs", "prepare"]


def job(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Environment file.", show_default=False)],
    team: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Team that runs the job: on Slurm its account, optional.", show_default=False
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of GPUs, in whole nodes; on Slurm also below one.", show_default=False),
    ] = None,
    cpus: Annotated[
        int | None, typer.Option(metavar="N", help="CPUs of a CPU node, for prepare.", show_default=False)
    ] = None,
    kind: Annotated[
        Kind,
        typer.Option(
            help="torchrun on every GPU, all_reduce_perf over EFA, also for pairs of nodes, or a script on a CPU node."
        ),
    ] = "train",
    node_group: Annotated[
        str | None,
        typer.Option(
            "--node-group",
            "--pool",
            metavar="NAME",
            help="Node group or pool of Karpenter. Default: the team's first group, for prepare the first that fits.",
            show_default=False,
        ),
    ] = None,
    queue: Annotated[
        str | None, typer.Option(metavar="NAME", help="Slurm: queue. Default: the first that fits.", show_default=False)
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            help="Container image. Default: AWS's PyTorch image with EFA, on Slurm if the cluster runs containers.",
            show_default=False,
        ),
    ] = None,
    venv: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Slurm: virtual environment instead of a container.", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the job. Default: one that is not in use.", show_default=False)
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(help="Script with arguments, in quotes. Default: train.py or prepare.py.", show_default=False),
    ] = None,
    script: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Script that the job carries; --command then has its arguments.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a Kubernetes List as JSON.")] = False,  # noqa: FBT002
) -> None:
    """Print a job that fits the quota or the queue, and the hardware: by default training over EFA.

    Submit it with `kubectl apply -f` on EKS, with `sbatch` on PCS. Exit code 1: the file has errors. Exit code 2: the
    job is not possible.
    """
    from ultracluster.config.eks import Eks
    from ultracluster.config.loader import RefusedEnvironment, load
    from ultracluster.jobs.request import JobRefused, check_image

    words = {"team": team, "node-group": node_group, "queue": queue, "image": image, "venv": venv, "name": name}
    if empty := next((option for option, value in words.items() if value is not None and not value.strip()), None):
        raise typer.BadParameter(f"--{empty} is empty")  # such as that of a variable of a shell that is not set
    wish = Wish(file, kind, gpus, cpus, team, node_group, queue, image, venv, name, tuple(_words(command)), as_json)
    try:
        if image:
            check_image(image)
        environment = load(file)
        wish = replace(wish, script=_script(script, kind))
        text = (
            _kubernetes(environment, wish) if isinstance(environment.control_plane, Eks) else _slurm(environment, wish)
        )
    except RefusedEnvironment as refused:
        typer.echo(str(refused), err=True)
        raise typer.Exit(1) from None
    except JobRefused as refused:
        typer.echo(str(refused), err=True)
        raise typer.Exit(2) from None
    if image is None and (ended := _end_of_patch(text)):
        typer.echo(f"warning: AWS patches the default image until {ended} only; set --image", err=True)
    typer.echo(text, nl=False)


@dataclass(frozen=True)
class Wish:
    """The options of the command."""

    file: str
    kind: Kind
    gpus: int | None
    cpus: int | None
    team: str | None
    node_group: str | None
    queue: str | None
    image: str | None
    venv: str | None
    name: str | None
    command: tuple[str, ...]
    as_json: bool
    script: "Script | None" = None

    @property
    def amount(self) -> int:
        """CPUs of a preparation, GPUs of other jobs."""
        options = [("--cpus", self.cpus), ("--gpus", self.gpus)]
        (option, value), (other, ignored) = options if self.kind == "prepare" else options[::-1]
        if value is None:
            raise typer.BadParameter(f"{self.kind} needs {option} N")
        if ignored is not None:
            raise typer.BadParameter(f"{self.kind} takes {option}, and not {other}")
        return value

    @property
    def unit(self) -> str:
        """What `amount` counts."""
        return "cpus" if self.kind == "prepare" else "gpus"


def _kubernetes(environment: "Environment", wish: Wish) -> str:
    from ultracluster.jobs.request import JobRefused
    from ultracluster.kubernetes.jobs import example_job, prepare_job

    for option, value in (("--queue", wish.queue), ("--venv", wish.venv)):
        if value:
            raise JobRefused(f"{option} is for Slurm, and {environment.name} runs Kubernetes; remove {option}")
    amount, team = wish.amount, _team(environment, wish.team)
    name = wish.name or f"{wish.kind}-{amount}-{wish.unit}-{_suffix()}"
    if wish.kind == "prepare":
        objects = prepare_job(
            environment,
            team,
            amount,
            name=name,
            image=wish.image,
            command=wish.command,
            script=wish.script,
            node_group=wish.node_group,
        )
    else:
        objects = example_job(
            environment,
            team,
            amount,
            kind=wish.kind,
            name=name,
            node_group=wish.node_group,
            image=wish.image,
            command=wish.command,
            script=wish.script,
        )
    return _as_json(objects) if wish.as_json else _as_yaml(objects)


def _slurm(environment: "Environment", wish: Wish) -> str:
    from ultracluster.jobs.request import JobRefused
    from ultracluster.slurm.jobs import cpu_job, gpu_job
    from ultracluster.slurm.sbatch import sbatch_script

    if wish.as_json:
        raise JobRefused(f"--json is for Kubernetes, and {environment.name} runs Slurm; remove --json")
    amount, printed_by = wish.amount, _printed_by(wish)
    options: dict[str, Any] = {
        "queue": wish.queue,
        "node_group": wish.node_group,
        "team": wish.team,
        "name": wish.name,
        "image": wish.image,
        "venv": wish.venv,
        "command": wish.command,
        "script": wish.script,
    }
    if wish.kind == "prepare":
        return sbatch_script(cpu_job(environment, amount, **options), printed_by)
    return sbatch_script(gpu_job(environment, amount, kind=wish.kind, **options), printed_by)


def _printed_by(wish: Wish) -> str:
    """The command that prints the same job."""
    import shlex

    words = ["ultracluster", "job", wish.file, "--kind", wish.kind, f"--{wish.unit}", str(wish.amount)]
    given = {
        "--queue": wish.queue,
        "--node-group": wish.node_group,
        "--team": wish.team,
        "--image": wish.image,
        "--venv": wish.venv,
        "--name": wish.name,
        "--script": wish.script.name if wish.script else None,
        "--command": shlex.join(wish.command) if wish.command else None,
    }
    return shlex.join([*words, *(word for option, value in given.items() if value for word in (option, value))])


def _team(environment: "Environment", team: str | None) -> str:
    if team is None:
        names = ", ".join(each.name for each in getattr(environment.control_plane, "teams", ()))
        raise typer.BadParameter(f"a job on EKS needs --team NAME; teams: {names}")
    return team


def _script(path: str | None, kind: str) -> "Script | None":
    from pathlib import Path

    from ultracluster.jobs.request import JobRefused, Script

    if path is None:
        return None
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise JobRefused(f"--script {path}: {error.strerror}") from None
    return Script.checked(path, content, kind)


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

    class Dumper(yaml.SafeDumper):
        """Writes texts of several lines as such."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, width=120)


def _end_of_patch(text: str) -> "date | None":
    """When AWS stopped patching a public image that the job names, if it has."""
    from ultracluster.catalog.training import IMAGES
    from ultracluster.config.clock import today

    used = (image for image in IMAGES if image.name.partition("/")[2] in text)
    return next((image.end_of_patch for image in used if image.end_of_patch and image.end_of_patch < today()), None)


def _suffix() -> str:
    """Five random characters, as Kubernetes appends them to names: no vowels, so no words."""
    return "".join(secrets.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))
