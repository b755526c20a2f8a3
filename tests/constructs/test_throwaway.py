"""Policies of the functions that prepare the deletion of a stack."""

import json
from fnmatch import fnmatchcase

import pytest

from ultracluster.config.file_systems import OpenZfs
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.nfs import OpenZfsFileSystem
from ultracluster.constructs.throwaway import throw_away

START = "arn:aws:fsx:us-east-2:111122223333:"
OWN = "fs-0123456789abcdef0"


@pytest.fixture(scope="module")
def deletion(synth, place):
    """Actions with the resources for which the function that deletes an OpenZFS file system has them."""

    def fill(stack):
        key = DataKey(stack, "Key", description="Data")
        arguments = {name: value for name, value in place(stack).items() if name != "efa_clients"}
        settings = OpenZfs(type="openzfs", capacity_gib=64, throughput_mbps=160, deployment="single_az_ha_2")
        OpenZfsFileSystem(stack, "Home", settings=settings, key=key, **arguments)
        throw_away(stack, key=key)

    template = synth(fill)
    (system,) = template.find_resources("AWS::FSx::FileSystem")
    policies = template.find_resources("AWS::IAM::ManagedPolicy").values()
    statements = [each for policy in policies for each in policy["Properties"]["PolicyDocument"]["Statement"]]
    return [(each["Action"], _arn(each["Resource"], system)) for each in statements if "fsx:" in json.dumps(each)]


def _arn(resource, system):
    if isinstance(resource, str):
        return resource
    values = {"AWS::Partition": "aws", "AWS::Region": "us-east-2", "AWS::AccountId": "111122223333", system: OWN}
    return "".join(part if isinstance(part, str) else values[part["Ref"]] for part in resource["Fn::Join"][1])


@pytest.mark.parametrize(
    ("action", "resource", "allowed"),
    [
        ("fsx:DeleteFileSystem", f"file-system/{OWN}", True),
        ("fsx:DeleteFileSystem", "file-system/fs-0fedcba9876543210", False),
        ("fsx:DeleteVolume", f"volume/{OWN}/fsvol-0123456789abcdef0", True),
        ("fsx:DeleteVolume", "volume/fs-0fedcba9876543210/fsvol-0123456789abcdef0", False),
        # CloudFormation Template Reference, AWS::FSx::Snapshot, return value ResourceARN
        ("fsx:DeleteSnapshot", "snapshot/fsvol-0123456789abcdef0/fsvolsnap-0123456789abcdef0", True),
        ("fsx:DeleteSnapshot", f"backup/{OWN}", False),
    ],
)
def test_the_deletion_of_openzfs_reaches_its_volumes_and_their_snapshots(deletion, action, resource, allowed):
    patterns = [
        pattern for actions, pattern in deletion if action in ([actions] if isinstance(actions, str) else actions)
    ]
    assert any(fnmatchcase(START + resource, pattern) for pattern in patterns) is allowed
