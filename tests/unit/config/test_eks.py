"""Valid EKS settings, and rules that depend on the date. tests/unit/config/faults holds the refused files."""

from datetime import UTC, datetime
from unittest.mock import patch

import pytest

from tests.bad_files import FOLDER
from ultracluster.catalog import catalog, eks
from ultracluster.config.eks import RESERVED_NAMES
from ultracluster.config.eks_nodes import ACCELERATED
from ultracluster.config.fields import text
from ultracluster.config.loader import check
from ultracluster.config.source import parse

VALID = (FOLDER / "minimal-eks.yaml").read_text("utf-8")
BLOCK = "purchase: {type: capacity_block, reservation_id: cr-0123456789abcdef0"
ULTRASERVERS = (
    "instance_type: p6e-gb200.36xlarge, count: 18, purchase: {type: capacity_block, ultraserver: u-p6e-gb200x36, "
    "reservation_ids: [cr-0123456789abcdef0, cr-0123456789abcdef1]"
)
GROUP = "instance_type: p5.48xlarge, count: 2, purchase: {type: on_demand}"
IN_DALLAS = [
    ("region: us-east-2", "region: us-east-1"),
    ("zone: us-east-2b", "zone: us-east-1-dfw-2a"),
    ("cidr: 10.0.0.0/16", "cidr: 10.0.0.0/16, control_plane_zones: [use1-az4, use1-az6]"),
]


def reading(*changes):
    text = VALID
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return check(parse(text))


def codes(*changes):
    return [finding.code for finding in reading(*changes).findings]


def key(line):
    return ("  teams:", f"  {line}\n  teams:")


@pytest.mark.parametrize(
    "purchase",
    [
        "purchase: {type: spot}",
        "purchase: {type: reservation, reservation_id: cr-0123456789abcdef0}",
        "purchase: {type: reservation, reservation_group_arn: "
        '"arn:aws:resource-groups:us-east-2:111122223333:group/train"}',
        BLOCK + "}",
        BLOCK + ', starts: "2027-01-11T11:30:00Z"}',
        "purchase: {type: on_demand}, image: ami-0123456789abcdef0",
        "purchase: {type: on_demand}, interfaces: efa_with_ip",
    ],
)
def test_purchases_that_managed_node_groups_support(purchase):
    assert codes(("purchase: {type: on_demand}", purchase)) == []


@pytest.mark.parametrize(
    "line",
    [
        "device_stack: dra",
        "device_stack: {dra: [train]}",
        "device_stack: {gpu_operator: [train]}",
        "scheduler: volcano\n  jobs: [volcano]",
        "scheduler: kueue_with_kai\n  karpenter: true",
        "jobs: [trainer, jobset, leader_worker_set, mpi, ray]",
        "endpoint: public_and_private\n  allowed_cidrs: [54.240.143.0/24, 54.240.144.7/32]",
        "system_nodes: {instance_type: m7g.2xlarge, count: 3}",
        "control_plane_tier: tier-8xl",
        "chart_mirror: oci://registry.example.com/mirror",
        "node_repair: {enabled: false}",
    ],
)
def test_settings_that_work_together(line):
    assert codes(key(line)) == []


def test_a_256_node_cluster_fits_the_default_network():
    assert codes((GROUP, GROUP.replace("count: 2", "count: 256"))) == []


def test_several_ultraserver_blocks_may_start_together():
    starts = ', starts: "2027-01-11T11:30:00Z"}'
    found = codes(*IN_DALLAS, (GROUP, ULTRASERVERS + starts), ("gpus: 16", "gpus: 72"))
    assert found == []


def test_a_team_without_gpus_of_its_own_may_borrow():
    assert codes(("gpus: 16}", "gpus: 0, may_borrow: true}")) == []


def test_quotas_of_an_unknown_type_are_not_judged():
    assert codes(("p5.48xlarge", "p9.48xlarge"), ("gpus: 16", "gpus: 1000")) == ["unknown-instance-type"]


