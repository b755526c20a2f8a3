"""Flow logs to a folder in a bucket. moto reads the folder as part of the bucket's name."""

from typing import Any

from moto.ec2.models.flow_logs import FlowLogsBackend

from localaws.services.patching import patch_method


def activate() -> None:
    """Check only the bucket, and store the folder."""
    patch_method(FlowLogsBackend, "create_flow_logs", _create)


def _create(original: Any, self: Any, log_destination: str | None = None, **kwargs: Any) -> Any:
    bucket = log_destination
    if log_destination and log_destination.startswith("arn:aws:s3:::"):
        bucket = log_destination.split("/")[0]
    made, errors = original(self, log_destination=bucket, **kwargs)
    for flow_log in made:
        flow_log.log_destination = log_destination
    return made, errors
