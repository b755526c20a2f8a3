"""Rules about slurm_settings: the parameters that PCS allows, and the format of their values.

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
WHOLE_NODES = frozenset({"Exclusive", "ExclusiveUser", "OverSubscribe"})
"""Parameters of a queue that decide whether jobs get whole nodes."""

UNKILLABLE_SECONDS = 1050
"""Five times MessageTimeout of PCS, 210 s: the least UnkillableStepTimeout that Slurm asks for."""

Owner = Literal["cluster", "queue", "node group", "cgroup.conf", "slurmdbd.conf"]

_ALLOWED: dict[Owner, frozenset[str]] = {
    "cluster": pcs.CLUSTER_SETTINGS,
    "queue": pcs.QUEUE_SETTINGS,
    "node group": pcs.NODE_GROUP_SETTINGS,
    "cgroup.conf": pcs.CGROUP_SETTINGS,
    "slurmdbd.conf": pcs.SLURMDBD_SETTINGS,
}
_KEYS: dict[Owner, str] = {"cgroup.conf": "cgroup_settings", "slurmdbd.conf": "slurmdbd_settings"}
"""Key of the settings of an owner, unless it is slurm_settings."""

_ELSEWHERE = (
    (pcs.CLUSTER_SETTINGS, "move {} to control_plane.slurm_settings"),
    (pcs.QUEUE_SETTINGS, "move {} to slurm_settings of a queue"),
    (pcs.NODE_GROUP_SETTINGS, "move {} to slurm_settings of a node group"),
    (pcs.CGROUP_SETTINGS, "move {} to control_plane.cgroup_settings"),
    (pcs.SLURMDBD_SETTINGS, "move {} to control_plane.slurmdbd_settings"),
)
"""Lists of allowed parameters, each with the hint for a parameter that belongs there."""

_TRUE, _FALSE = ("yes", "up", "true", "1"), ("no", "down", "false", "0")
"""Values that Slurm reads as YES and as NO, in any letter case."""

_FORMS: dict[pcs.Form, tuple[str, str, str]] = {
    "time": (
        r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|unlimited|infinite|-1",
        "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds "
        "or UNLIMITED",
        'set {}: "12:00:00"',
    ),
    "yes_no": ("|".join((*_TRUE, *_FALSE)), "YES or NO", 'set {}: "YES"'),
    "number": (r"(\d+|0x[0-9a-f]+)[km]?|unlimited|infinite", "a whole number", "set {} to a whole number"),
    "oversubscribe": (r"no|exclusive|(yes|force)(:\d+)?", "EXCLUSIVE, FORCE, YES or NO", 'set {}: "NO"'),
    "program": (r'"?/.*', "the absolute path of a program", "set {} to an absolute path, such as /opt/site/prolog.sh"),
    "ranges": (r"\d+(-\d+)?(,\d+(-\d+)?)*", "a list of numbers and ranges", 'set {}: "75,80-90"'),
    "count": (r"\d+[kmgtp]?", "a count", "set {} to a whole number"),
    "ports": (r"\d+-\d+", "a range of ports", 'set {}: "60001-63000"'),
    "purge": (r"\d+(months?|days?|hours?)?", "a number of months, days or hours", 'set {}: "12months"'),
}
"""For each format of a value: its pattern, its description, and a hint."""


def setting_problems(settings: SlurmSettings, owner: Owner) -> Iterator[Problem]:
    """Problems of settings of a cluster, queue or node group, or of the file that `owner` names."""
    key = _KEYS.get(owner, "slurm_settings")
    for name, value in settings.items():
        at = (key, name)
        yield from value_problems(at, value) if name in _ALLOWED[owner] else _not_allowed(at, name, owner)


def version_problems(
    settings: SlurmSettings, slurm_version: str, owner: Literal["cluster", "queue"], below: Path = ()
) -> Iterator[Problem]:
    """Problems of settings that PCS allows with newer versions of Slurm only; `below` is the path of their owner.

    Source: AWS PCS User Guide, "Custom Slurm settings", "Slurm metrics" (2026).
    """
    if not known_slurm(slurm_version):
        return
    names = pcs.CLUSTER_SETTINGS_SINCE if owner == "cluster" else pcs.QUEUE_SETTINGS_SINCE
    for name, value in settings.items():
        at = (*below, "slurm_settings", name)
        if slurm_version < (since := names.get(name, "")):
            message = f"PCS allows {name} for a {owner} from Slurm {since} on; slurm_version is {slurm_version}"
            hint = f'remove {name}, or set slurm_version: "{since}"'
            yield Problem("slurm-setting-not-allowed", at, message, hint)
        for word, since in pcs.CLUSTER_VALUES_SINCE.get(name, {}).items():
            if slurm_version < since and word in words(value):
                message = f"PCS allows {word} from Slurm {since} on; slurm_version is {slurm_version}"
                hint = f'remove {word}, or set slurm_version: "{since}"'
                yield Problem("slurm-setting-value", at, message, hint)


def known_slurm(version: str) -> bool:
    """Whether the version can be compared with others. Other versions have an error of their own."""
    return version in pcs.SLURM_VERSIONS or newer_slurm(version)


def newer_slurm(version: str) -> bool:
    """Whether the version is newer than all that the catalogue knows."""
    return re.fullmatch(r"\d\d\.\d\d", version) is not None and version > pcs.NEWEST_SLURM


def health_problems(settings: SlurmSettings) -> Iterator[Problem]:
    """Problems of the interval of health checks."""
    interval, limit = settings.get("HealthCheckInterval"), pcs.HEALTH_CHECK_TIMEOUT_SECONDS
    if interval is not None and str(interval).isdecimal() and 0 < int(interval) <= limit:
        message = f"a health check may run for {limit} seconds, so an interval of {interval} seconds may be too short"
        at, hint = ("slurm_settings", "HealthCheckInterval"), f"set HealthCheckInterval: {5 * limit}"
        yield Problem("slurm-health-check-interval", at, message, hint, "warning")


def kill_problems(settings: SlurmSettings) -> Iterator[Problem]:
    """A warning of an UnkillableStepTimeout that drains nodes during a fail-over of a file system.

    Slurm asks for five times MessageTimeout, 1050 s on PCS (slurm.conf man page, UnkillableStepTimeout).
    """
    seconds = str(settings.get("UnkillableStepTimeout", ""))
    if seconds.isdecimal() and int(seconds) < UNKILLABLE_SECONDS:
        message = f"Slurm drains nodes whose processes wait for a file system for {seconds} seconds; it asks for at "
        message += f"least five times MessageTimeout, {UNKILLABLE_SECONDS} seconds on PCS"
        at, hint = ("slurm_settings", "UnkillableStepTimeout"), "remove UnkillableStepTimeout"
        yield Problem("slurm-setting-value", at, message, hint, "warning")


def truth(value: str | int | None) -> bool:
    """Whether Slurm reads the value as YES."""
    return str(value).lower() in _TRUE


def value_problems(at: Path, value: str | int) -> Iterator[Problem]:
    """Problems of the value of a parameter, whose name is the last part of the path `at`.

    Slurm does not start with a value that it cannot parse; PCS has its own minimum for some numbers.
    """
    name = str(at[-1])
    unprintable = any(unicodedata.category(character)[0] == "C" for character in str(value))
    if unprintable or "#" in str(value) or not str(value).strip():
        empty = not str(value).strip()
        kind = "is empty" if empty else "contains # or a line break, which end a value in slurm.conf"
        hint = f"remove {name}, or give it a value" if empty else f"remove # and line breaks from {name}"
        yield Problem("slurm-setting-value", at, f"{value!r} {kind}", hint)
        return
    text = without_spaces(str(value))
    if (form := pcs.FORMS.get(name)) is not None:
        yield from _other_form(at, text, form)
    elif re.search(r"\s", text.strip()) and not re.fullmatch(r'"[^"]*"', text.strip()):
        message = f"{value!r} has a space, which ends a value in slurm.conf"
        yield Problem("slurm-setting-value", at, message, "separate the words with commas")
    else:
        yield from _other_words(at, text.strip())


def _other_form(at: Path, value: str, form: pcs.Form) -> Iterator[Problem]:
    name, (pattern, described, hint) = str(at[-1]), _FORMS[form]
    if not re.fullmatch(pattern, value, re.ASCII | re.IGNORECASE):
        yield Problem("slurm-setting-value", at, f"{value} is not {described}", hint.format(name))
    elif name in pcs.MINIMUM and value.isdecimal() and int(value) < pcs.MINIMUM[name]:
        message = f"{value} is out of range; PCS accepts {pcs.MINIMUM[name]} and more"
        yield Problem("slurm-setting-value", at, message, f"set {name}: {pcs.MINIMUM[name]}")


def _other_words(at: Path, value: str) -> Iterator[Problem]:
    """Words of a list that PCS or slurm.conf does not allow."""
    allowed = pcs.VALUES.get(str(at[-1]), [])
    known = {word.lower(): word for word in allowed}
    for word in words(value):
        if allowed and word.lower() not in known:
            message = f"PCS does not allow {word} in {at[-1]}; allowed: {', '.join(allowed)}"
            near = get_close_matches(word.lower(), known, n=1)
            hint = f"did you mean {known[near[0]]}?" if near else f"remove {word}"
            yield Problem("slurm-setting-value", at, message, hint)


def without_spaces(value: str) -> str:
    """A list without spaces around its commas, as slurm.conf requires."""
    return re.sub(r"\s*,\s*", ",", value)


def _not_allowed(at: Path, name: str, owner: Owner) -> Iterator[Problem]:
    """A parameter that PCS does not allow; it would reject it with a generic error."""
    allowed = _ALLOWED[owner]
    known = {each.lower(): each for each in allowed}
    near = [known[each] for each in get_close_matches(name.lower(), known, n=1, cutoff=0.85)]
    elsewhere = next((hint for names, hint in _ELSEWHERE if name in names), "remove {}").format(name)
    where = f"in {owner}" if owner in _KEYS else f"for a {owner}"
    message = f"PCS does not allow {name} {where}; docs/errors.md lists the {len(allowed)} allowed parameters"
    hint = f"did you mean {near[0]}?" if near else elsewhere
    yield Problem("slurm-setting-not-allowed", at, message, hint)


def serves_metrics(settings: SlurmSettings, slurm_version: str) -> bool:
    """Whether slurmctld serves metrics: the version of Slurm supports it, and PrivateData is not set."""
    return slurm_version >= pcs.METRICS_SINCE and "PrivateData" not in settings


def words(value: TextOrNumber) -> list[str]:
    """Words of a comma-separated list."""
    return [word.strip() for word in str(value).split(",") if word.strip()]


def with_words(value: TextOrNumber, *further: str) -> str:
    """A comma-separated list, extended by the words of `further` whose name (the part before =) it lacks."""
    given = words(value)
    names = {word.partition("=")[0].lower() for word in given}
    return ",".join([*given, *(word for word in further if word.partition("=")[0].lower() not in names)])


def minutes(value: TextOrNumber) -> int | None:
    """A time of slurm.conf in minutes, rounded up; None for UNLIMITED, and for text that is not a time."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", str(value).strip(), re.ASCII)
    if not found:
        return None
    days, *rest = (int(part or 0) for part in found.groups())
    if found[1] is None and found[4] is None:
        # minutes, or minutes:seconds
        rest = [0, *rest[:2]]
    hours, whole, seconds = rest
    return (days * 24 + hours) * 60 + whole + (1 if seconds else 0)
