"""Trust policies of IAM roles."""

from typing import Any

from localaws.permissions import Document, Request, decide
from localaws.services.access import Context, parsed

PODS = "pods.eks.amazonaws.com"
POD_ACTIONS = ("sts:AssumeRole", "sts:TagSession")


def allows_service(role: Any, service: str, *actions: str) -> bool:
    """Whether the trust policy of moto's `role` allows the service principal all `actions` (default sts:AssumeRole).

    Conditions are ignored, because they depend on a later request of the service.
    """
    return trust_problem(_without_conditions(parsed(role.assume_role_policy_document)), role, service, actions) is None


def pod_problem(role: Any, cluster_arn: str, namespace: str, account: str) -> str | None:
    """Why EKS Pod Identity may not assume moto's `role` for pods of a service account; None when it may.

    Keys as in the EKS User Guide, "Grant Pods access to AWS resources based on tags". Names of pods come later, so that
    conditions on them are ignored.
    """
    tags = {
        "eks-cluster-arn": cluster_arn,
        "eks-cluster-name": cluster_arn.rpartition("/")[2],
        "kubernetes-namespace": namespace,
        "kubernetes-service-account": account,
    }
    context: dict[str, str | list[str]] = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    context |= {"aws:SourceArn": cluster_arn, "aws:SourceAccount": cluster_arn.split(":")[4]}
    context["aws:TagKeys"] = [*tags, "kubernetes-pod-name", "kubernetes-pod-uid"]
    document = _without_conditions(parsed(role.assume_role_policy_document), "kubernetes-pod-")
    return trust_problem(document, role, PODS, POD_ACTIONS, context)


def allows_principal(role: Any, arn: str) -> bool:
    """Whether the trust policy of moto's `role` allows the role of this ARN, or its account. Conditions are ignored."""
    document = _without_conditions(parsed(role.assume_role_policy_document))
    everything = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    request = Request(arn, "sts:AssumeRole", role.arn, role.account_id, (everything,), resource_policy=document)
    return decide(request).allowed


def trust_problem(
    document: Document, role: Any, service: str, actions: tuple[str, ...], context: Context | None = None
) -> str | None:
    """Why the trust policy `document` does not allow the service all actions."""
    for action in actions or ("sts:AssumeRole",):
        request = Request(service, action, role.arn, role.account_id, resource_policy=document, context=context or {})
        verdict = decide(request)
        if not verdict.allowed:
            return f"{action} {verdict.reason}"
    return None


def _without_conditions(document: Document, key: str = "") -> Document:
    """The document with the conditions on keys that contain `key` met where they allow, and not where they deny."""
    found = document["Statement"]
    statements = []
    for statement in found if isinstance(found, list) else [found]:
        conditions = statement.get("Condition", {})
        kept = {
            operator: inner
            for operator, keys in conditions.items()
            if (inner := {name: value for name, value in keys.items() if key not in name})
        }
        if statement["Effect"] == "Allow" or kept == conditions:
            statements.append({**statement, "Condition": kept})
    return {**document, "Statement": statements}
