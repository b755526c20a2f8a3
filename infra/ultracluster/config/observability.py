"""Metrics, dashboards, alerts and logs: Amazon Managed Service for Prometheus (AMP), Grafana and CloudWatch."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.catalog.metric_groups import METRIC_GROUPS, Plane, nearest_groups
from ultracluster.config import effect_rules as rules
from ultracluster.config.effects import CONTENT, IN_PLACE, NEW_SECTION
from ultracluster.config.fields import KIND, MAPPING, TEXT, Many, RoleArn, cdk_value, text
from ultracluster.config.problems import Path, Problem, repeated, rule
from ultracluster.config.settings import Settings

LogRetention = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]
"""Days that a log group can keep events (CloudWatch Logs API, PutRetentionPolicy, 2026)."""

SERIES_QUOTA = 50_000_000
"""Active series of a workspace without a quota increase (AMP User Guide, "Service quotas", 2026)."""

MOST_SERIES = 1_500_000_000
"""Active series of a workspace to which AWS raises the quota (AMP User Guide, "Service quotas", 2026)."""

_UUID = "[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
_GROUP_ID = re.compile(rf"([0-9a-f]{{10}}-)?{_UUID}")
GroupOrRole = Annotated[
    str, text(r"^\S(.{0,254}\S)?$", "the id of an Identity Center group, or a value of the SAML role attribute")
]

METRICS_ID_FORM = "the id of an AMP workspace such as ws-0123abcd-4567-89ab-cdef-0123456789ab"
MetricsId = Annotated[str, text(rf"^ws-{_UUID}$", METRICS_ID_FORM), cdk_value()]
GrafanaId = Annotated[str, text(r"^g-[0-9a-f]{10}$", "the id of a Grafana workspace such as g-0123456789"), cdk_value()]
"""Ids of workspaces (API models of AMP and Amazon Managed Grafana, 2026)."""

Email = Annotated[
    str, text(r"^[^@\s]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$", "an e-mail address such as oncall@example.com")
]
SecretArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@-]{1,512}-[A-Za-z0-9]{6}$",
        "the whole ARN of a secret such as arn:aws:secretsmanager:us-east-2:111122223333:secret:pagerduty-a1b2c3",
    ),
    cdk_value(),
]
TopicArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$",
        "the ARN of a standard SNS topic such as arn:aws:sns:us-east-2:111122223333:oncall",
    ),
    cdk_value(),
]
"""A standard topic. The name of a FIFO topic, which AMP cannot publish to, ends with .fifo."""


NAMED_ALERTS = 5
"""Alerts that a warning names; more of them are counted."""

SCRAPER_INTERVAL_SECONDS = 30
"""Shortest interval of a managed scraper (AMP User Guide, "AWS managed collectors", 2026)."""


class ExistingMetrics(Settings):
    """An AMP workspace of yours that stores the metrics, in place of a new one."""

    existing: Annotated[MetricsId, rules.METRICS]
    """Id of an AMP workspace in the environment's account and Region."""


_SIGN_IN = ("auth", "saml_metadata_url", "saml_role_attribute")


