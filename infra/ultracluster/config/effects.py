"""Effects of a change of the environment file on the deployed environment, as data beside each field.

A field carries `Effects` in its annotation. `ultracluster validate --effects` and docs/environment-file.md are
generated from them; tests/contract/test_effects.py compares them with the changes of the templates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Kind = Literal["none", "content", "in-place", "nodes", "group", "creates", "deletes", "refused"]
"""`none`: no deployed resource changes. `content`: only what is inside resources: Kubernetes objects, Helm releases,
alert rules, dashboards, lists. `nodes`: the nodes of a group are replaced. `group`: a new node group replaces the old.
`refused`: a resource with data or a cluster would be replaced, or AWS refuses the change."""

Nodes = Literal["", "group", "groups", "fleet", "images", "efa", "gpus", "scripts", "zones", "login", "system", "cpu"]
"""Which nodes: those of the node group that the field is in, of all node groups, of the whole environment, those with
AWS's images, those that mount Lustre over EFA, those with GPUs, those with boot scripts, those of groups with zones, or
the login, system or CPU nodes."""

Plane = Literal["pcs", "eks"]


class Effect(NamedTuple):
    """Effect of one change.

    `note` has details, `jobs` what happens to jobs. `first` is what to do before the deployment, or instead of a
    refused change. `jobs_lost` is whether running jobs end early; None if `kind` and `nodes` decide it.
    """

    kind: Kind
    nodes: Nodes = ""
    note: str = ""
    jobs: str = ""
    jobs_lost: bool | None = None
    first: str = ""


@dataclass(frozen=True)
class Change:
    """One changed value. `old_owner` and `owner` are the sections that hold it; `before`, `after` the environments."""

    path: str
    old: Any
    new: Any
    old_owner: Any
    owner: Any
    before: Any
    after: Any


class ByValue(NamedTuple):
    """An effect that depends on values: `words` for docs, `decide` for a change."""

    words: str
    decide: Callable[[Change], Effect]


class On(NamedTuple):
    """Effects that differ between the control planes."""

    pcs: Effect | ByValue
    eks: Effect | ByValue

    def of(self, plane: Plane) -> Effect | ByValue:
        """The effect under one control plane."""
        return self.pcs if plane == "pcs" else self.eks


AnyEffect = Effect | ByValue | On


@dataclass(frozen=True)
class Effects:
    """Annotation of a field. `added` and `removed` are for an optional section, or an entry of a list or mapping.

    A `whole` value is one change, whatever differs inside it.
    """

    changed: AnyEffect
    added: AnyEffect | None = None
    removed: AnyEffect | None = None
    whole: bool = False

    def of(self, plane: Plane, *, added: bool = False, removed: bool = False) -> Effect | ByValue:
        """The effect under one control plane."""
        chosen = (self.added if added else self.removed if removed else None) or self.changed
        return chosen.of(plane) if isinstance(chosen, On) else chosen


_NONE, _CONTENT, _IN_PLACE = Effect("none"), Effect("content"), Effect("in-place")
_NEW_NODES, _FLEET, _LOGIN = Effect("nodes", "group"), Effect("nodes", "fleet"), Effect("nodes", "login")

NOTHING = Effects(_NONE)
CONTENT = Effects(_CONTENT)
IN_PLACE = Effects(_IN_PLACE)
NEW_NODES = Effects(_NEW_NODES)
NEW_FLEET = Effects(_FLEET)
NEW_LOGIN_NODES = Effects(_LOGIN)
NEW_COMPUTE_NODES = Effects(Effect("nodes", "groups"))
NEW_SECTION = Effects(Effect("in-place", note="as its keys say"))
"""For a section whose keys have effects of their own."""


def refused(first: str, note: str = "") -> Effect:
    """A change that is refused; `first` is what to do instead."""
    return Effect("refused", note=note, first=first)
