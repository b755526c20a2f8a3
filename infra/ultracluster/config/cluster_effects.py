"""Effects of fields of the control planes that depend on values."""

from typing import Any

from ultracluster.catalog import eks, pcs
from ultracluster.config.effect_rules import ANOTHER, CONTENT, IN_PLACE, JOBS_FIRST, NOTHING
from ultracluster.config.effects import ByValue, Change, Effect, Effects, Nodes, On, refused
from ultracluster.config.node_effects import removed_zones
from ultracluster.config.slurm_settings import serves_metrics, words

# the PCS cluster


def _size(change: Change) -> Effect:
    old, new = pcs_size(change.before), pcs_size(change.after)
    if old == new:
        return NOTHING
    return refused(ANOTHER, f"PCS cannot resize a cluster: from {old} to {new} it would be replaced")


def pcs_size(environment: Any) -> str | None:
    """The size of the environment's PCS cluster, with `auto` resolved."""
    plane = environment.control_plane
    return plane.size if plane.size != "auto" else pcs.smallest_size(plane.managed_nodes(environment.nodes))


SIZE = Effects(
    On(pcs=ByValue("refused, unless auto resolves to the current size", _size), eks=NOTHING),
)
CONTROLLER_PAUSE = "for some minutes Slurm accepts and starts no jobs; running jobs continue"
ALL_ACTIVE = "every node group and queue must be active"
_CLUSTER = Effect("in-place", jobs=CONTROLLER_PAUSE, first=ALL_ACTIVE)
CLUSTER = Effects(_CLUSTER)
LOGIN_TYPE = Effects(Effect("group", "login", note="their sessions end", first="warn users"))


def _cluster_settings(change: Change) -> Effect:
    programs = any(change.old.get(name) != change.new.get(name) for name in ("Prolog", "Epilog"))
    served = _metrics_of_slurm(change.before) != _metrics_of_slurm(change.after)
    nodes: Nodes = "fleet" if programs and served else "groups" if programs else "login" if served else ""
    return _CLUSTER._replace(kind="nodes" if nodes else "in-place", nodes=nodes)


def _metrics_of_slurm(environment: Any) -> bool:
    """Whether login nodes collect the metrics of slurmctld."""
    plane = environment.control_plane
    return environment.observability.collects_metrics and serves_metrics(plane.slurm_settings, plane.slurm_version)


CLUSTER_SETTINGS = Effects(
    ByValue("in place; Prolog and Epilog also replace compute nodes, PrivateData login nodes", _cluster_settings)
)


def _slurm_version(change: Change) -> Effect:
    allowed = pcs.UPGRADES.get(change.old, ())
    if change.new not in allowed:
        way = f"; PCS upgrades it to {' or '.join(allowed)}" if allowed else ""
        return refused(
            ANOTHER if not allowed else f'set slurm_version: "{allowed[-1]}"',
            f"PCS does not upgrade {change.old} to {change.new}{way}",
        )
    if reason := _before_upgrade(change):
        return refused(f"{reason}, deploy, then upgrade")
    if reason := _after_upgrade(change):
        return refused(f"upgrade first, wait until no node has {change.old}, then add {reason}")
    note = f"the controller is upgraded; nodes keep Slurm {change.old} until they are replaced"
    first = f"{ALL_ACTIVE}, and images must hold both versions"
    if change.new < pcs.SPANK_PLUGINS_KEPT_SINCE:
        first += "; with SPANK plugins in the image, let all jobs end and set count to {min: 0} first"
    if change.after.control_plane.containers:
        # the step that sets up Pyxis names the version for which it is compiled
        return Effect("nodes", "fleet", note="after the controller", jobs=CONTROLLER_PAUSE, first=first)
    if _metrics_of_slurm(change.before) != _metrics_of_slurm(change.after):
        return Effect(
            "nodes", "login", note=f"they collect Slurm's metrics; {note}", jobs=CONTROLLER_PAUSE, first=first
        )
    return Effect("in-place", note=note, jobs=CONTROLLER_PAUSE, first=first)


def _before_upgrade(change: Change) -> str:
    """Words of settings to remove before the upgrade, because the new version does not have them."""
    for name, removed in pcs.REMOVED_WORDS.get(change.new, {}).items():
        given = words(change.before.control_plane.slurm_settings.get(name, ""))
        if found := [word for word in removed if word in given]:
            return f"remove {', '.join(found)} from {name}"
    return ""


def _after_upgrade(change: Change) -> str:
    """Settings to add after the upgrade: only the new version knows them, and slurmd of the old one would not start."""
    old, new = change.before.control_plane.slurm_settings, change.after.control_plane.slurm_settings
    since = pcs.CLUSTER_SETTINGS_SINCE
    return ", ".join(name for name in new if name not in old and since.get(name, "") > change.old)


SLURM_VERSION = Effects(
    ByValue(
        "versions that PCS upgrades to: in place, then [new nodes](upgrading.md#upgrade-slurm); others are refused",
        _slurm_version,
    )
)
QUEUES = Effects(
    IN_PLACE,
    added=Effect("creates"),
    removed=Effect(
        "deletes", jobs="waiting jobs of the queue are lost", jobs_lost=True, first="let its jobs end, or move them"
    ),
)
QUEUE_NAME = Effects(Effect("group", note="a new name is a new queue", first="let its jobs end, or move them"))
ACCOUNT = Effect("in-place", note="a login node updates Slurm's accounts, then PCS updates queues")


def _team_added(change: Change) -> Effect:
    if getattr(change.before.control_plane, "teams", ()):
        return ACCOUNT
    note = "users without a team can then submit no jobs; settings of the cluster and of queues change in place"
    return Effect("creates", note=note, jobs=CONTROLLER_PAUSE, first=ALL_ACTIVE)


