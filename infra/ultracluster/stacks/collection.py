"""`<env>-collection` with Kubernetes: the AMP managed scraper, in a stack whose failure stops nothing else."""

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.scraper import ClusterScraper, ScraperRoles
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.scrape import SCRAPER_PORTS, scrape_configuration
from ultracluster.stacks.base import EnvironmentStack
from ultracluster.stacks.eks_control_plane import EksControlPlaneStack


class CollectionStack(EnvironmentStack):
    """The scraper that writes the cluster's metrics to the Prometheus workspace.

    It waits for the control plane and for the workspace: exporters are found once they run. `roles` exist before the
    cluster, with a new workspace. Never protected: it keeps no data.
    """

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        network: ClusterNetwork,
        control_plane: EksControlPlaneStack,
        metrics: PrometheusWorkspace,
        roles: ScraperRoles | None,
    ) -> None:
        super().__init__(scope, "collection", environment, holds="Collection of metrics")
        cluster = control_plane.cluster
        self.scraper = ClusterScraper(
            self,
            "Scraper",
            cluster=cluster,
            workspace=metrics,
            vpc=network.vpc_id,
            subnets=network.control_plane_subnet_ids,
            nodes=network.cluster_security_group_id,
            configuration=scrape_configuration(
                EksEnvironment.from_environment(environment), cluster=cluster.cluster_name
            ),
            ports=SCRAPER_PORTS,
            key=control_plane.key,
            roles=roles,
        )
