"""parliament over every policy of every shipped environment: misspelt actions and keys, resources that do not fit."""

import json
import warnings

import pytest

from tests.access.account import Account
from tests.synthesis import FILES, templates
from ultracluster.config.loader import load

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # parliament imports pkg_resources, which is deprecated
    import parliament

ACCEPTED = (
    "RESOURCE_STAR",  # cdk-nag asks for the reason of each
    "UNKNOWN_CONDITION_FOR_ACTION Unknown condition kms:EncryptionContext:",  # AWS's statements list kms:Describe* too
    "UNKNOWN_CONDITION_FOR_ACTION Unknown condition s3:TlsVersion",  # of s3:*, the actions without the key
    "MISMATCHED_TYPE Type mismatch: ArnLike requires a value of type Arn but given String",  # ARNs in AWS's docs
    "RESOURCE_MISMATCH [{'action': 's3:AssociateAccessGrants",  # of s3:* on a bucket, the actions for other resources
    "RESOURCE_MISMATCH [{'action': 'ec2:RunInstances'",  # Karpenter: a statement for each kind of resource
    "RESOURCE_MISMATCH [{'action': 'ssm:SendCommand'",  # a statement for the document and one for the instances
    "RESOURCE_MISMATCH [{'action': 'ssm:GetParameter'",  # the ARN of a public parameter names no account
)
"""How findings start that are not faults."""

ACCEPTED_OF = {
    # The function adds a Deny to the policy of a bucket that it empties, so that nobody writes there meanwhile. S3 has
    # no condition key for the text of a policy. Only Lambda assumes the role. It exists only with retain: false, when
    # all data of its resources, the stack's own buckets, may be deleted.
    "EmptyBucketsPolicy": "RESOURCE_POLICY_PRIVILEGE_ESCALATION Possible resource policy privilege escalation on arn:",
}
"""How findings start that are not faults of one policy, by the start of its logical id."""


def findings(document, policy=""):
    """Issue and detail of what parliament finds in the policy with this logical id."""
    # it wants a resource in trust policies too, and takes whole numbers only
    statements = [{"Resource": "*", **statement} for statement in document["Statement"]]
    whole = json.loads(json.dumps(statements), parse_float=lambda _: "1")
    text = json.dumps({**document, "Statement": whole})
    found = parliament.analyze_policy_string(text, ignore_private_auditors=True).findings
    lines = [f"{each.issue} {each.detail}" for each in found]
    accepted = (*ACCEPTED, *(start for name, start in ACCEPTED_OF.items() if policy.startswith(name)))
    return [line for line in lines if not line.startswith(accepted)]


@pytest.mark.parametrize("name", FILES)
def test_parliament_finds_no_fault(name):
    environment = load(FILES[name])
    account = Account(environment.name, environment.region, templates(name))
    found = {
        place: faults for place, document in account.documents() if (faults := findings(document, place.split()[-1]))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("change", "issue"),
    [
        ({"Action": "s3:GetObjekt"}, "UNKNOWN_ACTION"),
        ({"Resource": "arn:aws:s3:::bucket"}, "RESOURCE_MISMATCH"),
        ({"Condition": {"StringEquals": {"s3:prefx": "a"}}}, "UNKNOWN_CONDITION_FOR_ACTION"),
        ({"Effect": "Permit"}, "MALFORMED"),
    ],
)
def test_parliament_finds_a_fault(change, issue):
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*", **change}
    found = findings({"Version": "2012-10-17", "Statement": [statement]})
    assert any(line.startswith(issue) for line in found)


def test_a_policy_that_may_give_itself_objects_is_a_fault_but_where_a_function_empties_buckets():
    statements = [{"Effect": "Allow", "Action": "s3:PutBucketPolicy", "Resource": "arn:aws:s3:::bucket"}]
    document = {"Version": "2012-10-17", "Statement": statements}
    assert any(line.startswith("RESOURCE_POLICY_PRIVILEGE_ESCALATION") for line in findings(document, "JobsPolicy1"))
    assert findings(document, "EmptyBucketsPolicyF821271A") == []
