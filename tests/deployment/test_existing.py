"""What files name as existing is made in the embedded AWS before their stacks, with the ids of the file."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from localaws import accounts, local_aws
from localaws.resources import client
from localaws.services import given
from tests.deployment.in_process import deployed_as
from tests.synthesis import FILES, synthesise
from ultracluster.cli import seeds
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load
from ultracluster.config.schema import environment_schema

SCHEMA = environment_schema()
ACCOUNT = "111122223333"
KEY = f"arn:aws:kms:us-east-2:{ACCOUNT}:key/01234567-89ab-cdef-0123-456789abcdef"
WORKSPACE = "ws-0123abcd-4567-89ab-cdef-0123456789ab"
NODES = {
    "policies": [f"arn:aws:iam::{ACCOUNT}:policy/site/nodes"],
    "security_groups": ["sg-0123456789abcdef0"],
    "image": "ami-0123456789abcdef0",
    "bootstrap": [
        {"s3": "s3://our-scripts/site/setup.sh", "version_id": "3Kjq8Zb.one", "sha256": "0" * 64},
        {"s3": "s3://our-archive/late.sh", "version_id": "3Kjq8Zb.two", "sha256": "1" * 64},
    ],
}
LOGIN_NODES = {
    "policies": [f"arn:aws:iam::{ACCOUNT}:policy/site/login"],
    "security_groups": ["sg-0123456789abcdef4"],
    "image": "ssm:/golden/login",
    "bootstrap": [{"s3": "s3://our-scripts/login.sh", "version_id": "3Kjq8Zb.three", "sha256": "2" * 64}],
}
SECRET = f"arn:aws:secretsmanager:us-east-2:{ACCOUNT}:secret:corp/directory-a1b2c3"
SECRET_KEY = KEY.replace("01234567", "12345678")
DIRECTORY = {
    "type": "ad",
    "domain": "corp.example.com",
    "ldap_urls": ["ldaps://dc1.corp.example.com"],
    "secret_arn": SECRET,
    "secret_key_arn": SECRET_KEY,
    "groups": ["cluster"],
}
NAMED: dict[str, Any] = {
    "account": ACCOUNT,
    "permissions_boundary": f"arn:aws:iam::{ACCOUNT}:policy/boundary",
    "network": {
        "existing": {
            "vpc_id": "vpc-0123456789abcdef0",
            "node_subnet_id": "subnet-0123456789abcdef0",
            "control_plane_subnet_ids": ["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"],
            "zone_subnet_ids": {"us-east-2c": "subnet-0123456789abcdef3"},
        }
    },
    "storage": {
        "read_only_buckets": ["commoncrawl"],
        "buckets": {
            "archive": {"existing": "our-archive", "key_arn": KEY},
            "public": {"existing": "open-data", "access": "read"},
        },
        "home": {"type": "openzfs", "existing": "fs-0123456789abcdef0", "security_group": "sg-0123456789abcdef2"},
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
    "access": {"directory": DIRECTORY},
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
    "parameter",
    "policy",
    "bucket",
    "object",
    "file system",
    "key",
    "secret",
    "directory",
    "Prometheus workspace",
    "role",
    "Grafana workspace",
}
ALERTS = {
    "pagerduty": {"secret_arn": SECRET.replace("directory", "pager"), "secret_key": "key"},
    "sns_topic_arn": f"arn:aws:sns:us-east-2:{ACCOUNT}:oncall",
}
BOUGHT = [
    {
        "name": "placed",
        "instance_type": "p5.48xlarge",
        "count": 2,
        "placement": {"existing": "our-group"},
        "purchase": {"type": "on_demand"},
    },
    {
        "name": "grouped",
        "instance_type": "p5.48xlarge",
        "count": 2,
        "purchase": {
            "type": "reservation",
            "reservation_group_arn": f"arn:aws:resource-groups:us-east-2:{ACCOUNT}:group/ours",
        },
    },
]


def environment_with_everything() -> Environment:
    data = load(FILES["p5en.48xlarge"]).model_dump(mode="json", exclude_unset=True) | NAMED
    data |= {"region": "us-east-2", "availability_zone": "us-east-2a"}
    data["node_groups"] = [group | NODES for group in data["node_groups"]]
    data["control_plane"]["login"] = LOGIN_NODES
    return Environment.model_validate(data)


def eks_with_everything() -> Environment:
    data = load(FILES["staging"]).model_dump(mode="json", exclude_unset=True) | NAMED
    data |= {"access": {"directory": DIRECTORY, "host": True}, "observability": {"alerts": ALERTS}}
    data["node_groups"] = [{**data["node_groups"][0], **NODES}, *BOUGHT]
    blocks = {"type": "capacity_block", "ultraserver": "u-p6e-gb200x72", "reservation_ids": ["cr-0123456789abcdef5"]}
    data["node_groups"].append({"name": "nvl", "instance_type": "p6e-gb200.36xlarge", "count": 18, "purchase": blocks})
    data["control_plane"]["teams"].append(
        {"name": "more", "node_groups": ["placed", "grouped", "nvl"], "gpus": {"placed": 16, "grouped": 16, "nvl": 72}}
    )
    data["control_plane"] |= {
        "chart_mirror": f"oci://{ACCOUNT}.dkr.ecr.us-east-2.amazonaws.com/mirror",
        "jobs": ["trainer"],
    }
    return Environment.model_validate(data)


def exists(each: seeds.Existing, environment: Environment) -> bool:
    return seeds.exists(each, client(each.service, each.region or environment.region, each.account or ACCOUNT))


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


def test_the_roles_and_reservations_of_an_eks_file_are_made_and_its_compute_deploys():
    environment = eks_with_everything()
    with local_aws(ACCOUNT):
        assert set(make_all(environment)) == {True}
        assert set(make_all(environment)) == {False}
    with deployed_as(environment, synthesise(environment)):
        stacks = client("cloudformation", environment.region, ACCOUNT).describe_stacks()["Stacks"]
        assert {stack["StackStatus"] for stack in stacks} == {"CREATE_COMPLETE"}


def test_scripts_are_versions_with_the_ids_of_the_file():
    with local_aws(ACCOUNT):
        make_all(environment_with_everything())
        s3 = client("s3", "us-east-2", ACCOUNT)
        found = s3.list_object_versions(Bucket="our-scripts")["Versions"]
        assert {(each["Key"], each["VersionId"]) for each in found} == {
            ("site/setup.sh", "3Kjq8Zb.one"),
            ("login.sh", "3Kjq8Zb.three"),
        }
        # a bucket that the file also names for data gets versions for its script
        text = s3.get_object(Bucket="our-archive", Key="late.sh", VersionId="3Kjq8Zb.two")["Body"].read()
        assert text.startswith(b"#!/bin/bash\n")
        assert s3.put_object(Bucket="our-archive", Key="late.sh", Body=b"x")["VersionId"] != "3Kjq8Zb.two"


def test_the_directory_and_its_secret_are_made():
    with local_aws(ACCOUNT):
        make_all(environment_with_everything())
        [made] = client("ds", "us-east-2", ACCOUNT).describe_directories()["DirectoryDescriptions"]
        assert (made["Name"], made["Type"]) == ("corp.example.com", "MicrosoftAD")
        assert made["VpcSettings"]["VpcId"] == "vpc-0123456789abcdef0"
        manager = client("secretsmanager", "us-east-2", ACCOUNT)
        assert manager.describe_secret(SecretId=SECRET)["KmsKeyId"] == SECRET_KEY
        assert set(json.loads(manager.get_secret_value(SecretId=SECRET)["SecretString"])) == {"username", "password"}
        another = manager.create_secret(Name="corp/another", SecretString="x")["ARN"]
        assert not another.endswith("-a1b2c3")


def test_beside_a_new_vpc_directories_and_security_groups_are_in_vpcs_of_their_own():
    data = environment_with_everything().model_dump(mode="json", exclude_unset=True)
    data |= {"network": {"create": {"cidr": "10.64.0.0/16"}}, "storage": {}}
    environment = Environment.model_validate(data)
    with local_aws(ACCOUNT):
        assert set(make_all(environment)) == {True}
        assert set(make_all(environment)) == {False}


EXISTING_KEYS = re.compile(
    r"(^|_)(existing|buckets\[\]|arns?|ids?(\[\]|\{\})?|group(\[\]|s\[\])?|image|s3|domain|mirror)$"
)
"""Keys whose values may name something outside the file."""
EXISTING_VALUES = re.compile(r"arn:aws|\(vpc|\^(vpc|subnet|sg|fs|ami|cr|ws|g|s3|oci)\b")
"""Patterns of such values."""

WITHOUT = {
    "network.create.control_plane_zones[]": "zones are AWS's",
    "node_groups[].purchase.reservation_id": "seeds.reservations",
    "node_groups[].purchase.reservation_ids[]": "seeds.reservations",
    "node_groups[].bootstrap[].version_id": "part of the object",
    "control_plane.login.bootstrap[].version_id": "part of the object",
    "control_plane.chart_mirror": "Helm reads it, and no AWS API",
    "control_plane.image_mirror": "nodes read it, and no AWS API",
    "control_plane.teams[].node_groups[]": "groups of the file",
    "control_plane.queues[].node_groups[]": "groups of the file",
    "access.directory.groups[]": "groups inside the directory",
    "access.directory.sudo_groups[]": "groups inside the directory",
}
"""Keys that name nothing that `local up` makes, with the reason."""


def leaves(node: dict[str, Any], value: Any = None, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Path, pattern and value of every text in the schema; the value is None where the file has none."""
    if "$ref" in node:
        yield from leaves(SCHEMA["$defs"][node["$ref"].rpartition("/")[2]], value, path)
    for key in ("anyOf", "oneOf", "allOf"):
        for each in node.get(key, ()):
            yield from leaves(each, value, path)
    for key, each in node.get("properties", {}).items():
        found = value.get(key) if isinstance(value, dict) else None
        yield from leaves(each, found, f"{path}.{key}".removeprefix("."))
    if isinstance(node.get("items"), dict):
        for each in value if isinstance(value, list) and value else [None]:
            yield from leaves(node["items"], each, f"{path}[]")
    for each in (*node.get("patternProperties", {}).values(), node.get("additionalProperties")):
        if isinstance(each, dict):
            for inner in value.values() if isinstance(value, dict) and value else [None]:
                yield from leaves(each, inner, f"{path}{{}}")
    if node.get("type") == "string":
        yield path, node.get("pattern", ""), value if isinstance(value, str) else None


