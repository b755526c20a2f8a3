"""Environments with everything that rules can be about."""

from functools import cache
from typing import Any

from tests.synthesis import FILES
from ultracluster import load
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup

PREP = NodeGroup.model_validate({"name": "prep", "instance_type": "c7i.48xlarge", "count": 2})
"""CPU nodes: their type could have EFA, but they have none."""


@cache
def environment(plane: str) -> Environment:
    """An environment called `test` on PCS or EKS."""
    shipped = load(FILES["prod" if plane == "pcs" else "staging"])
    lustre = shipped.storage.lustre
    assert lustre is not None
    changed: dict[str, Any] = {
        "name": "test",
        "node_groups": (*shipped.node_groups, PREP),
        "storage": shipped.storage.model_copy(
            update={"lustre": lustre.model_copy(update={"compression": "none", "efa": True})}
        ),
    }
    if plane == "eks":
        more = {"karpenter": True, "jobs": ("trainer", "jobset")}
        changed["control_plane"] = shipped.control_plane.model_copy(update=more)
    return shipped.model_copy(update=changed)


PLANES = ("pcs", "eks")
