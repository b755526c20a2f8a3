"""Every template of every shipped environment, whole. `make snapshots` accepts a change; review it like code."""

import re

import pytest
from syrupy.extensions.json import JSONSnapshotExtension

from tests.synthesis import FILES, templates

STACKS = ("network", "storage", "control-plane", "compute", "platform", "links", "observability")


def masked(value):
    """Without the hashes of assets, which change with the CDK's own code."""
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return re.sub(r"[0-9a-f]{64}", "<hash>", value) if isinstance(value, str) else value


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", FILES)
def test_template(name, stack, snapshot):
    assert masked(templates(name).get(stack)) == snapshot(extension_class=JSONSnapshotExtension)


@pytest.mark.parametrize("name", FILES)
def test_no_stack_is_without_a_snapshot(name):
    assert set(templates(name)) <= set(STACKS)
