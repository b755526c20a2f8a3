"""Folders of teams on file systems, and the Jobs that create them.

The root folder of a new file system belongs to root with mode 0755, so only root can create folders in it. A Job does
so: it runs as root on a system node, in a namespace that teams cannot use, and mounts the whole file system. It can run
any number of times. A team's volumes mount only the folders of the team.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence

from ultracluster.catalog.software import images
from ultracluster.config.eks import Team
from ultracluster.config.lustre import Lustre, S3Link
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import FILE_SYSTEM_CLAIM, on_system_nodes
from ultracluster.kubernetes.parts import Object, Objects
from ultracluster.kubernetes.scheduler_charts import RELEASES

NAMESPACE = "ultracluster-system"
"""Namespace of the Jobs. Names of teams cannot end with -system."""

FOLDERS = "folders"
"""Name of the part with the namespace, and with the volume of the whole file system."""

MOUNT = "/lustre"
"""Where a Job mounts the file system."""

TTL_SECONDS = 86400
"""Time that a finished Job and its log are kept."""

SHARED_MODE = "1777"
"""Mode of a folder without an owner: any user of the team's pods writes, and removes only own files, as in /tmp."""

OWNED_MODE = "2770"
"""Mode of a folder with an owner: its user and group write, and new files get the group."""


def team_folder(team: str) -> str:
    """A team's folder, from the root of the file system or of a linked folder."""
    return f"/teams/{team}"


def team_prefix(team: str) -> str:
    """A team's prefix in each bucket: what its folder in a linked folder is exported to."""
    return f"teams/{team}/"


def team_links(lustre: Lustre) -> tuple[S3Link, ...]:
    """Links that teams see as folders of their own. A link of the root folder shows in each team's folder."""
    return tuple(link for link in lustre.links if _path(link))


def link_claim(link: S3Link) -> str:
    """Name of the claim of a linked folder in each team's namespace: the path in letters that Kubernetes allows."""
    path = _path(link).removeprefix("/")
    name = re.sub(r"[^a-z0-9]+", "-", path.lower())[:40].strip("-")
    distinct = "" if name == path else f"-{hashlib.sha256(path.encode()).hexdigest()[:6]}"
    return f"{name or 'folder'}{distinct}-link"


def link_folder(link: S3Link, team: str) -> str:
    """What a team mounts of a linked folder: a folder of its own where changes are exported, otherwise all of it."""
    return _path(link) + (team_folder(team) if link.export_events else "")


def lustre_mounts(lustre: Lustre) -> tuple[tuple[str, str], ...]:
    """Claims of the file system in each team's namespace, with the path where pods mount each."""
    links = ((link_claim(link), f"{lustre.mount_path}{_path(link)}") for link in team_links(lustre))
    return ((FILE_SYSTEM_CLAIM, lustre.mount_path), *links)


def folder_objects(volumes: Mapping[str, Sequence[Object]]) -> tuple[Objects, ...]:
    """The namespace of the Jobs, and a set for each volume with a whole file system, by its claim.

    Each is a set of its own, because what leaves a set stays in the cluster.
    """
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    whole = (Objects(f"{FOLDERS}-{claim}", tuple(items), after=(FOLDERS,)) for claim, items in volumes.items())
    return (Objects(FOLDERS, (namespace,)), *whole)


def before_jobs(environment: EksEnvironment, folders: Iterable[Objects]) -> tuple[str, ...]:
    """Parts that must be installed before a Job: Kueue's webhooks are called for every Job of the cluster."""
    return (*(each.name for each in folders), *([RELEASES["kueue"]] if environment.queue_manager == "kueue" else []))


def own_folder_job(environment: EksEnvironment, team: Team, lustre: Lustre) -> Object:
    """The Job that creates a team's folder, and in it the mount points of linked folders."""
    folder = team_folder(team.name)
    mount_points = [f"{folder}{_path(link)}" for link in team_links(lustre)]
    return _job(environment, team, FILE_SYSTEM_CLAIM, [*_create(team, folder), *_mount_points(mount_points)])


def team_folder_job(environment: EksEnvironment, team: Team, claim: str) -> Object:
    """The Job that creates a team's folder in another file system, that of the same claim in the Jobs' namespace."""
    return _job(environment, team, claim, _create(team, team_folder(team.name)), file_system=claim)


def link_folder_job(environment: EksEnvironment, team: Team, link: S3Link) -> Object:
    """The Job that creates a team's folder in a linked folder, which it waits for: FSx creates that with the link."""
    wait = [f"until [ -d {_quoted(_path(link))} ]; do", f"  echo 'waiting for the link of {_path(link)}'", "  sleep 10"]
    return _job(environment, team, link_claim(link), [*wait, "done", *_create(team, link_folder(link, team.name))])


def _path(link: S3Link) -> str:
    """Path of a link without a trailing slash; empty for the root folder."""
    return link.path.rstrip("/")


def _create(team: Team, folder: str) -> list[str]:
    owner, mode = (team.user, OWNED_MODE) if team.user else ("0:0", SHARED_MODE)
    # the mode comes last, because a change of the owner clears the set-group-id bit
    return [f"mkdir -p {_quoted(folder)}", f"chown {owner} {_quoted(folder)}", f"chmod {mode} {_quoted(folder)}"]


def _mount_points(folders: list[str]) -> list[str]:
    """The container runtime would create them as root of the node, which root squash does not allow."""
    return [f"mkdir -p {_quoted(folder)}" for folder in folders]


def _quoted(path: str) -> str:
    """A path of the file system as a word for the shell."""
    return "'" + f"{MOUNT}{path}".replace("'", "'\\''") + "'"


def _job(
    environment: EksEnvironment, team: Team, claim: str, commands: list[str], *, file_system: str = FILE_SYSTEM_CLAIM
) -> Object:
    """A Job with these shell commands. Its name has a hash of its contents: the template of a Job is immutable."""
    spec = {
        "backoffLimit": 6,
        "ttlSecondsAfterFinished": TTL_SECONDS,
        "template": {"spec": _pod(environment, "\n".join(["set -eu", "umask 022", *commands]), file_system)},
    }
    contents = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:8]
    metadata = {"name": f"{claim[:20].rstrip('-')}-{team.name[:20].rstrip('-')}-{contents}", "namespace": NAMESPACE}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _pod(environment: EksEnvironment, script: str, file_system: str) -> Object:
    return {
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": False,
        **on_system_nodes(),
        "containers": [
            {
                "name": "folders",
                "image": environment.image(images["shell"]),
                "command": ["sh", "-c", script],
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
                "securityContext": {
                    "runAsUser": 0,
                    "allowPrivilegeEscalation": False,
                    # FSETID: without it, chmod clears the set-group-id bit of a folder with another group
                    "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID"]},
                },
                "volumeMounts": [{"name": "lustre", "mountPath": MOUNT}],
            }
        ],
        "volumes": [{"name": "lustre", "persistentVolumeClaim": {"claimName": file_system}}],
    }
