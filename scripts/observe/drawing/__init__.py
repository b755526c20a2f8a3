"""Pictures of dashboards: Grafana's JSON and a Prometheus in, SVG out."""
