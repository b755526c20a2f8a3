"""Validating admission policies, for rules that RBAC and schemas cannot express.

Source: Kubernetes, "Validating Admission Policy" (2026), generally available since 1.30.
"""

from typing import Any

from ultracluster.kubernetes.parts import Object

_API = "admissionregistration.k8s.io/v1"


def admission_policy(
    name: str,
    operation: str,
    resource: str,
    expression: str,
    message: str,
    *,
    condition: str = "",
    namespaces: dict[str, Any] | None = None,
) -> tuple[Object, Object]:
    """A policy and its binding: `operation` on a `resource` of the core group is denied unless `expression` is true.

    `expression` and `condition` are in CEL. `condition` limits the policy to some requests, `namespaces` (a label
    selector) to some namespaces. `message` is what a denied client gets.
    """
    conditions = [{"name": "concerned", "expression": condition}] if condition else []
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        **({"matchConditions": conditions} if conditions else {}),
        "validations": [{"expression": expression, "message": message}],
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
