"""Words for effects, in reports and docs."""

from ultracluster.config.effects import ByValue, Effect, Effects, Kind, Nodes, On, Plane

KINDS: dict[Kind, str] = {
    "none": "nothing that is deployed changes",
    "content": "content of resources changes",
    "in-place": "in place",
    "nodes": "replaces nodes",
    "group": "replaces the node group: a new one is created, then the old one is deleted",
    "creates": "created",
    "deletes": "deleted",
    "refused": "refused",
}

SHORT: dict[Kind, str] = {**KINDS, "none": "nothing", "content": "content", "group": "a new node group"}
"""Words for tables."""

WHOSE: dict[Nodes, str] = {
    "": "",
    "group": "of the group",
    "groups": "of all groups",
    "fleet": "of the fleet",
    "images": "with AWS's images",
    "efa": "with EFA",
    "gpus": "with GPUs",
    "scripts": "with boot scripts",
    "zones": "of groups with zones",
    "login": "for users to log in",
    "system": "of the platform",
    "cpu": "without GPUs",
}

REPLACED: dict[Plane, str] = {
    "pcs": "when the jobs of each end",
    "eks": "at once, up to a third of a group at a time",
}

JOBS: dict[tuple[Kind, Plane], str] = {
    ("nodes", "pcs"): "run to their end; sessions on login nodes end",
    ("nodes", "eks"): "pods on drained nodes are evicted",
    ("group", "pcs"): "jobs on the old nodes fail and return to their queues",
    ("group", "eks"): "pods on drained nodes are evicted",
}
"""What happens to jobs, for effects without `jobs`."""


def happens(effect: Effect, plane: Plane) -> str:
    """What an effect does, in one line."""
    words = KINDS[effect.kind]
    if effect.kind == "nodes":
        words = f"{words} {REPLACED[plane]}"
    return "; ".join(filter(None, (words, effect.note)))


def jobs(effect: Effect, plane: Plane) -> str:
    """What happens to jobs; empty if nothing happens to them."""
    if effect.jobs:
        return effect.jobs
    if effect.nodes in ("login", "system") and (effect.kind, plane) in JOBS:
        return "none run there"
    return JOBS.get((effect.kind, plane), "")


def jobs_lost(effect: Effect, plane: Plane) -> bool:
    """Whether running jobs end early."""
    if effect.jobs_lost is not None:
        return effect.jobs_lost
    if effect.nodes in ("login", "system"):
        return False
    return effect.kind == "group" or (effect.kind == "nodes" and plane == "eks")


def in_docs(effects: Effects) -> str:
    """Effects of a field in a cell of a table: on both control planes, and when it is added or removed."""
    parts = [_both(effects.changed)]
    for word, effect in (("added", effects.added), ("removed", effects.removed)):
        if effect and effect != effects.changed:
            parts.append(f"{word}: {_both(effect)}")
    return "; ".join(parts)


def _both(effect: Effect | ByValue | On) -> str:
    if isinstance(effect, On):
        sides = _one(effect.pcs), _one(effect.eks)
        return sides[0] if sides[0] == sides[1] else f"PCS: {sides[0]}; EKS: {sides[1]}"
    return _one(effect)


def _one(effect: Effect | ByValue) -> str:
    if isinstance(effect, ByValue):
        return effect.words
    whose = f" {WHOSE[effect.nodes]}" if effect.kind == "nodes" else ""
    note = f" ({effect.note})" if effect.note else ""
    return f"{SHORT[effect.kind]}{whose}{note}"
