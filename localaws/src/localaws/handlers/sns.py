"""AWS::SNS::Topic, TopicPolicy and Subscription."""

import json
import re
from typing import Any

from localaws.handlers.common import json_text
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    NotUpdatable,
    Properties,
    Resource,
    changed,
    handler,
    require,
    require_key,
)
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting

_ATTRIBUTES = {"DisplayName": "", "KmsMasterKeyId": "", "SignatureVersion": "1", "TracingConfig": "PassThrough"}
"""Attributes of a standard topic, with their defaults (SNS API reference, SetTopicAttributes, 2026)."""

_PROTOCOLS = {
    "email": r"[^@\s]+@[^@\s]+\.[^@\s]+",
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
        sns = context.client("sns")
        require(lambda: sns.get_topic_attributes(TopicArn=arn), f"topic {arn} does not exist")


@handler
class TopicPolicy(Handler):
    """The access policy of topics."""

    type = "AWS::SNS::TopicPolicy"
    supported_properties = frozenset({"PolicyDocument", "Topics"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Put the policy on every topic."""
        self._write(context, properties["Topics"], properties["PolicyDocument"])
        name = context.physical_name(100)
        return Resource(name, {"Id": name})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Put the policy again. Removing a topic from the list is not supported."""
        if set(old["Topics"]) - set(new["Topics"]):
            raise NotUpdatable(self.type, changed(old, new))
        self._write(context, new["Topics"], new["PolicyDocument"])
        return Resource(physical_id, {"Id": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Give every topic its default policy: the account may use it."""
        for arn in properties["Topics"]:
            everyone = {
                "Version": "2008-10-17",
                "Id": "__default_policy_ID",
                "Statement": [
                    {
                        "Sid": "__default_statement_ID",
                        "Effect": "Allow",
                        "Principal": {"AWS": "*"},
                        "Action": ["SNS:Publish", "SNS:Subscribe", "SNS:GetTopicAttributes", "SNS:SetTopicAttributes"],
                        "Resource": arn,
                        "Condition": {"StringEquals": {"AWS:SourceOwner": context.account}},
                    }
                ],
            }
            self._set(context, arn, json.dumps(everyone))

    def _write(self, context: Context, topics: list[str], document: Any) -> None:
        for arn in topics:
            require_topic(context, arn)
            _check_policy(arn, document if isinstance(document, dict) else json.loads(document))
            self._set(context, arn, json_text(document))

    def _set(self, context: Context, arn: str, policy: str) -> None:
        sns = context.client("sns")
        sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=policy)


@handler
class Subscription(Handler):
    """A subscription of a topic. Ref gives its ARN. An e-mail address has to confirm it."""

    type = "AWS::SNS::Subscription"
    supported_properties = frozenset({"Endpoint", "Protocol", "TopicArn"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Subscribe the endpoint."""
        protocol, endpoint = properties["Protocol"], str(properties.get("Endpoint", ""))
        if protocol not in _PROTOCOLS:
            raise HandlerError(f"the embedded AWS does not support subscriptions by {protocol}")
        if not re.fullmatch(_PROTOCOLS[protocol], endpoint):
            raise HandlerError(f"Invalid parameter: {protocol.capitalize()} endpoint {endpoint!r}")
        require_topic(context, properties["TopicArn"])
        made = context.client("sns").subscribe(
            TopicArn=properties["TopicArn"], Protocol=protocol, Endpoint=endpoint, ReturnSubscriptionArn=True
        )
        return Resource(made["SubscriptionArn"], {"Arn": made["SubscriptionArn"]})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """End the subscription."""
        context.client("sns").unsubscribe(SubscriptionArn=physical_id)


def _check_topic(context: Context, _: Properties, properties: Properties) -> None:
    """SNS API reference, CreateTopic (2026)."""
    name = properties.get("TopicName", "generated")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", name):
        raise HandlerError(f"Invalid parameter: Topic Name {name}")
    if key := properties.get("KmsMasterKeyId"):
        require_key(context, key)
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


register(
    Row(
        type="AWS::SNS::Topic",
        service="sns",
        ignored="DataProtectionPolicy",
        name=("TopicName", 256),
        create="CreateTopic",
        delete="DeleteTopic",
        ref="{TopicArn}",
        ident={"TopicArn": "{ref}"},
        renames={name: f"Attributes.{name}" for name in _ATTRIBUTES},
        settings=tuple(
            Setting(
                name,
                put="SetTopicAttributes",
                fixed={"AttributeName": name},
                renames={name: "AttributeValue"},
                reset={name: default},
                at_creation=False,
            )
            for name, default in _ATTRIBUTES.items()
        ),
        attributes={"TopicArn": "{ref}", "TopicName": "{ref:}"},
        arn="{ref}",
        check=_check_topic,
    ),
)
