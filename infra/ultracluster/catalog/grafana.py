"""Which Grafana Amazon Managed Grafana runs for us. Source: `data/grafana.json`."""

from ultracluster.catalog.records import records

VERSION: str = records("grafana")["version"]
