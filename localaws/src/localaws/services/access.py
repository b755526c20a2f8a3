"""Policies that moto keeps, evaluated by `permissions.decide`.

Only calls that AWS makes for a stack and those of custom resources are decided; the deploying principal may do
everything.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localaws.permissions import Document, NotEvaluated, Request, decide, denial
from localaws.records import records
from localaws.services.references import References

Context = Mapping[str, str | list[str]]
UNKNOWN_KEYS = ("aws:requesttag/", "aws:resourcetag/", "aws:tagkeys", ":resourcetag/")
"""Parts of condition keys that AWS sets on some requests, and this module on none."""
ENCRYPTION_CONTEXT = "kms:EncryptionContext:"


@dataclass(frozen=True)
class Caller:
    """Who makes a call: a role with its policies, or a service."""

    name: str  # the ARN of a role, or the principal of a service
    policies: tuple[Document, ...] = ()
    boundary: Document | None = None
    session: str | None = None  # ARN of the role's session, which messages name


def service_role(references: References, name: str, suffix: str = "") -> Caller:
    """AWS's service-linked role of this name."""
    about = records("service_roles")[name]
    arn = f"arn:{references.partition}:iam::{references.account}:role/{about['path']}/{name}{suffix}"
    return Caller(arn, (about["document"],))


def role_caller(references: References, role: Any, session: str) -> Caller:
    """A session of moto's role, with its inline and attached policies."""
    boundary = references.backend("iam").managed_policies.get(role.permissions_boundary_arn)
    return Caller(
        name=role.arn,
        policies=(*map(parsed, role.policies.values()), *map(_default_version, role.managed_policies.values())),
        boundary=_default_version(boundary) if boundary else None,
        session=session,
    )


def refusal(
    references: References, caller: Caller, action: str, resource: str | None, context: Context | None = None
) -> str | None:
    """AWS's message when policies deny the call; None when they allow it."""
    request = Request(
        principal=caller.name,
        action=action,
        resource=resource,
        owner=owner_of(references, resource),
        identity=caller.policies,
        boundary=caller.boundary,
        resource_policy=resource_policy(references, resource),
        unknown=UNKNOWN_KEYS,
        context={"aws:RequestedRegion": references.region, **(context or {})},
    )
    try:
        verdict = decide(request)
    except NotEvaluated as error:
        return f"The embedded AWS does not evaluate {error}, in the policies on {action}"
    return None if verdict.allowed else denial(request, verdict, caller.session)


def objects_refusal(references: References, caller: Caller, path: str, actions: tuple[str, ...]) -> str | None:
    """AWS's message when the bucket's policy, or that of the key of its objects, denies actions on `bucket/key`."""
    bucket = references.bucket(path.partition("/")[0])
    for action in actions:
        resource = f"arn:{references.partition}:s3:::{path if 'Object' in action else bucket.name}"
        message = refusal(references, caller, action, resource)
        if message := message or _key_refusal(references, caller, bucket, resource, action):
            return message
    return None


def resource_policy(references: References, arn: str | None) -> Document | None:
    """The policy of a bucket, key, queue, topic or role; None where there is none."""
    service, region, account = [*(arn or "").split(":"), "", "", "", ""][2:5]
    there = References(account or references.account, region or references.region, references.partition)
    name = (arn or "").split(":", 5)[-1]
    match service:
        case "s3":
            bucket = references.bucket(name.partition("/")[0])
            return parsed(bucket.policy) if bucket is not None and bucket.policy else None
        case "kms":
            found = there.key(str(arn))
            return parsed(found.policy) if found is not None else None
        case "iam":
            found = there.role(str(arn))
            return parsed(found.assume_role_policy_document) if found is not None else None
        case "sqs":
            queue = there.backend("sqs").queues.get(name)
            return parsed(queue.policy) if queue is not None and queue.policy else None
        case "sns":
            topic = there.backend("sns").topics.get(arn)
            return parsed(topic.policy) if topic is not None and topic.policy else None
    return None


def owner_of(references: References, arn: str | None) -> str:
    """The account of a resource. ARNs of buckets do not name it."""
    parts = (arn or "").split(":")
    if len(parts) > 5 and parts[2] == "s3":
        bucket = references.bucket(parts[5].partition("/")[0])
        return str(bucket.account_id) if bucket is not None else references.account
    return parts[4] if len(parts) > 5 and parts[4] else references.account


def _key_refusal(references: References, caller: Caller, bucket: Any, resource: str, action: str) -> str | None:
    """S3 uses the bucket's key in the name of who reads or writes (S3 User Guide, "Using SSE-KMS", 2026)."""
    use = {"s3:GetObject": "kms:Decrypt", "s3:PutObject": "kms:GenerateDataKey"}.get(action)
    rule = (bucket.encryption or {}).get("Rule", {})
    asked = rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID")
    if not use or not asked or "alias/aws/" in asked:  # AWS's own key lets everybody in the account use it through S3
        return None
    account, region = (asked.split(":")[4], asked.split(":")[3]) if ":" in asked else (bucket.account_id, None)
    key = References(account, region or bucket.region_name, references.partition).key(asked)
    if key is None:
        return f"The KMS key {asked} of bucket {bucket.name} does not exist"
    whole = str(rule.get("BucketKeyEnabled")).lower() == "true"
    context = {
        "kms:ViaService": f"s3.{bucket.region_name}.amazonaws.com",
        f"{ENCRYPTION_CONTEXT}aws:s3:arn": bucket.arn if whole else resource,
    }
    return refusal(references, caller, use, key.arn, context)


def _default_version(policy: Any) -> Document:
    """The document of moto's managed policy that is in force."""
    return parsed(next(version.document for version in policy.versions if version.is_default))


def parsed(text: Any) -> Document:
    """A policy, which moto keeps as text."""
    document: Document = json.loads(text) if isinstance(text, str | bytes) else text
    return document
