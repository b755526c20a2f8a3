"""What jobs may do with buckets."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from infra.constructs.bucket_access import BucketAccess


def test_jobs_read_and_write_the_given_buckets_but_delete_nothing(synth):
    def fill(stack):
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        buckets = [s3.Bucket.from_bucket_name(stack, "Data", "data"), s3.Bucket(stack, "Own")]
        BucketAccess(stack, "Access", buckets=buckets, role=role)

    (policy,) = synth(fill).find_resources("AWS::IAM::ManagedPolicy").values()
    listing, objects = policy["Properties"]["PolicyDocument"]["Statement"]
    assert listing["Action"] == "s3:ListBucket"
    assert "s3:PutObject" in objects["Action"]
    assert len(objects["Resource"]) == 2
    assert "Delete" not in str(policy)
