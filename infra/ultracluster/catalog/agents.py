"""Images of the agents that PCS nodes run: Prometheus and its exporters. Source: `data/agents.json`."""

from ultracluster.catalog.records import records

IMAGES: dict[str, str] = records("agents")["images"]
"""Images by purpose: prometheus, node_exporter and dcgm_exporter."""
DCGM_VERSION: str = records("agents")["dcgm"]
"""Version of DCGM in the image dcgm_exporter."""