class Grafana(Settings):
    """A new Amazon Managed Grafana workspace, an existing one, or none; data sources and dashboards are added to it.

    `identity_center` requires IAM Identity Center; `saml` requires `saml_metadata_url`. `existing` requires `role_arn`
    and no `auth`.
    """

    auth: Annotated[Literal["identity_center", "saml", "none"], rules.GRAFANA] = "none"
    """How users of a new workspace sign in. none: no new workspace. Otherwise the workspace has a stack of its own."""
    saml_metadata_url: Annotated[
        Annotated[str, text(r"^https://\S+$", "an https:// URL", max_length=2048), cdk_value()] | None, IN_PLACE
    ] = None
    """URL of the identity provider's SAML metadata."""
    saml_role_attribute: Annotated[Annotated[str, Field(min_length=1, max_length=256)] | None, IN_PLACE] = None
    """Attribute of the SAML assertion whose values `admins` and `editors` name."""
    admins: Annotated[Many[GroupOrRole], Field(max_length=100), IN_PLACE] = ()
    """Who administers a new workspace: ids of Identity Center groups, or values of `saml_role_attribute`."""
    editors: Annotated[Many[GroupOrRole], Field(max_length=100), IN_PLACE] = ()
    """Who edits dashboards of a new workspace: ids of Identity Center groups, or values of `saml_role_attribute`."""
    existing: Annotated[GrafanaId | None, rules.GRAFANA] = None
    """Id of a Grafana workspace in the environment's account and Region, version 12 or newer."""
    role_arn: Annotated[RoleArn | None, IN_PLACE] = None
    """IAM role of the existing workspace. A policy that reads the metrics is attached to it."""

    @property
    def wanted(self) -> bool:
        """Whether dashboards go into a workspace, new or existing."""
        return self.auth != "none" or self.existing is not None

    @rule
    def _saml_has_metadata(self) -> Iterator[Problem]:
        if self.existing:
            return
        if self.auth == "saml" and not self.saml_metadata_url:
            message = "saml requires saml_metadata_url"
            yield Problem("grafana-saml-metadata", "auth", message, "add saml_metadata_url: https://...")
        if self.auth != "saml" and self.saml_metadata_url:
            message = f"auth is {self.auth}, so saml_metadata_url would be ignored"
            yield Problem(
                "grafana-saml-metadata", "saml_metadata_url", message, "remove saml_metadata_url, or set auth: saml"
            )

    @rule
    def _saml_roles(self) -> Iterator[Problem]:
        """SAML users whose attribute has no listed value are viewers (Amazon Managed Grafana User Guide, 2026)."""
        if self.existing:
            return
        named = next((key for key in ("admins", "editors") if getattr(self, key)), None)
        if self.auth == "saml" and named and not self.saml_role_attribute:
            message = "values of a SAML attribute select the users, and saml_role_attribute does not name it"
            hint = "add saml_role_attribute: role, or the attribute's name in your assertions"
            yield Problem("grafana-saml-role", named, message, hint)
        elif self.saml_role_attribute and (self.auth != "saml" or not named):
            why = "admins and editors are empty" if self.auth == "saml" else f"auth is {self.auth}"
            message = f"{why}, so saml_role_attribute would be ignored"
            hint = "add admins" if self.auth == "saml" else "remove saml_role_attribute, or set auth: saml"
            yield Problem("grafana-saml-role", "saml_role_attribute", message, hint)

    @rule
    def _existing_workspace(self) -> Iterator[Problem]:
        """The owner of an existing workspace chooses how users sign in and who they are."""
        keys = [key for key in _SIGN_IN if key in self.model_fields_set and getattr(self, key) not in (None, "none")]
        if self.existing and keys:
            given = " and ".join(filter(None, (", ".join(keys[:-1]), keys[-1])))
            message = f"{self.existing} exists, so {given} would be ignored"
            yield Problem("grafana-existing", keys[0], message, f"remove {given}, or remove existing")
        if self.existing and not self.role_arn:
            message = "the role of the existing workspace needs a policy to read the metrics, and role_arn is missing"
            hint = "add role_arn; `aws grafana describe-workspace` shows it as workspaceRoleArn"
            yield Problem("grafana-existing", "existing", message, hint)
        if self.role_arn and not self.existing:
            message = "a new workspace has a role of its own, so role_arn would be ignored"
            yield Problem("grafana-existing", "role_arn", message, "remove role_arn, or add existing: g-...")

    @rule
    def _administrators(self) -> Iterator[Problem]:
        """A workspace without an Admin user cannot be configured (Amazon Managed Grafana User Guide, 2026)."""
        for key, entries in (("admins", self.admins), ("editors", self.editors)):
            if entries and self.existing:
                message = f"{self.existing} exists, so {key} would be ignored"
                yield Problem("grafana-users-ignored", key, message, f"remove {key}, and assign the users in Grafana")
            elif entries and self.auth == "none":
                message = f"no new workspace is created, so {key} would be ignored"
                yield Problem("grafana-users-ignored", key, message, f"remove {key}, or set auth: identity_center")
            yield from repeated(key, entries)
        for i, entry in enumerate(self.editors):
            if entry in self.admins:
                message = f"{entry} is already admins[{self.admins.index(entry)}], and has one role"
                yield Problem("duplicate-name", ("editors", i), message, "remove it from admins or from editors")
        if self.auth != "none" and not self.admins and not self.existing:
            message = "nobody can administer the workspace until an Admin user is assigned by hand"
            what = "the ids of Identity Center groups" if self.auth == "identity_center" else "SAML role values"
            yield Problem("grafana-without-admin", "auth", message, f"add admins: {what}", "warning")

    @rule
    def _group_ids(self) -> Iterator[Problem]:
        """Ids of groups in an identity store (Amazon Managed Grafana API, User, 2026)."""
        for key, entries in (("admins", self.admins), ("editors", self.editors)):
            for i, entry in enumerate(entries if self.auth == "identity_center" and not self.existing else ()):
                if not _GROUP_ID.fullmatch(entry):
                    message = f"{entry} is not the id of an Identity Center group"
                    hint = "use an id such as 9067642ac7-1234abcd-56ef-78ab-90cd-0123456789ab, shown in Identity Center"
                    yield Problem("invalid-format", (key, i), message, hint)


