"""CDK tokens and look-up dummies: accepted where an id, name or ARN stands, in Python only."""

import pytest

from tests.bad_files import FOLDER
from ultracluster.config.buckets import Bucket
from ultracluster.config.eks import Eks, EksControlPlane, Team
from ultracluster.config.environment import Environment
from ultracluster.config.fields import from_cdk
from ultracluster.config.loader import check
from ultracluster.config.network import ExistingNetwork, Network
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login
from ultracluster.config.problems import InvalidSettings
from ultracluster.config.purchase import Purchase
from ultracluster.config.source import parse

TOKEN = "${Token[TOKEN.12]}"  # noqa: S105 - not a secret
LIST_TOKEN = "#{Token[TOKEN.13]}"  # noqa: S105
PARAMETER = "dummy-value-for-/golden/ami"
SOUND = (FOLDER / "minimal.yaml").read_text("utf-8")
SOUND_EKS = (FOLDER / "minimal-eks.yaml").read_text("utf-8")
GROUP = {"name": "train", "instance_type": "p5.48xlarge", "count": 2}


@pytest.mark.parametrize(
    "value", [TOKEN, f"arn:{TOKEN}:iam::123456789012:role/DUMMY_ARN", LIST_TOKEN, PARAMETER, "s-12345", "dummy1b"]
)
def test_values_of_the_cdk_are_known_by_their_text(value):
    assert from_cdk(value)


@pytest.mark.parametrize("value", ["subnet-0123456789abcdef0", "", "$12", "{Token", "vpc-123456", "auto"])
def test_other_values_are_not(value):
    assert not from_cdk(value)


@pytest.mark.parametrize("value", [TOKEN, PARAMETER])
def test_tokens_pass_where_ids_names_and_arns_stand(value):
    ExistingNetwork(vpc_id=value, node_subnet_id=value, control_plane_subnet_ids=(value,))
    Bucket(existing=value)
    Login(image=value)
    EksControlPlane(kubernetes_version="1.35", endpoint="public_and_private", allowed_cidrs=(value,))
    team = Team(name="research", node_groups=("train",), gpus=16, members=(f"{value}/member",))
    Eks(kubernetes_version="1.35", admins=(value,), teams=(team,), chart_mirror=value)


def test_a_token_inside_an_arn_passes():
    Team(name="a", node_groups=("train",), gpus=1, members=(f"arn:{TOKEN}:iam::{TOKEN}:role/{TOKEN}",))


def test_dummies_of_vpc_look_ups_pass():
    network = ExistingNetwork(
        vpc_id="vpc-12345", node_subnet_id="p-12345", control_plane_subnet_ids=("p-12345", "p-67890", "s-12345")
    )
    assert Network(existing=network).existing is network
    assert NodeGroup.model_validate(GROUP | {"purchase": {"type": "on_demand"}, "image": "ami-1234"}).image


@pytest.mark.parametrize(
    ("key", "value"), [("vpc_id", "s-12345"), ("node_subnet_id", "vpc-12345"), ("node_subnet_id", "ami-1234")]
)
def test_a_dummy_passes_only_where_its_look_up_belongs(key, value):
    values = {"vpc_id": "vpc-12345678", "node_subnet_id": "subnet-12345678"}
    with pytest.raises(InvalidSettings) as caught:
        ExistingNetwork(control_plane_subnet_ids=("subnet-12345678",), **(values | {key: value}))
    assert [(problem.code, problem.field) for problem in caught.value.problems] == [("invalid-format", key)]


@pytest.mark.parametrize(
    "purchase",
    [
        {"type": "reservation", "reservation_id": TOKEN},
        {"type": "reservation", "reservation_group_arn": TOKEN},
        {"type": "capacity_block", "reservation_id": PARAMETER},
    ],
)
def test_reservations_may_be_tokens(purchase):
    group = NodeGroup.model_validate(GROUP | {"purchase": purchase})
    assert group.purchase == Purchase(**purchase)


@pytest.mark.parametrize("zone", [TOKEN, "dummy1a"])
def test_rules_of_the_whole_leave_values_of_the_cdk_alone(zone):
    data = parse(SOUND_EKS).data | {"availability_zone": zone, "permissions_boundary": TOKEN}
    data["network"] = {"existing": {"vpc_id": TOKEN, "node_subnet_id": TOKEN, "control_plane_subnet_ids": [LIST_TOKEN]}}
    assert Environment.model_validate(data).availability_zone == zone


@pytest.mark.parametrize(
    ("sound", "old", "new", "path"),
    [
        (SOUND, "availability_zone: us-east-2b", f'availability_zone: "{TOKEN}"', "availability_zone"),
        (SOUND, "availability_zone: us-east-2b", "availability_zone: dummy1a", "availability_zone"),
        (SOUND, "image: ami-0123456789abcdef0", "image: ami-1234", "node_groups[0].image"),
        (SOUND, "datasets: {}", f'datasets: {{existing: "{TOKEN}"}}', "storage.buckets.datasets.existing"),
        (
            SOUND,
            "type: on_demand",
            f'type: reservation, reservation_id: "{TOKEN}"',
            "node_groups[0].purchase.reservation_id",
        ),
        (SOUND_EKS, "arn:aws:iam::111122223333:role/Platform", f'"{TOKEN}"', "control_plane.admins[0]"),
    ],
)
def test_a_file_holds_no_values_of_the_cdk(sound, old, new, path):
    assert old in sound
    findings = check(parse(sound.replace(old, new))).errors
    assert ("invalid-format", path) in [(finding.code, finding.path) for finding in findings]
    assert "is a CDK token or dummy, which has no value in a file" in findings[0].message
