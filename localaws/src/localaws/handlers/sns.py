"""SNS: topics, their policies and subscriptions. An e-mail address has to confirm its subscription."""

import json
import re
from collections.abc import Mapping
from typing import Any

from localaws.handlers.common import json_text
from localaws.resources import Context, HandlerError, Properties, pick
from localaws.rows.existing import known
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting

_TOPIC = {
    "ContentBasedDeduplication": "false",
    "DisplayName": "",
    "KmsMasterKeyId": "",
    "SignatureVersion": "1",
    "TracingConfig": "PassThrough",
}
"""Attributes of a topic, with their defaults (SNS API reference, SetTopicAttributes, 2026)."""

_SUBSCRIPTION = {
    "FilterPolicyScope": "MessageAttributes",
    "DeliveryPolicy": "",
    "FilterPolicy": {},
    "RawMessageDelivery": "false",
    "RedrivePolicy": "",
}
"""Attributes of a subscription, with their defaults (SNS API reference, SetSubscriptionAttributes, 2026).

The scope comes first: SNS checks the filter by it.
"""

_ADDRESS = r"[^@\s]+@[^@\s]+\.[^@\s]+"
_PROTOCOLS = {
    "email": _ADDRESS,
    "email-json": _ADDRESS,
    "http": r"http://\S+",
    "https": r"https://\S+",
    "lambda": r"arn:aws[a-z-]*:lambda:\S+",
    "sqs": r"arn:aws[a-z-]*:sqs:\S+",
}
"""Endpoints of the protocols that are supported here (SNS API reference, Subscribe, 2026)."""

_SERVICE = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.amazonaws\.com")


def require_topic(context: Context, arn: str) -> None:
    """HandlerError when the topic does not exist, or is in another Region. Topics of other accounts are not known."""
    region, account = arn.split(":")[3:5]
    if region != context.region:
        raise HandlerError(f"Invalid region {region} specified. Only {context.region} is supported.")
    if account == context.account:
        known(context, "topic", arn)


def _put_policy(context: Context, old: Properties, new: Properties) -> None:
    """Put the policy on every topic. Topics without one get the default policy: the account may use them."""
    sns, document = context.client("sns"), new.get("PolicyDocument")
    for arn in _topics(new):
        require_topic(context, arn)
        _check_policy(arn, document if isinstance(document, dict) else json.loads(str(document)))
        sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=json_text(document))
    for arn in sorted(_topics(old) - _topics(new)):
        default = json.dumps(_default_policy(arn, context.account))
        sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=default)


def _topics(properties: Properties) -> set[str]:
    return {*properties.get("Topics", ()), *pick(properties, "TopicArn").values()}


def _default_policy(arn: str, account: str) -> dict[str, Any]:
    statement = {
        "Sid": "__default_statement_ID",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["SNS:Publish", "SNS:Subscribe", "SNS:GetTopicAttributes", "SNS:SetTopicAttributes"],
        "Resource": arn,
        "Condition": {"StringEquals": {"AWS:SourceOwner": account}},
    }
    return {"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]}


def _check_subscription(context: Context, _: Properties, new: Properties) -> None:
    protocol, endpoint = new["Protocol"], str(new.get("Endpoint", ""))
    if protocol not in _PROTOCOLS:
        raise HandlerError(f"the embedded AWS does not support subscriptions by {protocol}")
    if not re.fullmatch(_PROTOCOLS[protocol], endpoint):
        raise HandlerError(f"Invalid parameter: {protocol.capitalize()} endpoint {endpoint!r}")
    require_topic(context, new["TopicArn"])


def _check_topic(_: Context, __: Properties, properties: Properties) -> None:
    """SNS API reference, CreateTopic (2026)."""
    name = properties.get("TopicName", f"generated{'.fifo' if properties.get('FifoTopic') else ''}")
    suffix = ".fifo" if properties.get("FifoTopic") else ""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", name.removesuffix(suffix)) or not name.endswith(suffix):
        raise HandlerError(f"Invalid parameter: Topic Name {name}")
    if properties.get("SignatureVersion", "1") not in ("1", "2"):
        raise HandlerError("Invalid parameter: SignatureVersion is 1 or 2")
    if len(properties.get("DisplayName", "")) > 100:
        raise HandlerError("Invalid parameter: DisplayName has at most 100 characters")


def _check_policy(topic: str, document: dict[str, Any]) -> None:
    """Each statement names the topic, actions of SNS and a principal that exists (SNS Developer Guide, policies)."""
    for statement in document["Statement"]:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        if outside := [action for action in actions if not action.lower().startswith("sns:")]:
            raise HandlerError(f"Invalid parameter: Policy statement action out of service scope: {outside[0]}")
        resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        if topic not in resources:
            raise HandlerError("Invalid parameter: Policy Error: the resource must be the topic's ARN")
        principal = statement["Principal"]
        services = principal.get("Service", []) if isinstance(principal, dict) else []
        for service in [services] if isinstance(services, str) else services:
            if not _SERVICE.fullmatch(service):
                raise HandlerError("Invalid parameter: Policy Error: PrincipalNotFound")


def _attributes(action: str, defaults: Mapping[str, Any]) -> tuple[Setting, ...]:
    """A call for each attribute that changes."""
    return tuple(
        Setting(
            name,
            put=action,
            fixed={"AttributeName": name},
            renames={name: "AttributeValue"},
            reset={name: default},
            at_creation=False,
        )
        for name, default in defaults.items()
    )


register(
    Row(
        type="AWS::SNS::Topic",
        service="sns",
        ignored="DataProtectionPolicy",
        name=("TopicName", 256),
        name_suffix={"FifoTopic": ".fifo"},
        renames={name: f"Attributes.{name}" for name in (*_TOPIC, "FifoTopic")},
        settings=_attributes("SetTopicAttributes", _TOPIC),
        attributes={"TopicArn": "{ref}", "TopicName": "{ref:}"},
        arn="{ref}",
        must_exist={"KmsMasterKeyId": "KMS key"},
        check=_check_topic,
    ),
    Row(
        type="AWS::SNS::TopicPolicy",
        service="sns",
        name=("Id", 100),
        ref="{Id}",
        tags=None,
        by_hand="PolicyDocument Topics",
        hook=_put_policy,
        hook_on_delete=True,
    ),
    Row(
        type="AWS::SNS::TopicInlinePolicy",
        service="sns",
        ref="{TopicArn}",
        tags=None,
        by_hand="PolicyDocument TopicArn",
        hook=_put_policy,
        hook_on_delete=True,
    ),
    Row(
        type="AWS::SNS::Subscription",
        service="sns",
        create="Subscribe",
        delete="Unsubscribe",
        ident={"ReturnSubscriptionArn": "true", "SubscriptionArn": "{ref}"},
        renames={name: f"Attributes.{name}" for name in _SUBSCRIPTION},
        settings=_attributes("SetSubscriptionAttributes", _SUBSCRIPTION),
        tags=None,
        check=_check_subscription,
    ),
)
