"""Users of nodes: the list that machines read or the directory that they ask, and the step for either.

The list is not part of a node: the step names an SSM parameter. So a change of the list replaces no node; each one
reads it at boot and every ten minutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.config.directory import Directory
from ultracluster.config.users import Users
from ultracluster.nodes.eks_boot import unguarded
from ultracluster.nodes.mime import multipart, shell_script
from ultracluster.nodes.steps import Step

CREATE, ASK = "create-users", "ask-directory"

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


@dataclass(frozen=True)
class DirectorySource:
    """The directory that a machine asks, and the Region of its secret, which may be a token."""

    settings: Directory
    region: str


def user_steps(source: UserSource | DirectorySource | None) -> list[Step]:
    """The step that gives a machine its users, at every boot; none without a source."""
    match source:
        case UserSource():
            homes = "shared" if source.shared_homes else "local"
            return [Step(CREATE, (source.parameter, source.region, homes), "every_boot")]
        case DirectorySource():
            return [Step(ASK, _directory_arguments(source), "every_boot")]
    return []


def _directory_arguments(source: DirectorySource) -> tuple[str, ...]:
    directory = source.settings
    return (
        directory.secret_arn,
        source.region,
        f"domain={directory.domain}",
        *(f"uri={url}" for url in directory.ldap_urls),
        f"ids={directory.id_mapping}",
        *(f"group={name}" for name in directory.groups),
        *(f"sudo={name}" for name in directory.sudo_groups),
        f"passwords={'no' if directory.login == 'keys' else 'yes'}",
    )


def host_user_data(steps: Sequence[Step]) -> str:
    """User data of an access host, which runs `steps` at its first boot and reports those that fail."""
    return multipart([shell_script(unguarded(steps) or "")])


def user_list(users: Users) -> str:
    """The list as text, one fact a line: groups, users, members of groups, keys. The script explains the format."""
    return "\n".join([*users.lines(), ""])


def list_parts(text: str) -> list[str]:
    """The list cut at ends of lines, each part short enough for a parameter. Joined by line ends, they are the list."""
    parts: list[str] = []
    for line in text.splitlines():
        if parts and len(parts[-1]) + 1 + len(line) <= PART_LENGTH:
            parts[-1] += f"\n{line}"
        else:
            parts.append(line)
    return parts
