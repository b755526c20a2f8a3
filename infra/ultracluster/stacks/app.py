"""The CDK app of one environment."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import aws_cdk as cdk
from aws_cdk import Annotations

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.config.findings import Finding
from ultracluster.config.pcs import Pcs
from ultracluster.constructs.metrics import MetricsWorkspace, PrometheusWorkspace
from ultracluster.nodes.users import DirectorySource, UserSource
from ultracluster.stacks.alerts import AlertsStack, has_alarms
from ultracluster.stacks.base import EnvironmentStack
from ultracluster.stacks.links import LinksStack
from ultracluster.stacks.network import NetworkStack
from ultracluster.stacks.observability import ObservabilityStack
from ultracluster.stacks.storage import StorageStack

if TYPE_CHECKING:
    from ultracluster.constructs.scraper import ScraperRoles

UNPROTECTED = "The stacks have no termination protection. Set protect: true after the first deployment."


def build_app(environment: Environment, *, app: cdk.App | None = None, warnings: Sequence[Finding] = ()) -> cdk.App:
    """The stacks of `environment`: network, then storage and control plane side by side, then compute.

    With EKS the software in the cluster has a stack of its own, and so has each node group; none of them waits for
    another. S3 links, metrics, their collection and Grafana wait for no node either. Pass an `app` to choose its output
    folder and feature flags; the CDK CLI passes those of cdk.json. `warnings` of its file are shown by the CDK CLI.
    """
    app = app or cdk.App(analytics_reporting=False)
    network = NetworkStack(app, environment)
    storage = StorageStack(app, environment, network=network.network)
    if environment.storage.lustre and environment.storage.lustre.links:
        LinksStack(app, environment, storage=storage)
    metrics = _metrics(app, environment, network)
    # CloudFormation refuses a stack without resources
    if metrics.workspace or has_alarms(environment):
        AlertsStack(app, environment, metrics=metrics.workspace, storage=storage, topics=metrics.topics)
    if metrics.workspace and environment.observability.grafana.wanted:
        # imported here: most environments have no Grafana, and its module takes a while to load
        from ultracluster.stacks.grafana import GrafanaStack

        GrafanaStack(app, environment, metrics=metrics.workspace)
    if isinstance(environment.control_plane, Pcs):
        _slurm(app, environment, environment.control_plane, network, storage, metrics)
    else:
        _kubernetes(app, environment, environment.control_plane, network, storage, metrics)
    if not environment.retain:
        from ultracluster.constructs.throwaway import throw_away

        for stack in app.node.children:
            if isinstance(stack, EnvironmentStack):
                throw_away(stack, key=getattr(stack, "key", storage.key))
    elif not environment.protect:
        Annotations.of(storage).add_info_v2("ultracluster:protect", UNPROTECTED)
    for found in warnings:
        text = f"{found.path}: {found.message}. {found.hint[0].upper()}{found.hint[1:]}"
        place = re.sub(r"\W+", ".", found.path).strip(".")
        Annotations.of(network).add_warning_v2(f"ultracluster:{found.code}:{place}", text)
    return app


class _Metrics(NamedTuple):
    """The Prometheus workspace, the topics that alerts go to, and the roles of its scraper, where they exist."""

    workspace: PrometheusWorkspace | None = None
    topics: tuple[str, ...] = ()
    scraper_roles: "ScraperRoles | None" = None


def _metrics(app: cdk.App, environment: Environment, network: NetworkStack) -> _Metrics:
    """An existing workspace takes no stack, nor does none."""
    settings = environment.observability
    if not settings.collects_metrics:
        return _Metrics()
    if existing := settings.existing_workspace:
        return _Metrics(MetricsWorkspace.from_workspace_id(network, "Metrics", existing))
    observability = ObservabilityStack(app, environment)
    if observability.repair_topic_arn:
        from ultracluster.stacks.repair import RepairStack

        topics = observability.topics
        repair = RepairStack(app, environment, topic_arn=observability.repair_topic_arn, topics=topics)
        # it imports nothing: the ARN is made of the topic's name
        repair.add_stack_dependency(observability, "SNS takes no subscription to a topic that does not exist")
    return _Metrics(observability.metrics, observability.topics, observability.scraper_roles)


def _slurm(
    app: cdk.App,
    environment: Environment,
    settings: Pcs,
    network: NetworkStack,
    storage: StorageStack,
    metrics: _Metrics,
) -> None:
    # imported here: the modules of the other control plane take a second to load
    from ultracluster.stacks.pcs_compute import PcsComputeStack
    from ultracluster.stacks.pcs_control_plane import PcsControlPlaneStack

    control_plane = PcsControlPlaneStack(app, environment, settings=settings, network=network.network)
    access, directory = None, environment.access.directory
    users: UserSource | DirectorySource | None = DirectorySource(directory, environment.region) if directory else None
    if environment.access.wanted and network.login_security_group_id:
        from ultracluster.stacks.access import SSH, AccessStack

        access = AccessStack(app, environment, network=network, entrance=network.login_security_group_id, port=SSH)
        users = access.users
    compute = PcsComputeStack(
        app,
        environment,
        settings=settings,
        network=network,
        storage=storage,
        control_plane=control_plane,
        metrics=metrics.workspace,
        topics=metrics.topics,
        users=users,
    )
    if access and access.users:
        # it imports nothing: nodes read parameters by their names
        compute.add_stack_dependency(access, "Nodes read the list of users when they boot")


def _kubernetes(
    app: cdk.App,
    environment: Environment,
    settings: Eks,
    network: NetworkStack,
    storage: StorageStack,
    metrics: _Metrics,
) -> None:
    from ultracluster.stacks.collection import CollectionStack
    from ultracluster.stacks.eks_compute import EksNodeGroupStack
    from ultracluster.stacks.eks_control_plane import EksControlPlaneStack
    from ultracluster.stacks.eks_cpu_nodes import EksCpuNodesStack
    from ultracluster.stacks.platform import PlatformStack

    control_plane = EksControlPlaneStack(app, environment, settings=settings, network=network.network)
    if environment.access.wanted:
        from ultracluster.stacks.access import KUBERNETES_API, AccessStack

        entrance = control_plane.cluster.cluster_security_group_id
        AccessStack(app, environment, network=network, entrance=entrance, port=KUBERNETES_API)
    if settings.cpu_nodes.count:
        EksCpuNodesStack(app, environment, settings=settings, network=network.network, control_plane=control_plane)
    if metrics.workspace:
        CollectionStack(
            app,
            environment,
            network=network.network,
            control_plane=control_plane,
            metrics=metrics.workspace,
            roles=metrics.scraper_roles,
        )
    PlatformStack(
        app, environment, settings=settings, network=network.network, storage=storage, control_plane=control_plane
    )
    for group in environment.node_groups:
        for block in group.blocks():
            EksNodeGroupStack(
                app,
                environment,
                group=group,
                block=block,
                settings=settings,
                network=network.network,
                control_plane=control_plane,
                topics=metrics.topics,
            )
