"""What users of the package rely on: public names, and that an upgrade replaces and removes no stateful resource.

Logical IDs are in the snapshots of tests/snapshots. `make snapshots` does not accept a change of this file's snapshots.
"""

import inspect
import json
import tarfile
from functools import cache
from importlib.resources import files
from pathlib import Path

import aws_cdk
import pytest
from constructs import Construct

import ultracluster
from tests.snapshots.readable import KeyALine, readable
from tests.synthesis import FILES, ROOT, STATEFUL, flags, templates

SHIPPED = ("dev", "staging", "prod", "b300")


@cache
def registry(kind):
    """The CloudFormation registry's schema of a type, as cfn-lint bundles it."""
    folder = files("cfnlint.data.schemas")
    schemas = json.loads(folder.joinpath("providers/us-east-1.json").read_text())
    return json.loads(folder.joinpath(f"resources/{schemas[kind]}.json").read_text())


def create_only(resource):
    """Values of the properties that CloudFormation cannot change without replacing the resource."""
    found = {}
    for pointer in registry(resource["Type"]).get("createOnlyProperties", ()):
        value = resource.get("Properties", {})
        for key in pointer.split("/")[2:]:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            found[pointer.removeprefix("/properties/")] = value
    return found


def stateful(name, kinds=STATEFUL):
    for part, template in templates(name).items():
        for logical_id, resource in template["Resources"].items():
            if resource["Type"] in kinds:
                yield f"{part}/{logical_id}", resource


def own_members(member):
    """Public attributes and methods that a class of this package gives beside those of every construct."""
    classes = [base for base in member.__mro__ if base.__module__.startswith("ultracluster.")]
    names = {name for base in classes for name in [*vars(base), *vars(base).get("__annotations__", {})]}
    return sorted(name for name in names if not name.startswith("_"))


def test_public_constructs_their_arguments_and_members(snapshot):
    public = {}
    for name in ultracluster.__all__:
        member = getattr(ultracluster, name)
        if inspect.isclass(member) and issubclass(member, Construct):
            arguments = list(inspect.signature(member.__init__).parameters)[1:]
            public[name] = {"arguments": arguments, "members": own_members(member)}
    assert public == snapshot(extension_class=KeyALine)


@pytest.mark.parametrize("name", SHIPPED)
def test_create_only_properties_of_stateful_resources(name, snapshot):
    kept = {place: create_only(resource) for place, resource in stateful(name, {*STATEFUL, "AWS::EKS::Cluster"})}
    assert readable(kept) == snapshot(extension_class=KeyALine)


THROWN_AWAY = ("p5.4xlarge",)


@pytest.mark.parametrize("name", THROWN_AWAY)
def test_stateful_resources_of_a_thrown_away_environment_are_deleted(name):
    assert {resource.get("DeletionPolicy") for _, resource in stateful(name)} == {"Delete"}


@pytest.mark.parametrize("name", [name for name in FILES if name not in THROWN_AWAY])
def test_stateful_resources_are_retained_once_created_and_access_logs_always(name):
    policies = {
        place: (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy"))
        for place, resource in stateful(name)
    }
    always = {place for place, policy in policies.items() if policy == ("Retain", "Retain")}
    assert set(policies.values()) <= {("Retain", "Retain"), ("RetainExceptOnCreate", "Retain")}
    assert {place.partition("/AccessLogs")[0] for place in always} <= {"storage"}
    assert {place for place in policies if "/AccessLogs" in place} == always


def test_every_feature_flag_of_the_cdk_is_set():
    (bundle,) = Path(aws_cdk.__file__).parent.glob("_jsii/aws-cdk-lib@*.jsii.tgz")
    with tarfile.open(bundle) as archive:
        recommended = archive.extractfile("package/recommended-feature-flags.json")
        assert recommended
        assert set(json.load(recommended)) <= set(flags())


def test_locked_packages_are_installed_as_wheels_only():
    """A source distribution would run its build scripts on the user's machine."""
    script = (ROOT / "scripts" / "install.sh").read_text()
    locked = [line for line in script.splitlines() if "--require-hashes" in line]
    assert len(locked) == 2
    assert all("--only-binary :all:" in line for line in locked)
