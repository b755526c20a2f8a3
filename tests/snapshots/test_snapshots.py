"""Templates of every shipped file. `make snapshots` accepts a change; review its diff like code.

`staging` and `prod` are kept whole: one for each control plane, with every feature that people copy.

Every other file is kept as the list of its resources by stack, logical ID and type. Below a resource stands what
differs from its counterpart in `prod` (PCS) or `staging` (EKS): the resource with the same ID, else the one `like` it.
A text that differs only by the environment's name and Region counts as the same. So any change of a template shows.
"""

import pytest

from tests.snapshots.difference import Difference, Environment
from tests.snapshots.readable import PropertyALine, ResourceALine, readable
from tests.synthesis import FILES, templates
from ultracluster.config.loader import load

WHOLE = {
    "staging": (
        "network", "storage", "control-plane", "platform", "observability", "collection", "links", "grafana",
        "compute-train", "compute-cpu",
    ),
    "prod": (
        "network", "storage", "control-plane", "compute", "links", "observability", "alerts", "grafana"
    ),
}  # fmt: skip
"""The stack `alerts` of `staging` is kept as a difference too: rules are nearly the same everywhere."""


def environment(name):
    loaded = load(FILES[name])
    return Environment(loaded.name, loaded.region)


def all_readable(name):
    return {stack: readable(template) for stack, template in templates(name).items()}


def difference(name, reference, stacks):
    """What differs from the reference in `stacks`."""
    these = {stack: template for stack, template in all_readable(name).items() if stack in stacks}
    return Difference(environment(name), environment(reference)).templates(these, all_readable(reference))


@pytest.mark.parametrize(("name", "stack"), [(name, stack) for name, stacks in WHOLE.items() for stack in stacks])
def test_whole_template(name, stack, snapshot):
    assert readable(templates(name)[stack]) == snapshot(extension_class=PropertyALine)


def test_every_stack_has_a_snapshot():
    assert set(templates("prod")) == set(WHOLE["prod"])
    assert set(templates("staging")) == {*WHOLE["staging"], "alerts"}


@pytest.mark.parametrize("name", [name for name in FILES if name != "prod"])
def test_difference(name, snapshot):
    reference = "staging" if "platform" in templates(name) and name not in WHOLE else "prod"
    stacks = set(templates(name)) - set(WHOLE.get(name, ()))
    assert difference(name, reference, stacks) == snapshot(extension_class=ResourceALine)
