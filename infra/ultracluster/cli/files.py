"""Arguments and options that name a part of an environment, and their completion in a shell."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ultracluster.config.environment import Environment

FOLDER = Path("environments")


def path_of(file: str) -> str:
    """The path of an environment file: `file`, or environments/NAME.yaml where only that exists."""
    named = FOLDER / f"{file}.yaml"
    return str(named) if not Path(file).exists() and named.is_file() else file


def complete_file(incomplete: str) -> list[str]:
    """Environment files: names in environments/, and paths."""
    folder, slash, start = incomplete.rpartition("/")
    listed = sorted(Path(folder + slash or ".").glob(f"{start}*"))
    paths = [f"{path}/" if path.is_dir() else str(path) for path in listed if path.is_dir() or path.suffix == ".yaml"]
    return [*sorted(file.stem for file in FOLDER.glob(f"{incomplete}*.yaml")), *paths]


def complete_team(context: typer.Context, incomplete: str) -> list[str]:
    """Teams of the file on the command line."""
    return _names(context, incomplete, lambda environment: environment.control_plane.teams)


def complete_queue(context: typer.Context, incomplete: str) -> list[str]:
    """Slurm queues of the file on the command line."""
    return _names(context, incomplete, lambda environment: getattr(environment.control_plane, "queues", ()))


def complete_node_group(context: typer.Context, incomplete: str) -> list[str]:
    """Node groups, and pools of Karpenter, of the file on the command line."""
    return _names(context, incomplete, lambda environment: (*environment.node_groups, *environment.pools))


def _names(context: typer.Context, incomplete: str, entries: "Callable[[Environment], Iterable[object]]") -> list[str]:
    """Names of entries of the file on the command line; none where it has errors."""
    from ultracluster.config.loader import validate

    file = context.params.get("file")
    environment = validate(path_of(file), strict=False).environment if file else None
    names = [str(vars(entry)["name"]) for entry in entries(environment)] if environment else []
    return [name for name in names if name.startswith(incomplete)]


def complete_hardware(incomplete: str) -> list[str]:
    """Accelerated instance types, and UltraServers."""
    from ultracluster.catalog import catalog, ultraservers

    return [name for name in (*catalog, *ultraservers) if name.startswith(incomplete)]


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Environment file, or the name of one in environments/.",
        show_default=False,
        parser=path_of,
        autocompletion=complete_file,
    ),
]
