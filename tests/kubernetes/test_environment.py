"""The view of an EKS environment."""

from dataclasses import replace

import pytest

from tests.kubernetes.environments import GB200, P5, eks_environment
from tests.kubernetes.fleet import fleet
from tests.synthesis import FILES
from ultracluster.config.health import Health
from ultracluster.config.loader import load
from ultracluster.errors import UltraclusterError
from ultracluster.kubernetes.environment import EksEnvironment, NotEks
from ultracluster.kubernetes.kueue import fleet_cohort
from ultracluster.kubernetes.labels import GPU

MIXED = {**P5, **GB200}


def test_a_pcs_environment_is_refused():
    environment = load(FILES["dev"])
    with pytest.raises(NotEks, match="dev has no EKS control plane") as refused:
        EksEnvironment.from_environment(environment)
    assert isinstance(refused.value, UltraclusterError)
    assert isinstance(refused.value, TypeError)


def test_the_view_has_the_values_of_the_file():
    environment = load(FILES["staging"])
    view = EksEnvironment.from_environment(environment)
    for name in ("name", "region", "availability_zone", "node_tags", "storage", "node_groups"):
        assert getattr(view, name) == getattr(environment, name)
    assert view.settings == environment.control_plane
    assert view.teams == environment.control_plane.teams
    assert view.kubernetes_version == environment.control_plane.kubernetes_version


@pytest.mark.parametrize(
    ("scheduler", "queue_manager", "gang_scheduler"),
    [
        ("kueue", "kueue", "kueue"),
        ("volcano", "volcano", "volcano"),
        ("kai", "kai", "kai"),
        ("kueue_with_kai", "kueue", "kai"),
        ("kueue_with_volcano", "kueue", "volcano"),
    ],
)
def test_combined_modes_queue_with_kueue_and_place_with_the_other(scheduler, queue_manager, gang_scheduler):
    view = eks_environment(scheduler=scheduler)
    assert (view.queue_manager, view.gang_scheduler) == (queue_manager, gang_scheduler)


def test_dra_is_known_for_each_group():
    view = eks_environment(MIXED, device_stack={"gpu_operator": ["train"], "dra": ["nvl"]})
    assert view.uses_dra
    assert {group.name: view.uses_dra_on(group) for group in view.node_groups} == {"train": False, "nvl": True}
    assert not eks_environment(MIXED).uses_dra


def test_ultraservers_are_found_among_other_groups():
    assert eks_environment(MIXED).has_ultraservers
    assert not eks_environment(P5).has_ultraservers


def test_guaranteed_and_unclaimed_gpus_add_up_to_the_fleet():
    teams = ({"name": "pretrain", "node_groups": ["train"], "gpus": 96},)
    view = fleet(teams=teams)
    (group,) = view.node_groups
    assert view.quotas(view.teams[0]) == [(group, 96)]
    assert view.unclaimed_gpus(group) == 16 * 8 - 96


def test_spare_nodes_are_in_no_quota():
    teams = ({"name": "pretrain", "node_groups": ["train"], "gpus": 96},)
    view = replace(fleet(teams=teams), health=Health(spares={"train": 2}))
    (group,) = view.node_groups
    assert view.unclaimed_gpus(group) == (16 - 2) * 8 - 96
    [flavors] = fleet_cohort(view)["spec"]["resourceGroups"]
    gpus = [each["nominalQuota"] for each in flavors["flavors"][0]["resources"] if each["name"] == GPU]
    assert gpus == [16]
