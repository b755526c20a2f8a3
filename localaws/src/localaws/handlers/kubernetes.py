"""Custom::AWSCDK-EKS-HelmChart and -KubernetesResource: a record of what the CDK's kubectl function would do.

The CDK's handler does not run, because no Kubernetes runs. A handler of the function's layers that calls it does run.
Errors are raised here, in CloudFormation's words for a failed function. The function returns no physical id, so the
CDK's provider framework keeps the id of the first request, and no change is a replacement.
"""

import io
import json
import re
import uuid
import zipfile
from collections.abc import Iterable
from typing import Any, cast

import yaml
from botocore.exceptions import ClientError
from moto.backends import get_backend
from moto.core.exceptions import ServiceException

from localaws.handlers.common import function_failed
from localaws.handlers.layered import call
from localaws.resources import Context, Handler, HandlerError, Properties, Resource, handler
from localaws.rows.existing import existing
from localaws.services.eks_access import ENTRY, is_cluster_admin
from localaws.services.eks_endpoint import check_endpoint_access
from localaws.services.eks_store import Cluster, EksStore
from localaws.services.kubernetes import CHART_GROUPS, Kubernetes, Rejected, Release, parse_manifests

MAX_TIMEOUT_SECONDS = 900  # of a Lambda function, hence of helm in it
ON_EVENT = "USER_ON_EVENT_FUNCTION_ARN"  # where the CDK's provider framework has the ARN of its function
_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_CRD_GROUP = re.compile(r"^  group: ([\w.-]+)$", re.MULTILINE)


class _KubectlHandler(Handler):
    """Base of both types: connects to the cluster as the function would, and reports its errors."""

    def create(self, context: Context, properties: Properties) -> Resource:
        """Record a Create request."""
        return Resource(str(uuid.uuid4()), self._apply(context, {}, properties))

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Record an Update request."""
        return Resource(physical_id, self._apply(context, old, new))

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Remove the record. The function ignores errors of the API server on Delete."""
        cluster, is_admin, _ = _cluster(context, properties)
        if is_admin:
            self._remove(cluster.kubernetes, properties)

    def _apply(self, context: Context, old: Properties, new: Properties) -> Properties:
        cluster, is_admin, function = _cluster(context, new)

        def answer() -> Properties:
            if not is_admin:
                raise Rejected("error: You must be logged in to the server (Unauthorized)")
            return self._record(context, cluster.kubernetes, old, new) or {}

        try:
            data: Properties = call(function, {"ResourceType": self.type, "ResourceProperties": new}, answer)
        except Rejected as error:
            raise function_failed(str(error)) from error
        return data

    def _record(self, context: Context, kubernetes: Kubernetes, old: Properties, new: Properties) -> Properties | None:
        raise NotImplementedError

    def _remove(self, kubernetes: Kubernetes, properties: Properties) -> None:
        raise NotImplementedError


@handler
class HelmChart(_KubectlHandler):
    """A Helm release.

    The function treats any text as true, even "false". SkipCrds has no effect, as in the CDK's second EKS module.
    """

    type = "Custom::AWSCDK-EKS-HelmChart"
    supported_properties = frozenset(
        {
            *("Atomic", "Chart", "ChartAssetURL", "ClusterName", "CreateNamespace", "Namespace", "Release"),
            *("Repository", "ServiceToken", "SkipCrds", "Timeout", "Values", "Version", "Wait"),
        }
    )

    def _record(self, context: Context, kubernetes: Kubernetes, old: Properties, new: Properties) -> None:
        chart, groups = _chart(context, new)
        kubernetes.install(
            Release(
                name=_release_name(new),
                namespace=new.get("Namespace", "default"),
                chart=chart,
                repository=new.get("Repository"),
                version=new.get("Version"),
                values=_values(new.get("Values")),
                wait="Wait" in new,
                timeout_seconds=_seconds(new["Timeout"]) if "Timeout" in new else None,
                atomic="Atomic" in new,
                create_namespace="CreateNamespace" in new,
                skip_crds="SkipCrds" in new,
                stack=context.stack_name,
                logical_id=context.logical_id,
                groups=groups,
            )
        )

    def _remove(self, kubernetes: Kubernetes, properties: Properties) -> None:
        kubernetes.uninstall(properties.get("Namespace", "default"), properties["Release"])


@handler
class KubernetesResource(_KubectlHandler):
    """Kubernetes objects of a manifest."""

    type = "Custom::AWSCDK-EKS-KubernetesResource"
    supported_properties = frozenset(
        {"ClusterName", "Manifest", "Overwrite", "PruneLabel", "ServiceToken", "SkipValidation"}
    )

    def _record(self, context: Context, kubernetes: Kubernetes, old: Properties, new: Properties) -> None:
        manifests = parse_manifests(new["Manifest"])
        if old:
            kubernetes.apply(manifests, new.get("PruneLabel"))
        elif new.get("Overwrite") == "true":
            kubernetes.apply(manifests)
        else:
            kubernetes.create(manifests)

    def _remove(self, kubernetes: Kubernetes, properties: Properties) -> None:
        kubernetes.delete(parse_manifests(properties["Manifest"]))


