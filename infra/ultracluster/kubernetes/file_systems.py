"""Volumes of teams beside the first Lustre file system: homes, and further or existing file systems.

A team mounts a folder of its own of homes and of each new file system, and all of an existing one.

NFS trusts its clients: a pod that runs as root and speaks NFS itself reaches what a node reaches. A policy refuses
pods of teams that name a server in their own specification.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ultracluster.config.eks import Team
from ultracluster.config.file_systems import HOME
from ultracluster.kubernetes.admission import Check, Requests, admission_policy
from ultracluster.kubernetes.claims import file_system_claim, nfs_claim
from ultracluster.kubernetes.deployed import DeployedResources, FileSystem, NfsExport
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.folders import NAMESPACE, team_folder, team_folder_job
from ultracluster.kubernetes.labels import HOME_CLAIM, IN_TEAMS
from ultracluster.kubernetes.parts import Object, Objects

POLICY = "no-nfs-volumes"
"""Name of the policy."""


@dataclass(frozen=True)
class Further:
    """A file system with the claim of each team, and where pods mount it. With `folders` teams have their own."""

    claim: str
    path: str
    folders: bool
    read_only: bool = False


def further(environment: EksEnvironment) -> dict[str, Further]:
    """File systems beside the first Lustre, by their names; that of homes is `home`'s claim."""
    storage = environment.storage
    homes = {HOME_CLAIM: Further(HOME_CLAIM, HOME, folders=True)} if storage.homes else {}
    more = {
        each.name: Further(more_claim(each.name), each.mount_path, not each.existing, each.read_only)
        for each in storage.more
    }
    return {**homes, **more}


def more_claim(name: str) -> str:
    """Name of the claim of a further file system, in each team's namespace."""
    return f"{name}-files"


def further_mounts(environment: EksEnvironment) -> tuple[tuple[str, str], ...]:
    """Claims of these file systems in each team's namespace, with the path where pods mount each."""
    return tuple((each.claim, each.path) for each in further(environment).values())


def whole_volumes(environment: EksEnvironment, deployed: DeployedResources) -> dict[str, tuple[Object, ...]]:
    """Volumes with whole file systems by their claims, for the Jobs that create the folders of teams."""
    found = _with_deployed(environment, deployed)
    return {each.claim: tuple(_claim(environment, NAMESPACE, each.claim, made)) for each, made in found if each.folders}


def team_volumes(environment: EksEnvironment, team: Team, deployed: DeployedResources) -> dict[str, tuple[Object, ...]]:
    """Objects by claim: the volume of a team, and the Job that creates its folder."""
    volumes: dict[str, tuple[Object, ...]] = {}
    for each, made in _with_deployed(environment, deployed):
        folder = team_folder(team.name) if each.folders else ""
        jobs = (team_folder_job(environment, team, each.claim),) if each.folders else ()
        claim = _claim(environment, team.name, each.claim, made, folder=folder, read_only=each.read_only)
        volumes[each.claim] = (*jobs, *claim)
    return volumes


def nfs_policy() -> Objects:
    """Refuses pods of teams with NFS volumes of their own: those would mount all of a file system."""
    own = "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.nfs))"
    check = Check(own, "mount the claims of the namespace, not a file server")
    new_pods = Requests(["CREATE"], ["pods"])
    return Objects(POLICY, admission_policy(POLICY, [new_pods], [check], namespaces=IN_TEAMS))


def _with_deployed(
    environment: EksEnvironment, deployed: DeployedResources
) -> Iterator[tuple[Further, FileSystem | NfsExport]]:
    made = {**({HOME_CLAIM: deployed.home} if deployed.home else {}), **deployed.more}
    for name, each in further(environment).items():
        if name in made:
            yield each, made[name]


def _claim(
    environment: EksEnvironment,
    namespace: str,
    claim: str,
    made: FileSystem | NfsExport,
    *,
    folder: str = "",
    read_only: bool = False,
) -> tuple[Object, Object]:
    if isinstance(made, NfsExport):
        return nfs_claim(environment, namespace, claim, made, folder=folder, read_only=read_only)
    return file_system_claim(environment, namespace, claim, made, folder=folder, read_only=read_only)
