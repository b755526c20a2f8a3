"""`ultracluster job`: a multi-node job, ready to submit."""

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ultracluster.cli.files import File, complete_node_group, complete_queue, complete_team

if TYPE_CHECKING:
    from datetime import date

    from ultracluster.config.environment import Environment
    from ultracluster.jobs.request import Script


Kind = Literal["train", "nccl-test", "nccl-pairs", "prepare"]


def job(
    file: File,
    team: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Team that runs the job: on Slurm its account, optional.",
            show_default=False,
            autocompletion=complete_team,
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Number of GPUs, in whole nodes; on Slurm also part of one.", show_default=False
        ),
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
            autocompletion=complete_node_group,
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Slurm: queue. Default: the first that fits.",
            show_default=False,
            autocompletion=complete_queue,
        ),
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
            metavar="FILE", help="Script that the job contains; --command then has its arguments.", show_default=False
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

    texts = {"team": team, "node-group": node_group, "queue": queue, "image": image, "venv": venv, "name": name}
    if empty := next((option for option, value in texts.items() if value is not None and not value.strip()), None):
        raise typer.BadParameter(f"--{empty} is empty")  # such as an unset shell variable
    words = tuple(_split_command(command))
    _refuse_line_breaks({"FILE": file, "--venv": venv or "", "--command": "".join(words)})
    options = Options(file, kind, gpus, cpus, team, node_group, queue, image, venv, name, words, as_json)
    try:
        if image:
            check_image(image)
        environment = load(file)
        options = replace(options, script=_script(script, kind))
        print_job = _kubernetes if isinstance(environment.control_plane, Eks) else _slurm
        text = print_job(environment, options)
    except RefusedEnvironment as refused:
        typer.echo(str(refused), err=True)
        raise typer.Exit(1) from None
    except JobRefused as refused:
        typer.echo(str(refused), err=True)
        raise typer.Exit(2) from None
    if image is None and (ended := _end_of_patch(text)):
        typer.echo(f"warning: AWS stopped patching the default image on {ended}; set --image", err=True)
    typer.echo(text, nl=False)


@dataclass(frozen=True)
class Options:
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
        """Number of CPUs of a preparation, of GPUs of other jobs. Raises BadParameter."""
        counts = [("--cpus", self.cpus), ("--gpus", self.gpus)]
        (option, value), (other, ignored) = counts if self.kind == "prepare" else counts[::-1]
        if value is None:
            raise typer.BadParameter(f"{self.kind} needs {option} N")
        if ignored is not None:
            raise typer.BadParameter(f"{self.kind} takes {option}, not {other}")
        return value

    @property
    def unit(self) -> str:
        """What `amount` counts."""
        return "cpus" if self.kind == "prepare" else "gpus"


def _kubernetes(environment: "Environment", options: Options) -> str:
    from ultracluster.jobs.request import JobRefused, check_reference
    from ultracluster.kubernetes.jobs import example_job, prepare_job

    for option, value in (("--queue", options.queue), ("--venv", options.venv)):
        if value:
            raise JobRefused(f"{option} is for Slurm, and {environment.name} runs Kubernetes; remove {option}")
    if options.image:
        check_reference(options.image)
    amount, team = options.amount, _team(environment, options.team)
    name = options.name or f"{options.kind}-{amount}-{options.unit}-{_suffix()}"
    if options.kind == "prepare":
        objects = prepare_job(
            environment,
            team,
            amount,
            name=name,
            image=options.image,
            command=options.command,
            script=options.script,
            node_group=options.node_group,
        )
    else:
        objects = example_job(
            environment,
            team,
            amount,
            kind=options.kind,
            name=name,
            node_group=options.node_group,
            image=options.image,
            command=options.command,
            script=options.script,
        )
    return _as_json(objects) if options.as_json else _as_yaml(objects)


def _slurm(environment: "Environment", options: Options) -> str:
    from ultracluster.jobs.request import JobRefused
    from ultracluster.slurm.jobs import cpu_job, gpu_job
    from ultracluster.slurm.sbatch import sbatch_script

    if options.as_json:
        raise JobRefused(f"--json is for Kubernetes, and {environment.name} runs Slurm; remove --json")
    amount, printed_by = options.amount, _printed_by(options)
    arguments: dict[str, Any] = {
        "queue": options.queue,
        "node_group": options.node_group,
        "team": options.team,
        "name": options.name,
        "image": options.image,
        "venv": options.venv,
        "command": options.command,
        "script": options.script,
    }
    if options.kind == "prepare":
        return sbatch_script(cpu_job(environment, amount, **arguments), printed_by)
    return sbatch_script(gpu_job(environment, amount, kind=options.kind, **arguments), printed_by)


def _printed_by(options: Options) -> str:
    """The command that prints the same job."""
    import shlex

    words = ["ultracluster", "job", options.file, "--kind", options.kind, f"--{options.unit}", str(options.amount)]
    given = {
        "--queue": options.queue,
        "--node-group": options.node_group,
        "--team": options.team,
        "--image": options.image,
        "--venv": options.venv,
        "--name": options.name,
        "--script": options.script.name if options.script else None,
        "--command": shlex.join(options.command) if options.command else None,
    }
    return shlex.join([*words, *(word for option, value in given.items() if value for word in (option, value))])


def _team(environment: "Environment", team: str | None) -> str:
    if team is None:
        names = ", ".join(each.name for each in getattr(environment.control_plane, "teams", ()))
        raise typer.BadParameter(f"a job on EKS needs --team NAME; teams: {names}")
    return team


def _refuse_line_breaks(given: dict[str, str]) -> None:
    """Exits with 2 for text that a comment of the printed job cannot hold: bash would run what follows a line break."""
    if option := next((option for option, text in given.items() if not text.isprintable()), None):
        raise typer.BadParameter(f"{option} contains a line break or another control character")


def _script(path: str | None, kind: str) -> "Script | None":
    from pathlib import Path

    from ultracluster.jobs.request import JobRefused, Script

    if path is None:
        return None
    try:
        # a device never ends, and a pipe may never begin
        if (file := Path(path)).exists() and not file.is_file():
            raise JobRefused(f"--script {path}: it is not a regular file; save the script as one")
        content = file.read_bytes()
    except OSError as error:
        raise JobRefused(f"--script {path}: {error.strerror}") from None
    return Script.checked(path, content, kind)


def _split_command(command: str | None) -> list[str]:
    """Words of a command, split as by a shell. Exits with 2 for an empty command, and for an unclosed quote."""
    import shlex

    if command is None:
        return []
    try:
        words = shlex.split(command)
    except ValueError as error:
        words, reason = [], str(error).lower()
    else:
        reason = "it is empty"
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
        """Writes texts of several lines as block scalars."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, width=120)


def _end_of_patch(text: str) -> "date | None":
    """Date on which AWS stopped patching a public image in the job; None while all are patched."""
    from ultracluster.catalog.training import IMAGES
    from ultracluster.config.clock import today

    used = (image for image in IMAGES if image.name.partition("/")[2] in text)
    return next((image.end_of_patch for image in used if image.end_of_patch and image.end_of_patch < today()), None)


def _suffix() -> str:
    """Five random characters, as Kubernetes appends them to names: no vowels, so no words."""
    return "".join(secrets.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))
