"""The Systems Manager document with which a login node sets up the teams of an environment in Slurm's accounting."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from ultracluster.config.slurm_teams import SlurmTeam
from ultracluster.nodes.steps import script

SCRIPT = "set-up-accounting"

NO_LIMIT = -1


def account_lines(teams: Sequence[SlurmTeam]) -> Iterator[str]:
    """Lines about the accounts of `teams` and their members, in the format of the script."""
    for team in teams:
        gpus = NO_LIMIT if team.max_gpus is None else team.max_gpus
        yield f"account {team.name} {team.fairshare} {gpus} {','.join(team.allowed_qos)} {team.qos}"
    yield from (f"member {team.name} {user}" for team in teams for user in team.members)


def document_content(teams: Sequence[SlurmTeam]) -> dict[str, Any]:
    """Content of the Systems Manager document: the script with the accounts of `teams`.

    Its parameter is `revision`: a State Manager association runs again when its parameters change.

    Source: Systems Manager User Guide, "SSM document syntax", "aws:runShellScript" (2026).
    """
    first, *lines = script(SCRIPT).text.splitlines()
    return {
        "schemaVersion": "2.2",
        "description": "Gives Slurm's accounting the accounts, QOS and limits of teams.",
        "parameters": {
            "revision": {"type": "String", "description": "Of the document", "allowedPattern": "^[0-9a-f]{16}$"}
        },
        "mainSteps": [
            {
                "action": "aws:runShellScript",
                "name": "accounts",
                "inputs": {
                    "timeoutSeconds": "1200",
                    "runCommand": [first, "echo 'revision {{ revision }}'", *arguments(teams), *lines],
                },
            }
        ],
    }


def arguments(teams: Sequence[SlurmTeam]) -> list[str]:
    """Shell lines that set the script's argument. Names of accounts and users need no quoting."""
    return ["set -- '", *account_lines(teams), "'"]


def revision(teams: Sequence[SlurmTeam]) -> str:
    """Changes when the script or the list of accounts does."""
    text = "\n".join([*account_lines(teams), script(SCRIPT).checksum])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
