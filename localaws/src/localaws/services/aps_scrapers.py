"""Managed scrapers of the embedded AMP: what the service checks, and what it creates in the VPC and in the cluster.

Source: AMP User Guide, "Set up managed collectors for Amazon EKS"; AMP API reference, CreateScraper and UpdateScraper;
AWS managed policies AmazonPrometheusFullAccess and AmazonPrometheusScraperServiceRolePolicy (2026).
"""

import datetime
import json
import re
import secrets
import uuid
from collections.abc import Iterator
from typing import Any

import yaml

from localaws.documents import load_yaml
from localaws.services.aps_alerting import duration
from localaws.services.eks_access import add_entry, policies_of
from localaws.services.eks_store import Cluster
from localaws.services.service import Refusal, invalid
from localaws.services.store import Call, Item, Kind, Rule
from localaws.services.trust import allows_principal, allows_service

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
ACCESS_POLICY = "AmazonPrometheusScraperPolicy"


def _configuration(call: Call) -> None:
    if call.request.get("scrapeConfiguration"):
        check_configuration(call.request["scrapeConfiguration"].get("configurationBlob"))


def _source(call: Call) -> tuple[Cluster, list[Any], list[str]]:
    """The cluster, the subnets and the ids of the security groups, if the scraper can reach the cluster."""
    source, references = call.request["source"].get("eksConfiguration"), call.references
    if source is None:
        raise invalid("source", "The embedded AWS has scrapers of EKS clusters only.")
    arn = source["clusterArn"]
    cluster = next((one for one in references.backend("eks").clusters.values() if one["arn"] == arn), None)
    if cluster is None:
        raise _missing(call, f"EKS cluster {arn} was not found.", arn)
    vpc = cluster["resourcesVpcConfig"]
    if not vpc["endpointPrivateAccess"]:
        raise invalid("clusterArn", "the cluster must have private endpoint access enabled.")
    if cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        raise invalid("clusterArn", "the embedded AWS needs authentication mode API or API_AND_CONFIG_MAP.")
    subnets = [references.subnet(subnet_id) for subnet_id in source["subnetIds"]]
    for subnet_id, subnet in zip(source["subnetIds"], subnets, strict=True):
        if subnet is None or subnet.vpc_id != vpc["vpcId"]:
            raise invalid("subnetIds", f"subnet {subnet_id} does not exist in the VPC of the cluster.")
        if not int(subnet.available_ip_address_count):
            raise invalid("subnetIds", f"subnet {subnet_id} has no free address.")
    if len({subnet.availability_zone for subnet in subnets}) < 2:
        raise invalid("subnetIds", "at least two subnets in at least two Availability Zones are required.")
    groups = source.get("securityGroupIds") or [vpc["clusterSecurityGroupId"]]
    for group_id in groups:
        group = references.security_group(group_id)
        if group is None or group.vpc_id != vpc["vpcId"]:
            raise invalid("securityGroupIds", f"security group {group_id} does not exist in the cluster's VPC.")
    return cluster, subnets, groups


def _destination(call: Call) -> None:
    """Refusal unless the workspace exists, and the scraper may write to it."""
    request, roles = call.request, call.request.get("roleConfiguration")
    if not request.get("destination") and not roles:
        return
    arn = (call.new["destination"].get("ampConfiguration") or {}).get("workspaceArn", "")
    workspace = next((item for item in call.store.items if item.kind.noun == "Workspace" and item.arn == arn), None)
    if workspace is None:
        raise _missing(call, f"Workspace {arn} was not found.", arn)
    if not roles:
        if workspace.description.get("kmsKeyArn"):
            message = "a workspace with a customer managed key requires a role configuration."
            raise invalid("roleConfiguration", message)
        return
    source, target = (call.references.role(roles.get(name, "")) for name in ("sourceRoleArn", "targetRoleArn"))
    if source is None or not allows_service(source, SERVICE):
        raise invalid("sourceRoleArn", f"{SERVICE} cannot assume {roles.get('sourceRoleArn')}.")
    if target is None or not allows_principal(target, source.arn):
        raise invalid("targetRoleArn", f"{source.arn} cannot assume {roles.get('targetRoleArn')}.")


def _missing(call: Call, message: str, arn: str) -> Refusal:
    return call.store.refusal(call.kind, "ResourceNotFoundException", message, arn)


def _changes(call: Call) -> None:
    """An update with a destination and no roles removes them."""
    if call.item and call.request.get("destination") and not call.request.get("roleConfiguration"):
        call.new.pop("roleConfiguration", None)


