"""Container image and environment variables of a training job over EFA.

Source of every entry: `data/training.json`.
"""

from typing import Any

from ultracluster.catalog.instance_types import InstanceType
from ultracluster.catalog.records import records

_TRAINING: dict[str, Any] = records("training")


def training_image(instance_type: InstanceType) -> str:
    """AWS's container image with PyTorch, NCCL and EFA for the architecture of an instance type."""
    image: str = _TRAINING["images"][instance_type.architecture]
    return image


def training_environment(instance_type: InstanceType) -> dict[str, str]:
    """Environment variables for NCCL over EFA on an instance type, without performance tuning."""
    return {**_TRAINING["environment"], **_TRAINING["environment_of_types"].get(instance_type.name, {})}
