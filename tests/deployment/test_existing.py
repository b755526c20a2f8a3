"""What files name as existing is made in the embedded AWS before their stacks, with the ids of the file."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws import accounts, local_aws
from localaws.resources import client
from localaws.services import given
from tests.deployment.in_process import deployed_as
from tests.synthesis import FILES, synthesise
from ultracluster.cli import seeds
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load

ACCOUNT = "111122223333"
KEY = f"arn:aws:kms:us-east-2:{ACCOUNT}:key/01234567-89ab-cdef-0123-456789abcdef"
WORKSPACE = "ws-0123abcd-4567-89ab-cdef-0123456789ab"
NODES = {
    "policies": [f"arn:aws:iam::{ACCOUNT}:policy/site/nodes"],
    "security_groups": ["sg-0123456789abcdef0"],
    "image": "ami-0123456789abcdef0",
}
NAMED: dict[str, Any] = {
    "network": {
        "existing": {
            "vpc_id": "vpc-0123456789abcdef0",
            "node_subnet_id": "subnet-0123456789abcdef0",
            "control_plane_subnet_ids": ["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"],
        }
    },
    "storage": {
        "buckets": {
            "archive": {"existing": "our-archive", "key_arn": KEY},
            "public": {"existing": "open-data", "access": "read"},
        },
        "home": {"type": "openzfs", "existing": "fs-0123456789abcdef0"},
        "more": [
            {
                "name": "models",
                "type": "lustre",
                "existing": "fs-0123456789abcdef1",
                "security_group": "sg-0123456789abcdef1",
                "mount_path": "/models",
                "efa": True,
            },
            {"name": "old", "type": "lustre", "existing": "fs-0123456789abcdef2", "mount_path": "/old"},
            {"name": "tools", "type": "efs", "existing": "fs-0123456789abcdef3", "mount_path": "/tools"},
        ],
    },
    "observability": {
        "metrics": {"existing": WORKSPACE},
        "grafana": {"existing": "g-0123456789", "role_arn": f"arn:aws:iam::{ACCOUNT}:role/grafana/Reader"},
    },
}
KINDS = {
    "VPC",
    "subnet",
    "security group",
    "image",
    "policy",
    "bucket",
    "file system",
    "key",
    "Prometheus workspace",
    "role",
    "Grafana workspace",
}


def environment_with_everything() -> Environment:
    data = load(FILES["p5en.48xlarge"]).model_dump(mode="json", exclude_unset=True) | NAMED | {"account": ACCOUNT}
    data |= {"permissions_boundary": f"arn:aws:iam::{ACCOUNT}:policy/boundary", "region": "us-east-2"}
    data |= {"availability_zone": "us-east-2a", "node_groups": [group | NODES for group in data["node_groups"]]}
    return Environment.model_validate(data)


def exists(each: seeds.Existing, environment: Environment) -> bool:
    operation, arguments = each.look
    try:
        getattr(client(each.service, each.region or environment.region, each.account or ACCOUNT), operation)(
            **arguments
        )
    except ClientError:
        return False
    return True


def make_all(environment: Environment) -> list[bool]:
    place = {"account": ACCOUNT, "region": environment.region}
    return [seeds.make(each, client, given.create, **place) for each in seeds.existing(environment)]


def test_everything_that_a_file_names_is_made_once_and_its_stacks_deploy():
    environment = environment_with_everything()
    named = list(seeds.existing(environment))
    assert {each.kind for each in named} == KINDS
    with local_aws(ACCOUNT):
        assert not any(exists(each, environment) for each in named)
        assert set(make_all(environment)) == {True}
        assert all(exists(each, environment) for each in named)
        assert set(make_all(environment)) == {False}
    with deployed_as(environment, synthesise(environment)):
        stacks = client("cloudformation", environment.region, ACCOUNT).describe_stacks()["Stacks"]
        assert {stack["StackStatus"] for stack in stacks} == {"CREATE_COMPLETE"}


@pytest.mark.parametrize("name", FILES)
def test_a_resource_is_named_once(name):
    named = [(each.kind, each.id) for each in seeds.existing(load(FILES[name]))]
    assert len(named) == len(set(named))
    assert bool(load(FILES[name]).network.existing) == ("VPC" in dict(named))


def test_the_embedded_aws_gives_the_chosen_id_to_one_resource_alone():
    with local_aws():
        place = {"account": accounts.DEFAULT, "region": "us-east-2"}
        given.create("ec2", "create_vpc", {"CidrBlock": "10.0.0.0/16"}, id="vpc-0123456789abcdef0", **place)
        ec2 = client("ec2", "us-east-2", accounts.DEFAULT)
        (group,) = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": ["vpc-0123456789abcdef0"]}])[
            "SecurityGroups"
        ]
        assert group["GroupName"] == "default"
        assert ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"] != "vpc-0123456789abcdef0"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("ec2", "create_vpc", {"CidrBlock": "banana"}), "banana"),
        (("ec2", "no_such_operation", {}), "ec2 has no no_such_operation"),
        (("s3", "create_bucket", {"Bucket": "somebody"}), "makes nothing with an id such as vpc-0123456789abcdef0"),
    ],
)
def test_what_aws_refuses_is_refused_with_its_words(call, reason):
    place = {"account": accounts.DEFAULT, "region": "us-east-1", "id": "vpc-0123456789abcdef0"}
    with local_aws(), pytest.raises(ValueError, match=reason):
        given.create(*call, **place)
