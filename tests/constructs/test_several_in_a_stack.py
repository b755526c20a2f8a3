"""Several constructs of a class in one stack, and constructs in nested stacks: names do not collide, nothing cycles."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template
from constructs import Construct

from tests.synthesis import flags
from ultracluster.config.buckets import Bucket
from ultracluster.config.lustre import Lustre
from ultracluster.config.network import CreateNetwork, Network
from ultracluster.config.observability import Observability
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.lustre import TrainingFileSystem
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.constructs.network import ClusterNetwork

LUSTRE = Lustre(capacity_gib=1200, throughput_mbps_per_tib=250)


def two_of_each(stack):
    key = DataKey(stack, "Key", description="Data")
    for number in (1, 2):
        part = Construct(stack, f"Part{number}")
        network = ClusterNetwork(part, "Network", settings=Network(create=CreateNetwork()), zone="us-east-2b")
        TrainingFileSystem(part, "Lustre", settings=LUSTRE, vpc=network.vpc_id, subnet=network.node_subnet_id, key=key)
        MetricsWorkspace(part, "Metrics", settings=Observability(), key=key)
        TrainingBucket(part, "data", settings=Bucket(), key=key)


@pytest.mark.parametrize(("kind", "name"), [("AWS::Logs::LogGroup", "LogGroupName"), ("AWS::S3::Bucket", "BucketName")])
def test_two_of_a_class_have_different_names(synth, kind, name):
    found = synth(two_of_each).find_resources(kind).values()
    names = [json.dumps(each["Properties"][name]) for each in found if name in each["Properties"]]
    assert len(set(names)) == len(names) > 1


@pytest.fixture(scope="module")
def nested():
    """The templates of a stack with a key, and of a nested stack that uses it."""
    app = cdk.App(context=flags(), analytics_reporting=False)
    parent = cdk.Stack(app, "parent", env=cdk.Environment(account="111122223333", region="us-east-2"))
    key = DataKey(parent, "Key", description="Data")
    child = cdk.NestedStack(parent, "Child")
    TrainingFileSystem(child, "Lustre", settings=LUSTRE, vpc="vpc-1", subnet="subnet-1", key=key)
    TrainingBucket(child, "data", settings=Bucket(), key=key)
    return Template.from_stack(parent).to_json(), Template.from_stack(child).to_json()


def test_a_key_does_not_depend_on_the_nested_stack_that_uses_it(nested):
    parent, _ = nested
    (key,) = (found for found in parent["Resources"].values() if found["Type"] == "AWS::KMS::Key")
    assert "NestedStack" not in json.dumps(key)
    assert "log-group:/aws/fsx/lustre/parent-Child" in json.dumps(key)


def test_names_in_a_nested_stack_hold_no_token(nested):
    _, child = nested
    assert "token" not in json.dumps(child).lower().replace("servicetoken", "")
