"""Enroot and Pyxis, which run containers under Slurm. Source of every figure: `data/containers.json`."""

from typing import Any

from ultracluster.catalog.instance_types import InstanceType
from ultracluster.catalog.records import records

_DATA: dict[str, Any] = records("containers")

ENROOT_TESTED: str = _DATA["enroot"]["tested"]
PYXIS_TESTED: str = _DATA["pyxis"]["tested"]
"""The versions that our tests run."""
ROOT_VOLUME_GIB: int = _DATA["root_volume_gib"]
"""Size of a root volume on which images of training jobs fit, on nodes without local disks."""


def minimum_enroot(hardware: InstanceType | None) -> str:
    """The oldest version of Enroot for nodes of a type, None for login nodes.

    Older versions than that of UltraServers give containers no IMEX channel, so no NVLink between instances.
    """
    enroot: dict[str, str] = _DATA["enroot"]
    return enroot["minimum_with_imex" if hardware and hardware.ultraserver_only else "minimum"]
