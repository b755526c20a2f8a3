"""Grafana version of the Amazon Managed Grafana workspace. Source: `data/grafana.json`."""

from ultracluster.catalog.records import records

VERSION: str = records("grafana")["version"]
METRICS_PLUGIN: str = records("grafana")["metrics_plugin"]
"""Plugin of the data source for Amazon Managed Service for Prometheus."""
