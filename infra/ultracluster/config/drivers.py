"""Rules about the GPUs for which AWS's images have a driver."""

from collections.abc import Iterator, Mapping

from ultracluster.catalog import eks, pcs
from ultracluster.catalog.drivers import missing_driver
from ultracluster.config.eks import Eks
from ultracluster.config.fleet import Fleet
from ultracluster.config.problems import Path, Problem


def pcs_driver_problems(fleet: Fleet) -> Iterator[Problem]:
    """Node groups for whose GPUs AWS's PCS-ready image has no driver: nodes would join without GPUs.

    Drivers of the user's own AMIs, by id or in a parameter, are unknown.
    """
    for i, group in enumerate(fleet.node_groups):
        of_aws = group.image == "auto" or group.image in pcs.IMAGE_AGENTS
        for name in group.types if of_aws else ():
            if missing := missing_driver("pcs", name):
                message = f"AWS's PCS image has no driver for the {missing.gpu} of {name}: {missing.why}"
                hint = "set image: ami-... with a driver of branch 580 or older, or use a newer instance type"
                yield Problem("gpu-without-driver", ("node_groups", i, "image"), message, hint)
                break


def eks_driver_problems(fleet: Fleet, settings: Eks) -> Iterator[Problem]:
    """Node groups and Karpenter's pools for whose GPUs the release of EKS's images has no driver."""
    known = eks.KUBERNETES_VERSIONS.get(settings.kubernetes_version)
    release = settings.image_release or (known.image_release if known else "")
    built = release.rpartition("-")[2]
    named: Mapping[Path, tuple[str, ...]] = {
        **{("node_groups", i): group.types for i, group in enumerate(fleet.node_groups) if group.image == "auto"},
        **{("control_plane", "karpenter", "pools", i): pool.types for i, pool in enumerate(settings.pools)},
    }
    for at, types in named.items():
        for name in types if built else ():
            missing = missing_driver("eks", name)
            if missing and missing.since_release and built < missing.since_release:
                message = (
                    f"{name} has {missing.gpu} GPUs, for which image release {release} has no driver: {missing.why}"
                )
                newest = f"{settings.kubernetes_version}.N-{missing.since_release}"
                hint = f"set control_plane.image_release to {newest} or later, or use another instance type"
                yield Problem("gpu-without-driver", at, message, hint)
                break
