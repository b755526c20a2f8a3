"""Rules about slurm_settings that conflict with each other, or that Slurm ignores in combination.

With most of them slurmctld does not start, and PCS reports a generic error.

Sources: slurm.conf man page; slurmctld 26.05, tried; AWS PCS User Guide, "Custom Slurm settings" (2026).
"""

import math
from collections.abc import Iterator, Mapping

from ultracluster.catalog.pcs import VALUES
from ultracluster.config.fields import TextOrNumber
from ultracluster.config.problems import Path, Problem
from ultracluster.config.slurm_settings import minutes, words

Settings = Mapping[str, TextOrNumber]

_CONTRADICTIONS = {"nohold": ("contain", "x11"), "serial": ("runinjob",)}
"""Flags of PrologFlags that exclude each other (slurm.conf man page, PrologFlags)."""

_MODES = ("off", "cancel", "requeue", "suspend")
"""Words of PreemptMode that exclude each other."""

_ALONE = ("start_only", "reboot_only")
"""Words of HealthCheckNodeState that exclude all others."""


def lower_words(settings: Settings, name: str) -> dict[str, str]:
    """Words of a list by their lower case: Slurm ignores the case."""
    return {word.lower(): word for word in words(settings.get(name, ""))}


def evicts(settings: Settings) -> bool:
    """Whether PreemptMode enables preemption: CANCEL, REQUEUE or SUSPEND."""
    return any(mode in lower_words(settings, "PreemptMode") for mode in _MODES[1:])


def cluster_conflicts(settings: Settings, *, preempts: bool) -> Iterator[Problem]:
    """Problems between settings of a cluster. `preempts`: it has PreemptType and PreemptMode where they are not set."""
    yield from _prolog_flags(settings)
    yield from _step_manager(settings)
    yield from preempt_mode_problems(settings)
    yield from _preemption(settings, preempts=preempts)
    states = lower_words(settings, "HealthCheckNodeState")
    if (alone := [word for word in _ALONE if word in states]) and len(states) > 1:
        message = f"slurmctld does not start if {states[alone[0]]} is combined with other states"
        hint = f"set HealthCheckNodeState: {states[alone[0]]}"
        yield Problem("slurm-setting-value", _at("HealthCheckNodeState"), message, hint)


def queue_conflicts(settings: Settings) -> Iterator[Problem]:
    """Problems between settings of a queue."""
    for kind in ("Accounts", "Qos"):
        if {f"Allow{kind}", f"Deny{kind}"} <= settings.keys():
            message = f"Slurm ignores Deny{kind} if Allow{kind} is set"
            yield Problem("slurm-setting-value", _at(f"Deny{kind}"), message, f"remove Deny{kind}")
    if gang := lower_words(settings, "PreemptMode").get("gang"):
        message = f"Slurm ignores {gang} in a queue: it applies to the whole cluster"
        yield Problem("slurm-setting-value", _at("PreemptMode"), message, f"remove {gang}")
    if len(lower_words(settings, "QOS")) > 1:
        message = "a queue has at most one QOS, whose limits apply to all of its jobs"
        yield Problem("slurm-setting-value", _at("QOS"), message, f"set AllowQos: {settings['QOS']}")
    if {"DefaultTime", "MaxTime"} <= settings.keys():
        default, longest = (minutes(settings[name]) or math.inf for name in ("DefaultTime", "MaxTime"))
        if default > longest:
            message = f"{settings['DefaultTime']} is more than MaxTime, {settings['MaxTime']}"
            yield Problem("slurm-setting-value", _at("DefaultTime"), message, "lower DefaultTime, or raise MaxTime")


def _at(name: str) -> Path:
    return ("slurm_settings", name)


def _prolog_flags(settings: Settings) -> Iterator[Problem]:
    flags = lower_words(settings, "PrologFlags")
    for flag, others in _CONTRADICTIONS.items():
        for other in others:
            if flag in flags and other in flags:
                message = f"{flags[flag]} and {flags[other]} exclude each other"
                hint = f"remove {flags[other]}, or remove {flags[flag]}"
                yield Problem("slurm-prolog-flags", _at("PrologFlags"), message, hint)
                return


def _step_manager(settings: Settings) -> Iterator[Problem]:
    """AWS PCS User Guide, "Custom Slurm settings for AWS PCS clusters" (2026); the default of PCS has Contain."""
    flags = lower_words(settings, "PrologFlags")
    if flags and "contain" not in flags and "enable_stepmgr" in lower_words(settings, "SlurmctldParameters"):
        message = "slurmctld does not start: enable_stepmgr in SlurmctldParameters requires Contain"
        yield Problem("slurm-prolog-flags", _at("PrologFlags"), message, "add Contain, or remove enable_stepmgr")


def preempt_mode_problems(settings: Settings) -> Iterator[Problem]:
    """Words of PreemptMode of a cluster that exclude or need each other."""
    given = lower_words(settings, "PreemptMode")
    modes = [given[word] for word in _MODES if word in given]
    if len(modes) > 1:
        message, hint = f"{' and '.join(modes)} exclude each other", f"remove {modes[-1]}"
    elif "gang" in given and (others := [given[word] for word in ("within", "priority") if word in given]):
        message, hint = f"{given['gang']} and {others[0]} exclude each other", f"remove {others[0]}"
    elif "suspend" in given and "gang" not in given:
        message, hint = f"{given['suspend']} requires GANG", "set PreemptMode: REQUEUE"
    else:
        return
    yield Problem("slurm-setting-value", _at("PreemptMode"), message, hint)


def _preemption(settings: Settings, *, preempts: bool) -> Iterator[Problem]:
    """PreemptType (which jobs preempt others) and PreemptMode (what happens to these) require each other."""
    kind = str(settings.get("PreemptType", "preempt/qos" if preempts else "preempt/none")).strip()
    if lower_words(settings, "PreemptMode").keys() - {word.lower() for word in VALUES["PreemptMode"]}:
        return
    if evicts(settings) and kind == "preempt/none":
        message = f"slurmctld does not start: PreemptMode {settings['PreemptMode']} requires PreemptType"
        yield Problem("slurm-setting-value", _at("PreemptMode"), message, "set PreemptType: preempt/qos")
    elif evicts(settings) or kind == "preempt/none" or "PreemptType" not in settings:
        return
    elif "PreemptMode" in settings or not preempts:
        message = f"slurmctld does not start: PreemptType {kind} requires PreemptMode"
        yield Problem("slurm-setting-value", _at("PreemptType"), message, "set PreemptMode: REQUEUE")
