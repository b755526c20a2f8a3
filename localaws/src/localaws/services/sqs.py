"""SQS: queue policies, which moto loses when another attribute changes, and encryption with SQS-managed keys."""

from typing import Any

from moto.sqs.models import Queue

from localaws.services.patching import patch_method


def activate() -> None:
    """Patch moto's queues."""
    patch_method(Queue, "_set_attributes", _set_attributes)
    Queue.sqs_managed_sse_enabled = True  # SQS: the default since October 2022
    Queue.BASE_ATTRIBUTES = [*Queue.BASE_ATTRIBUTES, "SqsManagedSseEnabled"]


def _set_attributes(original: Any, self: Any, attributes: dict[str, Any], now: float | None = None) -> None:
    kept = getattr(self, "_policy_json", None)
    original(self, attributes, now)
    if kept is not None and "Policy" not in attributes:
        self._policy_json = kept
