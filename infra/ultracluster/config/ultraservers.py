"""Rules of PCS about UltraServers: queues, and the PrologFlags that IMEX needs.

PCS requires ratios of powers of two between the sizes in one queue; AWS sells UltraServers of 9 and 18 instances.

Source: AWS PCS User Guide, "Configure UltraServer instances" (2026).
"""

from collections.abc import Iterator

from ultracluster.config.fleet import Fleet
from ultracluster.config.pcs import Pcs
from ultracluster.config.problems import Path, Problem
from ultracluster.config.slurm_conflicts import lower_words


def ultraserver_problems(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    """Validation problems of UltraServers on PCS, at paths of the file."""
    yield from _dedicated_queues(fleet, settings)
    ultraservers = {group.name for _, group in fleet.known_groups if group.hardware.ultraserver_only}
    if ultraservers:
        yield from _flags_of_imex(settings)
        yield from _exclusive_jobs(settings, ultraservers)


def _flags_of_imex(settings: Pcs) -> Iterator[Problem]:
    """The prolog that starts IMEX needs Alloc and NoHold, which are added to the user's flags."""
    flags = lower_words(settings.slurm_settings, "PrologFlags")
    at: Path = ("control_plane", "slurm_settings", "PrologFlags")
    for other in ("contain", "x11"):
        if other in flags and "nohold" not in flags:
            message = f"UltraServers require NoHold, and slurmctld does not start with both NoHold and {flags[other]}"
            yield Problem("slurm-prolog-flags", at, message, f"remove {flags[other]}")
            return
    if not flags and "enable_stepmgr" in lower_words(settings.slurm_settings, "SlurmctldParameters"):
        message = "enable_stepmgr requires Contain in PrologFlags; UltraServers require NoHold, which excludes Contain"
        at = ("control_plane", "slurm_settings", "SlurmctldParameters")
        yield Problem("slurm-prolog-flags", at, message, "remove enable_stepmgr")


def _exclusive_jobs(settings: Pcs, ultraservers: set[str]) -> Iterator[Problem]:
    """Settings of queues that override --exclusive (slurm.conf man page, OverSubscribe, Exclusive)."""
    for i, queue in enumerate(settings.queues):
        for name, shared in (
            ("OverSubscribe", ("force", "yes", "no")),
            ("Exclusive", ("user", "no")),
            ("ExclusiveUser", ("yes", "true", "up", "1")),
        ):
            value = str(queue.slurm_settings.get(name, ""))
            if ultraservers & {*queue.node_groups} and value.lower().partition(":")[0] in shared:
                message = f"{name} {value} shares nodes between jobs, and IMEX (NVLink between instances) starts "
                message += "for exclusive jobs only"
                at: Path = ("control_plane", "queues", i, "slurm_settings", name)
                yield Problem("slurm-setting-value", at, message, f"remove {name}")


def _dedicated_queues(fleet: Fleet, settings: Pcs) -> Iterator[Problem]:
    ultraserver = {group.name: group.purchase.ultraserver for group in fleet.node_groups}
    for i, queue in enumerate(settings.queues):
        kinds = {bool(ultraserver.get(name)) for name in queue.node_groups}
        if len(kinds) > 1:
            message = "the queue mixes UltraServers with other nodes, which PCS does not allow"
            at = ("control_plane", "queues", i, "node_groups")
            yield Problem("queue-mixes-ultraservers", at, message, "add a separate queue for the UltraServers")
