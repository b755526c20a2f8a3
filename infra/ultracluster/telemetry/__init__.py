"""What to measure and when to page: metrics, XIDs, rules and dashboards. Pure, no CDK."""
