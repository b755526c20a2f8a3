"""What `from ultracluster import ...` gives: every public construct, settings model and error, loaded when used."""

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from constructs import Construct

import ultracluster
from tests.synthesis import ROOT
from ultracluster.config.settings import Settings
from ultracluster.errors import UltraclusterError

PUBLIC = [
    "AcceleratedLaunchTemplate", "Access", "AccessHost", "Alarms", "AlertTopic", "Alerts", "Backups", "Bucket",
    "BucketAccess", "ClusterLogs", "ClusterNetwork", "ClusterScraper", "ClusterVpc", "Containers", "CpuLaunchTemplate",
    "CpuNodeGroup", "CpuNodes", "CreateNetwork", "DataKey", "DeviceStacks", "Directory", "DirectorySource", "Efs",
    "Eks", "EksAddon", "EksCluster",
    "EksControlPlane", "EksNodeGroup", "EksNodeRole", "ElasticFileSystem", "Environment", "ExistingMetrics",
    "ExistingNetwork", "ExistingPlacementGroup", "Finding", "Grafana", "GrafanaContent", "GrafanaUsers",
    "GrafanaWorkspace", "Group", "Health", "HelmRelease", "Host", "InterfaceEndpoints", "InvalidArgument",
    "InvalidSettings",
    "JobRefused", "Karpenter", "KarpenterPool", "KarpenterPools", "KubectlProvider", "KubernetesCluster",
    "KubernetesJobEnd", "KubernetesObjects",
    "Lifecycle", "LogGroup", "Login", "Logs", "Lustre", "LustreFileSystem", "LustreServers", "ManagedGrafana",
    "MetricsWorkspace", "MissingExtra", "MoreEfs", "MoreLustre", "MoreOpenZfs", "Network", "NfsFileSystem",
    "NodeDrain", "NodeGroup", "NodeLaunchTemplate", "NodeNetwork", "NodeRepair", "NodeRole", "NodeTelemetry",
    "NotEks", "Observability", "OpenZfs", "OpenZfsFileSystem", "PagerDuty", "Pcs", "PcsCluster", "PcsControlPlane",
    "PcsJobRole",
    "PcsNodeGroup", "PcsNodeRole", "PcsQueue", "PoolLimits", "Problem", "PrometheusWorkspace", "Purchase", "Queue",
    "Reading",
    "RefusedEnvironment", "RootSquash", "RuleFiles", "S3Endpoint", "S3Link", "S3Links", "SavedQueries", "Scale",
    "ScraperRoles", "Script", "SlurmAccounts", "SlurmCluster", "SlurmTeam", "Step", "Storage",
    "SystemNodeGroup", "SystemNodes", "Team",
    "TrainingBucket", "TrainingFileSystem", "UltraclusterError", "UnknownAddon", "UnknownChart", "UnknownEnvironment",
    "UnknownInstanceType", "User", "UserList", "UserReader", "UserSource", "Users", "Watch", "WrongReference",
    "build_app", "environment_file", "example_job", "load", "survey", "validate",
]  # fmt: skip
"""A name that leaves this list breaks other people's code: it takes a new major version and a line in CHANGELOG."""

NOT_PUBLIC = {
    "EksBootstrap",  # KubernetesCluster.add_node_group creates it
    "ExistingServers",  # part of an environment's storage
    "FunctionResource",  # base of InlineResource
    "InlineResource",  # its code is a file of this package
    "LustreLookup",  # part of an environment's storage
    "NotDestroyed",
    "NotReachable",  # the command turns it into a message
    "NodeScripts",  # node groups create it
    "UnreadableSource",  # the loader turns it into a finding
    "Settings",  # base class
}


def members(package):
    """Every class that a module of a package defines."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if ".handlers" not in found.name:
            for name, member in inspect.getmembers(import_module(found.name), inspect.isclass):
                if member.__module__ == found.name and not name.startswith("_"):
                    yield member


def rooms(*names):
    return [member for name in names for member in members(import_module(f"ultracluster.{name}"))]


def test_the_list_of_public_names():
    assert ultracluster.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(ultracluster))


def test_a_public_name_is_what_its_module_defines():
    found = {name: getattr(ultracluster, name) for name in PUBLIC}
    assert not [name for name, member in found.items() if not member.__module__.startswith("ultracluster.")]
    assert not [name for name, member in found.items() if not inspect.getdoc(member)]


@pytest.mark.parametrize(
    ("base", "found"),
    [
        (Construct, rooms("constructs")),
        (Settings, rooms("config")),
        (
            UltraclusterError,
            [*rooms("catalog", "config", "kubernetes", "nodes", "constructs", "cli"), UltraclusterError],
        ),
    ],
)
def test_every_public_construct_settings_model_and_error_is_exported(base, found):
    missing = {member.__name__ for member in found if issubclass(member, base)} - set(PUBLIC) - NOT_PUBLIC
    assert missing == set()


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(ultracluster.__file__).read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == {name: f"ultracluster.{module}" for name, module in ultracluster._HOMES.items()}


BASES = {
    "KubernetesCluster",
    "LustreFileSystem",
    "NfsFileSystem",
    "NodeLaunchTemplate",
    "NodeNetwork",
    "NodeRole",
    "PrometheusWorkspace",
    "SlurmCluster",
}
"""What others derive from; README's table names those."""


def readme_table():
    """Names and members of each row of README's table of constructs."""
    section = (
        (ROOT / "README.md").read_text("utf-8").partition("| construct | creates | gives |")[2].partition("\n\n")[0]
    )
    for row in section.splitlines()[2:]:
        names, _, gives = (re.findall(r"`([^`]+)`", cell) for cell in row.strip("|").split(" | "))
        yield names, [member for member in gives if "*" not in member]


def test_readme_has_a_row_for_every_construct():
    listed = [name for names, _ in readme_table() for name in names]
    classes = {name for name in PUBLIC if inspect.isclass(getattr(ultracluster, name))}
    constructs = {name for name in classes if issubclass(getattr(ultracluster, name), Construct)}
    assert sorted(listed) == sorted(constructs - BASES)


@pytest.mark.parametrize(("names", "members"), list(readme_table()), ids=lambda value: value[0] if value else "")
def test_readme_names_members_that_exist(names, members):
    given = set()
    for name in names:
        for base in getattr(ultracluster, name).__mro__:
            given |= {*vars(base), *vars(base).get("__annotations__", {})}
    assert set(members) <= given


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        ultracluster.Nothing  # noqa: B018


EKS = ("aws_cdk.aws_eks", "aws_cdk.aws_eks_v2")
"""Modules that only environments with EKS need; each takes a while to load."""


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import ultracluster", ("aws_cdk", "boto3", "pydantic")),
        ("from ultracluster import load, validate, Environment, NodeGroup", ("aws_cdk", "boto3", "jsii")),
        ("from ultracluster import ClusterNetwork, TrainingFileSystem, build_app", ("boto3", "moto", *EKS)),
    ],
)
def test_a_name_loads_what_it_needs_and_no_more(statement, absent):
    code = f"import sys; {statement}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(absent) & set(loaded)
