"""Helm releases of an EKS environment with their values, and software that is applied as a manifest."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ultracluster.catalog.software import mirrored_values
from ultracluster.kubernetes.deployed import DeployedResources
from ultracluster.kubernetes.devices import device_releases
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.exporters import exporter_releases
from ultracluster.kubernetes.karpenter import karpenter_release
from ultracluster.kubernetes.logs import log_release
from ultracluster.kubernetes.operators import operator_parts
from ultracluster.kubernetes.parts import Part, Release
from ultracluster.kubernetes.scheduler_charts import gang_scheduler_release, scheduler_releases


def releases(environment: EksEnvironment, deployed: DeployedResources) -> tuple[Part, ...]:
    """The software that the environment needs, each part behind those that its `after` names.

    With `chart_mirror`, the images of every chart come from the mirror.
    """
    karpenter = karpenter_release(environment, deployed)
    parts: tuple[Part, ...] = (
        *device_releases(environment),
        *scheduler_releases(environment),
        *operator_parts(environment, after=gang_scheduler_release(environment)),
        *([karpenter] if karpenter else []),
        *exporter_releases(environment),
        *log_release(deployed.logs),
    )
    mirror = environment.settings.chart_mirror
    return tuple(_mirrored(part, mirror) if mirror and isinstance(part, Release) else part for part in parts)


def _mirrored(release: Release, mirror: str) -> Release:
    return replace(release, values=merged(release.values, mirrored_values(release.chart, mirror)))


def merged(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `override`, merged as Helm does: mapping by mapping, lists and scalars replaced."""
    both = {**base, **override}
    for name in base.keys() & override.keys():
        if isinstance(base[name], Mapping) and isinstance(override[name], Mapping):
            both[name] = merged(base[name], override[name])
    return both
