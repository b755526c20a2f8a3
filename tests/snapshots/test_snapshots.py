"""Templates of every shipped file. `make snapshots` accepts a change; review its diff like code.

Four environments are kept whole. `dev`, `staging` and `prod` are the files that people copy. They hold 58 of the 62
resource types in all shipped files, and 852 of the 947 properties, nested ones included. `eks-volcano` raises that to
60 and 903, more than any other file would. None of the four holds `AWS::Scheduler::Schedule` and
`Custom::LustreRootSquash`.

Every other file is kept as the list of its resources by stack, logical ID and type. Below a resource stands what
differs from the resource with the same ID in `prod` (PCS) or `staging` (EKS), or all of it where they have no such
resource. A text that differs only by the environment's name and Region counts as the same. So any change of a template
shows.
"""

import pytest

from tests.snapshots.difference import Difference, Environment
from tests.snapshots.readable import PropertyALine, ResourceALine, readable
from tests.synthesis import FILES, templates
from ultracluster.config.loader import load

PCS = ("network", "storage", "control-plane", "compute", "links", "observability", "alerts", "repair")
EKS = ("network", "storage", "control-plane", "platform", "observability", "alerts", "collection")
WHOLE = {
    "dev": PCS,
    "staging": (*EKS, "links", "grafana", "compute-train", "compute-cpu"),
    "prod": (*PCS, "grafana"),
    "eks-volcano": (*EKS, "compute-train", "compute-try", "compute-cpu"),
}


def environment(name):
    loaded = load(FILES[name])
    return Environment(loaded.name, loaded.region)


def all_readable(name):
    return {stack: readable(template) for stack, template in templates(name).items()}


@pytest.mark.parametrize(("name", "stack"), [(name, stack) for name, stacks in WHOLE.items() for stack in stacks])
def test_whole_template(name, stack, snapshot):
    assert readable(templates(name)[stack]) == snapshot(extension_class=PropertyALine)


@pytest.mark.parametrize("name", WHOLE)
def test_every_stack_has_a_snapshot(name):
    assert set(templates(name)) == set(WHOLE[name])


@pytest.mark.parametrize("name", [name for name in FILES if name not in WHOLE])
def test_difference(name, snapshot):
    reference = "staging" if "platform" in templates(name) else "prod"
    difference = Difference(environment(name), environment(reference))
    found = difference.templates(all_readable(name), all_readable(reference))
    assert found == snapshot(extension_class=ResourceALine)