class PagerDuty(Settings):
    """A PagerDuty service that receives critical alerts. AMP reads its integration key from Secrets Manager.

    The secret is encrypted with a customer managed key. Its resource policy and the key's policy must allow AMP to read
    it; docs/observability.md has both policies.
    """

    secret_arn: Annotated[SecretArn, IN_PLACE]
    """ARN of the secret with the integration key, in the environment's Region and account."""
    secret_key: Annotated[
        Annotated[str, text(r"^[A-Za-z0-9_.-]{1,128}$", "a key of letters, digits, _ . and -")] | None, IN_PLACE
    ] = None
    """Key of the integration key in a secret of JSON. Without it, the whole secret is the integration key."""


class Alerts(Settings):
    """Who is told when something breaks. Without this section alerts fire, but nobody is told."""

    email: Annotated[Many[Email], Field(max_length=50), IN_PLACE] = ()
    """Addresses that are subscribed to a new SNS topic. Each must confirm the message that SNS sends to it."""
    pagerduty: Annotated[PagerDuty | None, IN_PLACE] = None
    """The PagerDuty service that receives critical alerts, beside the other receivers."""
    sns_topic_arn: Annotated[TopicArn | None, IN_PLACE] = None
    """A standard SNS topic of yours that receives all alerts. Its policy must allow AMP and CloudWatch to publish."""
    runbooks_url: Annotated[
        Annotated[str, text(r"^https://\S*[^/\s]$", "an https:// URL without a slash at its end", max_length=500)]
        | None,
        CONTENT,
    ] = None
    """Where you publish docs/runbooks, for the links in messages. Without it, messages name the file."""

    @rule
    def _receivers(self) -> Iterator[Problem]:
        if not (self.email or self.pagerduty or self.sns_topic_arn):
            message = "alerts has no receiver, so nobody would be notified"
            hint = "add email, pagerduty or sns_topic_arn, or remove alerts"
            yield Problem("alerts-without-receiver", (), message, hint)
        yield from repeated("email", tuple(address.lower() for address in self.email))


class Logs(Settings):
    """Logs of nodes, pods and jobs in CloudWatch Logs."""

    retention_days: Annotated[LogRetention, IN_PLACE] = 30
    """How long CloudWatch keeps logs of nodes, pods and jobs, in days."""


