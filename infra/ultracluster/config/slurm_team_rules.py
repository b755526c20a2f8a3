"""Rules about QOS and teams of a PCS cluster: with accounting, settings, queues and the fleet."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from ultracluster.config.access import Access
from ultracluster.config.fleet import Fleet
from ultracluster.config.node_groups import unknown_group
from ultracluster.config.pcs import Pcs
from ultracluster.config.problems import Path, Problem
from ultracluster.config.slurm_conflicts import lower_words
from ultracluster.config.slurm_settings import WHOLE_NODES, SlurmSettings
from ultracluster.config.slurm_teams import QOS, SlurmTeam

QOS_SETTINGS = ("QOS", "AllowQos", "DenyQos")
ACCOUNT_SETTINGS = ("AllowAccounts", "DenyAccounts")

IMAGE_USERS = frozenset({"ubuntu", "ec2-user"})
"""Users of AWS's images."""

ENFORCED = ("associations", "limits", "qos")
"""Words of AccountingStorageEnforce without which Slurm does not enforce teams."""

ACCOUNTED = ("AccountingStorageEnforce", "AccountingStorageTRES", "PriorityWeightFairshare", "PriorityWeightTRES")
"""Settings of a cluster that have no effect without accounting, or with which slurmctld then does not start."""

CONTRADICTIONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "PreemptType": (("preempt/none", "preempt/partition_prio"), "jobs of a higher QOS preempt no others"),
    "PreemptMode": (("off",), "jobs of a higher QOS preempt no others"),
    "JobRequeue": (("0",), "preempted jobs are cancelled instead of requeued"),
    "PriorityWeightFairshare": (("0",), "fairshare has no effect"),
    "PriorityWeightQOS": (("0",), "a higher QOS gives jobs no priority"),
}
"""Values of cluster settings that contradict teams, and their effect."""


def slurm_team_problems(fleet: Fleet, settings: Pcs, access: Access) -> Iterator[Problem]:
    """Validation problems of teams, and of QOS and accounts in settings of queues, at paths of the file."""
    if not settings.accounting:
        yield from _without_accounting(settings)
        return
    yield from _named_qos(settings)
    if not settings.teams:
        return
    yield from _named_accounts(settings)
    yield from _allowed_teams(settings)
    yield from _contradictions(settings)
    for i, team in enumerate(settings.teams):
        at: Path = ("control_plane", "teams", i)
        yield from _groups(fleet, team, at)
        if set(team.node_groups) <= {group.name for group in fleet.node_groups}:
            yield from _queue_of(settings, team, at)
            yield from _gpus(fleet, settings, team, at)
        yield from _members(team, access, at)


def _without_accounting(settings: Pcs) -> Iterator[Problem]:
    """Accounts and QOS are records of the accounting database."""
    hint = "set accounting: true"
    if settings.teams:
        message = "teams are Slurm accounts, and accounting is disabled"
        yield Problem("teams-without-accounting", ("control_plane", "teams"), message, f"{hint}, or remove teams")
    owners: list[tuple[Path, SlurmSettings, tuple[str, ...]]] = [((), settings.slurm_settings, ACCOUNTED)]
    names = (*QOS_SETTINGS, *ACCOUNT_SETTINGS, "TRESBillingWeights")
    owners += [(("queues", i), queue.slurm_settings, names) for i, queue in enumerate(settings.queues)]
    for below, given, accounted in owners:
        for name in accounted:
            if name in given:
                message = f"{name} requires Slurm accounting, which is disabled"
                at: Path = ("control_plane", *below, "slurm_settings", name)
                yield Problem("qos-without-accounting", at, message, f"{hint}, or remove {name}")


def _named_qos(settings: Pcs) -> Iterator[Problem]:
    """A queue whose QOS is not in accounting keeps slurmctld from starting.

    Source: AWS PCS User Guide, "Custom Slurm settings for AWS PCS queues" (2026).
    """
    known = QOS if settings.teams else ("normal",)
    for i, queue in enumerate(settings.queues):
        for name in QOS_SETTINGS:
            at: Path = ("control_plane", "queues", i, "slurm_settings", name)
            for qos in lower_words(queue.slurm_settings, name):
                if qos not in {*known, "all"}:
                    message = f"this deployment creates no QOS {qos}: PCS refuses the queue unless it exists already"
                    hint = _near(qos, QOS) if settings.teams else f"add teams, which have the QOS {', '.join(QOS)}"
                    yield Problem("queue-qos-unknown", at, message, hint, "warning")


def _named_accounts(settings: Pcs) -> Iterator[Problem]:
    accounts = [team.name for team in settings.teams]
    for i, queue in enumerate(settings.queues):
        for name in ACCOUNT_SETTINGS:
            at: Path = ("control_plane", "queues", i, "slurm_settings", name)
            for account in lower_words(queue.slurm_settings, name):
                if account not in {*accounts, "root", "all"}:
                    message = f"{account} is not a team; teams: {', '.join(accounts)}"
                    yield Problem("queue-account-unknown", at, message, _near(account, accounts), "warning")


