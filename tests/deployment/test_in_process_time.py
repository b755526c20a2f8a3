"""The estimate of an environment's deployment in an account, held to another computation from its templates."""

import json
import re
from graphlib import TopologicalSorter
from typing import Any

import pytest

from localaws import estimate
from localaws.estimates import STACK_TYPE, Step, seconds
from tests.deployment.in_process import Templates, deployed_whole
from tests.synthesis import templates

ROUGHER = {"dev": 23.8, "staging": 24.3, "prod": 23.8}
"""Minutes by another table of rougher figures, without the 20 s of a stack, and with a scraper of 10 minutes."""
ROLE_AFTER_CLUSTER = 2.6  # minutes: the role of PCS nodes names the cluster, so it and its profile wait for it
TOLERANCE = 0.1
STACKS_IN_CHAIN = 3
SCRAPER_LONGER = 10  # minutes in our figures


@pytest.mark.parametrize("name", ROUGHER)
def test_estimate_is_the_longest_chain_of_references(name: str):
    with deployed_whole(name):
        beside, alone = estimate(concurrency=99), estimate()
    assert beside.likely == pytest.approx(longest_chain(templates(name)))
    assert alone.likely > beside.likely
    expected = ROUGHER[name] + STACKS_IN_CHAIN * 20 / 60 + (SCRAPER_LONGER if name == "staging" else ROLE_AFTER_CLUSTER)
    assert beside.likely / 60 == pytest.approx(expected, rel=TOLERANCE)
    assert {cause.type for cause in beside.held_up_by} >= {
        "AWS::EKS::Cluster" if name == "staging" else "AWS::PCS::Cluster",
        "AWS::EC2::NatGateway",
    }


def longest_chain(parts: Templates) -> float:
    """Seconds until the last resource is there, from the templates alone."""
    exports = {
        output["Export"]["Name"]: part
        for part, template in parts.items()
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }
    imports = {
        part: {exports[name] for name in re.findall(r'"Fn::ImportValue": "([^"]+)"', json.dumps(template))}
        for part, template in parts.items()
    }
    ends: dict[str, float] = {}
    for part in TopologicalSorter(imports).static_order():
        found = parts[part]["Resources"]
        start = max((ends[other] for other in imports[part]), default=0.0)
        done: dict[str, float] = {}
        for name in TopologicalSorter({name: references(about, found) for name, about in found.items()}).static_order():
            step = Step(name, found[name]["Type"], "CREATE", frozenset(), found[name].get("Properties", {}))
            before = max((done[other] for other in references(found[name], found)), default=start)
            done[name] = before + seconds(step)
        ends[part] = max(done.values()) + seconds(Step(part, STACK_TYPE, "CREATE", frozenset()))
    return max(ends.values())


def references(about: dict[str, Any], names: dict[str, Any]) -> set[str]:
    """Logical ids that a resource refers to or depends on."""
    text = json.dumps(about)
    found = {*re.findall(r'"Ref": "(\w+)"', text), *re.findall(r'"Fn::GetAtt": \["(\w+)"', text)}
    depends = about.get("DependsOn", [])
    return (found | {depends} if isinstance(depends, str) else found.union(depends)) & names.keys()