@handler
class KubernetesObjectValue(_KubectlHandler):
    """A field of an object, as soon as it has a value. A Job has succeeded once it is recorded."""

    type = "Custom::AWSCDK-EKS-KubernetesObjectValue"
    supported_properties = frozenset(
        {"ClusterName", "JsonPath", "ObjectName", "ObjectNamespace", "ObjectType", "ServiceToken", "TimeoutSeconds"}
    )

    def _record(self, context: Context, kubernetes: Kubernetes, old: Properties, new: Properties) -> Properties:
        kind, name, namespace = new["ObjectType"], new["ObjectName"], new["ObjectNamespace"]
        value = kubernetes.value(kind, name, namespace, new["JsonPath"])
        if not value:
            raise Rejected(
                f"Timeout waiting for output from kubectl command: ['get', '-n', '{namespace}', '{kind}', '{name}']"
            )
        return {"Value": value}

    def _remove(self, kubernetes: Kubernetes, properties: Properties) -> None:
        """Nothing: the resource only reads."""


def _cluster(context: Context, properties: Properties) -> tuple[Cluster, bool, dict[str, Any]]:
    """The cluster, whether the function's role is its administrator, and the function's configuration.

    HandlerError when the cluster cannot be reached.
    """
    function = _kubectl_function(context, properties["ServiceToken"])
    eks = cast("EksStore", get_backend("eks")[context.account][context.region])
    try:
        cluster = eks.cluster(properties["ClusterName"])
        check_endpoint_access(eks.references, cluster, function.get("VpcConfig") or {})
    except ServiceException as error:
        raise function_failed(error.message) from error
    return cluster, is_cluster_admin(eks.find(ENTRY, function["Role"], cluster)), function


def _kubectl_function(context: Context, token: str) -> dict[str, Any]:
    """The configuration of the function behind the provider in the service token."""
    if ":function:" not in token:
        raise HandlerError(f"the service token of {context.type} must be a Lambda function, not {token}")
    variables = existing(context, "function", token).get("Environment", {}).get("Variables", {})
    return {**existing(context, "function", variables.get(ON_EVENT, token))}


def _chart(context: Context, properties: Properties) -> tuple[str, tuple[str, ...]]:
    """The name of the chart and the API groups that it installs. Rejected when helm would not find it."""
    chart, asset = properties.get("Chart"), properties.get("ChartAssetURL")
    repository, version = properties.get("Repository"), properties.get("Version")
    if asset:
        if chart or repository or version:
            raise Rejected("ChartAssetURL cannot be combined with Chart, Repository or Version")
        return _asset(context, asset)
    if not chart:
        raise Rejected("chart or chartAsset must be specified")
    if repository is None and not chart.startswith(("https://", "oci://")):
        raise Rejected(f"Error: chart {chart} not found: no Repository is set")
    if repository and repository.startswith("oci://"):
        if not version:
            raise Rejected(f"an OCI chart needs a Version: {repository}")
        if repository.rpartition("/")[2] != chart:
            raise Rejected(f"the Repository of an OCI chart ends with the chart's name, {chart}: {repository} does not")
    name = chart.rpartition("/")[2]
    return name, tuple(CHART_GROUPS.get(name, ()))


def _asset(context: Context, url: str) -> tuple[str, tuple[str, ...]]:
    """Name and API groups of a chart archive in S3."""
    bucket, _, key = url.removeprefix("s3://").partition("/")
    try:
        packed = context.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            name = yaml.safe_load(archive.read("Chart.yaml"))["name"]
            texts = [archive.read(file).decode() for file in archive.namelist() if file.endswith((".yaml", ".yml"))]
    except (ClientError, KeyError, zipfile.BadZipFile) as error:
        raise Rejected(f"Error: Chart.yaml file is missing: {url} holds no chart ({error})") from error
    return name, tuple(sorted({*CHART_GROUPS.get(name, ()), *_defined_groups(texts)}))


def _defined_groups(texts: Iterable[str]) -> set[str]:
    """The API groups of the CustomResourceDefinitions in all files of a chart."""
    return {group for text in texts if "kind: CustomResourceDefinition" in text for group in _CRD_GROUP.findall(text)}


def _release_name(properties: Properties) -> str:
    name = str(properties["Release"])
    if not _RELEASE_NAME.fullmatch(name):
        raise Rejected(f"Error: release name {name!r} is invalid: lower-case letters, digits and hyphens, at most 53")
    return name


def _values(text: str | None) -> dict[str, Any]:
    try:
        values = json.loads(text or "{}")
    except ValueError as error:
        raise Rejected(f"Values is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise Rejected("Values is not a JSON object")
    return values


def _seconds(duration: str) -> int:
    """A Go duration of whole hours, minutes and seconds."""
    parts = _DURATION.fullmatch(duration)
    if parts is None or not duration:
        raise Rejected(f'Error: invalid argument "{duration}" for "--timeout" flag')
    hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    if (total := (hours * 60 + minutes) * 60 + seconds) > MAX_TIMEOUT_SECONDS:
        raise Rejected(f"Timeout {duration} is longer than the function's timeout of {MAX_TIMEOUT_SECONDS} seconds")
    return total
