"""Scheduling policy: default Slurm settings for clusters with accounting, and further ones for those with teams.

Settings of the environment file override them; lists of words are extended.

Source: slurm.conf man page; Slurm documentation, "Multifactor Priority Plugin", "Preemption" (26.05). Whether PCS takes
a setting: `catalog/data/pcs.json`.
"""

import math
import re
from collections.abc import Mapping, Sequence

from ultracluster.catalog import pcs
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Pcs, Queue
from ultracluster.config.slurm_conflicts import evicts
from ultracluster.config.slurm_settings import WHOLE_NODES, minutes, with_words
from ultracluster.config.slurm_teams import SlurmTeam

Values = Mapping[str, str | int]

WEIGHTS = {"QOS": 1_000_000, "Fairshare": 100_000, "Age": 10_000, "JobSize": 1_000}
"""Weights of the factors of a job's priority, which are from 0 to 1: a higher QOS outweighs any fair share."""

DEFAULT_MINUTES, LONGEST_MINUTES = 24 * 60, 14 * 24 * 60
"""DefaultTime and MaxTime of queues of clusters with teams, in minutes."""

BACKFILL_WINDOW_MINUTES = 24 * 60
"""Default of bf_window."""

CPU_PRICE = 0.02
"""Billing weight of a core in queues without GPUs, relative to a GPU: about the ratio of their prices."""


def cluster_settings(settings: Pcs, groups: Sequence[NodeGroup]) -> dict[str, str | int]:
    """`slurm_settings` of the cluster, with the defaults if it has accounting."""
    given = settings.slurm_settings
    if not settings.accounting:
        return dict(given)
    defaults: dict[str, str | int] = {
        **{f"PriorityWeight{name}": weight for name, weight in WEIGHTS.items()},
        "PriorityDecayHalfLife": "7-0",
        "PriorityMaxAge": "7-0",
        "EnforcePartLimits": "ALL",
        "JobRequeue": 1,
    }
    if resources := _accounted_resources(settings, groups):
        defaults["AccountingStorageTRES"] = resources
        given = {name: value for name, value in given.items() if name != "AccountingStorageTRES"}
    words = ["bf_continue", "salloc_wait_nodes", "sbatch_wait_nodes"]
    if (window := _longest(settings)) > BACKFILL_WINDOW_MINUTES:
        # a coarser plan for a longer time: the plan of a day has slots of a minute
        words += [f"bf_window={window}", "bf_resolution=600"]
    if settings.teams:
        defaults["AccountingStorageEnforce"] = "associations,limits,qos"
        # Slurm takes both or neither
        if given.get("PreemptType") != "preempt/none" and ("PreemptMode" not in given or evicts(given)):
            defaults |= {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE", "PreemptExemptTime": "00:15:00"}
            # the signal of sbatch --signal in place of SIGTERM, at the start of the grace time of the QOS
            given = {**given, "PreemptParameters": with_words(given.get("PreemptParameters", ""), "send_user_signal")}
            words.append("preempt_youngest_first")
    # PCS has words of its own, which a list may replace
    own = pcs.scheduler_parameters(settings.slurm_version)
    scheduler = with_words(given.get("SchedulerParameters", ""), *own, *words)
    return {**defaults, **given, "SchedulerParameters": scheduler}


def cgroup_settings(settings: Pcs) -> dict[str, str | int]:
    """`cgroup_settings` of the cluster; with accounting, jobs can use only their own GPUs and cores by default."""
    defaults = {"ConstrainCores": "yes", "ConstrainDevices": "yes"} if settings.accounting else {}
    return {**defaults, **settings.cgroup_settings}


def queue_settings(
    queue: Queue, groups: Sequence[NodeGroup], teams: Sequence[SlurmTeam], slurm_version: str
) -> dict[str, str | int]:
    """`slurm_settings` of a queue over `groups`, with defaults; without teams, only queues of UltraServers have one.

    Jobs of queues with GPUs get whole nodes if there are teams; jobs on UltraServers always do, because IMEX starts for
    exclusive jobs only. Fair share counts usage in GPUs.
    """
    given = queue.slurm_settings
    name, whole = pcs.whole_nodes(slurm_version)
    shared = WHOLE_NODES & given.keys()
    if not teams:
        ultraservers = any(group.known and group.hardware.ultraserver_only for group in groups)
        return {**({name: whole} if ultraservers and not shared else {}), **given}
    gpus = all(group.hardware.gpu_count for group in groups if group.known)
    defaults: dict[str, str | int] = {"TRESBillingWeights": "GRES/gpu=1.0" if gpus else f"CPU={CPU_PRICE}"}
    if gpus and not shared:
        defaults[name] = whole
    longest = _limit(given)
    if "DefaultTime" not in given or (minutes(given["DefaultTime"]) or math.inf) <= LONGEST_MINUTES:
        defaults["MaxTime"] = "14-00:00:00"
    if longest > DEFAULT_MINUTES:
        defaults["DefaultTime"] = "1-00:00:00"
    # not AllowAccounts: it would need root for administrators, which stands for all accounts below it
    denied = [team.name for team in teams if not team.may_use(queue.node_groups)]
    own = {**defaults, **given}
    if denied and "AllowAccounts" not in given:
        own["DenyAccounts"] = with_words(given.get("DenyAccounts", ""), *denied)
    return own


def _accounted_resources(settings: Pcs, groups: Sequence[NodeGroup]) -> str:
    """AccountingStorageTRES of the user, with GPUs and the resources of TRESBillingWeights and PriorityWeightTRES.

    Slurm does not start with a weight of a resource that is not in AccountingStorageTRES.
    """
    gpus = ["gres/gpu"] if any(group.known and group.hardware.gpu_count for group in groups) else []
    weights = [queue.slurm_settings.get("TRESBillingWeights", "") for queue in settings.queues]
    weights.append(settings.slurm_settings.get("PriorityWeightTRES", ""))
    named = [name.lower() for each in weights for name in re.findall(r"gres/[^=,\s]+", str(each), re.IGNORECASE)]
    return with_words(settings.slurm_settings.get("AccountingStorageTRES", ""), *gpus, *dict.fromkeys(named))


def _longest(settings: Pcs) -> int:
    """The longest finite time limit of the queues, in minutes."""
    limits = [_limit(queue.slurm_settings, LONGEST_MINUTES if settings.teams else 0) for queue in settings.queues]
    return max(limits, default=0)


def _limit(given: Values, default: int = LONGEST_MINUTES) -> int:
    """MaxTime in minutes; the default where there is none or no limit."""
    return (minutes(given["MaxTime"]) if "MaxTime" in given else None) or default
