"""GPUs that AWS's images have no driver for."""

import pytest

from ultracluster.catalog import catalog, instance_types
from ultracluster.catalog.drivers import missing_driver
from ultracluster.catalog.ec2_types import family_types
from ultracluster.catalog.records import records


@pytest.mark.parametrize("plane", ["pcs", "eks"])
def test_the_families_are_in_the_list_of_ec2_with_the_gpu_of_the_data(plane):
    for family, entry in records("drivers")[plane].items():
        types = [instance_types[name] for name in family_types(family)]
        assert {each.gpu_model for each in types if each.gpu_count} == {entry["gpu"]}


@pytest.mark.parametrize("plane", ["pcs", "eks"])
def test_every_type_of_ultraclusters_has_a_driver(plane):
    assert not [name for name in catalog if missing_driver(plane, name)]


def test_volta_is_driven_on_eks_and_not_on_pcs():
    assert missing_driver("eks", "p3dn.24xlarge") is None
    assert "Volta" in missing_driver("pcs", "p3dn.24xlarge").why


@pytest.mark.parametrize("name", ["p2.xlarge", "p3.16xlarge", "g3.4xlarge"])
def test_families_that_ec2_no_longer_lists_are_unknown(name):
    assert name not in instance_types