class Observability(Settings):
    """Metrics, dashboards, alerts and logs.

    AMP retains metrics for at most 1095 days by default (AMP User Guide, "Service quotas", 2026).
    """

    retention_days: Annotated[int, Field(ge=1, le=1095), IN_PLACE] = 150
    """How long a new AMP workspace retains metrics, in days."""
    scrape_interval_seconds: Annotated[int, Field(ge=10, le=120), rules.COLLECTED] = 30
    """How often metrics are read: at least 30 s on EKS, 10 s on PCS. Alert rules need two values in five minutes."""
    max_series: Annotated[Annotated[int, Field(ge=1000, le=MOST_SERIES)] | None, IN_PLACE] = None
    """Active series that AMP accepts from the environment; more are discarded. Default: the quota of the workspace."""
    metrics: Annotated[
        Annotated[Annotated[Literal["none"], TEXT] | Annotated[ExistingMetrics, MAPPING], KIND] | None, rules.METRICS
    ] = None
    """An existing AMP workspace, or none: nothing collects metrics, and there are no alert rules. Without it, a new
    workspace stores them."""
    grafana: Annotated[Grafana, NEW_SECTION] = Grafana()
    """The Grafana workspace."""
    alerts: Annotated[Alerts | None, IN_PLACE] = None
    """Receivers of alerts. Requires a new AMP workspace, whose alert manager they configure."""
    drop: Annotated[
        Many[Annotated[str, text(r"^\S{1,64}$", "a group of metrics such as nccl/p2p")]], rules.COLLECTED
    ] = ()
    """Groups of metrics that are not stored, such as nccl/p2p. docs/observability-scale.md lists all groups."""
    logs: Annotated[Logs, NEW_SECTION] = Logs()
    """Logs of nodes, pods and jobs."""
    auto_repair: Annotated[bool | None, rules.AUTO_REPAIR] = None
    """Whether faults act on nodes. EKS: node auto repair, by default. PCS: a critical GPU alert drains the node, which
    finishes its job; not by default, because users of nodes can forge the metrics behind alerts."""

    @property
    def repairs_nodes(self) -> bool:
        """Whether EKS reboots and replaces nodes."""
        return self.auto_repair is not False

    @property
    def drains_on_alerts(self) -> bool:
        """Whether alerts drain nodes on PCS."""
        return self.auto_repair is True

    @property
    def collects_metrics(self) -> bool:
        """Whether metrics are collected and stored."""
        return self.metrics != "none"

    @property
    def existing_workspace(self) -> str | None:
        """Id of the existing AMP workspace that stores the metrics."""
        return self.metrics.existing if isinstance(self.metrics, ExistingMetrics) else None

    def arns(self) -> Iterator[tuple[Path, str]]:
        """ARNs in the section, with their paths."""
        if self.grafana.role_arn:
            yield ("grafana", "role_arn"), self.grafana.role_arn
        if self.alerts and self.alerts.pagerduty:
            yield ("alerts", "pagerduty", "secret_arn"), self.alerts.pagerduty.secret_arn
        if self.alerts and self.alerts.sns_topic_arn:
            yield ("alerts", "sns_topic_arn"), self.alerts.sns_topic_arn

    def _says(self, key: str) -> bool:
        """Whether the file says something of a key; the default says nothing, as in a file that was written out."""
        return bool(getattr(self, key) != type(self).model_fields[key].default)

    @rule
    def _existing_metrics(self) -> Iterator[Problem]:
        """Retention, series limit and alert manager belong to the workspace, whose owner sets them."""
        workspace = self.existing_workspace
        if workspace is None:
            return
        for key in ("retention_days", "max_series"):
            if self._says(key):
                message = f"{workspace} is an existing workspace, so {key} would be ignored"
                yield Problem("metrics-setting-ignored", key, message, f"remove {key}, or remove metrics")
        if self.alerts:
            message = f"the alert manager of {workspace} belongs to the owner of the workspace"
            hint = "remove alerts and add the receivers there, or remove metrics"
            yield Problem("alerts-with-existing-metrics", "alerts", message, hint)

    @rule
    def _no_metrics(self) -> Iterator[Problem]:
        """Without metrics there is no rule that could fire, and nothing to draw: the dashboards query Prometheus."""
        if self.collects_metrics:
            return
        for key in ("retention_days", "max_series", "scrape_interval_seconds", "drop"):
            if self._says(key):
                message = f"metrics is none, so {key} would be ignored"
                yield Problem("metrics-setting-ignored", key, message, f"remove {key}, or remove metrics: none")
        if self.alerts:
            message = "metrics is none, so no alert rule exists that could notify the receivers"
            yield Problem("alerts-without-metrics", "alerts", message, "remove alerts, or remove metrics: none")
        if self.grafana.wanted:
            message = "metrics is none, so the dashboards, which query a Prometheus workspace, would be empty"
            hint = "remove grafana, or remove metrics: none"
            yield Problem("grafana-without-metrics", "grafana", message, hint)

    @rule
    def _dropped_groups(self) -> Iterator[Problem]:
        """Groups of the catalogue of metrics."""
        if not self.collects_metrics:
            return
        yield from repeated("drop", self.drop)
        for i, name in enumerate(self.drop):
            if name not in METRIC_GROUPS:
                near = nearest_groups(name)
                hint = f"write {' or '.join(near)}" if near else "use a group that docs/observability-scale.md lists"
                yield Problem("metric-group-unknown", ("drop", i), f"{name} is not a group of metrics", hint)

    def dropped_problems(self, plane: Plane) -> Iterator[Problem]:
        """Problems of `drop` under a control plane: groups that it does not collect, and that its alerts read."""
        if not self.collects_metrics:
            return
        for i, name in enumerate(self.drop):
            planes = METRIC_GROUPS.get(name, {})
            if planes and plane not in planes:
                message = f"an environment on {plane.upper()} has no metrics of {name}, so the entry would be ignored"
                yield Problem("metric-group-ignored", ("drop", i), message, f"remove {name}")
            elif alerts := planes.get(plane):
                some, more = ", ".join(alerts[:NAMED_ALERTS]), len(alerts) - NAMED_ALERTS
                who = f"{some} and {more} more" if more > 0 else some
                message = f"{len(alerts)} alert{'s' * (len(alerts) > 1)} may stay silent without {name}: {who}"
                hint = f"remove {name}, or monitor these faults by other means"
                yield Problem("metric-group-needed", ("drop", i), message, hint, "warning")

    def repair_problems(self) -> Iterator[Problem]:
        """Problems of `auto_repair` on PCS, where alerts of a new workspace drain nodes."""
        at = ("observability", "auto_repair")
        if not self.drains_on_alerts:
            return
        if self.existing_workspace:
            message = f"alerts of {self.existing_workspace} drain no node, so auto_repair would be ignored"
            yield Problem("metrics-setting-ignored", at, message, "remove auto_repair, or remove metrics")
        elif not self.collects_metrics:
            message = "metrics is none, so no alert fires and no node is drained when a GPU fails"
            hint = "remove auto_repair and monitor the nodes by other means, or remove metrics: none"
            yield Problem("repair-without-metrics", at, message, hint, "warning")

    @rule
    def _series_quota(self) -> Iterator[Problem]:
        """AWS raises the quota on request."""
        if self.max_series and self.max_series > SERIES_QUOTA and self.collects_metrics:
            message = f"max_series is {self.max_series}; a workspace accepts {SERIES_QUOTA} series by default"
            hint = "request an increase of the quota Active series per workspace, or lower max_series"
            yield Problem("series-quota", "max_series", message, hint, "warning")
