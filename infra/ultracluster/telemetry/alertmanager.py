"""The alert manager definition of a workspace: receivers of alerts, and alerts that inhibit others.

Critical alerts go to SNS and PagerDuty, one message for each node, job or component. Warnings go to SNS, one message
for each alert. Alerts of severity info, such as a program that crashed, have no receiver: dashboards show them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from ultracluster.config.environment import Environment
from ultracluster.config.observability import PagerDuty

NOBODY, ONCALL, TEAM, REPAIR = "nobody", "oncall", "team", "repair"
"""Receivers: of nothing, of critical alerts, of warnings, and of alerts that drain their node."""

TEMPLATES = "ultracluster.tmpl"

_NODE = ["environment", "node"]

TEMPLATE = """\
{{ define "ultracluster.subject" -}}
{{ .Status | toUpper }} {{ .CommonLabels.severity }}: {{ (index .Alerts 0).Labels.alertname -}}
{{ if gt (len .Alerts) 1 }}, {{ len .Alerts }} alerts{{ end }} ({{ .CommonLabels.environment }}
{{- with .CommonLabels.node }}, {{ . }}{{ end }})
{{- end }}
{{ define "ultracluster.alert" -}}
{{ .Annotations.summary }}
  {{ .Annotations.description }}
  What to do: {{ .Annotations.action }}
  Runbook: {{ .Annotations.runbook_url }}
  Alert: {{ .Labels.alertname }}, {{ .Labels.severity }}, since {{ .StartsAt.UTC.Format "2006-01-02 15:04" }} UTC
{{ end }}
{{ define "ultracluster.repair" -}}
{"alerts": [{{ range $i, $alert := .Alerts.Firing }}{{ if $i }}, {{ end -}}
{"node": "{{ .Labels.node }}", "alert": "{{ .Labels.alertname }}", "gpu": "{{ .Labels.gpu }}", {{/* */ -}}
"repair": "{{ .Labels.repair }}", "since": "{{ .StartsAt.UTC.Format "2006-01-02T15:04:05Z" }}"}
{{- end }}]}
{{- end }}
{{ define "ultracluster.message" -}}
{{ range .Alerts.Firing }}{{ template "ultracluster.alert" . }}
{{ end -}}
{{ with .Alerts.Resolved }}Resolved:
{{ range . }}{{ template "ultracluster.alert" . }}
{{ end }}{{ end -}}
{{ end }}
"""
"""Texts of messages. SNS takes subjects of up to 100 ASCII characters without line breaks."""


def definition(environment: Environment, *, topics: Sequence[str], region: str, repair_topic: str | None = None) -> str:
    """The alert manager definition of `environment` as YAML.

    `topics` are the ARNs of SNS topics in `region`; both may be tokens. Without topics and without PagerDuty every
    alert goes to a receiver of nothing. Alerts that drain their node also go to `repair_topic`, as JSON.

    Source: AMP User Guide, "Create an alert manager configuration" and "Use PagerDuty as an alert receiver" (2026).
    """
    alerts = environment.observability.alerts
    pagerduty = alerts.pagerduty if alerts else None
    configuration = {
        "templates": [TEMPLATES],
        "route": _route(repair=repair_topic is not None),
        "inhibit_rules": list(_inhibitions()),
        "receivers": [
            {"name": NOBODY},
            {"name": ONCALL, **_sns(topics, region), **_pagerduty(pagerduty)},
            {"name": TEAM, **_sns(topics, region)},
            *([_repair(repair_topic, region)] if repair_topic else []),
        ],
    }
    document = {"template_files": {TEMPLATES: TEMPLATE}, "alertmanager_config": _yaml(configuration)}
    return _yaml(document)


def _route(*, repair: bool) -> dict[str, Any]:
    """The watchdog has no receiver: CloudWatch watches that it is there.

    Repairs come first and go on to the other receivers; an alert that continues is sent again after an hour.
    """
    route = {
        "matchers": ['repair =~ ".+"', 'node =~ ".+"'],
        "receiver": REPAIR,
        "continue": True,
        "group_by": ["environment", "node"],
        "group_wait": "0s",
        "repeat_interval": "1h",
    }
    return {
        "receiver": NOBODY,
        "group_by": ["environment", "alertname"],
        "group_wait": "30s",
        "group_interval": "5m",
        "repeat_interval": "1d",
        "routes": [
            *([route] if repair else []),
            {
                "matchers": ['severity = "critical"'],
                "receiver": ONCALL,
                "group_by": ["environment", "severity", "component", "node", "team", "workload"],
                "group_wait": "15s",
                "repeat_interval": "4h",
            },
            {
                "matchers": ['severity = "warning"'],
                "receiver": TEAM,
                "group_by": ["environment", "severity", "alertname"],
                "group_wait": "1m",
            },
        ],
    }


def _inhibitions() -> Iterator[dict[str, Any]]:
    """Two missing labels are equal to an alert manager, so rules about a node or a job ask for one.

    A job without a team has none on both sides, so its alerts hide each other as well.
    """
    node, job = 'node =~ ".+"', 'workload =~ ".+"'
    yield _inhibit_rule(['repair =~ ".+"', node], ['severity =~ "warning|info"', node], _NODE)
    yield _inhibit_rule(['repair = "replace"', node], ['repair = "reset"', node], _NODE)
    yield _inhibit_rule(['alertname = "NodeVanished"', node], ['component = "telemetry"', node], _NODE)
    yield _inhibit_rule(
        ['alertname = "FaultWidespread"'], ['alertname != "FaultWidespread"', 'fault =~ ".+"'], ["environment", "fault"]
    )
    yield _inhibit_rule(
        ['alertname = "JobHung"', job],
        ['component = "job"', 'severity != "critical"', job],
        ["environment", "team", "workload"],
    )
    yield _inhibit_rule(
        ['alertname = "LustreAlmostFull"'],
        ['alertname =~ "LustreFull|LustreFullWithinADay"'],
        ["environment", "target"],
    )
    yield _inhibit_rule(
        ['alertname = "SlurmControllerSilent"'], ['component = "slurm"', 'severity = "warning"'], ["environment"]
    )
    yield _inhibit_rule(['alertname = "SlurmManyNodesDown"'], ['alertname = "SlurmNodesLost"'], ["environment"])
    yield _inhibit_rule(
        ['alertname = "CollectionSilent"'], ['alertname =~ "TargetsDown|SlurmNodesUnwatched"'], ["environment"]
    )


def _inhibit_rule(source: list[str], target: list[str], equal: list[str]) -> dict[str, Any]:
    return {"source_matchers": source, "target_matchers": target, "equal": equal}


def _sns(topics: Sequence[str], region: str) -> dict[str, Any]:
    return {"sns_configs": [_topic(topic, region) for topic in topics]} if topics else {}


def _topic(arn: str, region: str) -> dict[str, Any]:
    return {
        "topic_arn": arn,
        "sigv4": {"region": region},
        "send_resolved": True,
        "subject": '{{ template "ultracluster.subject" . }}',
        "message": '{{ template "ultracluster.message" . }}',
        "attributes": {"severity": "{{ .CommonLabels.severity }}", "environment": "{{ .CommonLabels.environment }}"},
    }


def _repair(topic: str, region: str) -> dict[str, Any]:
    message = {"subject": "repair", "message": '{{ template "ultracluster.repair" . }}', "send_resolved": False}
    return {"name": REPAIR, "sns_configs": [{"topic_arn": topic, "sigv4": {"region": region}, **message}]}


def _pagerduty(settings: PagerDuty | None) -> dict[str, Any]:
    if settings is None:
        return {}
    secret = {"secret_arn": settings.secret_arn, "refresh_interval": "5m"}
    if settings.secret_key:
        secret["secret_key"] = settings.secret_key
    return {
        "pagerduty_configs": [
            {
                "routing_key": {"aws_secrets_manager": secret},
                "send_resolved": True,
                "description": '{{ template "ultracluster.subject" . }}',
                "severity": "critical",
                "component": "{{ .CommonLabels.component }}",
                "group": "{{ .CommonLabels.environment }}",
                "details": {"message": '{{ template "ultracluster.message" . }}'},
            }
        ]
    }


def _yaml(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000)


class _Dumper(yaml.CSafeDumper):
    """Writes texts of several lines as blocks, and no aliases."""

    def ignore_aliases(self, _: Any) -> bool:
        """Repeats what occurs twice."""
        return True


def _text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
