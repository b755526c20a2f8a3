"""Links between a file system and S3: data repository associations, and what they need of key policies."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from ultracluster.config.buckets import Bucket
from ultracluster.config.lustre import Lustre, S3Link
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.links import S3Links, _association
from ultracluster.constructs.lustre import TrainingFileSystem
from ultracluster.errors import InvalidArgument

SSD = {"capacity_gib": 9600, "throughput_mbps_per_tib": 500}
DATASETS = S3Link(path="/datasets", bucket="datasets", prefix="raw/v1", import_events=("new", "changed", "deleted"))
CHECKPOINTS = S3Link(path="/checkpoints", bucket="checkpoints", export_events=("new",))
ARCHIVE = S3Link(path="/archive", bucket="theirs")


def file_system(stack, place, **settings):
    key = DataKey(stack, "Key", description="Data")
    asked = {"datasets": Bucket(), "checkpoints": Bucket(), "theirs": Bucket(existing="their-bucket")}
    buckets = {
        name: TrainingBucket(stack, name, settings=each, key=None if each.existing else key)
        for name, each in asked.items()
    }
    lustre = Lustre(**settings)
    made = TrainingFileSystem(stack, "Lustre", settings=lustre, key=key, **place(stack, efa=lustre.efa))
    S3Links(stack, "Links", settings=lustre.links, file_system=made, buckets=buckets)


def existing(stack):
    return TrainingFileSystem.from_file_system_attributes(
        stack, "Lustre", file_system_id="fs-1", mount_name="abcd", security_group="sg-1"
    )


@pytest.fixture(scope="module")
def template(synth, place):
    return synth(lambda stack: file_system(stack, place, **SSD, links=(DATASETS, CHECKPOINTS, ARCHIVE)))


@pytest.fixture(scope="module")
def plain(synth, place):
    return synth(lambda stack: file_system(stack, place, **SSD))


def one(template, kind):
    (resource,) = template.find_resources(kind).values()
    return resource["Properties"]


def links(template):
    found = template.find_resources("AWS::FSx::DataRepositoryAssociation")
    return {resource["Properties"]["FileSystemPath"]: (name, resource) for name, resource in found.items()}


def test_import_events_also_import_existing_metadata():
    assert _association(DATASETS, "bucket") == {
        "file_system_path": "/datasets",
        "data_repository_path": "s3://bucket/raw/v1",
        "batch_import_meta_data_on_create": True,
        "s3": {"autoImportPolicy": {"events": ["NEW", "CHANGED", "DELETED"]}},
    }


def test_export_events_import_nothing():
    association = _association(CHECKPOINTS, "bucket")
    assert association["batch_import_meta_data_on_create"] is False
    assert association["s3"] == {"autoExportPolicy": {"events": ["NEW"]}}


def test_link_without_events_has_no_policies_and_link_to_a_whole_bucket_no_prefix():
    association = _association(ARCHIVE, "bucket")
    assert "s3" not in association
    assert association["data_repository_path"] == "s3://bucket"


def test_links_are_created_one_after_the_other(template):
    found = links(template)
    datasets, checkpoints, archive = (found[path] for path in ("/datasets", "/checkpoints", "/archive"))
    assert "DependsOn" not in datasets[1]
    assert checkpoints[1]["DependsOn"] == [datasets[0]]
    assert archive[1]["DependsOn"] == [checkpoints[0]]


def test_links_with_similar_paths_are_different_resources(synth, place):
    paths = ("/a/b", "/ab", "/aB", "/a-b")
    alike = tuple(S3Link(path=path, bucket="datasets", prefix=str(i)) for i, path in enumerate(paths))
    assert set(links(synth(lambda stack: file_system(stack, place, **SSD, links=alike)))) == set(paths)


def test_the_links_role_itself_may_use_the_key_for_buckets_of_the_stack_only(template):
    statements = [each for each in one(template, "AWS::KMS::Key")["KeyPolicy"]["Statement"] if "FSx" in str(each)]
    assert statements == [
        {
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            "Resource": "*",
            "Condition": {
                "StringEquals": {
                    "kms:CallerAccount": "111122223333",
                    "kms:ViaService": "s3.us-east-2.amazonaws.com",
                },
                "ArnLike": {
                    "aws:PrincipalArn": "arn:aws:iam::111122223333:role/aws-service-role/"
                    "s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-*"
                },
                "StringLike": {"kms:EncryptionContext:aws:s3:arn": "arn:aws:s3:::prod-part-*"},
            },
        }
    ]


def test_without_links_the_key_policy_names_no_role(plain):
    assert "FSx" not in str(one(plain, "AWS::KMS::Key")["KeyPolicy"])


@pytest.mark.parametrize(
    ("name", "context"),
    [("theirs", ["arn:aws:s3:::theirs", "arn:aws:s3:::theirs/*"]), (None, "arn:aws:s3:::*")],
)
def test_the_policy_of_an_l2_bucket_s_key_allows_the_links_role(synth, name, context):
    def fill(stack):
        made = existing(stack)
        key = kms.Key(stack, "BucketKey")
        bucket = s3.Bucket(stack, "Bucket", encryption_key=key)
        if name:
            bucket = s3.Bucket.from_bucket_attributes(stack, "Theirs", bucket_name=name, encryption_key=key)
        S3Links(stack, "Links", settings=[ARCHIVE], file_system=made, buckets={"theirs": bucket})

    keys = synth(fill).find_resources("AWS::KMS::Key").values()
    statements = [each for key in keys for each in key["Properties"]["KeyPolicy"]["Statement"] if "FSx" in str(each)]
    assert [each["Condition"]["StringLike"]["kms:EncryptionContext:aws:s3:arn"] for each in statements] == [context]


def test_an_existing_file_system_takes_links(synth):
    def fill(stack):
        buckets = {"theirs": s3.Bucket(stack, "Bucket")}
        S3Links(stack, "Links", settings=[ARCHIVE], file_system=existing(stack), buckets=buckets)

    synth(fill).has_resource_properties("AWS::FSx::DataRepositoryAssociation", {"FileSystemId": "fs-1"})


def test_a_link_to_a_bucket_that_is_not_passed_is_refused():
    stack = cdk.Stack(cdk.App(), "stack")
    with pytest.raises(InvalidArgument, match=r"buckets has no theirs\. Pass each bucket by the name in settings"):
        S3Links(stack, "Links", settings=[ARCHIVE], file_system=existing(stack), buckets={})
