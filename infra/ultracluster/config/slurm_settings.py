"""Rules about slurm_settings: parameters that PCS allows, and values whose form slurm.conf fixes.

Sources: AWS PCS User Guide, "Custom Slurm settings" (2026); slurm.conf man page. Lists: `catalog/data/pcs.json`.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Literal

from ultracluster.catalog import pcs
from ultracluster.config.fields import TextOrNumber
from ultracluster.config.problems import Path, Problem

SlurmSettings = Mapping[str, TextOrNumber]
Owner = Literal["cluster", "queue", "node group", "cgroup.conf", "slurmdbd.conf"]

_ALLOWED: dict[Owner, frozenset[str]] = {
    "cluster": pcs.CLUSTER_SETTINGS,
    "queue": pcs.QUEUE_SETTINGS,
    "node group": pcs.NODE_GROUP_SETTINGS,
    "cgroup.conf": pcs.CGROUP_SETTINGS,
    "slurmdbd.conf": pcs.SLURMDBD_SETTINGS,
}
_KEYS: dict[Owner, str] = {"cgroup.conf": "cgroup_settings", "slurmdbd.conf": "slurmdbd_settings"}
"""Key of the settings of an owner, if it is not slurm_settings."""

_ELSEWHERE = (
    (pcs.CLUSTER_SETTINGS, "move {} to control_plane.slurm_settings"),
    (pcs.QUEUE_SETTINGS, "move {} to slurm_settings of a queue"),
    (pcs.NODE_GROUP_SETTINGS, "move {} to slurm_settings of a node group"),
    (pcs.CGROUP_SETTINGS, "move {} to control_plane.cgroup_settings"),
    (pcs.SLURMDBD_SETTINGS, "move {} to control_plane.slurmdbd_settings"),
)
"""Other lists of PCS, and what to do with a parameter of each."""

_TRUE, _FALSE = ("yes", "up", "true", "1"), ("no", "down", "false", "0")
"""What Slurm reads as YES and as NO, in any case."""

_FORMS: dict[pcs.Form, tuple[str, str, str]] = {
    "time": (
        r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|unlimited|infinite|-1",
        "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds "
        "or UNLIMITED",
        '"12:00:00"',
    ),
    "yes_no": ("|".join((*_TRUE, *_FALSE)), "YES or NO", '"YES"'),
    "number": (r"(\d+|0x[0-9a-f]+)[km]?|unlimited|infinite", "a whole number", "a whole number"),
    "oversubscribe": (r"no|exclusive|(yes|force)(:\d+)?", "EXCLUSIVE, FORCE, YES or NO", '"NO"'),
}
"""Pattern of each form, the form in words, and an example."""


def setting_problems(settings: SlurmSettings, owner: Owner) -> Iterator[Problem]:
    """Problems of settings of a cluster, queue or node group, or of the file that `owner` names."""
    key = _KEYS.get(owner, "slurm_settings")
    for name, value in settings.items():
        at = (key, name)
        yield from value_problems(at, value) if name in _ALLOWED[owner] else _not_allowed(at, name, owner)


def version_problems(
    settings: SlurmSettings, slurm_version: str, owner: Literal["cluster", "queue"], below: Path = ()
) -> Iterator[Problem]:
    """Problems of settings that only newer versions of Slurm take; `below` is the path of their owner.

    Source: AWS PCS User Guide, "Custom Slurm settings", "Slurm metrics" (2026).
    """
    names = pcs.CLUSTER_SETTINGS_SINCE if owner == "cluster" else pcs.QUEUE_SETTINGS_SINCE
    for name, value in settings.items():
        at = (*below, "slurm_settings", name)
        if slurm_version < (since := names.get(name, "")):
            message = f"PCS takes {name} of a {owner} from Slurm {since} on, not with {slurm_version}"
            hint = f'remove {name}, or set slurm_version: "{since}"'
            yield Problem("slurm-setting-not-allowed", at, message, hint)
        for word, since in pcs.CLUSTER_VALUES_SINCE.get(name, {}).items():
            if slurm_version < since and word in (each.strip() for each in str(value).split(",")):
                message = f"PCS takes {word} from Slurm {since} on, not with {slurm_version}"
                hint = f'remove {word}, or set slurm_version: "{since}"'
                yield Problem("slurm-setting-value", at, message, hint)


def health_problems(settings: SlurmSettings) -> Iterator[Problem]:
    """Problems of a health check program and a prolog of a cluster: Slurm would act otherwise than most expect."""
    interval, limit = settings.get("HealthCheckInterval"), pcs.HEALTH_CHECK_TIMEOUT_SECONDS
    if interval is not None and str(interval).isdecimal() and 0 < int(interval) <= limit:
        message = f"a health check may take {limit} seconds, so {interval} seconds between two may be too few"
        at, hint = ("slurm_settings", "HealthCheckInterval"), f"set HealthCheckInterval: {5 * limit}"
        yield Problem("slurm-health-check-interval", at, message, hint, "warning")
    parameters = str(settings.get("SchedulerParameters", "")).lower().split(",")
    if settings.get("Prolog") and "nohold_on_prolog_fail" not in parameters:
        message = "when this program fails on a node, Slurm drains the node and holds the job instead of requeuing it"
        hint = "add nohold_on_prolog_fail to SchedulerParameters"
        yield Problem("slurm-prolog-holds-jobs", ("slurm_settings", "Prolog"), message, hint, "warning")


def truth(value: str | int | None) -> bool:
    """Whether Slurm reads the value as YES."""
    return str(value).lower() in _TRUE


def value_problems(at: Path, value: str | int) -> Iterator[Problem]:
    """Problems of the value of a parameter, whose name is the end of the path `at`.

    Slurm refuses to start with a value that it cannot read; PCS accepts numbers from its own minimum only.
    """
    name = str(at[-1])
    unprintable = any(unicodedata.category(character)[0] == "C" for character in str(value))
    if unprintable or "#" in str(value) or not str(value).strip():
        kind = "is empty" if not str(value).strip() else "contains # or a line break, which end a value in slurm.conf"
        yield Problem("slurm-setting-value", at, f"{value!r} {kind}", f"correct {name}")
        return
    if (form := pcs.FORMS.get(name)) is None:
        return
    pattern, words, example = _FORMS[form]
    if not re.fullmatch(pattern, str(value), re.ASCII | re.IGNORECASE):
        hint = f"set {name} to {example}" if form == "number" else f"set {name}: {example}"
        yield Problem("slurm-setting-value", at, f"{value} is not {words}", hint)
    elif name in pcs.MINIMUM and str(value).isdecimal() and int(value) < pcs.MINIMUM[name]:
        message = f"{value} is out of range; PCS accepts {pcs.MINIMUM[name]} and more"
        yield Problem("slurm-setting-value", at, message, f"set {name}: {pcs.MINIMUM[name]}")


def _not_allowed(at: Path, name: str, owner: Owner) -> Iterator[Problem]:
    """PCS rejects all other parameters with a generic error."""
    allowed = _ALLOWED[owner]
    near = get_close_matches(name, allowed, n=1, cutoff=0.85)
    elsewhere = next((hint for names, hint in _ELSEWHERE if name in names), "remove {}").format(name)
    where = f"in {owner}" if owner in _KEYS else f"for a {owner}"
    message = f"PCS does not allow {name} {where}; docs/errors.md lists the {len(allowed)} allowed parameters"
    hint = f"did you mean {near[0]}?" if near else elsewhere
    yield Problem("slurm-setting-not-allowed", at, message, hint)


def serves_metrics(settings: SlurmSettings, slurm_version: str) -> bool:
    """Whether the controller serves metrics: a new enough Slurm, whose data are not private."""
    return slurm_version >= pcs.METRICS_SINCE and "PrivateData" not in settings
