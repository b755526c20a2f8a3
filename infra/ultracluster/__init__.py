"""GPU UltraClusters on AWS from one typed environment file.

Everything public is imported from here: `from ultracluster import ClusterNetwork, TrainingFileSystem, load, build_app`.
A name is loaded when it is first used, so that reading a file loads neither the CDK nor boto3.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ultracluster.catalog.instance_types import UnknownInstanceType as UnknownInstanceType
    from ultracluster.config.access import Access as Access
    from ultracluster.config.access import Host as Host
    from ultracluster.config.backups import Backups as Backups
    from ultracluster.config.bootstrap import Script as Script
    from ultracluster.config.buckets import Bucket as Bucket
    from ultracluster.config.buckets import Lifecycle as Lifecycle
    from ultracluster.config.containers import Containers as Containers
    from ultracluster.config.directory import Directory as Directory
    from ultracluster.config.eks import DeviceStacks as DeviceStacks
    from ultracluster.config.eks import Eks as Eks
    from ultracluster.config.eks import EksControlPlane as EksControlPlane
    from ultracluster.config.eks import Team as Team
    from ultracluster.config.eks_nodes import CpuNodes as CpuNodes
    from ultracluster.config.eks_nodes import NodeRepair as NodeRepair
    from ultracluster.config.eks_nodes import SystemNodes as SystemNodes
    from ultracluster.config.environment import Environment as Environment
    from ultracluster.config.file_systems import Efs as Efs
    from ultracluster.config.file_systems import MoreEfs as MoreEfs
    from ultracluster.config.file_systems import MoreLustre as MoreLustre
    from ultracluster.config.file_systems import MoreOpenZfs as MoreOpenZfs
    from ultracluster.config.file_systems import OpenZfs as OpenZfs
    from ultracluster.config.findings import Finding as Finding
    from ultracluster.config.findings import Reading as Reading
    from ultracluster.config.health import Health as Health
    from ultracluster.config.karpenter import KarpenterPool as KarpenterPool
    from ultracluster.config.karpenter import KarpenterPools as KarpenterPools
    from ultracluster.config.karpenter import PoolLimits as PoolLimits
    from ultracluster.config.loader import RefusedEnvironment as RefusedEnvironment
    from ultracluster.config.loader import load as load
    from ultracluster.config.loader import survey as survey
    from ultracluster.config.loader import validate as validate
    from ultracluster.config.lustre import Lustre as Lustre
    from ultracluster.config.lustre import LustreServers as LustreServers
    from ultracluster.config.lustre import S3Link as S3Link
    from ultracluster.config.network import CreateNetwork as CreateNetwork
    from ultracluster.config.network import ExistingNetwork as ExistingNetwork
    from ultracluster.config.network import Network as Network
    from ultracluster.config.node_groups import NodeGroup as NodeGroup
    from ultracluster.config.node_groups import Scale as Scale
    from ultracluster.config.observability import Alerts as Alerts
    from ultracluster.config.observability import ExistingMetrics as ExistingMetrics
    from ultracluster.config.observability import Grafana as Grafana
    from ultracluster.config.observability import Logs as Logs
    from ultracluster.config.observability import Observability as Observability
    from ultracluster.config.observability import PagerDuty as PagerDuty
    from ultracluster.config.pcs import Login as Login
    from ultracluster.config.pcs import Pcs as Pcs
    from ultracluster.config.pcs import PcsControlPlane as PcsControlPlane
    from ultracluster.config.pcs import Queue as Queue
    from ultracluster.config.problems import InvalidSettings as InvalidSettings
    from ultracluster.config.problems import Problem as Problem
    from ultracluster.config.purchase import ExistingPlacementGroup as ExistingPlacementGroup
    from ultracluster.config.purchase import Purchase as Purchase
    from ultracluster.config.siblings import UnknownEnvironment as UnknownEnvironment
    from ultracluster.config.siblings import environment_file as environment_file
    from ultracluster.config.slurm_teams import SlurmTeam as SlurmTeam
    from ultracluster.config.storage import Storage as Storage
    from ultracluster.config.users import Group as Group
    from ultracluster.config.users import User as User
    from ultracluster.config.users import Users as Users
    from ultracluster.constructs.access_host import AccessHost as AccessHost
    from ultracluster.constructs.alarms import Alarms as Alarms
    from ultracluster.constructs.alarms import Watch as Watch
    from ultracluster.constructs.alerts import AlertTopic as AlertTopic
    from ultracluster.constructs.alerts import RuleFiles as RuleFiles
    from ultracluster.constructs.bucket_access import BucketAccess as BucketAccess
    from ultracluster.constructs.buckets import TrainingBucket as TrainingBucket
    from ultracluster.constructs.drain import NodeDrain as NodeDrain
    from ultracluster.constructs.eks import EksAddon as EksAddon
    from ultracluster.constructs.eks import KubernetesCluster as KubernetesCluster
    from ultracluster.constructs.eks import UnknownAddon as UnknownAddon
    from ultracluster.constructs.eks_cluster import EksCluster as EksCluster
    from ultracluster.constructs.eks_logs import ClusterLogs as ClusterLogs
    from ultracluster.constructs.eks_nodes import CpuNodeGroup as CpuNodeGroup
    from ultracluster.constructs.eks_nodes import EksNodeGroup as EksNodeGroup
    from ultracluster.constructs.eks_nodes import SystemNodeGroup as SystemNodeGroup
    from ultracluster.constructs.eks_roles import EksNodeRole as EksNodeRole
    from ultracluster.constructs.endpoints import InterfaceEndpoints as InterfaceEndpoints
    from ultracluster.constructs.endpoints import S3Endpoint as S3Endpoint
    from ultracluster.constructs.grafana import GrafanaWorkspace as GrafanaWorkspace
    from ultracluster.constructs.grafana import ManagedGrafana as ManagedGrafana
    from ultracluster.constructs.grafana_content import GrafanaContent as GrafanaContent
    from ultracluster.constructs.grafana_content import GrafanaUsers as GrafanaUsers
    from ultracluster.constructs.karpenter import Karpenter as Karpenter
    from ultracluster.constructs.keys import DataKey as DataKey
    from ultracluster.constructs.kubectl import HelmRelease as HelmRelease
    from ultracluster.constructs.kubectl import KubectlProvider as KubectlProvider
    from ultracluster.constructs.kubectl import KubernetesJobEnd as KubernetesJobEnd
    from ultracluster.constructs.kubectl import KubernetesObjects as KubernetesObjects
    from ultracluster.constructs.kubectl import UnknownChart as UnknownChart
    from ultracluster.constructs.launch_templates import AcceleratedLaunchTemplate as AcceleratedLaunchTemplate
    from ultracluster.constructs.launch_templates import CpuLaunchTemplate as CpuLaunchTemplate
    from ultracluster.constructs.launch_templates import NodeLaunchTemplate as NodeLaunchTemplate
    from ultracluster.constructs.links import S3Links as S3Links
    from ultracluster.constructs.log_groups import LogGroup as LogGroup
    from ultracluster.constructs.lustre import LustreFileSystem as LustreFileSystem
    from ultracluster.constructs.lustre import TrainingFileSystem as TrainingFileSystem
    from ultracluster.constructs.metrics import MetricsWorkspace as MetricsWorkspace
    from ultracluster.constructs.metrics import PrometheusWorkspace as PrometheusWorkspace
    from ultracluster.constructs.network import ClusterNetwork as ClusterNetwork
    from ultracluster.constructs.network import NodeNetwork as NodeNetwork
    from ultracluster.constructs.nfs import ElasticFileSystem as ElasticFileSystem
    from ultracluster.constructs.nfs import NfsFileSystem as NfsFileSystem
    from ultracluster.constructs.nfs import OpenZfsFileSystem as OpenZfsFileSystem
    from ultracluster.constructs.node_role import NodeRole as NodeRole
    from ultracluster.constructs.node_telemetry import NodeTelemetry as NodeTelemetry
    from ultracluster.constructs.pcs import PcsNodeGroup as PcsNodeGroup
    from ultracluster.constructs.pcs import PcsQueue as PcsQueue
    from ultracluster.constructs.pcs import SlurmCluster as SlurmCluster
    from ultracluster.constructs.pcs_cluster import PcsCluster as PcsCluster
    from ultracluster.constructs.pcs_role import PcsJobRole as PcsJobRole
    from ultracluster.constructs.pcs_role import PcsNodeRole as PcsNodeRole
    from ultracluster.constructs.references import WrongReference as WrongReference
    from ultracluster.constructs.root_squash import RootSquash as RootSquash
    from ultracluster.constructs.saved_queries import SavedQueries as SavedQueries
    from ultracluster.constructs.scraper import ClusterScraper as ClusterScraper
    from ultracluster.constructs.scraper import ScraperRoles as ScraperRoles
    from ultracluster.constructs.slurm_accounts import SlurmAccounts as SlurmAccounts
    from ultracluster.constructs.users import UserList as UserList
    from ultracluster.constructs.users import UserReader as UserReader
    from ultracluster.constructs.vpc import ClusterVpc as ClusterVpc
    from ultracluster.errors import InvalidArgument as InvalidArgument
    from ultracluster.errors import MissingExtra as MissingExtra
    from ultracluster.errors import UltraclusterError as UltraclusterError
    from ultracluster.jobs.request import JobRefused as JobRefused
    from ultracluster.kubernetes.environment import NotEks as NotEks
    from ultracluster.kubernetes.jobs import example_job as example_job
    from ultracluster.nodes.steps import Step as Step
    from ultracluster.nodes.users import DirectorySource as DirectorySource
    from ultracluster.nodes.users import UserSource as UserSource
    from ultracluster.stacks.app import build_app as build_app

_MODULES = {
    "errors": ("InvalidArgument", "MissingExtra", "UltraclusterError"),
    "catalog.instance_types": ("UnknownInstanceType",),
    "config.access": ("Access", "Host"),
    "config.backups": ("Backups",),
    "config.buckets": ("Bucket", "Lifecycle"),
    "config.bootstrap": ("Script",),
    "config.containers": ("Containers",),
    "config.directory": ("Directory",),
    "config.eks": ("DeviceStacks", "Eks", "EksControlPlane", "Team"),
    "config.eks_nodes": ("CpuNodes", "NodeRepair", "SystemNodes"),
    "config.environment": ("Environment",),
    "config.findings": ("Finding", "Reading"),
    "config.health": ("Health",),
    "config.karpenter": ("KarpenterPool", "KarpenterPools", "PoolLimits"),
    "config.loader": ("RefusedEnvironment", "load", "survey", "validate"),
    "config.siblings": ("UnknownEnvironment", "environment_file"),
    "config.file_systems": ("Efs", "MoreEfs", "MoreLustre", "MoreOpenZfs", "OpenZfs"),
    "config.lustre": ("Lustre", "LustreServers", "S3Link"),
    "config.network": ("CreateNetwork", "ExistingNetwork", "Network"),
    "config.node_groups": ("NodeGroup", "Scale"),
    "config.observability": ("Alerts", "ExistingMetrics", "Grafana", "Logs", "Observability", "PagerDuty"),
    "config.pcs": ("Login", "Pcs", "PcsControlPlane", "Queue"),
    "config.problems": ("InvalidSettings", "Problem"),
    "config.purchase": ("ExistingPlacementGroup", "Purchase"),
    "config.slurm_teams": ("SlurmTeam",),
    "config.storage": ("Storage",),
    "jobs.request": ("JobRefused",),
    "kubernetes.environment": ("NotEks",),
    "kubernetes.jobs": ("example_job",),
    "nodes.steps": ("Step",),
    "nodes.users": ("DirectorySource", "UserSource"),
    "config.users": ("Group", "User", "Users"),
    "constructs.access_host": ("AccessHost",),
    "constructs.alarms": ("Alarms", "Watch"),
    "constructs.alerts": ("AlertTopic", "RuleFiles"),
    "constructs.bucket_access": ("BucketAccess",),
    "constructs.buckets": ("TrainingBucket",),
    "constructs.drain": ("NodeDrain",),
    "constructs.eks": ("EksAddon", "KubernetesCluster", "UnknownAddon"),
    "constructs.eks_cluster": ("EksCluster",),
    "constructs.eks_logs": ("ClusterLogs",),
    "constructs.eks_nodes": ("CpuNodeGroup", "EksNodeGroup", "SystemNodeGroup"),
    "constructs.eks_roles": ("EksNodeRole",),
    "constructs.endpoints": ("InterfaceEndpoints", "S3Endpoint"),
    "constructs.grafana": ("GrafanaWorkspace", "ManagedGrafana"),
    "constructs.grafana_content": ("GrafanaContent", "GrafanaUsers"),
    "constructs.karpenter": ("Karpenter",),
    "constructs.keys": ("DataKey",),
    "constructs.kubectl": ("HelmRelease", "KubectlProvider", "KubernetesJobEnd", "KubernetesObjects", "UnknownChart"),
    "constructs.launch_templates": ("AcceleratedLaunchTemplate", "CpuLaunchTemplate", "NodeLaunchTemplate"),
    "constructs.links": ("S3Links",),
    "constructs.log_groups": ("LogGroup",),
    "constructs.lustre": ("LustreFileSystem", "TrainingFileSystem"),
    "constructs.metrics": ("MetricsWorkspace", "PrometheusWorkspace"),
    "constructs.nfs": ("ElasticFileSystem", "NfsFileSystem", "OpenZfsFileSystem"),
    "constructs.network": ("ClusterNetwork", "NodeNetwork"),
    "constructs.node_role": ("NodeRole",),
    "constructs.node_telemetry": ("NodeTelemetry",),
    "constructs.pcs": ("PcsNodeGroup", "PcsQueue", "SlurmCluster"),
    "constructs.pcs_cluster": ("PcsCluster",),
    "constructs.pcs_role": ("PcsJobRole", "PcsNodeRole"),
    "constructs.references": ("WrongReference",),
    "constructs.root_squash": ("RootSquash",),
    "constructs.saved_queries": ("SavedQueries",),
    "constructs.scraper": ("ClusterScraper", "ScraperRoles"),
    "constructs.slurm_accounts": ("SlurmAccounts",),
    "constructs.users": ("UserList", "UserReader"),
    "constructs.vpc": ("ClusterVpc",),
    "stacks.app": ("build_app",),
}
"""Public names by the module that defines them."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
