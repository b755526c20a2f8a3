"""Empties a bucket before CloudFormation deletes it: every version of every object, and the parts of open uploads."""

import json
import logging
import time
from typing import Any

import boto3
import cfnresponse
from botocore.exceptions import ClientError

TAG = {"Key": "ultracluster:retain", "Value": "false"}
ANSWER_MILLISECONDS = 60_000
"""Kept of the time that the function may run."""
AGAIN = ("InternalError", "ServiceUnavailable", "SlowDown")
"""Codes of errors for which S3 asks to be called again."""
PAUSES = (2, 5)
"""Seconds before each further call for the versions that are left of a page."""


def handler(event: dict[str, Any], context: Any) -> None:
    """Answers CloudFormation. The resource is its bucket, so another bucket makes another resource."""
    properties = event["ResourceProperties"]
    bucket, s3 = properties["BucketName"], boto3.client("s3")
    try:
        if event["RequestType"] == "Delete" and may_empty(s3, bucket):
            deny_writes(s3, bucket, properties["Objects"])
            empty(s3, bucket, context)
    except Exception as error:
        logging.exception("bucket")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, bucket, reason=str(error))
        return
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, bucket)


def may_empty(s3: Any, bucket: str) -> bool:
    """Whether the bucket has the tag. The update to retain: true removes it before it deletes this resource."""
    try:
        return TAG in s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("NoSuchBucket", "NoSuchTagSet"):
            raise
        return False


def deny_writes(s3: Any, bucket: str, objects: str) -> None:
    """Denies PutObject while the bucket is emptied, to S3's delivery of access logs too."""
    policy = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])
    denied = {"Sid": "Emptied", "Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": objects}
    if denied not in policy["Statement"]:
        policy["Statement"].append(denied)
        s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))


def empty(s3: Any, bucket: str, context: Any) -> None:
    """RuntimeError when the time is up: CloudFormation then shows what to do."""
    deleted = 0
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        if context.get_remaining_time_in_millis() < ANSWER_MILLISECONDS:
            raise RuntimeError(f"{deleted} versions deleted, and {bucket} has more: delete the stack again")
        keys = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]
        delete(s3, bucket, keys)
        deleted += len(keys)
    for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
        for upload in page.get("Uploads", ()):
            s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])


def delete(s3: Any, bucket: str, keys: list[dict[str, str]]) -> None:
    """RuntimeError when S3 refuses to delete a version, or fails to for the third time."""
    for pause in (*PAUSES, None):
        wanted = {"Objects": keys, "Quiet": True}
        errors = s3.delete_objects(Bucket=bucket, Delete=wanted).get("Errors", ()) if keys else ()
        for error in errors:
            if pause is None or error["Code"] not in AGAIN:
                raise RuntimeError(f"{bucket}: {error['Key']}: {error['Code']}: {error['Message']}")
        if not errors:
            return
        left = {error["Key"] for error in errors}
        keys = [each for each in keys if each["Key"] in left]
        time.sleep(pause or 0)
