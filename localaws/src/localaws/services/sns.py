"""SNS: topics show the attributes that moto keeps and does not return."""

from typing import Any

from moto.sns.responses import SNSResponse

from localaws.services.patching import patch_method

_HIDDEN = {"SignatureVersion": "signature_version", "TracingConfig": "tracing_config"}
"""Attributes of a topic (SNS API reference, GetTopicAttributes, 2026), and where moto keeps what was set."""


def activate() -> None:
    """Patch moto's read of topics."""
    patch_method(SNSResponse, "get_topic_attributes", _get_topic_attributes)


def _get_topic_attributes(original: Any, self: SNSResponse) -> Any:
    answer = original(self)
    topic = self.backend.get_topic(self._get_param("TopicArn"))
    shown = {name: getattr(topic, kept) for name, kept in _HIDDEN.items() if getattr(topic, kept, None)}
    answer.result["Attributes"] |= shown
    return answer
