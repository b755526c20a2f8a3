"""Validates Kubernetes objects as the API server would: against schemas of Kubernetes, and CRDs of the software.

CRDs come out of Go modules (scripts/crds.sh); those of projects that Go's module proxy lacks lie in data/crds. CEL
rules and webhooks are not run here: tests/servers asks a real API server.
"""

import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.synthesis import ROOT

REQUIRED = "ULTRACLUSTER_SERVERS_REQUIRED"
"""Environment variable: what Go provides, CRDs and servers, fails the tests where it is missing. `.ci/run` sets it."""

OWN_CRDS = Path(__file__).parent / "data" / "crds"
BUILT_IN = re.compile(r"(apps|autoscaling|batch|policy|([a-z]+\.)*k8s\.io)/|v1$")
"""API versions of Kubernetes itself; its subprojects use x-k8s.io."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Refused(AssertionError):
    """An object that violates its schema, or has an unknown kind."""


def check(obj: dict[str, Any], kubernetes_version: str = "1.35") -> None:
    """Raises Refused for an object that the API server would refuse, for example for an unknown field."""
    kind, api_version = obj["kind"], obj["apiVersion"]
    if BUILT_IN.match(api_version):
        try:
            kubernetes_validate.validate(obj, kubernetes_version, strict=True)
        except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
            raise Refused(f"{kind} {obj['metadata'].get('name')}: {error}") from None
        return
    group, _, version = api_version.partition("/")
    schema = _custom(group).get((kind, version))
    if schema is None:
        raise Refused(f"no CRD for {kind} of {api_version}")
    errors = jsonschema.Draft202012Validator(schema).iter_errors(obj)
    if said := [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in errors]:
        raise Refused(f"{kind} {obj['metadata'].get('name')}: {'; '.join(said)}")


@cache
def crd_files() -> tuple[Path, ...]:
    """Files of all CRDs, named GROUP_PLURAL.yaml. Skips the test where Go cannot provide them."""
    taken = subprocess.run([ROOT / "scripts/crds.sh"], text=True, capture_output=True)
    if taken.returncode:
        reason = f"no CRDs: scripts/crds.sh: {taken.stderr.strip().splitlines()[-1]}"
        pytest.fail(reason) if os.environ.get(REQUIRED) else pytest.skip(reason)
    return tuple(sorted([*OWN_CRDS.glob("*.yaml"), *Path(taken.stdout.strip()).glob("*.yaml")]))


@cache
def _custom(group: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Schemas of an API group by kind and version."""
    found = {}
    own = list(OWN_CRDS.glob(f"{group}_*.yaml"))
    for file in own or (each for each in crd_files() if each.name.startswith(f"{group}_")):
        definition = yaml.load(file.read_text(), _Loader)  # noqa: S506 - CSafeLoader is safe
        for version in definition["spec"]["versions"]:
            if version["served"]:
                schema = closed(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                found[definition["spec"]["names"]["kind"], version["name"]] = schema
    return found


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """A CRD's schema as JSON Schema that refuses unknown fields, unless the CRD preserves them."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {}
    plain = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if schema.get("x-kubernetes-int-or-string"):
        plain.pop("type", None)
        plain["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in plain:
        plain["properties"] = {name: closed(value) for name, value in plain["properties"].items()}
        plain.setdefault("additionalProperties", False)
    for key in ("items", "additionalProperties"):
        if isinstance(plain.get(key), dict):
            plain[key] = closed(plain[key])
    return plain
