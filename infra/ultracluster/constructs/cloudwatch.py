"""CloudWatch metrics that services publish by themselves."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aws_cdk import aws_cloudwatch as cloudwatch


def service_metric(
    namespace: str, name: str, dimensions: Mapping[str, str], options: Mapping[str, Any]
) -> "cloudwatch.Metric":
    """The metric `name` of one resource. `options` are further arguments of `cloudwatch.Metric`, such as period."""
    # here, since no stack of this package uses metrics and the module takes a while to load
    from aws_cdk import aws_cloudwatch as cloudwatch

    return cloudwatch.Metric(namespace=namespace, metric_name=name, dimensions_map=dict(dimensions), **options)
