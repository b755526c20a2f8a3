"""KMS keys and aliases."""

KEY = "AWS::KMS::Key"


def test_key_waits_thirty_days_by_default(stack):
    kms = stack.client("kms")
    key = stack.make(KEY)
    stack.delete(KEY, key)
    found = kms.describe_key(KeyId=key)["KeyMetadata"]
    assert round((found["DeletionDate"].timestamp() - found["CreationDate"].timestamp()) / 86400) == 30
