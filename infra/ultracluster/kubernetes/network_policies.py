"""Network policies of teams: pods accept connections of their own namespace, and of what serves all teams.

The VPC CNI enforces them on interfaces of pods, so they bind neither EFA nor pods on the host network.

Source: Kubernetes, "Network Policies"; EKS User Guide, "Limit pod traffic with Kubernetes network policies" (2026).
"""

from ultracluster.catalog.software import charts
from ultracluster.config.eks import Team
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.scrape import POD_PORTS

API = "networking.k8s.io/v1"

PUBLIC = "ultracluster/public"
"""Label of pods behind a Service of type LoadBalancer, with the value `true`: they accept connections from anywhere."""


def network_policies(environment: EksEnvironment, team: Team) -> tuple[Object, ...]:
    """The default policy of a team's namespace, and one for pods behind its load balancers."""
    default = _policy(team, "team", {}, _admitted(environment))
    if not team.load_balancers:
        return (default,)
    return (default, _policy(team, "public", {"matchLabels": {PUBLIC: "true"}}, [{}]))


def _policy(team: Team, name: str, pods: Object, ingress: list[Object]) -> Object:
    spec = {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": ingress}
    metadata = {"name": name, "namespace": team.name}
    return {"apiVersion": API, "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _admitted(environment: EksEnvironment) -> list[Object]:
    rules: list[Object] = [{"from": [{"podSelector": {}}]}]
    if environment.observability.collects_metrics:
        scraper = [{"ipBlock": {"cidr": network}} for network in environment.scraper_networks]
        rules.append({"from": scraper, "ports": [{"protocol": "TCP", "port": port} for port in POD_PORTS]})
    if "ray" in environment.job_operators:
        # the operator submits jobs to the dashboard of a head, and reads their state there
        labels = {"kubernetes.io/metadata.name": charts["kuberay-operator"].namespace}
        rules.append({"from": [{"namespaceSelector": {"matchLabels": labels}}]})
    return rules
