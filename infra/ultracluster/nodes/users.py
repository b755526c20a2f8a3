"""Users of nodes: the list that machines read, and the step that creates them.

The list is not part of a node: the step names an SSM parameter. So a change of the list replaces no node; each one
reads it at boot and every ten minutes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ultracluster.config.users import Users
from ultracluster.nodes.eks_boot import unguarded
from ultracluster.nodes.mime import multipart, shell_script
from ultracluster.nodes.steps import Step

STEP = "create-users"

PART_LENGTH = 4096
"""Characters of a parameter of the standard tier (Systems Manager User Guide, "Managing parameter tiers", 2026)."""


@dataclass(frozen=True)
class UserSource:
    """Where a machine finds the list: the name of the SSM parameter, and its Region. Strings may be tokens.

    `shared_homes` is whether /home is a shared file system, which must be mounted before homes are created.
    """

    parameter: str
    region: str
    shared_homes: bool = False


def user_steps(source: UserSource | None) -> list[Step]:
    """The step that creates users, at every boot; none without a list."""
    if source is None:
        return []
    homes = "shared" if source.shared_homes else "local"
    return [Step(STEP, (source.parameter, source.region, homes), "every_boot")]


def host_user_data(steps: Sequence[Step]) -> str:
    """User data of an access host, which runs `steps` at its first boot and reports those that fail."""
    return multipart([shell_script(unguarded(steps) or "")])


def user_list(users: Users) -> str:
    """The list as text, one fact a line: groups, users, members of groups, keys. The script explains the format."""
    return "\n".join([*_lines(users), ""])


def list_parts(text: str) -> list[str]:
    """The list cut at ends of lines, each part short enough for a parameter. Joined by line ends, they are the list."""
    parts: list[str] = []
    for line in text.splitlines():
        if parts and len(parts[-1]) + 1 + len(line) <= PART_LENGTH:
            parts[-1] += f"\n{line}"
        else:
            parts.append(line)
    return parts


def _lines(users: Users) -> Iterator[str]:
    for group in users.groups:
        yield f"group {group.name} {group.gid}"
    for user in users.users:
        yield f"user {user.name} {user.uid} {user.primary_gid} {'yes' if user.sudo else 'no'}"
    for user in users.users:
        yield from (f"member {group} {user.name}" for group in user.groups)
        yield from (f"key {user.name} {key.strip()}" for key in user.keys)
