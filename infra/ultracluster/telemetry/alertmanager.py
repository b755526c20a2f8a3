"""The definition of the alert manager of an environment, as text."""

from collections.abc import Sequence

import yaml

from ultracluster.config.environment import Environment


def definition(environment: Environment, *, topics: Sequence[str], region: str) -> str:
    """Alerts go to every topic in `topics` and to PagerDuty; without receivers they go nowhere. YAML."""
    alerts = environment.observability.alerts
    receiver: dict[str, object] = {"name": "oncall"}
    if topics:
        receiver["sns_configs"] = [{"topic_arn": arn, "sigv4": {"region": region}} for arn in topics]
    if alerts and alerts.pagerduty:
        secret = {"secret_arn": alerts.pagerduty.secret_arn}
        key = {"secret_key": alerts.pagerduty.secret_key} if alerts.pagerduty.secret_key else {}
        receiver["pagerduty_configs"] = [{"routing_key": {"aws_secrets_manager": {**secret, **key}}}]
    config = {"route": {"receiver": "oncall", "group_by": ["cluster", "alertname"]}, "receivers": [receiver]}
    return yaml.safe_dump({"alertmanager_config": yaml.safe_dump(config, width=1000)}, width=1000)
