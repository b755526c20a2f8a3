"""Managed scrapers of the embedded AMP: what the service checks, and what it creates in the VPC and in the cluster.

Source: AMP User Guide, "Set up managed collectors for Amazon EKS"; AMP API reference, CreateScraper and UpdateScraper;
AWS managed policies AmazonPrometheusFullAccess and AmazonPrometheusScraperServiceRolePolicy (2026).
"""

import copy
import datetime
import json
import re
import secrets
import uuid
from collections.abc import Iterator
from typing import Any

import yaml
from moto.amp import urls
from moto.backends import get_backend
from moto.core.responses import ActionResult, EmptyResult

from localaws.documents import load_yaml
from localaws.services.eks_store import Cluster, Item
from localaws.services.references import References
from localaws.services.service import CheckedInput, Refusal
from localaws.services.trust import allows_service

MAX_SCRAPERS = 10
"""Scrapers of an account and Region (AMP User Guide, "Scraper limitations")."""

SHORTEST_INTERVAL_SECONDS = 30

SERVICE = "scraper.aps.amazonaws.com"

GLOBAL = {"scrape_interval", "scrape_timeout", "evaluation_interval", "external_labels"}
JOB = {
    *("job_name", "scrape_interval", "scrape_timeout", "metrics_path", "scheme", "params", "honor_labels"),
    *("honor_timestamps", "authorization", "bearer_token_file", "sample_limit", "label_limit", "target_limit"),
    *("static_configs", "kubernetes_sd_configs", "relabel_configs", "metric_relabel_configs", "body_size_limit"),
}
"""Options of the sections that the User Guide allows. Everything else is refused."""

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path
ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}(:\d{1,5})?")
DURATION = re.compile(r"((?P<h>\d+)h)?((?P<m>\d+)m)?((?P<s>\d+)s)?((?P<ms>\d+)ms)?")
ACCESS_POLICY = "AmazonPrometheusScraperPolicy"
ACTIVE = {"statusCode": "ACTIVE"}


