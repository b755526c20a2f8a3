"""The AMP managed scraper of an EKS cluster, with its roles, its network access and its logs."""

from collections.abc import Sequence

from aws_cdk import Fn, Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.constructs.eks import KubernetesCluster
from ultracluster.constructs.log_groups import log_group
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.constructs.names import ACCOUNT, own_arn
from ultracluster.constructs.references import (
    SecurityGroup,
    Subnet,
    Vpc,
    expect,
    expect_list,
    security_group_id,
    subnet_id,
    vpc_id,
)
from ultracluster.constructs.roles import managed_policy, policy_document, service_role
from ultracluster.constructs.security_groups import Ports, allow, security_group

SERVICE = "scraper.aps.amazonaws.com"

API_PORT = 443

COMPONENTS = ("SERVICE_DISCOVERY", "COLLECTOR", "EXPORTER")
"""Parts of the scraper that log (AMP API reference, ScraperComponent, 2026)."""


class ScraperRoles(Construct):
    """The role that AMP assumes for a scraper, and the one that this role assumes to write to `workspace`.

    They need no cluster: in a stack that is deployed beside it, they cost the scraper no time.
    """

    def __init__(self, scope: Construct, id: str, *, workspace: PrometheusWorkspace) -> None:
        super().__init__(scope, id)
        expect(workspace, PrometheusWorkspace, "workspace")
        # a scraper's ARN is not known before its roles exist: the conditions cover the scrapers of this account
        scrapers = own_arn("aps", "scraper/*")
        conditions = {"ArnLike": {"aws:SourceArn": scrapers}, "StringEquals": {"aws:SourceAccount": ACCOUNT}}
        self._source = service_role(
            self, "SourceRole", service=SERVICE, description="AMP scraper of a cluster", conditions=conditions
        )
        trust = {
            "Principal": {"AWS": self._source.attr_arn},
            "Action": ["sts:AssumeRole"],
            "Condition": {"StringLike": {"sts:ExternalId": scrapers}},
        }
        self._target = iam.CfnRole(
            self,
            "TargetRole",
            assume_role_policy_document=policy_document([trust]),
            description="Metrics of an AMP scraper",
        )
        # in one account, a trust policy that names a role needs no policy of that role
        write = {"Action": "aps:RemoteWrite", "Resource": workspace.workspace_arn}
        managed_policy(self, "TargetPolicy", roles=[self._target], statements=[write])

    @property
    def source_role_arn(self) -> str:
        """ARN of the role that AMP assumes for the scraper."""
        return self._source.attr_arn

    @property
    def target_role_arn(self) -> str:
        """ARN of the role that writes to the workspace."""
        return self._target.attr_arn


class ClusterScraper(Construct):
    """A managed scraper: it finds pods and nodes through the cluster's API server, and writes to `workspace`.

    The cluster needs a private endpoint and access entries; AMP creates the entry that it needs itself. `subnets` are
    private ones of the cluster's VPC in two zones or more, with a free address in each. The scraper reaches the API
    server and `ports` of whatever carries the security group `nodes`, which must be one of the cluster's groups, and
    nothing else. `configuration` is YAML: see `ultracluster.kubernetes.scrape`. AMP creates a scraper in about 20
    minutes. An account has ten of them in a Region by default.

    A workspace with a customer managed key takes metrics of a scraper only through `roles`, which are created here
    unless you pass some.

    Source: AMP User Guide, "Set up managed collectors for Amazon EKS" (2026).
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: KubernetesCluster,
        workspace: PrometheusWorkspace,
        vpc: Vpc,
        subnets: Sequence[Subnet],
        nodes: SecurityGroup,
        configuration: str,
        ports: Sequence[int],
        key: IKeyRef,
        roles: ScraperRoles | None = None,
    ) -> None:
        super().__init__(scope, id)
        expect(cluster, KubernetesCluster, "cluster")
        expect(workspace, PrometheusWorkspace, "workspace")
        expect_list(subnets, "subnets")
        roles = roles or ScraperRoles(self, "Roles", workspace=workspace)
        expect(roles, ScraperRoles, "roles")
        group, rules = self._network(vpc, security_group_id(nodes), ports)
        logs = log_group(self, "Logs", name="/aws/vendedlogs/prometheus-scraper", key=key)
        self.key_policy_statements = logs.key_policy_statements
        self._scraper = aps.CfnScraper(
            self,
            "Resource",
            alias=Stack.of(self).stack_name,
            source={
                "eksConfiguration": {
                    "clusterArn": cluster.cluster_arn,
                    "subnetIds": [subnet_id(subnet) for subnet in subnets],
                    "securityGroupIds": [group],
                }
            },
            destination={"ampConfiguration": {"workspaceArn": workspace.workspace_arn}},
            role_configuration={"sourceRoleArn": roles.source_role_arn, "targetRoleArn": roles.target_role_arn},
            scrape_configuration={"configurationBlob": Fn.base64(configuration)},
            scraper_logging_configuration={
                "loggingDestination": {"cloudWatchLogs": {"logGroupArn": logs.log_group_arn}},
                "scraperComponents": [{"type": name} for name in COMPONENTS],
            },
        )
        self._scraper.node.add_dependency(roles, *rules)

    key_policy_statements: tuple[iam.PolicyStatement, ...]
    """What the owner of `key` must add to the key policy; empty for a key that this app manages."""

    @property
    def scraper_arn(self) -> str:
        """ARN of the scraper."""
        return self._scraper.attr_arn

    @property
    def scraper_id(self) -> str:
        """Id of the scraper, s-..."""
        return self._scraper.attr_scraper_id

    def _network(self, vpc: Vpc, nodes: str, ports: Sequence[int]) -> tuple[str, list[Construct]]:
        """The scraper's security group, and the rules between it and that of the nodes."""
        group = security_group(self, "Access", vpc_id=vpc_id(vpc), description="AMP scraper")
        rules: list[Construct] = []
        for start, end in port_ranges((API_PORT, *ports)):
            name = f"Port{start}" if start == end else f"Ports{start}To{end}"
            what = "API server" if start == API_PORT else "Metrics"
            rules += allow(self, name, source=group, target=nodes, ports=Ports("tcp", start, end), description=what)
        return group, rules


def port_ranges(ports: Sequence[int]) -> list[tuple[int, int]]:
    """`ports` as ranges of adjacent ones: each range costs a rule of a security group."""
    ranges: list[tuple[int, int]] = []
    for port in sorted(set(ports)):
        if ranges and ranges[-1][1] == port - 1:
            ranges[-1] = (ranges[-1][0], port)
        else:
            ranges.append((port, port))
    return ranges
