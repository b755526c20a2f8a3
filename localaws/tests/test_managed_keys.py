"""AWS managed keys: each is made when its alias is first described."""

import pytest

from handler_parts import Stack
from localaws.services.corrections import MANAGED


@pytest.mark.parametrize("name", [*MANAGED, "ebs", "lambda", "s3", "secretsmanager", "ssm"])
def test_an_aws_managed_key_exists_on_first_use(stack: Stack, name: str) -> None:
    kms, alias = stack.client("kms"), f"alias/aws/{name}"
    predefined = [found for found in kms.list_aliases()["Aliases"] if found["AliasName"] == alias]
    assert "TargetKeyId" not in predefined[0]
    key = kms.describe_key(KeyId=alias)["KeyMetadata"]
    assert (key["KeyManager"], key["Enabled"]) == ("AWS", True)
    arn = f"arn:aws:kms:us-east-1:123456789012:{alias}"
    assert kms.describe_key(KeyId=arn)["KeyMetadata"]["KeyId"] == key["KeyId"]
    listed = kms.list_aliases(KeyId=key["KeyId"])["Aliases"]
    assert [(found["AliasName"], found["TargetKeyId"]) for found in listed] == [(alias, key["KeyId"])]


def test_a_queue_and_a_topic_use_the_keys_of_their_services(stack: Stack) -> None:
    queue = stack.make("AWS::SQS::Queue", KmsMasterKeyId="alias/aws/sqs")
    found = stack.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["KmsMasterKeyId"])
    assert found["Attributes"] == {"KmsMasterKeyId": "alias/aws/sqs"}
    topic = stack.make("AWS::SNS::Topic", KmsMasterKeyId="alias/aws/sns")
    assert stack.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]["KmsMasterKeyId"] == "alias/aws/sns"
