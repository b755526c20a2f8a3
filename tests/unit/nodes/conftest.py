"""A machine for each test."""

import pytest

from tests.unit.nodes.machine import Machine


@pytest.fixture
def machine(tmp_path):
    """A machine on which everything works, with two instance store volumes."""
    return Machine(tmp_path, instance_store=2)