def test_a_version_ends_when_its_support_does():
    ends = {eks.KUBERNETES_VERSIONS["1.35"].standard_support_ends: "kubernetes-version-ending"}
    ends[eks.KUBERNETES_VERSIONS["1.35"].extended_support_ends] = "kubernetes-version-unsupported"
    for day, code in ends.items():
        with patch("ultracluster.config.clock.now", lambda day=day: datetime(day.year, day.month, day.day, tzinfo=UTC)):
            assert [finding.code for finding in reading().findings] == [code]


def test_a_block_has_started_from_its_start_on():
    starts = (GROUP, GROUP.replace("purchase: {type: on_demand}", BLOCK + ', starts: "2027-01-11T11:30:00Z"}'))
    for minute, expected in ((29, []), (30, ["capacity-block-started"])):
        with patch(
            "ultracluster.config.clock.now", lambda minute=minute: datetime(2027, 1, 11, 11, minute, tzinfo=UTC)
        ):
            assert [finding.code for finding in reading(starts).findings] == expected


def test_names_of_accelerated_types_are_recognised():
    assert all(ACCELERATED.match(name) for name in catalog)
    assert not any(map(ACCELERATED.match, ("m7i.2xlarge", "c7gn.large", "r8g.4xlarge", "t3.large", "x2gd.large")))


@pytest.mark.parametrize("name", ["default", "gpu-operator", "nvidia", "mpi-operator", "kai-scheduler"])
def test_namespaces_of_the_software_are_reserved(name):
    assert name in RESERVED_NAMES


def test_a_pattern_has_one_explanation():
    with pytest.raises(ValueError, match="two different explanations"):
        text(r"^\d{12}$", "a dozen digits")


def test_schedulers_for_quotas_and_for_placement():
    said = {}
    for scheduler in ("kueue", "volcano", "kai", "kueue_with_kai", "kueue_with_volcano"):
        environment = reading(key(f"scheduler: {scheduler}")).environment
        said[scheduler] = (environment.control_plane.queues_with, environment.control_plane.places_with)
    assert said == {
        "kueue": ("kueue", "kueue"),
        "volcano": ("volcano", "volcano"),
        "kai": ("kai", "kai"),
        "kueue_with_kai": ("kueue", "kai"),
        "kueue_with_volcano": ("kueue", "volcano"),
    }


def test_device_stacks_of_node_groups():
    two = (
        "  - {name: train,",
        "  - {name: tune, instance_type: p5.48xlarge, count: 1, purchase: {type: spot}}\n  - {name: train,",
    )
    teams = ("[train], gpus: 16", "[train, tune], gpus: {train: 16, tune: 8}")
    plane = reading(two, teams, key("device_stack: {dra: [tune], device_plugin: [train]}")).environment.control_plane
    assert (plane.device_stacks("train"), plane.device_stacks("tune")) == (("device_plugin",), ("dra",))
    assert plane.used_device_stacks == {"device_plugin", "dra"}
    assert plane.teams[0].quotas == {"train": 16, "tune": 8}


def test_pods_take_addresses_of_the_node_subnet():
    """Two accelerated nodes, and two CPU nodes with a third during an update."""
    assert reading().environment.node_addresses == (2 + 3) * (1 + 30)


@pytest.mark.parametrize("pools", ["", "{pools: [{name: try, families: [g6e], limits: {gpus: 8}}]}"])
def test_a_node_group_without_gpus_takes_the_place_of_cpu_nodes(pools):
    none = key(f"cpu_nodes: {{count: 0}}\n  karpenter: {pools or 'false'}")
    assert codes(none) == ["cpu-nodes-missing"]
    group = ("control_plane:", "  - {name: prep, instance_type: m7i.4xlarge, count: 2}\ncontrol_plane:")
    assert codes(none, group) == []
