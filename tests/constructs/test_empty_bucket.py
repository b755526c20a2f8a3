"""The function that empties buckets of a thrown-away stack, and what it does about S3's errors."""

import json
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tests.constructs.test_handlers import run
from ultracluster.config.buckets import Bucket
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.throwaway import throw_away

PROPERTIES = {"BucketName": "dev-data", "Objects": "arn:aws:s3:::dev-data/*"}
VERSIONS = [{"Key": name, "VersionId": version} for name, version in (("a", "1"), ("a", "2"), ("b", "3"), ("c", "4"))]
IN_TIME = SimpleNamespace(get_remaining_time_in_millis=lambda: 900_000)


def bucket(*answers):
    """A client whose bucket holds VERSIONS, and whose DeleteObjects answers with these errors, one after the other."""
    client = Mock()
    client.get_bucket_tagging.return_value = {"TagSet": [{"Key": "ultracluster:retain", "Value": "false"}]}
    client.get_bucket_policy.return_value = {"Policy": json.dumps({"Statement": []})}
    pages = {"list_object_versions": [{"Versions": VERSIONS}], "list_multipart_uploads": [{}]}
    client.get_paginator.side_effect = lambda name: Mock(paginate=lambda **_: pages[name])
    client.delete_objects.side_effect = [{"Errors": errors} if errors else {} for errors in answers]
    return client


def error(code, key, version):
    return {"Code": code, "Key": key, "VersionId": version, "Message": "no"}


def asked(client):
    """Versions of each call of DeleteObjects."""
    calls = [call.kwargs["Delete"]["Objects"] for call in client.delete_objects.call_args_list]
    return [[each["VersionId"] for each in objects] for objects in calls]


@pytest.mark.parametrize("code", ["SlowDown", "InternalError", "ServiceUnavailable"])
def test_versions_that_s3_was_too_busy_to_delete_are_deleted_again(code):
    client = bucket([error(code, "b", "3"), error(code, "c", "4")], [error(code, "c", "4")], [])
    assert run("empty_bucket", "Delete", PROPERTIES, client, IN_TIME) == ("SUCCESS", "dev-data", None)
    assert asked(client) == [["1", "2", "3", "4"], ["3", "4"], ["4"]]


def test_a_third_error_of_a_version_fails_the_deletion_with_its_code():
    client = bucket(*[[error("SlowDown", "c", "4")]] * 3)
    assert run("empty_bucket", "Delete", PROPERTIES, client, IN_TIME) == (
        "FAILED",
        "dev-data",
        "dev-data: c: SlowDown: no",
    )
    assert len(asked(client)) == 3


def test_a_refusal_is_not_asked_again():
    client = bucket([error("SlowDown", "b", "3"), error("AccessDenied", "c", "4")])
    status, _, reason = run("empty_bucket", "Delete", PROPERTIES, client, IN_TIME)
    assert (status, reason) == ("FAILED", "dev-data: c: AccessDenied: no")
    assert len(asked(client)) == 1


def test_the_function_that_empties_buckets_has_a_whole_vcpu(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Data")
        TrainingBucket(stack, "datasets", settings=Bucket(), key=key)
        throw_away(stack, key=key)

    (function,) = synth(fill).find_resources("AWS::Lambda::Function").values()
    assert function["Properties"]["MemorySize"] == 1769
