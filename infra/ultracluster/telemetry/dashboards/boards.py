"""Which dashboards an environment has."""

from ultracluster.config.environment import Environment
from ultracluster.config.pcs import Pcs
from ultracluster.telemetry.dashboards import (
    fabric,
    fleet,
    gpu_cluster,
    gpu_node,
    idle,
    inference,
    queues,
    slurm,
    storage,
    training,
)
from ultracluster.telemetry.dashboards.panels import Board


def boards(environment: Environment) -> tuple[Board, ...]:
    """The dashboards of `environment`, from the overview to the details."""
    plane = environment.control_plane
    scheduling = (
        (slurm.BOARD,)
        if isinstance(plane, Pcs)
        else (queues.board(plane.scheduler, karpenter=bool(plane.karpenter)), inference.BOARD)
    )
    openzfs = any(each.type == "openzfs" for _, each in environment.storage.new_nfs)
    return (
        fleet.board(lustre=bool(environment.storage.all_lustre)),
        gpu_cluster.BOARD,
        gpu_node.BOARD,
        training.BOARD,
        fabric.board(tuple(group.name for group in environment.launched_groups if group.efa)),
        *((storage.board(openzfs=openzfs),) if environment.storage.all_lustre else ()),
        *scheduling,
        idle.BOARD,
    )
