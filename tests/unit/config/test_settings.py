"""Settings built in Python: all problems at once, with the codes and words of a file."""

import pytest
from pydantic import BaseModel, ValidationError

from tests.bad_files import FOLDER, file_of
from ultracluster.config.eks import Eks, EksControlPlane, Team
from ultracluster.config.environment import Environment
from ultracluster.config.launch import Launch
from ultracluster.config.loader import check, validate
from ultracluster.config.lustre import Lustre, S3Link
from ultracluster.config.network import CreateNetwork, ExistingNetwork, Network
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Pcs, PcsControlPlane
from ultracluster.config.problems import InvalidSettings
from ultracluster.config.purchase import ExistingPlacementGroup
from ultracluster.config.report import report
from ultracluster.config.source import parse
from ultracluster.config.storage import Storage
from ultracluster.errors import UltraclusterError

SOUND = (FOLDER / "minimal.yaml").read_text("utf-8")
GROUP = {"name": "train", "instance_type": "p5.48xlarge", "count": 2, "purchase": {"type": "on_demand"}}
BLOCK = {"type": "capacity_block", "reservation_id": "cr-0123456789abcdef0"}
ROLE = "arn:aws:iam::111122223333:role/Platform"


def refused(build, *arguments, **values):
    with pytest.raises(InvalidSettings) as caught:
        build(*arguments, **values)
    return caught.value


def found(error):
    return [(problem.code, problem.field) for problem in error.problems]


@pytest.mark.parametrize(
    ("settings", "values", "expected"),
    [
        (Lustre, {"capacity_gib": 5, "throughput_mbps_per_tib": 125}, [("lustre-capacity", "capacity_gib")]),
        (Lustre, {"capacity_gib": "x"}, [("wrong-type", "capacity_gib")]),
        (Lustre, {"capacity_gib": 0}, [("out-of-range", "capacity_gib")]),
        (Lustre, {"nope": 1}, [("unknown-key", "nope")]),
        (Lustre, {"compression": "zip"}, [("lustre-setting-missing", ""), ("value-not-allowed", "compression")]),
        (Lustre, {"deployment": "scratch_2"}, [("lustre-setting-missing", "capacity_gib")]),
        (CreateNetwork, {"cidr": "x"}, [("invalid-format", "cidr")]),
        (Network, {"create": {"cidr": "x"}}, [("invalid-format", "create.cidr")]),
        (Network, {"create": {"cidr": "10.0.0.0/8"}}, [("cidr-size", "create.cidr")]),
        (Network, {"create": ExistingNetwork.model_construct()}, [("wrong-type", "create")]),
        (Network, {}, [("network-choice", "")]),
        (EksControlPlane, {}, [("missing-key", "kubernetes_version")]),
        (EksControlPlane, {"kubernetes_version": "1.3"}, [("kubernetes-version-unsupported", "kubernetes_version")]),
        (PcsControlPlane, {"slurm_version": "1"}, [("slurm-version-unknown", "slurm_version")]),
        (NodeGroup, GROUP | {"purchase": {"type": "spot", "reservation_id": "cr-01234567"}},
         [("spot-with-reservation", "purchase.reservation_id")]),
        (NodeGroup, GROUP | {"count": {"min": 3, "max": 2}}, [("count-range", "count.min")]),
    ],
)  # fmt: skip
def test_the_codes_of_the_file_at_the_path_of_the_field(settings, values, expected):
    assert found(refused(settings, **values)) == expected
    assert found(refused(settings.model_validate, values)) == expected


def test_every_problem_is_reported_at_once_in_the_order_of_the_data():
    lustre = {"capacity_gib": 1000, "throughput_mbps_per_tib": 125, "links": [{"path": "x", "bucket": "b"}]}
    error = refused(Storage, lustre=lustre, buckets={"datasets": {"existing": "b", "lifecycle": {}}})
    assert found(error) == [
        ("lustre-capacity", "lustre.capacity_gib"),
        ("invalid-format", "lustre.links[0].path"),
        ("link-bucket-unknown", "lustre.links[0].bucket"),
        ("invalid-format", "buckets.datasets.existing"),
        ("missing-key", "buckets.datasets.lifecycle.noncurrent_days"),
    ]


def test_rules_that_read_no_misshapen_value_run_beside_it():
    group = GROUP | {"count": "2", "placment": "auto", "instance_type": "p5.nope"}
    assert found(refused(NodeGroup, **group)) == [
        ("unknown-instance-type", "instance_type"),
        ("wrong-type", "count"),
        ("unknown-key", "placment"),
    ]


def test_a_rule_says_nothing_of_a_key_that_may_be_misspelt():
    values = {"capacity_gb": 1200, "throughput_mbps_per_tib": 125}
    assert found(refused(Lustre, **values)) == [("unknown-key", "capacity_gb")]


def test_rules_of_sections_that_are_sound_in_shape_run_beside_those_that_are_not():
    network = {"create": {"cidr": "10.0.0.0/8"}, "existing": {"vpc_id": "x"}}
    error = refused(Network.model_validate, network)
    assert ("cidr-size", "create.cidr") in found(error)
    assert ("invalid-format", "existing.vpc_id") in found(error)


def test_rules_of_the_whole_run_beside_rules_of_its_sections():
    link = S3Link(path="/data", bucket="datasets")
    lustre = {"capacity_gib": 1000, "throughput_mbps_per_tib": 125, "links": [link]}
    error = refused(Storage, lustre=lustre)
    assert found(error) == [
        ("lustre-capacity", "lustre.capacity_gib"),
        ("link-bucket-unknown", "lustre.links[0].bucket"),
    ]