def _connect(call: Call) -> None:
    """Create the role with which the service reaches the cluster, its access entry, and the network interfaces."""
    scraper, (cluster, subnets, groups) = call.target, _source(call)
    kind = "Internal" if call.request.get("roleConfiguration") else ""
    name = f"AWSServiceRoleForAmazonPrometheusScraper{kind}_{secrets.token_hex(8)}"
    trust = {"Effect": "Allow", "Principal": {"Service": SERVICE}, "Action": "sts:AssumeRole"}
    document, path = json.dumps({"Version": "2012-10-17", "Statement": [trust]}), f"/aws-service-role/{SERVICE}/"
    role = call.references.backend("iam").create_role(name, document, path, None, "", [], "3600")
    scraper.description["roleArn"] = str(role.arn)
    scraper.owned["interfaces"] = [
        call.references.network_interface(subnet, groups, f"AMP scraper {scraper.id}").id for subnet in subnets
    ]
    scraper.owned["entry"] = _access_entry(call, cluster, str(role.arn))


def _disconnect(call: Call) -> None:
    scraper, eks, roles = call.target, call.references.backend("eks"), call.references.backend("iam").roles
    for interface in scraper.owned["interfaces"]:
        call.references.delete_network_interface(interface)
    if scraper.owned["entry"] in eks.items:
        eks.remove(scraper.owned["entry"])
    roles.pop(next(key for key, role in roles.items() if role.arn == scraper["roleArn"]))


def _access_entry(call: Call, cluster: Cluster, role: str) -> Item:
    """The entry that the service creates in the cluster, with its access policy."""
    name, now = role.rpartition("/")[2], datetime.datetime.now(datetime.UTC)
    user = f"arn:aws:sts::{call.store.account_id}:assumed-role/{name}/{{{{SessionName}}}}"
    members = {"type": "STANDARD", "username": user, "kubernetesGroups": []}
    entry = add_entry(call.references.backend("eks"), cluster, role, clusterName=cluster.id, **members)
    policy = f"arn:{call.store.partition}:eks::aws:cluster-access-policy/{ACCESS_POLICY}"
    told = {"policyArn": policy, "accessScope": {"type": "cluster", "namespaces": []}}
    policies_of(entry)[policy] = {**told, "associatedAt": now, "modifiedAt": now}
    return entry


SCRAPER = Kind(
    noun="Scraper",
    address="scraperId",
    new_id=lambda _: f"s-{uuid.uuid4()}",
    arn="scraper/{scraperId}",
    quota=MAX_SCRAPERS,
    full="The Region has {limit} scrapers, which is the limit.",
    describe=_changes,
    made=_connect,
    removed=_disconnect,
)
RULES = (
    Rule("CreateScraper UpdateScraper", _configuration, "User Guide, managed collectors, scraper configuration"),
    Rule("CreateScraper", lambda call: _source(call) and None, "User Guide, managed collectors for Amazon EKS"),
    Rule("CreateScraper UpdateScraper", _destination, "API Reference, CreateScraper; User Guide, cross-account setup"),
)


def check_configuration(blob: bytes | None) -> None:
    """Refusal of a scrape configuration that the service does not accept."""
    try:
        content = load_yaml((blob or b"").decode())
    except (ValueError, yaml.YAMLError) as error:
        raise invalid("scrapeConfiguration", f"it is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise invalid("scrapeConfiguration", "it is not a Prometheus configuration.")
    if found := next(_problems(content), None):
        raise invalid("scrapeConfiguration", found)


def _problems(content: dict[str, Any]) -> Iterator[str]:
    if unknown := sorted(content.keys() - {"global", "scrape_configs"}):
        yield f"section {unknown[0]} is not supported."
    overall = content.get("global") or {}
    yield from _section("global", overall, GLOBAL)
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
    yield from _section(where, job, JOB)
    for discovery in job.get("kubernetes_sd_configs") or ():
        if "api_server" in discovery or "kubeconfig_file" in discovery:
            yield f"{where}: kubernetes_sd_configs cannot name an API server."
        if discovery.get("role") not in ("node", "service", "pod", "endpoints", "endpointslice", "ingress"):
            yield f"{where}: role {discovery.get('role')} of kubernetes_sd_configs is unknown."
    for static in job.get("static_configs") or ():
        for target in static.get("targets") or ():
            if not ADDRESS.fullmatch(str(target)):
                yield f"{where}: target {target} is not an IP address."
    given = job.get("authorization")
    if given and (given.get("type", "Bearer"), given.get("credentials_file")) != ("Bearer", TOKEN):
        yield f"{where}: authorization must be Bearer with {TOKEN}."
    for kind in ("relabel_configs", "metric_relabel_configs"):
        for rule in job.get(kind) or ():
            try:
                re.compile(str(rule.get("regex", "")))
            except re.error as error:
                yield f"{where}: {kind} has an invalid regex: {error}."


def _section(where: str, section: dict[str, Any], allowed: set[str]) -> Iterator[str]:
    """Options that are not allowed, and an interval that is too short."""
    for name in sorted(section.keys() - allowed):
        yield f"{where}: option {name} is not supported."
    shown = section.get("scrape_interval", "1m")
    if (duration(shown) or 0) < SHORTEST_INTERVAL_SECONDS:
        yield f"{where}: scrape_interval {shown} is shorter than {SHORTEST_INTERVAL_SECONDS} seconds."
