"""IAM roles that AWS services or pods assume, and their policies."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.catalog.regions import PARTITIONS
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.names import PARTITION

PODS = "pods.eks.amazonaws.com"
"""Principal of EKS Pod Identity, which assumes a role for a pod (EKS User Guide, "Pod Identity", 2026)."""


def service_role(
    scope: Construct,
    id: str,
    *,
    service: str,
    description: str,
    conditions: Mapping[str, Any] | None = None,
    aws_policies: Mapping[str, str] | None = None,
) -> iam.CfnRole:
    """A role that `service` may assume, under `conditions` if given.

    `aws_policies` maps the names of AWS managed policies to the reason why nothing narrower will do.
    """
    accepted = aws_policies or {}
    role = iam.CfnRole(
        scope,
        id,
        assume_role_policy_document=trust_policy(service, conditions),
        description=description,
        managed_policy_arns=[f"arn:{PARTITION}:iam::aws:policy/{name}" for name in accepted] or None,
    )
    if accepted:
        finding = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{}]"
        acknowledge(role, {finding.format(name): reason for name, reason in accepted.items()})
    return role


def trust_policy(service: str, conditions: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Trust policy: `service` may assume the role, under `conditions` if given."""
    # EKS Pod Identity tags its sessions with the pod's cluster, namespace and service account
    actions = ["sts:AssumeRole", "sts:TagSession"] if service == PODS else ["sts:AssumeRole"]
    condition = {"Condition": conditions} if conditions else {}
    return policy_document([{"Principal": {"Service": service}, "Action": actions, **condition}])


def managed_policy(
    scope: Construct,
    id: str,
    *,
    roles: Sequence[IRoleRef],
    statements: Sequence[Mapping[str, Any]],
    accepted: Mapping[str, str] | None = None,
) -> iam.CfnManagedPolicy:
    """A managed policy of `statements`, attached to `roles`: mappings with Action, Resource and optionally Condition.

    Without roles, roles must name the policy themselves. `accepted` maps findings of security scanners on the policy to
    the reason for each.
    """
    policy = iam.CfnManagedPolicy(
        scope, id, policy_document=policy_document(statements), roles=list(roles) if roles else None
    )
    if accepted:
        acknowledge(policy, accepted)
    return policy


def policy_document(statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An IAM policy document; statements have the effect Allow unless they name another."""
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement} for statement in statements]}


def statement_text(scope: Construct, statement: iam.PolicyStatement) -> str:
    """A statement as JSON to paste into a policy: with account and Region, or ACCOUNT and REGION if they are tokens."""
    stack = Stack.of(scope)
    region, account = (None if Token.is_unresolved(each) else each for each in (stack.region, stack.account))
    partition = PARTITIONS.get(region or "", "aws")
    values = {"AWS::Partition": partition, "AWS::Region": region or "REGION", "AWS::AccountId": account or "ACCOUNT"}
    return json.dumps(_with_values(stack.resolve(statement.to_statement_json()), values))


def _with_values(resolved: Any, values: Mapping[str, str]) -> Any:
    """A resolved value with pseudo parameters replaced, and text that was joined around them in one piece."""
    match resolved:
        case {"Ref": name}:
            return values.get(name, resolved)
        case {"Fn::Join": ["", [*parts]]}:
            known = [_with_values(part, values) for part in parts]
            return "".join(known) if all(isinstance(part, str) for part in known) else {"Fn::Join": ["", known]}
        case dict():
            return {key: _with_values(value, values) for key, value in resolved.items()}
        case list():
            return [_with_values(value, values) for value in resolved]
    return resolved
