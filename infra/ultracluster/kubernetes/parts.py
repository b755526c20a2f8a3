"""The parts that are installed into a cluster: Helm releases, sets of Kubernetes objects, and waits for Jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog.software import Chart

Object = dict[str, Any]
"""A Kubernetes object in its JSON form."""


@dataclass(frozen=True)
class Release:
    """A Helm release of `chart` with `values`. `after` names the parts that must be installed before it.

    With `waits`, Helm waits until the release is ready, and rolls back an upgrade that does not become ready. Software
    on accelerated nodes must not wait: one broken node would roll back the upgrade for all.
    """

    name: str
    chart: Chart
    values: Mapping[str, Any]
    after: tuple[str, ...] = ()
    waits: bool = True


@dataclass(frozen=True)
class Objects:
    """Kubernetes objects that are applied and deleted together. `after` names the parts that must come before them.

    `retained` objects stay in the cluster when they leave the environment file.
    """

    name: str
    items: tuple[Object, ...]
    after: tuple[str, ...] = ()
    retained: bool = False


@dataclass(frozen=True)
class JobEnd:
    """The successful end of a Job of the parts in `after`. A deployment fails without it after `seconds`."""

    name: str
    job: str
    namespace: str
    seconds: int
    after: tuple[str, ...]


Part = Release | Objects | JobEnd
