"""Grafana version of the Amazon Managed Grafana workspace. Source: `data/grafana.json`."""

from ultracluster.catalog.records import records

VERSION: str = records("grafana")["version"]