def test_one_mapping_in_two_places_is_reported_in_both():
    data = parse(SOUND).data
    group = GROUP | {"instance_type": "p9.48xlarge"}
    data["node_groups"] = [group, group]
    fields = [problem.field for problem in refused(Environment.model_validate, data).problems]
    assert {"node_groups[0].instance_type", "node_groups[1].instance_type"} <= set(fields)


def test_message_and_hint_are_those_of_the_file():
    text = SOUND.replace("capacity_gib: 1200", "capacity_gib: 1000").replace("us-east-2b", "us-west-2b")
    error = refused(Environment.model_validate, parse(text).data)
    told = [(problem.code, problem.field, problem.message, problem.hint) for problem in error.problems]
    assert told == [(each.code, each.path, each.message, each.hint) for each in check(parse(text)).findings]


def test_the_text_reads_like_the_report_of_a_file():
    text = SOUND.replace("capacity_gib: 1200", "capacity_gib: 1000")
    error = refused(Environment.model_validate, parse(text).data)
    assert str(error) == report(check(parse(text), "Environment"), lines=False)


def test_it_is_an_error_of_the_package_and_a_value_error():
    error = refused(Lustre, capacity_gib="x")
    assert isinstance(error, UltraclusterError)
    assert isinstance(error, ValueError)
    assert error.settings == "Lustre"


def test_the_whole_is_called_by_its_class():
    (problem,) = refused(Lustre.model_validate, 5).problems
    assert (problem.field, problem.hint) == ("", "write Lustre as Lustre or a mapping")


def test_settings_in_settings_of_another_library_raise_its_error():
    class Theirs(BaseModel):
        lustre: Lustre

    with pytest.raises(ValidationError) as caught:
        Theirs.model_validate({"lustre": {"capacity_gib": 1000, "throughput_mbps_per_tib": 125}})
    assert [(error["type"], error["loc"]) for error in caught.value.errors()] == [
        ("lustre-capacity", ("lustre", "capacity_gib"))
    ]


def test_warnings_do_not_raise():
    data = parse(SOUND.replace("ami-0123456789abcdef0", "auto")).data
    assert Environment.model_validate(data).name == "test"
    data["network"] = {"create": {"cidr": "x"}}
    assert {problem.severity for problem in refused(Environment.model_validate, data).problems} == {"error"}


def test_sections_that_are_built_already_fit_into_others():
    lustre = Lustre(capacity_gib=1200, throughput_mbps_per_tib=125)
    assert Storage(lustre=lustre).lustre is lustre


def test_a_control_plane_needs_its_version_alone():
    assert EksControlPlane(kubernetes_version="1.35").type == "eks"
    assert PcsControlPlane(slurm_version="26.05").type == "pcs"


def test_a_file_s_control_plane_is_one_of_python_s():
    team = Team(name="research", node_groups=("train",), gpus=16)
    assert isinstance(Eks(kubernetes_version="1.35", admins=(ROLE,), teams=(team,)), EksControlPlane)
    assert issubclass(Pcs, PcsControlPlane)


@pytest.mark.parametrize("settings", [Eks, Pcs])
def test_a_file_says_which_control_plane_it_means(settings):
    name = "minimal-eks.yaml" if settings is Eks else "minimal.yaml"
    text = (FOLDER / name).read_text("utf-8")
    kind = f"type: {'eks' if settings is Eks else 'pcs'}\n"
    findings = check(parse(text.replace(f"  {kind}", ""))).findings
    assert [(finding.code, finding.path) for finding in findings] == [("missing-key", "control_plane.type")]


def test_a_launch_is_decided_once():
    group = NodeGroup.model_validate(GROUP | {"purchase": BLOCK})
    assert group.launch is group.launch
    assert group.launch == Launch("capacity-block", BLOCK["reservation_id"], None, cluster_group=False)


@pytest.mark.parametrize(
    "purchase",
    [
        {"type": "reservation", "reservation_id": "cr-0123456789abcdef0"},
        {"type": "reservation", "reservation_group_arn": "arn:aws:resource-groups:us-east-2:111122223333:group/train"},
    ],
)
def test_a_reservation_gets_no_new_placement_group(purchase):
    group = NodeGroup.model_validate(GROUP | {"purchase": purchase})
    assert group.launch.cluster_group is False
    named = group.model_copy(update={"placement": ExistingPlacementGroup(existing="research")})
    assert named.launch.cluster_group == "research"


def test_a_changed_copy_decides_its_launch_anew():
    group = NodeGroup.model_validate(GROUP)
    assert group.launch.cluster_group is True
    assert group.model_copy(update={"placement": "none"}).launch.cluster_group is False


def test_blocks_of_an_ultraserver_launch_into_one_reservation_each():
    ids = ["cr-01234567", "cr-12345678"]
    purchase = {"type": "capacity_block", "ultraserver": "u-p6e-gb200x36", "reservation_ids": ids}
    group = NodeGroup.model_validate(GROUP | {"instance_type": "p6e-gb200.36xlarge", "count": 18, "purchase": purchase})
    assert group.launch.reservation_id == ids[0]
    assert [block.launch.reservation_id for block in group.blocks()] == ids


def test_equal_groups_stay_equal_when_one_has_decided():
    decided, fresh = NodeGroup.model_validate(GROUP), NodeGroup.model_validate(GROUP)
    assert decided.launch
    assert decided == fresh
    assert decided.model_dump() == fresh.model_dump()


def test_the_reading_of_a_file_is_not_raised():
    assert validate(file_of("cidr-size")).environment is None
