"""GPUs that AWS's own images have no driver for, by control plane and instance family.

Source: `data/drivers.json`.
"""

from typing import Any, Literal, NamedTuple

from ultracluster.catalog.records import records


class MissingDriver(NamedTuple):
    """Why AWS's image of a control plane does not drive a GPU. `since_release` is the first EKS release that does."""

    gpu: str
    why: str
    since_release: str | None = None


def missing_driver(plane: Literal["pcs", "eks"], instance_type: str) -> MissingDriver | None:
    """Why AWS's image has no driver for the GPUs of a type; None where it has one, and for types without GPUs."""
    families: dict[str, Any] = records("drivers")[plane]
    found = families.get(instance_type.partition(".")[0])
    return MissingDriver(**found) if found else None
