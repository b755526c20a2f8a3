"""The policy of jobs on buckets."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from ultracluster.config.storage import Bucket
from ultracluster.constructs.bucket_access import BucketAccess
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.references import WrongReference


def test_jobs_may_list_read_and_write_buckets_but_not_delete_objects(synth):
    def fill(stack):
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        key = DataKey(stack, "Key", description="Data")
        settings = {"Data": Bucket(existing="data"), "Own": Bucket(), "OwnToo": Bucket()}
        buckets = [
            TrainingBucket(stack, name, settings=each, key=None if each.existing else key)
            for name, each in settings.items()
        ]
        BucketAccess(stack, "Access", buckets=buckets, role=role)

    template = synth(fill)
    (policy,) = template.find_resources("AWS::IAM::ManagedPolicy").values()
    (key,) = template.find_resources("AWS::KMS::Key")
    listing, objects, keys = policy["Properties"]["PolicyDocument"]["Statement"]
    assert listing["Action"] == "s3:ListBucket"
    assert "s3:PutObject" in objects["Action"]
    assert len(objects["Resource"]) == 3
    assert keys["Resource"] == [{"Fn::GetAtt": [key, "Arn"]}]
    assert "Delete" not in str(policy)


def test_jobs_may_list_and_read_read_only_buckets_and_nothing_else(synth):
    def fill(stack):
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        BucketAccess(stack, "Access", buckets=[], role=role, read_only=["open-data"])

    (policy,) = synth(fill).find_resources("AWS::IAM::ManagedPolicy").values()
    listing, objects = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (listing["Action"], listing["Resource"]) == ("s3:ListBucket", ["arn:aws:s3:::open-data"])
    assert (objects["Action"], objects["Resource"]) == ("s3:GetObject", ["arn:aws:s3:::open-data/*"])


@pytest.mark.parametrize("wrong", [None, "arn:aws:iam::111122223333:role/Jobs"])
def test_a_role_that_is_no_object_is_refused(wrong):
    with pytest.raises(WrongReference, match=r"Pass an aws_cdk\.interfaces\.aws_iam\.IRoleRef"):
        BucketAccess(cdk.Stack(cdk.App(), "stack"), "Access", buckets=[], role=wrong)


def test_a_bucket_that_is_none_is_refused():
    stack = cdk.Stack(cdk.App(), "stack")
    role = iam.Role.from_role_name(stack, "Role", "Jobs")
    with pytest.raises(WrongReference, match=r"Pass an aws_cdk\.interfaces\.aws_s3\.IBucketRef"):
        BucketAccess(stack, "Access", buckets=["datasets"], role=role)
