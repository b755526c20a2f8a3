"""EKS with `metrics: none`: nothing serves or collects metrics, and everything else is installed."""

import pytest

from tests.kubernetes.environments import OPERATORS, SCHEDULERS, eks_environment
from tests.kubernetes.test_order import DEPLOYED
from ultracluster.kubernetes.order import ordered_parts


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_only_what_serves_metrics_goes(scheduler):
    def parts(**observability):
        settings = {"karpenter": True, "scheduler": scheduler, "jobs": OPERATORS, "observability": observability}
        environment = eks_environment(lustre=True, buckets=["datasets"], **settings)
        return {part.name: part for part in ordered_parts(environment, DEPLOYED)}

    both, without = parts(), parts(metrics="none")
    exporters = {"dcgm-exporter", "prometheus-node-exporter", "kube-state-metrics", "kube-state-metrics-teams"}
    assert both.keys() - without.keys() == exporters | {"metrics-relay"}
    assert {name: both[name] for name in without} == without
    assert "fluent-bit" in without