def names_something(path: str, pattern: str) -> bool:
    return bool(EXISTING_VALUES.search(pattern) or EXISTING_KEYS.search(path.rpartition(".")[2]))


def test_every_key_that_names_something_existing_is_made():
    """The walk of the schema: a new key with an id or an ARN needs its seed, or a reason here."""
    found: dict[str, set[str]] = {}
    for environment in (environment_with_everything(), eks_with_everything()):
        ids = {each.id for each in seeds.existing(environment)}
        data = environment.model_dump(mode="json", exclude_unset=True)
        for path, pattern, value in leaves(SCHEMA, data):
            if names_something(path, pattern) and path not in WITHOUT:
                found.setdefault(path, set())
                if value is not None and (pattern == "" or re.search(pattern, value)):
                    made = any(value.endswith(each) or each.startswith(value) for each in ids)
                    found[path].add(value if made or value in ("auto", "none") else f"{value} is not made")
    assert {path: values for path, values in found.items() if any("not made" in value for value in values)} == {}
    assert [path for path, values in found.items() if not values - {"auto", "none"}] == []
    assert len(found) > 25


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


def test_an_object_of_a_bucket_without_versions_takes_no_chosen_id():
    place = {"account": accounts.DEFAULT, "region": "us-east-1"}
    with local_aws():
        given.create("s3", "create_bucket", {"Bucket": "plain"}, **place)
        with pytest.raises(ValueError, match="makes nothing with an id such as 3Kjq8Zb"):
            given.create("s3", "put_object", {"Bucket": "plain", "Key": "a", "Body": "b"}, id="3Kjq8Zb", **place)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("ec2", "create_vpc", {"CidrBlock": "banana"}), "banana"),
        (("ec2", "no_such_operation", {}), "ec2 has no no_such_operation"),
        (("secretsmanager", "create_secret", {"Name": "a", "Password": "b"}), "Unknown parameter"),
        (("s3", "create_bucket", {"Bucket": "somebody"}), "makes nothing with an id such as vpc-0123456789abcdef0"),
    ],
)
def test_what_aws_refuses_is_refused_with_its_words(call, reason):
    place = {"account": accounts.DEFAULT, "region": "us-east-1", "id": "vpc-0123456789abcdef0"}
    with local_aws(), pytest.raises(ValueError, match=reason):
        given.create(*call, **place)