def _team_removed(change: Change) -> Effect:
    jobs = "running jobs of the team continue, waiting ones do not start"
    if getattr(change.after.control_plane, "teams", ()):
        return Effect("in-place", note="its account stays, with its history", jobs=jobs)
    note = "the accounts stay without being enforced; settings of the cluster and of queues change in place"
    return Effect("deletes", note=note, jobs=CONTROLLER_PAUSE, jobs_lost=False)


ACCOUNTS = Effects(
    ACCOUNT,
    added=ByValue("in place; the first team also changes settings of the cluster and of queues", _team_added),
    removed=ByValue("in place; accounts keep their history, and accept no further jobs", _team_removed),
)
ACCOUNT_KEY = Effects(ACCOUNT)
ACCOUNT_NAME = Effects(Effect("in-place", note="a new name is a new account; the old one keeps its history"))

# the EKS cluster


def _kubernetes_version(change: Change) -> Effect:
    if not eks.follows(change.new, change.old):
        return refused(
            "upgrade one minor version at a time" if eks.older(change.old, change.new) else "keep the version",
            f"EKS upgrades from {change.old} to the next minor version only, and never back",
        )
    own = any(group.image != "auto" for group in change.before.node_groups)
    note = "; node groups with their own image keep its Kubernetes version until you change the image" if own else ""
    return Effect(
        "nodes",
        "images",
        note=f"first the control plane, then add-ons and nodes{note}",
        first="scale groups of Capacity Blocks to 0; see operations-kubernetes.md, Upgrade Kubernetes",
    )


KUBERNETES_VERSION = Effects(
    ByValue("the next minor version replaces all nodes; all others are refused", _kubernetes_version)
)
CPU_GROUP_TYPE = Effects(Effect("group", "cpu", first=JOBS_FIRST))
SYSTEM_GROUP_TYPE = Effects(Effect("group", "system", note="pods of the platform move to the new nodes"))


def _cpu_count(change: Change) -> Effect:
    if not change.old:
        return Effect("creates", "cpu")
    if not change.new:
        return Effect("deletes", "cpu", jobs_lost=True, first="end the jobs on them")
    return IN_PLACE


CPU_COUNT = Effects(ByValue("in place; 0 deletes the nodes and their flavor", _cpu_count))


def _release(change: Change) -> Effect:
    known = eks.KUBERNETES_VERSIONS.get(change.after.control_plane.kubernetes_version)
    default = known.image_release if known else None
    if (change.old or default) == (change.new or default):
        return NOTHING
    return Effect("nodes", "images", first="change nothing else of node groups in this deployment")


RELEASE = Effects(ByValue("replaces nodes with AWS's images", _release))
SCHEDULER = Effects(
    Effect(
        "content",
        note="the new scheduler and its queues are created, then the old ones are deleted",
        jobs_lost=True,
        jobs="queues in use are not deleted, and the deployment waits for them",
        first="end all jobs",
    )
)
DEVICE_STACK = Effects(
    Effect(
        "in-place",
        note="the new stack is installed before the old one is removed; labels of node groups change",
        jobs_lost=True,
        jobs="two device stacks on one node allocate each GPU twice",
        first="drain the nodes",
    ),
    whole=True,
)
TEAMS = Effects(
    CONTENT,
    added=Effect("creates"),
    removed=Effect("deletes", note="queue, roles and volumes; its namespace and pods stay", first="end its jobs"),
)


def _removed_pool(change: Change) -> Effect:
    gone = Effect("deletes", note="its nodes and its share of quotas", jobs_lost=True, first="end the jobs on it")
    return removed_zones(change, change.old.zones, platform=True) or gone


POOLS = Effects(
    CONTENT,
    added=Effect("creates"),
    removed=ByValue("deletes its nodes; a zone that nothing else names needs two steps", _removed_pool),
)
TEAM_NAME = Effects(Effect("content", note="a new name is a new team: the old namespace stays", first="end its jobs"))
POOL_NAME = Effects(Effect("content", note="a new name is a new pool", jobs_lost=True, first="end the jobs on it"))
MEMBERS = Effects(Effect("in-place", note="access entries are created and deleted"))


def _pool_zones(change: Change) -> Effect:
    return removed_zones(change, change.old, platform=True) or Effect("content", note="new nodes are launched there")


POOL_ZONES = Effects(ByValue("new nodes follow; a zone that nothing else names needs two steps", _pool_zones))
POOL_NODES = Effects(
    Effect(
        "content",
        note="Karpenter replaces nodes that differ: those with GPUs when they are empty, others a tenth at a time",
    )
)


def _karpenter(change: Change) -> Effect:
    if not change.old:
        return Effect("creates")
    if lost := removed_zones(change, (zone for pool in change.before.pools for zone in pool.zones), platform=True):
        return lost
    if not change.new:
        return Effect("deletes", jobs_lost=True, first="end the jobs on its nodes")
    return Effect(
        "content", jobs_lost=True, note="old pools and their nodes are deleted", first="end the jobs on its nodes"
    )


KARPENTER = Effects(ByValue("created or deleted; new pools replace the old ones and their nodes", _karpenter))


def _job_operators(change: Change) -> Effect:
    # trainer brings jobset
    both = {"jobset"} if "trainer" in change.old and "trainer" in change.new else set()
    if {*change.old} - both == {*change.new} - both:
        return NOTHING
    return Effect(
        "content",
        note="Helm releases are installed or uninstalled; without trainer every TrainJob is deleted, with its CRDs",
        first="end the jobs of an operator that you remove",
    )


JOB_OPERATORS = Effects(ByValue("operators are installed or uninstalled", _job_operators))
