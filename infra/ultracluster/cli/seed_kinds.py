"""Resources that an environment file names as existing: the calls that look up and create each kind."""

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ultracluster.config.bootstrap import Script
from ultracluster.config.directory import Directory

VPC_CIDR, NODE_CIDR = "10.0.0.0/16", "10.0.128.0/17"
OWN_CIDRS = ("10.0.0.0/20", "10.0.16.0/20")
"""CIDR blocks of the subnets of a directory, in a VPC of its own."""

Call = tuple[str, dict[str, Any]]
"""An operation of boto3's client of a service, and its arguments."""
Client = Callable[[str, str, str], Any]
"""boto3's client for service, Region and account."""
Create = Callable[..., None]
"""`localaws.services.given.create` or `Server.create`: creates a resource with a given id."""

PLACEHOLDER = (
    "#!/bin/bash\n# Made by ultracluster local up. The content of the real object is known by its checksum only.\n"
)


@dataclass(frozen=True)
class Existing:
    """A resource that a file names, with the calls that look it up and create it.

    `given` is the id to create it with, where AWS generates ids. `before` and `after` are calls around `create`. The
    resource does not exist if `look` fails, or if no entry of its response has the id: `among` names the list and the
    key of its entries.
    """

    kind: str
    id: str
    service: str
    look: Call
    create: Call
    before: Sequence[Call] = ()
    after: Sequence[Call] = ()
    given: str | None = None
    among: tuple[str, str] | None = None
    account: str = ""
    region: str = ""


def vpc(name: str) -> Existing:
    """A VPC with DNS, which endpoints and file systems need."""
    names = ("EnableDnsSupport", "EnableDnsHostnames")
    dns = [("modify_vpc_attribute", {"VpcId": name, each: {"Value": True}}) for each in names]
    look = ("describe_vpcs", {"VpcIds": [name]})
    return Existing("VPC", name, "ec2", look, ("create_vpc", {"CidrBlock": VPC_CIDR}), after=dns, given=name)


def subnet(name: str, vpc_id: str, cidr: str, **place: str) -> Existing:
    """A subnet; `place` is AvailabilityZone or AvailabilityZoneId."""
    asked, look = {"VpcId": vpc_id, "CidrBlock": cidr, **place}, ("describe_subnets", {"SubnetIds": [name]})
    return Existing("subnet", name, "ec2", look, ("create_subnet", asked), given=name)


def security_group(group: str, vpc_id: str, rules: Sequence[Call] = ()) -> Existing:
    """A security group with AWS's default rules and `rules`. Names of groups must not begin with sg-."""
    asked = {"GroupName": f"own-{group}", "Description": f"Made for {group}", "VpcId": vpc_id}
    look = ("describe_security_groups", {"GroupIds": [group]})
    return Existing("security group", group, "ec2", look, ("create_security_group", asked), after=rules, given=group)


def image(name: str, architecture: str) -> Existing:
    """An AMI."""
    asked = {"Name": name, "Architecture": architecture, "RootDeviceName": "/dev/xvda"}
    return Existing(
        "image", name, "ec2", ("describe_images", {"ImageIds": [name]}), ("register_image", asked), given=name
    )


def image_parameter(name: str, image_id: str) -> Existing:
    """An SSM parameter with the id of an AMI."""
    asked = {"Name": name, "Value": image_id, "Type": "String", "DataType": "aws:ec2:image"}
    return Existing("parameter", name, "ssm", ("get_parameter", {"Name": name}), ("put_parameter", asked))


def policy(arn: str, allowed: str = "sts:GetCallerIdentity") -> Existing:
    """A managed policy that allows one action; a permissions boundary allows all."""
    *_, account, resource = arn.split(":", 5)
    path, name = resource.removeprefix("policy").rpartition("/")[::2]
    statement = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    asked = {"PolicyName": name, "Path": f"{path}/", "PolicyDocument": document}
    look = ("get_policy", {"PolicyArn": arn})
    return Existing("policy", arn, "iam", look, ("create_policy", asked), account=account.replace("aws", ""))


def role(arn: str, trusted: dict[str, str]) -> Existing:
    """A role that the principal `trusted` may assume."""
    account, resource = arn.split(":", 5)[4:]
    path, name = resource.removeprefix("role").rpartition("/")[::2]
    trust = {"Effect": "Allow", "Principal": trusted, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    asked = {"RoleName": name, "Path": f"{path}/", "AssumeRolePolicyDocument": document}
    return Existing("role", arn, "iam", ("get_role", {"RoleName": name}), ("create_role", asked), account=account)


def bucket(name: str, region: str) -> Existing:
    """A bucket."""
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    return Existing(
        "bucket", name, "s3", ("head_bucket", {"Bucket": name}), ("create_bucket", {"Bucket": name, **place})
    )


def script(settings: Script) -> Existing:
    """A version of an S3 object, with its id. Its content is a placeholder: the file knows only its checksum."""
    name, key = settings.bucket_and_key or ("", "")
    version = str(settings.version_id)
    enabled = {"Bucket": name, "VersioningConfiguration": {"Status": "Enabled"}}
    where = {"Bucket": name, "Key": key}
    return Existing(
        "object",
        f"{settings.s3} in version {version}",
        "s3",
        ("head_object", {**where, "VersionId": version}),
        ("put_object", {**where, "Body": PLACEHOLDER, "ContentType": "text/x-shellscript"}),
        before=[("put_bucket_versioning", enabled)],
        given=version,
    )


def key(arn: str) -> Existing:
    """A KMS key with the default key policy, in the account and Region of its ARN."""
    _, _, _, region, account, resource = arn.split(":", 5)
    name = resource.removeprefix("key/")
    asked = {"Description": f"Made for {name}", "MultiRegion": name.startswith("mrk-")}
    look = ("describe_key", {"KeyId": name})
    return Existing("key", name, "kms", look, ("create_key", asked), given=name, account=account, region=region)


def secret(arn: str, keys: Sequence[str], key_arn: str | None = None) -> Existing:
    """A secret with random values of `keys`, in the account and Region of its ARN, which ends with six characters."""
    _, _, _, region, account, _, resource = arn.split(":", 6)
    name, _, suffix = resource.rpartition("-")
    values = json.dumps({each: secrets.token_urlsafe(24) for each in keys})
    asked = {"Name": name, "SecretString": values, **({"KmsKeyId": key_arn} if key_arn else {})}
    look, create = ("describe_secret", {"SecretId": arn}), ("create_secret", asked)
    return Existing("secret", arn, "secretsmanager", look, create, given=suffix, account=account, region=region)


def directory(settings: Directory, vpc_id: str, subnets: Sequence[str]) -> Existing:
    """An AWS Managed Microsoft AD of the domain, with a random password."""
    asked = {
        "Name": settings.domain,
        "Password": f"aA1-{secrets.token_urlsafe(24)}",
        "Edition": "Standard",
        "VpcSettings": {"VpcId": vpc_id, "SubnetIds": list(subnets)},
    }
    among, look = ("DirectoryDescriptions", "Name"), "describe_directories"
    return Existing("directory", settings.domain, "ds", (look, {}), ("create_microsoft_ad", asked), among=among)


def topic(arn: str) -> Existing:
    """An SNS topic."""
    region, account, name = arn.split(":")[3:]
    look, create = ("get_topic_attributes", {"TopicArn": arn}), ("create_topic", {"Name": name})
    return Existing("topic", arn, "sns", look, create, account=account, region=region)


def derived(text: str) -> str:
    """Hexadecimal digits of an id that no file names, the same for the same `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:17]
