"""Policies stay within IAM's limit, with as many buckets as an environment may have."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.bad_files import FOLDER, reading_time
from tests.synthesis import synthesise
from ultracluster.config.buckets import MAXIMUM_BUCKETS
from ultracluster.config.environment import Environment
from ultracluster.config.loader import load
from ultracluster.config.problems import InvalidSettings
from ultracluster.config.storage import Storage

LIMIT = 6_144
"""Characters of a managed policy, without white space (IAM User Guide, "IAM and AWS STS quotas", 2026)."""
LONGEST_ARN = "arn:aws-us-gov:s3:::" + "b" * 63


def resolved(value: Any) -> Any:
    """`value` with the longest text that AWS could put in place of a reference."""
    match value:
        case {"Fn::Join": [separator, parts]}:
            return separator.join(map(resolved, parts))
        case {"Fn::ImportValue": _} | {"Fn::GetAtt": _}:
            return LONGEST_ARN
        case {"Ref": name}:
            return "us-gov-west-1" if name.startswith("AWS::") else "r" * 40
        case dict() if any(key.startswith("Fn::") for key in value):
            return "r" * 40
        case dict():
            return {key: resolved(entry) for key, entry in value.items()}
        case list():
            return [resolved(entry) for entry in value]
    return value


def managed_policies(templates: dict[str, dict[str, Any]]) -> Counter[str]:
    """Characters of each managed policy."""
    return Counter(
        {
            f"{part}/{logical_id}": characters(resource["Properties"]["PolicyDocument"])
            for part, template in templates.items()
            for logical_id, resource in template["Resources"].items()
            if resource["Type"] == "AWS::IAM::ManagedPolicy"
        }
    )


def characters(document: Any) -> int:
    return len(json.dumps(resolved(document), separators=(",", ":")))


def created(count):
    return {f"abcdefghijklmnopqr{i:02}": {} for i in range(count)}


def existing(count):
    """Buckets of others with the longest names, each with the longest key ARN."""
    key = "arn:aws:kms:ap-southeast-2:111122223333:key/01234567-89ab-cdef-0123-4567890abc{:02}"
    return {
        f"abcdefghijklmnopqr{i:02}": {"existing": "b" * 61 + f"{i:02}", "key_arn": key.format(i)} for i in range(count)
    }


def test_as_many_keys_as_fit_are_accepted_and_no_more():
    Storage.model_validate({"buckets": existing(15)})
    with pytest.raises(InvalidSettings, match="16 buckets and 16 keys"):
        Storage.model_validate({"buckets": existing(16)})


@pytest.mark.parametrize("file", ["minimal.yaml", "minimal-eks.yaml"])
@pytest.mark.parametrize("buckets", [created(MAXIMUM_BUCKETS), existing(15)], ids=["created", "existing"])
def test_policies_fit_with_the_most_buckets(file, buckets):
    with reading_time():
        environment = load(FOLDER / file)
        data = environment.model_dump(mode="json", exclude_none=True)
        data["name"] = "abcdefghijklmnopqrst"
        data["storage"].pop("lustre", None)
        data |= {"region": "ap-southeast-2", "availability_zone": "ap-southeast-2b"}
        data["storage"]["buckets"] = buckets
        sizes = managed_policies(synthesise(Environment.model_validate(data)))
    assert max(sizes.values()) > LIMIT // 2, "the test does not see the policy that names the buckets"
    assert max(sizes.values()) <= LIMIT, sizes.most_common(3)