class ScraperActions(CheckedInput):
    """The actions on scrapers. A scraper becomes ACTIVE at once."""

    @property
    def scrapers(self) -> dict[str, dict[str, Any]]:
        """The scrapers of the Region by id."""
        kept: dict[str, dict[str, Any]] = self.amp_backend.__dict__.setdefault("scrapers", {})
        return kept

    @property
    def _references(self) -> References:
        return References(self.current_account, self.region, self.partition)

    def create_scraper(self) -> ActionResult:
        """Create a scraper with its service-linked role, network interfaces and access entry."""
        request = self.params
        if len(self.scrapers) >= MAX_SCRAPERS:
            message = f"The Region has {MAX_SCRAPERS} scrapers, which is the limit."
            members = {"resourceId": self.region, "resourceType": _KIND, "serviceCode": "aps", "quotaCode": "scrapers"}
            raise Refusal("ServiceQuotaExceededException", message, **members)
        source = request["source"].get("eksConfiguration")
        if source is None:
            raise _invalid("source", "The embedded AWS has scrapers of EKS clusters only.")
        check_configuration(request["scrapeConfiguration"].get("configurationBlob"))
        cluster, subnets, groups = self._source(source)
        self._destination(request["destination"], request.get("roleConfiguration"))
        scraper_id = f"s-{uuid.uuid4()}"
        arn = f"arn:{self.partition}:aps:{self.region}:{self.current_account}:scraper/{scraper_id}"
        role = self._service_linked_role(internal=bool(request.get("roleConfiguration")))
        now = datetime.datetime.now(datetime.UTC)
        given = {name: copy.deepcopy(request.get(name)) for name in (*_CHANGEABLE, "source")}
        scraper = {
            "scraperId": scraper_id,
            "arn": arn,
            "roleArn": role,
            "createdAt": now,
            "lastModifiedAt": now,
            **given,
        }
        interfaces = [
            self._references.network_interface(subnet, groups, f"AMP scraper {scraper_id}").id for subnet in subnets
        ]
        self.scrapers[scraper_id] = {
            "description": scraper,
            "interfaces": interfaces,
            "entry": self._access_entry(cluster, role),
        }
        self.amp_backend.tag_resource(arn, request.get("tags") or {})
        return ActionResult({"scraperId": scraper_id, "arn": arn, "status": ACTIVE})

    def describe_scraper(self) -> ActionResult:
        """One scraper."""
        return ActionResult({"scraper": self._view(self._scraper()["description"])})

    def list_scrapers(self) -> ActionResult:
        """All scrapers, without their configurations."""
        views = [self._view(scraper["description"]) for scraper in self.scrapers.values()]
        return self.page("scrapers", [{n: v for n, v in view.items() if n != "scrapeConfiguration"} for view in views])

    def update_scraper(self) -> ActionResult:
        """Change alias, configuration, destination or roles; a request with a destination and no roles removes them."""
        scraper, request = self._scraper()["description"], self.params
        if request.get("scrapeConfiguration"):
            check_configuration(request["scrapeConfiguration"].get("configurationBlob"))
        destination = request.get("destination") or scraper["destination"]
        roles = request.get("roleConfiguration")
        if request.get("destination") or roles:
            self._destination(destination, roles)
            scraper["roleConfiguration"] = copy.deepcopy(roles)
        for name in ("alias", "scrapeConfiguration", "destination"):
            if request.get(name) is not None:
                scraper[name] = copy.deepcopy(request[name])
        scraper["lastModifiedAt"] = datetime.datetime.now(datetime.UTC)
        return ActionResult({"scraperId": scraper["scraperId"], "arn": scraper["arn"], "status": ACTIVE})

    def delete_scraper(self) -> ActionResult:
        """Delete a scraper, its network interfaces, its role and its access entry."""
        scraper = self._scraper()
        description = scraper["description"]
        for interface in scraper["interfaces"]:
            self._references.delete_network_interface(interface)
        eks = self._references.backend("eks")
        if scraper["entry"] in eks.children:
            eks.remove([scraper["entry"]])
        roles = self._references.backend("iam").roles
        roles.pop(next(key for key, role in roles.items() if role.arn == description["roleArn"]))
        del self.scrapers[description["scraperId"]]
        return ActionResult({"scraperId": description["scraperId"], "status": {"statusCode": "DELETING"}})

    def update_scraper_logging_configuration(self) -> ActionResult:
        """Send the scraper's own logs to a log group."""
        scraper, arn = self._scraper(), self.params["loggingDestination"]["cloudWatchLogs"]["logGroupArn"]
        if self._references.log_group(arn) is None:
            raise _invalid("logGroupArn", f"{arn} is not a log group of this account and Region.")
        names = ("loggingDestination", "scraperComponents")
        now = datetime.datetime.now(datetime.UTC)
        scraper["logging"] = {**{name: copy.deepcopy(self.params[name]) for name in names}, "modifiedAt": now}
        return ActionResult({"status": ACTIVE})

    def describe_scraper_logging_configuration(self) -> ActionResult:
        """Where the scraper's own logs go."""
        scraper = self._scraper()
        if "logging" not in scraper:
            raise _missing(
                f"Scraper {self.params['scraperId']} has no logging configuration.", self.params["scraperId"]
            )
        return ActionResult({"status": ACTIVE, "scraperId": self.params["scraperId"], **scraper["logging"]})

    def delete_scraper_logging_configuration(self) -> ActionResult:
        """Stop the scraper's own logs."""
        self._scraper().pop("logging", None)
        return EmptyResult()

    # helpers

    def _scraper(self) -> dict[str, Any]:
        scraper_id = self.params["scraperId"]
        if scraper_id not in self.scrapers:
            raise _missing(f"Scraper {scraper_id} was not found.", scraper_id)
        return self.scrapers[scraper_id]

    def _view(self, scraper: dict[str, Any]) -> dict[str, Any]:
        told = {name: value for name, value in scraper.items() if value is not None}
        return {**told, "status": ACTIVE, "tags": self.amp_backend.list_tags_for_resource(scraper["arn"])}

    def _source(self, source: dict[str, Any]) -> tuple[Cluster, list[Any], list[str]]:
        """The cluster, the subnets and the ids of the security groups, if the scraper can reach the cluster."""
        eks, arn = self._references.backend("eks"), source["clusterArn"]
        cluster = next((one for one in eks.clusters.values() if one["arn"] == arn), None)
        if cluster is None:
            raise _missing(f"EKS cluster {arn} was not found.", arn)
        vpc = cluster["resourcesVpcConfig"]
        if not vpc["endpointPrivateAccess"]:
            raise _invalid("clusterArn", "the cluster must have private endpoint access enabled.")
        if cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
            raise _invalid("clusterArn", "the embedded AWS needs authentication mode API or API_AND_CONFIG_MAP.")
        subnets = [self._references.subnet(subnet_id) for subnet_id in source["subnetIds"]]
        for subnet_id, subnet in zip(source["subnetIds"], subnets, strict=True):
            if subnet is None or subnet.vpc_id != vpc["vpcId"]:
                raise _invalid("subnetIds", f"subnet {subnet_id} does not exist in the VPC of the cluster.")
            if not int(subnet.available_ip_address_count):
                raise _invalid("subnetIds", f"subnet {subnet_id} has no free address.")
        if len({subnet.availability_zone for subnet in subnets}) < 2:
            raise _invalid("subnetIds", "at least two subnets in at least two Availability Zones are required.")
        groups = source.get("securityGroupIds") or [vpc["clusterSecurityGroupId"]]
        for group_id in groups:
            group = self._references.security_group(group_id)
            if group is None or group.vpc_id != vpc["vpcId"]:
                raise _invalid("securityGroupIds", f"security group {group_id} does not exist in the cluster's VPC.")
        return cluster, subnets, groups

    def _destination(self, destination: dict[str, Any], roles: dict[str, str] | None) -> None:
        """Refusal unless the workspace exists, and the scraper may write to it."""
        arn = (destination.get("ampConfiguration") or {}).get("workspaceArn", "")
        workspace = self.amp_backend.workspaces.get(arn.rpartition("/")[2])
        if workspace is None or workspace.arn != arn:
            raise _missing(f"Workspace {arn} was not found.", arn)
        if roles:
            self._check_roles(roles)
        elif workspace.added.get("kmsKeyArn"):
            message = "a workspace with a customer managed key requires a role configuration."
            raise _invalid("roleConfiguration", message)

    def _check_roles(self, roles: dict[str, str]) -> None:
        source, target = (self._references.role(roles.get(name, "")) for name in ("sourceRoleArn", "targetRoleArn"))
        if source is None or not allows_service(source, SERVICE):
            raise _invalid("sourceRoleArn", f"{SERVICE} cannot assume {roles.get('sourceRoleArn')}.")
        if target is None or not _trusts(target, source.arn):
            raise _invalid("targetRoleArn", f"{source.arn} cannot assume {roles.get('targetRoleArn')}.")

    def _service_linked_role(self, *, internal: bool) -> str:
        """Create the role with which the service reaches the cluster. Returns its ARN."""
        name = f"AWSServiceRoleForAmazonPrometheusScraper{'Internal' if internal else ''}_{secrets.token_hex(8)}"
        iam = get_backend("iam")[self.current_account][self.partition]
        trust = {"Effect": "Allow", "Principal": {"Service": SERVICE}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        made = iam.create_role(name, document, f"/aws-service-role/{SERVICE}/", None, "", [], "3600")
        return str(made.arn)

    def _access_entry(self, cluster: Cluster, role: str) -> Item:
        """The entry that the service creates in the cluster, with its access policy."""
        name = role.rpartition("/")[2]
        path = f"access-entry/{cluster['name']}/role/{self.current_account}/{name}"
        eks, now = self._references.backend("eks"), datetime.datetime.now(datetime.UTC)
        policy = f"arn:{self.partition}:eks::aws:cluster-access-policy/{ACCESS_POLICY}"
        scope = {"type": "cluster", "namespaces": []}
        told = {"policyArn": policy, "accessScope": scope, "associatedAt": now, "modifiedAt": now}
        entry = {
            "clusterName": cluster["name"],
            "principalArn": role,
            "accessEntryArn": eks.arn("eks", f"{path}/{secrets.token_hex(16)}"),
            "type": "STANDARD",
            "username": f"arn:aws:sts::{self.current_account}:assumed-role/{name}/{{{{SessionName}}}}",
            "kubernetesGroups": [],
            "policies": {policy: told},
        }
        made: Item = eks.store(Item("access-entry", entry), {})
        return made


def check_configuration(blob: bytes | None) -> None:
    """Refusal of a scrape configuration that the service does not accept."""
    try:
        content = load_yaml((blob or b"").decode())
    except (ValueError, yaml.YAMLError) as error:
        raise _invalid("scrapeConfiguration", f"it is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise _invalid("scrapeConfiguration", "it is not a Prometheus configuration.")
    if found := next(_problems(content), None):
        raise _invalid("scrapeConfiguration", found)


def _problems(content: dict[str, Any]) -> Iterator[str]:
    if unknown := sorted(content.keys() - {"global", "scrape_configs"}):
        yield f"section {unknown[0]} is not supported."
    overall = content.get("global") or {}
    yield from _options("global", overall, GLOBAL)
    yield from _interval("global", overall)
    jobs = content.get("scrape_configs") or []
    if not jobs:
        yield "scrape_configs is empty."
    names = [job.get("job_name") for job in jobs]
    for name in names:
        if not name or names.count(name) > 1:
            yield f"job_name {name} is empty or not unique."
    for job in jobs:
        yield from _job_problems(job)


def _job_problems(job: dict[str, Any]) -> Iterator[str]:
    where = f"job {job.get('job_name')}"
    yield from _options(where, job, JOB)
    yield from _interval(where, job)
    for discovery in job.get("kubernetes_sd_configs") or ():
        if "api_server" in discovery or "kubeconfig_file" in discovery:
            yield f"{where}: kubernetes_sd_configs cannot name an API server."
        if discovery.get("role") not in ("node", "service", "pod", "endpoints", "endpointslice", "ingress"):
            yield f"{where}: role {discovery.get('role')} of kubernetes_sd_configs is unknown."
    for static in job.get("static_configs") or ():
        for target in static.get("targets") or ():
            if not ADDRESS.fullmatch(str(target)):
                yield f"{where}: target {target} is not an IP address."
    authorization = job.get("authorization")
    if authorization and (authorization.get("type", "Bearer"), authorization.get("credentials_file")) != (
        "Bearer",
        TOKEN,
    ):
        yield f"{where}: authorization must be Bearer with {TOKEN}."
    for kind in ("relabel_configs", "metric_relabel_configs"):
        for rule in job.get(kind) or ():
            try:
                re.compile(str(rule.get("regex", "")))
            except re.error as error:
                yield f"{where}: {kind} has an invalid regex: {error}."


def _options(where: str, section: dict[str, Any], allowed: set[str]) -> Iterator[str]:
    for name in sorted(section.keys() - allowed):
        yield f"{where}: option {name} is not supported."


def _interval(where: str, section: dict[str, Any]) -> Iterator[str]:
    if "scrape_interval" not in section:
        return
    found = DURATION.fullmatch(str(section["scrape_interval"]))
    parts = {unit: int(number or 0) for unit, number in (found.groupdict() if found else {}).items()}
    seconds = parts.get("h", 0) * 3600 + parts.get("m", 0) * 60 + parts.get("s", 0) + parts.get("ms", 0) / 1000
    if seconds < SHORTEST_INTERVAL_SECONDS:
        shown = section["scrape_interval"]
        yield f"{where}: scrape_interval {shown} is shorter than {SHORTEST_INTERVAL_SECONDS} seconds."


def _trusts(role: Any, principal: str) -> bool:
    """Whether the trust policy of a role lets `principal` assume it. Conditions depend on a later request."""
    text = role.assume_role_policy_document
    document = json.loads(text) if isinstance(text, str) else text
    for statement in document.get("Statement", ()):
        trusted = statement.get("Principal") or {}
        named = trusted.get("AWS", ()) if isinstance(trusted, dict) else ()
        if statement.get("Effect") == "Allow" and principal in ([named] if isinstance(named, str) else named):
            return True
    return False


def add_paths(dispatch: Any) -> None:
    """Add the paths of scrapers to moto's."""
    scraper = "{0}/scrapers/(?P<scraper_id>[^/]+)"
    for path in ("{0}/scrapers$", f"{scraper}$", f"{scraper}/logging-configuration$"):
        urls.url_paths[path] = dispatch


_KIND = "AWS::APS::Scraper"
_CHANGEABLE = ("alias", "scrapeConfiguration", "destination", "roleConfiguration")


def _invalid(field: str, message: str) -> Refusal:
    listed = [{"name": field, "message": message}]
    return Refusal("ValidationException", f"{field}: {message}", reason="FIELD_VALIDATION_FAILED", fieldList=listed)


def _missing(message: str, resource_id: str) -> Refusal:
    return Refusal("ResourceNotFoundException", message, resourceId=resource_id, resourceType=_KIND)
