"""What a training job needs beside its nodes: an image that speaks EFA, and environment variables.

Source of every entry: `data/training.json`.
"""

from typing import Any

from ultracluster.catalog.instance_types import InstanceType
from ultracluster.catalog.records import records

_TRAINING: dict[str, Any] = records("training")


def training_image(instance_type: InstanceType) -> str:
    """AWS's container image with PyTorch, NCCL and EFA for the architecture of a type."""
    image: str = _TRAINING["images"][instance_type.architecture]
    return image


def training_environment(instance_type: InstanceType) -> dict[str, str]:
    """Environment variables for NCCL over EFA on a type; tuning is not among them."""
    return {**_TRAINING["environment"], **_TRAINING["environment_of_types"].get(instance_type.name, {})}
