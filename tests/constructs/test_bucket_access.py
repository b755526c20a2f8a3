"""The policy of jobs on buckets."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Annotations, Match

from ultracluster.config.buckets import Bucket
from ultracluster.constructs.bucket_access import BucketAccess
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.references import WrongReference
from ultracluster.errors import InvalidArgument

THEIR_KEY = "arn:aws:kms:us-east-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"


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
    listing, read, written, keys = policy["Properties"]["PolicyDocument"]["Statement"]
    assert listing["Action"] == "s3:ListBucket"
    assert read["Action"] == "s3:GetObject"
    assert "s3:PutObject" in written["Action"]
    assert len(read["Resource"]) == 3
    assert read["Resource"] == written["Resource"]
    assert keys["Resource"] == [{"Fn::GetAtt": [key, "Arn"]}]
    assert "Delete" not in str(policy)


def statements_of(synth, buckets, prefix="", keys=()):
    """Statements of the policy for buckets, given as settings by name; a name in `keys` has that key."""

    def fill(stack):
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        made = [
            TrainingBucket(
                stack,
                name,
                settings=Bucket(existing=name, access=access),
                key=kms.Key.from_key_arn(stack, f"Key{name}", dict(keys)[name]) if name in dict(keys) else None,
            )
            for name, access in buckets.items()
        ]
        BucketAccess(stack, "Access", buckets=made, role=role, prefix=prefix)

    (policy,) = synth(fill).find_resources("AWS::IAM::ManagedPolicy").values()
    return policy["Properties"]["PolicyDocument"]["Statement"]


def test_access_says_what_jobs_do_with_each_bucket(synth):
    buckets = {"public": "read", "data": "write", "scratch": "write_and_delete"}
    listing, read, written, deleted = statements_of(synth, buckets, prefix="teams/research/")
    assert listing["Resource"] == [f"arn:aws:s3:::{name}" for name in buckets]
    assert read["Resource"] == [f"arn:aws:s3:::{name}/*" for name in buckets]
    assert written["Resource"] == [f"arn:aws:s3:::{name}/teams/research/*" for name in ("data", "scratch")]
    assert (deleted["Action"], deleted["Resource"]) == ("s3:DeleteObject", ["arn:aws:s3:::scratch/teams/research/*"])


def test_whoever_only_reads_gets_no_statement_that_writes(synth):
    listing, read = statements_of(synth, {"public": "read"})
    assert (listing["Action"], read["Action"]) == ("s3:ListBucket", "s3:GetObject")


def test_reading_takes_decryption_alone_unless_the_key_is_that_of_a_bucket_that_is_written(synth):
    theirs, other = THEIR_KEY, THEIR_KEY.replace("01234567", "89abcdef")
    buckets = {"raw": "read", "data": "write", "old": "read"}
    keys = {"raw": theirs, "data": theirs, "old": other}
    *_, writing, reading = statements_of(synth, buckets, keys=keys)
    assert (writing["Action"], writing["Resource"]) == (["kms:Decrypt", "kms:GenerateDataKey"], [theirs])
    assert (reading["Action"], reading["Resource"]) == (["kms:Decrypt"], [other])


def test_the_owner_of_a_bucket_with_a_key_of_another_account_is_told_what_its_policy_needs():
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(account="444455556666", region="us-east-2"))
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    own = THEIR_KEY.replace("111122223333", "444455556666")
    keys = {
        "theirs": kms.Key.from_key_arn(stack, "Theirs", THEIR_KEY),
        "ours": kms.Key.from_key_arn(stack, "Ours", own),
    }
    buckets = [
        TrainingBucket(stack, f"Bucket-{name}", settings=Bucket(existing=name, access="read"), key=key)
        for name, key in keys.items()
    ]
    access = BucketAccess(stack, "Access", buckets=buckets, role=role)
    (asked,) = [stack.resolve(statement.to_statement_json()) for statement in access.bucket_policy_statements]
    assert asked["Action"] == ["s3:ListBucket", "s3:GetObject"]
    assert "theirs/*" in str(asked["Resource"])
    assert ":iam::444455556666:root" in str(asked["Principal"])
    wanted = Match.string_like_regexp("statement to the bucket policy")
    (warning,) = Annotations.from_stack(stack).find_warning("*", wanted)
    assert "bucket theirs is another account's" in str(warning.entry.data)


def test_jobs_may_list_and_read_read_only_buckets_and_nothing_else(synth):
    def fill(stack):
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        BucketAccess(stack, "Access", buckets=[], role=role, read_only=["open-data"])

    (policy,) = synth(fill).find_resources("AWS::IAM::ManagedPolicy").values()
    listing, objects = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (listing["Action"], listing["Resource"]) == ("s3:ListBucket", ["arn:aws:s3:::open-data"])
    assert (objects["Action"], objects["Resource"]) == ("s3:GetObject", ["arn:aws:s3:::open-data/*"])


def test_a_role_with_a_prefix_reads_everything_and_writes_below_the_prefix(synth):
    def fill(stack):
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("pods.eks.amazonaws.com"))
        bucket = TrainingBucket(stack, "Data", settings=Bucket(existing="data"))
        BucketAccess(stack, "Access", buckets=[bucket], role=role, prefix="teams/research/")

    (policy,) = synth(fill).find_resources("AWS::IAM::ManagedPolicy").values()
    listing, read, written = policy["Properties"]["PolicyDocument"]["Statement"]
    assert read["Resource"] == ["arn:aws:s3:::data/*"]
    assert written["Resource"] == ["arn:aws:s3:::data/teams/research/*"]
    assert not {"s3:PutObject"} & {listing["Action"], read["Action"]}


def test_keys_are_used_through_s3_only(synth):
    def fill(stack):
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("pods.eks.amazonaws.com"))
        bucket = TrainingBucket(stack, "Data", settings=Bucket(), key=DataKey(stack, "Key", description="Data"))
        BucketAccess(stack, "Access", buckets=[bucket], role=role)

    (policy,) = synth(fill).find_resources("AWS::IAM::ManagedPolicy").values()
    keys = policy["Properties"]["PolicyDocument"]["Statement"][-1]
    assert keys["Condition"] == {"StringEquals": {"kms:ViaService": "s3.us-east-2.amazonaws.com"}}


def test_the_key_of_an_existing_bucket_is_granted_and_its_owner_is_told_once(synth):
    warned = []

    def fill(stack):
        key = kms.Key.from_key_arn(stack, "Key", THEIR_KEY)
        bucket = TrainingBucket(stack, "Data", settings=Bucket(existing="data"), key=key)
        for name in ("A", "B"):
            role = iam.Role(stack, f"Role{name}", assumed_by=iam.ServicePrincipal("pods.eks.amazonaws.com"))
            access = BucketAccess(stack, f"Access{name}", buckets=[bucket], role=role)
            assert len(access.key_policy_statements) == 1
        warned.append(Annotations.from_stack(stack))

    for policy in synth(fill).find_resources("AWS::IAM::ManagedPolicy").values():
        keys = policy["Properties"]["PolicyDocument"]["Statement"][-1]
        assert keys["Resource"] == [THEIR_KEY]
        assert keys["Condition"] == {"StringEquals": {"kms:ViaService": "s3.us-east-2.amazonaws.com"}}
    (annotations,) = warned
    assert len(annotations.find_warning("*", Match.string_like_regexp(f"policy of the key .*{THEIR_KEY[-12:]}"))) == 1


@pytest.mark.parametrize("prefix", ["/teams/research/", "teams/research", "/"])
def test_a_prefix_that_would_match_other_keys_is_refused(prefix):
    stack = cdk.Stack(cdk.App(), "stack")
    role = iam.Role.from_role_name(stack, "Role", "Jobs")
    with pytest.raises(InvalidArgument, match="Pass a prefix such as"):
        BucketAccess(stack, "Access", buckets=[], role=role, prefix=prefix)


@pytest.mark.parametrize("wrong", [None, "arn:aws:iam::111122223333:role/Jobs"])
def test_a_role_that_is_no_object_is_refused(wrong):
    with pytest.raises(WrongReference, match=r"Pass an aws_cdk\.interfaces\.aws_iam\.IRoleRef"):
        BucketAccess(cdk.Stack(cdk.App(), "stack"), "Access", buckets=[], role=wrong)


def test_a_bucket_that_is_none_is_refused():
    stack = cdk.Stack(cdk.App(), "stack")
    role = iam.Role.from_role_name(stack, "Role", "Jobs")
    with pytest.raises(WrongReference, match=r"Pass an aws_cdk\.interfaces\.aws_s3\.IBucketRef"):
        BucketAccess(stack, "Access", buckets=["datasets"], role=role)


@pytest.mark.parametrize(
    ("env", "principal", "service"),
    [
        (
            {"account": "111122223333", "region": "us-east-2"},
            "arn:aws:iam::111122223333:root",
            "s3.us-east-2.amazonaws.com",
        ),
        ({"account": "111122223333", "region": "us-gov-west-1"}, "arn:aws-us-gov:iam::111122223333:root", None),
        ({}, "arn:aws:iam::ACCOUNT:root", "s3.REGION.amazonaws.com"),
    ],
)
def test_statements_for_owners_can_be_pasted_into_a_policy(env, principal, service):
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(**env) if env else None)
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    key = kms.Key.from_key_arn(stack, "Theirs", THEIR_KEY.replace("111122223333", "444455556666"))
    bucket = TrainingBucket(stack, "Bucket", settings=Bucket(existing="theirs"), key=key)
    BucketAccess(stack, "Access", buckets=[bucket], role=role)
    warnings = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("owner must add"))
    texts = [str(warning.entry.data) for warning in warnings]
    statements = [json.loads(text[text.index("{") : text.rindex("}") + 1]) for text in texts]
    assert len(statements) == (2 if env else 1)
    assert {statement["Principal"]["AWS"] for statement in statements} == {principal}
    assert "Ref" not in json.dumps(statements)
    (through,) = [each["Condition"]["StringEquals"]["kms:ViaService"] for each in statements if "Condition" in each]
    assert service in (None, through)
