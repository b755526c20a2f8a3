"""Container images and environment variables of jobs over EFA.

Source of every entry: `data/training.json`.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Literal

from ultracluster.catalog.instance_types import Architecture, InstanceType, UltraClusterType
from ultracluster.catalog.records import records

Use = Literal["training", "nccl-tests"]

_TRAINING: dict[str, Any] = records("training")

CPU_IMAGE: str = _TRAINING["cpu_image"]
"""Public image with Python for jobs on CPU nodes, for both architectures."""

COMPONENTS: dict[str, str] = {
    "nvidia_driver": "NVIDIA driver",
    "cuda": "CUDA",
    "gdrcopy": "GDRCopy",
    "efa_installer": "EFA installer",
    "aws_ofi_nccl": "aws-ofi-nccl",
    "nccl": "NCCL",
}
"""Software with a minimum version on each instance type, and how AWS writes its name."""


@dataclass(frozen=True)
class ContainerImage:
    """A public image of AWS, and the versions in it.

    `nvidia_driver` in `contents` is the driver that the image's CUDA needs on the node. `end_of_patch` is the last day
    of security patches, None if AWS names none.

    Source: AWS Deep Learning Containers; awsome-distributed-ai (2026).
    """

    name: str
    use: Use
    architectures: tuple[Architecture, ...]
    contents: Mapping[str, str]
    end_of_patch: date | None
    source: str

    def shortfalls(self, instance_type: InstanceType) -> list[str]:
        """What the image lacks for an instance type, such as "EFA installer 1.40.0, minimum 1.41.0"."""
        lacking = [
            f"{COMPONENTS[component]} {self.contents.get(component, 'unknown')}, minimum {minimum}"
            for component, minimum in minima(instance_type).items()
            if component != "nvidia_driver"  # on the node, not in the image
            and version(self.contents.get(component, "0")) < version(minimum)
        ]
        if instance_type.architecture not in self.architectures:
            lacking.insert(0, f"built for {' and '.join(self.architectures)}")
        return lacking


IMAGES: tuple[ContainerImage, ...] = tuple(
    ContainerImage(
        name=entry["name"],
        use=entry["use"],
        architectures=tuple(entry["architectures"]),
        contents=entry["contents"],
        end_of_patch=date.fromisoformat(entry["end_of_patch"]) if entry["end_of_patch"] else None,
        source=entry["source"],
    )
    for entry in _TRAINING["images"]
)
"""Public images for jobs, the preferred one of each use first."""


def version(text: str) -> tuple[int, ...]:
    """The numbers of a version, for comparison: 2.28.3-1 is (2, 28, 3), and 2.6.0amzn1.0 is (2, 6, 0)."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def minima(instance_type: InstanceType) -> dict[str, str]:
    """Minimum version of each of COMPONENTS on an instance type; empty for types for which AWS names none."""
    if not isinstance(instance_type, UltraClusterType):
        return {}
    return {**asdict(instance_type.software), "aws_ofi_nccl": _TRAINING["aws_ofi_nccl_minima"][instance_type.name]}


def default_image(instance_type: InstanceType, use: Use = "training") -> ContainerImage | None:
    """The public image that meets every minimum of an instance type, None if there is none."""
    fitting = (image for image in IMAGES if image.use == use and not image.shortfalls(instance_type))
    return next(fitting, None)


def closest_image(instance_type: InstanceType, use: Use = "training") -> ContainerImage | None:
    """The public image for an instance type's architecture, whether it meets the minima or not."""
    return next(
        (image for image in IMAGES if image.use == use and instance_type.architecture in image.architectures), None
    )


def training_environment(instance_type: InstanceType, *, efa: bool = True) -> dict[str, str]:
    """Environment variables for NCCL over EFA on an instance type, without performance tuning.

    With them a missing plugin or a node without EFA is an error. NCCL alone falls back to TCP without a word. Nodes
    without `efa` use TCP.
    """
    if not efa:
        return {"NCCL_DEBUG": _TRAINING["environment"]["NCCL_DEBUG"]}
    return {**_TRAINING["environment"], **_TRAINING["environment_of_types"].get(instance_type.name, {})}


def type_environment(*names: str) -> dict[str, str]:
    """Environment variables that every job on nodes of these types needs, whatever starts it."""
    of_types = _TRAINING["environment_of_types"]
    return {key: value for name in names for key, value in of_types.get(name, {}).items()}


def recorder_environment(traces: str, image: str | None = None) -> dict[str, str]:
    """Environment variables of PyTorch for jobs that do not hang: each rank writes a trace on a timeout, and ends.

    `traces` is the start of the names of the traces, to which PyTorch appends the rank. Of an `image` whose PyTorch is
    known it names only the settings that it reads; otherwise those of all versions.
    """
    known = next((each.contents.get("pytorch") for each in IMAGES if image and image.endswith(_path(each.name))), None)
    return {
        setting["name"]: traces if setting["value"] == "TRACES" else setting["value"]
        for setting in _TRAINING["flight_recorder"]["settings"]
        if known is None or version(setting.get("since", "0")) <= version(known) < version(setting.get("until", "999"))
    }


def _path(image: str) -> str:
    """An image without its registry, of which a mirror has another."""
    return image.partition("/")[2]