def _allowed_teams(settings: Pcs) -> Iterator[Problem]:
    """AllowAccounts overrides DenyAccounts, which excludes teams without the node groups of a queue."""
    for i, queue in enumerate(settings.queues):
        allowed = lower_words(queue.slurm_settings, "AllowAccounts")
        for team in settings.teams:
            if team.name in allowed and not team.may_use(queue.node_groups):
                message = f"{team.name} may not use {queue.name}: it has {', '.join(team.node_groups)} only"
                at: Path = ("control_plane", "queues", i, "slurm_settings", "AllowAccounts")
                hint = f"remove {team.name}, or add {', '.join(queue.node_groups)} to its node_groups"
                yield Problem("teams-contradicted", at, message, hint)


def _contradictions(settings: Pcs) -> Iterator[Problem]:
    if (name := "AccountingStorageEnforce") in settings.slurm_settings:
        given = lower_words(settings.slurm_settings, name)
        # limits and qos enforce associations, safe enforces limits
        implied = {"associations", "limits"} if "safe" in given else {"associations"}
        if missing := [word for word in ENFORCED if word not in {*given, *implied}]:
            message = f"without {' and '.join(missing)} Slurm does not enforce the accounts and limits of teams"
            hint = f"remove {name}, or add {','.join(missing)}"
            yield Problem("teams-contradicted", ("control_plane", "slurm_settings", name), message, hint)
    several = len({team.qos for team in settings.teams}) > 1
    shares = len({team.fairshare for team in settings.teams}) > 1
    for name, (values, effect) in CONTRADICTIONS.items():
        value = str(settings.slurm_settings.get(name, "")).strip().lower()
        if value in values and (shares if name == "PriorityWeightFairshare" else several):
            message = f"{name} {value} contradicts teams: {effect}"
            yield Problem("teams-contradicted", ("control_plane", "slurm_settings", name), message, f"remove {name}")


def _groups(fleet: Fleet, team: SlurmTeam, at: Path) -> Iterator[Problem]:
    names = [group.name for group in fleet.node_groups]
    for j, name in enumerate(team.node_groups):
        if name not in names:
            yield from unknown_group("team-node-group-unknown", (*at, "node_groups", j), name, names)


def _queue_of(settings: Pcs, team: SlurmTeam, at: Path) -> Iterator[Problem]:
    """A team may use a queue only if it has all of its node groups."""
    if not any(team.may_use(queue.node_groups) for queue in settings.queues):
        message = f"every queue has a node group that {team.name} may not use, so its jobs cannot run"
        hint = f"add a queue over {', '.join(team.node_groups)}, or add the other groups of a queue to node_groups"
        yield Problem("team-without-queue", (*at, "node_groups"), message, hint)


def _gpus(fleet: Fleet, settings: Pcs, team: SlurmTeam, at: Path) -> Iterator[Problem]:
    """Jobs in queues with GPUs get whole nodes, so a limit below the GPUs of a node blocks every job."""
    limit, at = team.max_gpus, (*at, "max_gpus")
    groups = [group for _, group in fleet.gpu_groups if group.name in (team.node_groups or [group.name])]
    if limit is None or len(fleet.known_groups) < len(fleet.node_groups):
        return
    has = sum(group.max_count * group.hardware.gpu_count for group in groups)
    if limit > has:
        message = f"{team.name} may use {limit} GPUs; its node groups have {has}"
        hint = f"set max_gpus: {has}, or remove it" if has else "remove max_gpus"
        yield Problem("quota-above-fleet", at, message, hint)
        return
    queues = [queue for queue in settings.queues if team.may_use(queue.node_groups)]
    if any(WHOLE_NODES & queue.slurm_settings.keys() for queue in queues):
        return
    smallest = min(group.hardware.gpu_count for group in groups)
    if limit < smallest:
        message = f"jobs get whole nodes of at least {smallest} GPUs, so no job of {team.name} can start within {limit}"
        yield Problem("team-gpus-below-node", at, message, f"set max_gpus: {smallest}")
    elif limit % smallest:
        message = f"{limit} GPUs are not a whole number of nodes, which have {smallest} GPUs each"
        yield Problem("quota-not-whole-nodes", at, message, f"set max_gpus: {limit - limit % smallest}", "warning")


def _members(team: SlurmTeam, access: Access, at: Path) -> Iterator[Problem]:
    if access.users is None:
        return
    users = [user.name for user in access.users.users]
    for j, name in enumerate(team.members):
        if name not in {*users, *IMAGE_USERS}:
            message = f"{name} is not in the file of access.users, so nobody can submit jobs under this name"
            near = get_close_matches(name, users, n=1)
            hint = f"did you mean {near[0]}?" if near else f"add {name} to that file"
            yield Problem("team-member-unknown", (*at, "members", j), message, hint)


def _near(name: str, names: "tuple[str, ...] | list[str]") -> str:
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"use one of {', '.join(names[:8])}"
