"""Validating admission policies, for rules that RBAC and schemas cannot express.

Source: Kubernetes, "Validating Admission Policy" (2026), generally available since 1.30.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ultracluster.kubernetes.parts import Object

_API = "admissionregistration.k8s.io/v1"


class Requests(NamedTuple):
    """Requests that a policy judges: operations on the resources of an API group, which may be of no CRD yet."""

    operations: Sequence[str]
    resources: Sequence[str]
    group: str = ""


class Check(NamedTuple):
    """What must be true of a request, in CEL, and what a denied client gets."""

    expression: str
    message: str


def admission_policy(
    name: str,
    requests: Iterable[Requests],
    checks: Iterable[Check],
    *,
    condition: str = "",
    namespaces: dict[str, Any] | None = None,
) -> tuple[Object, Object]:
    """A policy and its binding: of `requests` those are denied that fail a check.

    `condition`, in CEL, limits the policy to some of them, `namespaces` (a label selector) to some namespaces.
    """
    conditions = [{"name": "concerned", "expression": condition}] if condition else []
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [_rule(each) for each in requests]},
        **({"matchConditions": conditions} if conditions else {}),
        "validations": [each._asdict() for each in checks],
    }
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        **({"matchResources": {"namespaceSelector": namespaces}} if namespaces else {}),
    }
    return (
        {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": policy},
        {"apiVersion": _API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": binding},
    )


def _rule(requests: Requests) -> Object:
    operations, resources, group = requests
    versions = ["*"] if group else ["v1"]
    return {
        "apiGroups": [group],
        "apiVersions": versions,
        "operations": list(operations),
        "resources": list(resources),
    }
