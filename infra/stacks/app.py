"""The CDK app of one environment."""

import aws_cdk as cdk

from infra.config.environment import Environment
from infra.stacks.compute import ComputeStack
from infra.stacks.control_plane import ControlPlaneStack
from infra.stacks.links import LinksStack
from infra.stacks.network import NetworkStack
from infra.stacks.observability import ObservabilityStack
from infra.stacks.storage import StorageStack


def build_app(environment: Environment, *, app: cdk.App | None = None) -> cdk.App:
    """The stacks of `environment`: network, then storage and control plane side by side, then compute.

    The links between file system and buckets stand beside compute, observability beside everything. Give an `app` to
    choose its output folder and feature flags; the CDK CLI passes those of cdk.json by itself.
    """
    app = app or cdk.App(analytics_reporting=False)
    network = NetworkStack(app, environment).network
    storage = StorageStack(app, environment, network=network)
    control_plane = ControlPlaneStack(app, environment, network=network)
    ComputeStack(app, environment, network=network, storage=storage, control_plane=control_plane)
    if environment.storage.lustre and environment.storage.lustre.links:
        LinksStack(app, environment, storage=storage)
    ObservabilityStack(app, environment)
    return app
