"""Every Helm release of an EKS environment, and what comes as a manifest, with the values it takes there."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ultracluster.catalog.software import mirrored_values
from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.devices import device_releases
from ultracluster.kubernetes.operators import karpenter_release, operator_parts
from ultracluster.kubernetes.parts import Deployed, Objects, Release
from ultracluster.kubernetes.schedulers import placing_release, scheduler_releases


def releases(environment: Environment, deployed: Deployed) -> tuple[Release | Objects, ...]:
    """What the environment needs and nothing else, each behind what its `after` names.

    With a mirror, every chart's images are taken from there. Raises TypeError for an environment without EKS.
    """
    settings = environment.control_plane
    if not isinstance(settings, Eks):
        raise TypeError(f"{environment.name} has no EKS control plane, but {type(settings).__name__}")
    karpenter = karpenter_release(deployed)
    parts: tuple[Release | Objects, ...] = (
        *device_releases(environment, settings),
        *scheduler_releases(environment, settings),
        *operator_parts(settings, after=placing_release(settings)),
        *([karpenter] if karpenter else []),
    )
    mirror = settings.chart_mirror
    return tuple(_mirrored(part, mirror) if mirror and isinstance(part, Release) else part for part in parts)


def _mirrored(release: Release, mirror: str) -> Release:
    return replace(release, values=merged(release.values, mirrored_values(release.chart, mirror)))


def merged(base: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with what `above` says, mapping by mapping; lists and scalars are replaced, as Helm does."""
    both = {**base, **above}
    for name in base.keys() & above.keys():
        if isinstance(base[name], Mapping) and isinstance(above[name], Mapping):
            both[name] = merged(base[name], above[name])
    return both
