"""How a new node is accepted before its first job: one decision by `health`, control plane and GPUs."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["fast", "full"]
OnFailure = Literal["drain", "replace"]


@dataclass(frozen=True)
class Acceptance:
    """Checks of a new node before its first job.

    `by` is `boot_step`, the last step of a PCS node before slurmd starts, or `agent`, a pod on an EKS node that removes
    the startup taint once the checks pass.
    """

    level: Level
    by: Literal["boot_step", "agent"]
    on_failure: OnFailure

    @property
    def needs_tools(self) -> bool:
        """Whether DCGM and NCCL tests run on the node."""
        return self.level == "full"

    @property
    def replaces(self) -> bool:
        """Whether a node that fails is terminated, instead of kept for a person."""
        return self.on_failure == "replace"


def decide(
    accept: Literal["none", "fast", "full"], on_failure: OnFailure, controller: Literal["pcs", "eks"], *, gpus: int
) -> Acceptance | None:
    """How a node with `gpus` GPUs is accepted; None if nobody checks it before its first job.

    Nodes without GPUs have nothing for full checks. On EKS only nodes with GPUs have the startup taint.
    """
    if accept == "none" or (controller == "eks" and not gpus):
        return None
    return Acceptance(accept if gpus else "fast", "boot_step" if controller == "pcs" else "agent", on_failure)
