"""Root squash of a file system."""

import pytest

from ultracluster.config.lustre import Lustre
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.lustre import TrainingFileSystem

NIDS = ["10.0.0.5@tcp", "10.0.[2-3].[0-255]@tcp"]


def file_system(stack, place, **settings):
    lustre = Lustre(capacity_gib=9600, throughput_mbps_per_tib=500, **settings)
    TrainingFileSystem(
        stack, "Lustre", settings=lustre, key=DataKey(stack, "Key", description="Data"), **place(stack, efa=lustre.efa)
    )


@pytest.fixture(scope="module")
def template(synth, place):
    return synth(lambda stack: file_system(stack, place, root_squash="65534:65534", no_squash_nids=NIDS))


@pytest.fixture(scope="module")
def plain(synth, place):
    return synth(lambda stack: file_system(stack, place))


def one(template, kind):
    (resource,) = template.find_resources(kind).values()
    return resource["Properties"]


def test_root_squash_is_set_on_the_file_system(template):
    squash = one(template, "Custom::LustreRootSquash")
    (file_system_id,) = template.find_resources("AWS::FSx::FileSystem")
    assert squash["RootSquash"] == "65534:65534"
    assert squash["NoSquashNids"] == NIDS
    assert squash["FileSystemId"] == {"Ref": file_system_id}


def test_the_function_may_change_only_this_file_system(template):
    (file_system_id,) = template.find_resources("AWS::FSx::FileSystem")
    arn = ["arn:aws:fsx:us-east-2:111122223333:file-system/", {"Ref": file_system_id}]
    update = {"Action": "fsx:UpdateFileSystem", "Effect": "Allow", "Resource": {"Fn::Join": ["", arn]}}
    statements = one(template, "AWS::IAM::ManagedPolicy")["PolicyDocument"]["Statement"]
    assert update in statements
    wide = [statement for statement in statements if statement["Resource"] == "*"]
    assert [statement["Action"] for statement in wide] == ["fsx:DescribeFileSystems"]


def test_without_root_squash_there_is_no_function(plain):
    plain.resource_count_is("AWS::Lambda::Function", 0)
