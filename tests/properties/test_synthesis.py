"""Templates of valid environments keep the guard rules and pass cfn-lint."""

from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.linting import findings
from tests.properties.strategies import as_yaml, environments
from tests.synthesis import STATEFUL, synthesise
from ultracluster.config.environment import Environment
from ultracluster.config.loader import check
from ultracluster.config.source import parse

SYNTHESISED = ("pcs", "eks")
"""Control planes of the environments that are synthesised."""


def properties(examples: int) -> settings:
    unhurried = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=unhurried
    )


def environment_of(data: dict[str, Any]) -> Environment:
    reading = check(parse(as_yaml(data)))
    assert reading.environment, reading.errors
    return reading.environment


def broken_guards(environment: Environment, templates: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Guard rules that the templates break."""
    for part, template in templates.items():
        for logical_id, resource in template["Resources"].items():
            place, said = f"{part}/{logical_id}", resource.get("Properties", {})
            if resource["Type"] in STATEFUL and resource.get("DeletionPolicy") not in (
                "Retain",
                "RetainExceptOnCreate",
            ):
                yield f"{place} is deleted with its stack"
            if resource["Type"] in STATEFUL and resource.get("UpdateReplacePolicy") != "Retain":
                yield f"{place} is not retained"
            if any(value in ([], {}) for value in said.values()):
                yield f"{place} has an empty property"
            if resource["Type"] == "AWS::EC2::LaunchTemplate":
                yield from _broken_launch(place, said["LaunchTemplateData"])
            if resource["Type"].endswith("SecurityGroupIngress") and "0.0.0.0/0" in str(said):
                yield f"{place} is open to the world"
    compute = [template for part, template in templates.items() if part.startswith("compute")]
    yield from _broken_fleet(environment, [each for template in compute for each in template["Resources"].values()])


def _broken_launch(place: str, data: dict[str, Any]) -> Iterator[str]:
    interfaces = data.get("NetworkInterfaces", [])
    if data["MetadataOptions"]["HttpTokens"] != "required":
        yield f"{place} does not require IMDSv2"
    if not all(mapping["Ebs"]["Encrypted"] for mapping in data["BlockDeviceMappings"]):
        yield f"{place} has a volume that is not encrypted"
    if any("AssociatePublicIpAddress" in interface or not interface["Groups"] for interface in interfaces):
        yield f"{place} has an interface with a public address or without a group"
    if bool(interfaces) == ("SecurityGroupIds" in data):
        yield f"{place} has security groups both on interfaces and beside them, or nowhere"
    block = data.get("InstanceMarketOptions", {}).get("MarketType") == "capacity-block"
    if block and ("Placement" in data or "CapacityReservationSpecification" not in data):
        yield f"{place} launches a capacity block into a placement group, or without its reservation"


def _broken_fleet(environment: Environment, compute: Any) -> Iterator[str]:
    templates = [each["Properties"]["LaunchTemplateData"] for each in compute if "LaunchTemplate" in each["Type"]]
    wired = sorted(
        (data.get("InstanceType", ""), sum(n["InterfaceType"] != "interface" for n in data["NetworkInterfaces"]))
        for data in templates
        if "NetworkInterfaces" in data
    )
    asked = sorted(
        (group.one_type or "", len(group.hardware.efa.cards))
        for group in environment.launched_groups
        if group.efa and group.hardware.efa
    )
    if wired != asked:
        yield f"EFA interfaces are {wired}, not {asked}"


@properties(25)
@given(environments(SYNTHESISED))
def test_the_guard_rules_hold(data):
    environment = environment_of(data)
    assert list(broken_guards(environment, synthesise(environment))) == []


@properties(5)
@given(environments(SYNTHESISED))
def test_cfn_lint_finds_nothing(data):
    environment = environment_of(data)
    assert findings(synthesise(environment), environment.region) == []
