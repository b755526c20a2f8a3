"""Rules between the teams of an EKS cluster and the fleet."""

from collections.abc import Iterator

from ultracluster.config.eks import Eks, Team
from ultracluster.config.fleet import Fleet
from ultracluster.config.node_groups import unknown_group, unused_groups
from ultracluster.config.problems import Path, Problem


def team_problems(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """Validation problems of the teams: their node groups, quotas and members, at paths of the file."""
    yield from _team_groups(fleet, settings)
    for i, team in enumerate(settings.teams):
        at: Path = ("control_plane", "teams", i)
        yield from _gpus_by_group(fleet, team, at)
        yield from _gpus_to_run_on(fleet, team, at)
    yield from _team_quotas(fleet, settings)
    yield from _members(settings)


def _gpus_by_group(fleet: Fleet, team: Team, at: Path) -> Iterator[Problem]:
    if isinstance(team.gpus, int):
        if groups := _groups_without_numbers(fleet, team):
            message = f"{team.gpus} GPUs for {len(groups)} node groups; each node group needs its own number"
            hint = f"set gpus: {{{_split(fleet, team.gpus, groups)}}}, or split them in another way"
            yield Problem("team-gpus-by-group", (*at, "gpus"), message, hint)
        return
    for name in team.gpus:
        if name not in team.node_groups:
            message = f"{name} is not one of the team's node groups: {', '.join(team.node_groups)}"
            hint = f"add {name} to node_groups, or remove it from gpus"
            yield Problem("team-gpus-by-group", (*at, "gpus", name), message, hint)


def _groups_without_numbers(fleet: Fleet, team: Team) -> list[str]:
    """Existing GPU node groups of a team whose `gpus` is one number for several of them; otherwise none."""
    known = {group.name for group in fleet.node_groups} - fleet.cpu_groups  # others are an error of their own
    groups = [name for name in dict.fromkeys(team.node_groups) if name in known]
    return groups if isinstance(team.gpus, int) and len(groups) > 1 else []


def _split(fleet: Fleet, gpus: int, groups: list[str]) -> str:
    """`gpus` by group, as many as each has; the last group gets the rest."""
    sizes = {group.name: group.max_count * group.hardware.gpu_count for _, group in fleet.gpu_groups}
    numbers = {}
    for name in groups[:-1]:
        numbers[name] = min(gpus, sizes.get(name, gpus))
        gpus -= numbers[name]
    numbers[groups[-1]] = gpus
    return ", ".join(f"{name}: {number}" for name, number in numbers.items())


def _gpus_to_run_on(fleet: Fleet, team: Team, at: Path) -> Iterator[Problem]:
    """A team cannot use a node group without guaranteed GPUs and without borrowing."""
    groups = [name for name in dict.fromkeys(team.node_groups) if name not in fleet.cpu_groups]
    if team.may_borrow or (isinstance(team.gpus, int) and len(groups) > 1):
        return
    for i, name in enumerate(team.node_groups):
        if name in groups and not team.quotas.get(name):
            message = f"{team.name} has no GPUs of {name} and may not borrow, so its jobs cannot run there"
            hint = f"set may_borrow: true, or set gpus for {name}"
            yield Problem("team-without-gpus", (*at, "node_groups", i), message, hint)


def _team_groups(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    names = [group.name for group in fleet.node_groups]
    for i, team in enumerate(settings.teams):
        for j, name in enumerate(team.node_groups):
            at: Path = ("control_plane", "teams", i, "node_groups", j)
            if name not in names:
                yield from unknown_group("team-node-group-unknown", at, name, names)
            elif name in fleet.cpu_groups:
                message = f"{name} has no GPUs; all teams have equal shares of its CPUs without naming it"
                yield Problem("team-node-group-without-gpus", at, message, f"remove {name}")
            elif name in team.node_groups[:j]:
                message = f"{name} is already node_groups[{team.node_groups.index(name)}]"
                yield Problem("duplicate-name", at, message, "remove the duplicate")
    used = {name for team in settings.teams for name in team.node_groups}
    unknown = {*names} - {group.name for _, group in fleet.known_groups}  # they may be without GPUs
    yield from unused_groups("node-group-without-team", "team", names, used | fleet.cpu_groups | unknown)


def _team_quotas(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """Guaranteed GPUs of all teams, in the order of the file, against the GPUs of each group."""
    names = [team.name for team in settings.teams]
    numbered = [not _groups_without_numbers(fleet, team) for team in settings.teams]
    teams = [(i, team) for i, team in enumerate(settings.teams) if numbered[i] and team.name not in names[:i]]
    for _, group in fleet.gpu_groups:
        node, has, claimed = group.hardware.gpu_count, group.max_count * group.hardware.gpu_count, 0
        for i, team in teams:
            quota = team.quotas.get(group.name, 0)
            key = "gpus" if isinstance(team.gpus, int) else group.name
            at: Path = ("control_plane", "teams", i, *dict.fromkeys(("gpus", key)))
            claimed += quota
            if quota and claimed > has:
                message = f"the teams up to this one are guaranteed {claimed} GPUs of {group.name}, which has {has}"
                left = has - claimed + quota
                hint = f"set {key}: {left}" if left > 0 else "lower gpus of the other teams"
                yield Problem("quota-above-fleet", at, message, hint)
            elif quota % node:
                message = f"{quota} GPUs are not a whole number of {group.name} nodes, which have {node} GPUs each"
                hint = f"set {key}: {quota - quota % node or node}, unless jobs use parts of nodes"
                yield Problem("quota-not-whole-nodes", at, message, hint, "warning")


def _members(settings: Eks) -> Iterator[Problem]:
    """A role has one access entry per cluster, so it belongs to the administrators or to one team."""
    seen = dict.fromkeys(settings.admins, "the admins")
    for i, team in enumerate(settings.teams):
        for j, role in enumerate(team.members):
            if role in seen:
                message = f"{role} is already one of {seen[role]}; a role has one access entry per cluster"
                at: Path = ("control_plane", "teams", i, "members", j)
                yield Problem("duplicate-name", at, message, "use another role")
            seen.setdefault(role, f"the members of {team.name}")
