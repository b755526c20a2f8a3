"""The step that sets up containers on PCS nodes: Enroot and Pyxis, folders on local disks, and what a job leaves.

Source: NVIDIA/enroot, doc/configuration.md (v4.1.2); NVIDIA/pyxis, README (v0.24.0); awslabs/awsome-distributed-ai,
architectures/aws-pcs (July 2026), for the paths of PCS.
"""

from dataclasses import dataclass

from ultracluster.catalog.containers import minimum_enroot
from ultracluster.config.containers import Containers
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Pcs
from ultracluster.nodes.steps import Step

LOCAL_FOLDER, ROOT_FOLDER = "/scratch/enroot", "/var/lib/enroot"
"""Where containers are unpacked: on the instance store, or on the root volume of nodes without one."""


@dataclass(frozen=True)
class ContainerSource:
    """What the nodes of a cluster need to know: the version of its Slurm, and the folder of files, None in an image."""

    slurm_version: str
    files: Containers | None = None


def container_source(settings: Pcs) -> ContainerSource | None:
    """The source that the environment file names; None without containers."""
    if not settings.containers:
        return None
    files = settings.containers if isinstance(settings.containers, Containers) else None
    return ContainerSource(settings.slurm_version, files)


def container_steps(source: ContainerSource | None, group: NodeGroup | None) -> list[Step]:
    """The step of a node group, or of login nodes without `group`, on which users import images; none without source.

    On login nodes Enroot keeps to its own defaults, which are in homes and /tmp.
    """
    if source is None:
        return []
    folder, kind, hardware = "none", "login", None
    if group:
        folder, hardware = LOCAL_FOLDER if group.joins_disks else ROOT_FOLDER, group.hardware
        kind = "gpus" if hardware.gpu_count else "cpu"
    files = (source.files.files, source.files.sha256) if source.files else ()
    return [Step("set-up-containers", (source.slurm_version, minimum_enroot(hardware), folder, kind, *files))]
