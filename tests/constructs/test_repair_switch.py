"""The switch for repairs without a person."""

import pytest

from tests.deployment.conftest import changed
from tests.synthesis import synthesise


@pytest.mark.parametrize(("acts", "expected"), [(None, True), (True, True), (False, False)])
def test_auto_repair_switches_the_repair_of_accelerated_nodes(acts, expected):
    def change(content):
        content.setdefault("observability", {})
        content["observability"] |= {} if acts is None else {"auto_repair": acts}

    parts = synthesise(changed("eks-dra", change))
    found = {
        part: resource["Properties"]["NodeRepairConfig"]
        for part, template in parts.items()
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::EKS::Nodegroup" and part not in ("platform", "compute-cpu")
    }
    assert found
    for part, repair in found.items():
        assert repair["Enabled"] is expected, part
        assert bool(repair.get("NodeRepairConfigOverrides")) is expected
