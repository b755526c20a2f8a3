"""The account that the templates of an environment would create: resources with every function resolved, and policies.

The names and ARNs follow CloudFormation's documentation of Ref and Fn::GetAtt; nothing is deployed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from localaws import intrinsics

ACCOUNT = "111122223333"
AWS_POLICIES: dict[str, Any] = json.loads(Path(__file__).with_name("aws_policies.json").read_text())["policies"]

SITE_POLICY = f"arn:aws:iam::{ACCOUNT}:policy/site"
"""A policy of the account that files name for nodes."""

Document = dict[str, Any]
Policies = tuple[tuple[str, Document], ...]

THEIR_POLICIES: dict[str, Document] = {
    SITE_POLICY: {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "license-manager:CheckoutLicense", "Resource": "*"}],
    }
}

NAMES = {
    "AWS::EKS::Cluster": "Name",
    "AWS::IAM::Role": "RoleName",
    "AWS::KMS::Key": "KeyId",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::SQS::Queue": "QueueName",
}
"""Property with the name that Ref returns; without it, a name is generated."""

ARNS = {
    "AWS::APS::Workspace": "arn:aws:aps:{region}:{account}:workspace/{name}",
    "AWS::EKS::Addon": "arn:aws:eks:{region}:{account}:addon/{name}",
    "AWS::EKS::Cluster": "arn:aws:eks:{region}:{account}:cluster/{name}",
    "AWS::EKS::Nodegroup": "arn:aws:eks:{region}:{account}:nodegroup/cluster/{name}/0123abcd",
    "AWS::Events::Rule": "arn:aws:events:{region}:{account}:rule/{name}",
    "AWS::FSx::FileSystem": "arn:aws:fsx:{region}:{account}:file-system/{name}",
    "AWS::IAM::InstanceProfile": "arn:aws:iam::{account}:instance-profile{path}{name}",
    "AWS::IAM::ManagedPolicy": "arn:aws:iam::{account}:policy/{name}",
    "AWS::IAM::Role": "arn:aws:iam::{account}:role{path}{name}",
    "AWS::KMS::Key": "arn:aws:kms:{region}:{account}:key/{name}",
    "AWS::Lambda::Function": "arn:aws:lambda:{region}:{account}:function:{name}",
    "AWS::Logs::LogGroup": "arn:aws:logs:{region}:{account}:log-group:{name}:*",
    "AWS::PCS::Cluster": "arn:aws:pcs:{region}:{account}:cluster/{name}",
    "AWS::S3::Bucket": "arn:aws:s3:::{name}",
    "AWS::SNS::Topic": "arn:aws:sns:{region}:{account}:{name}",
    "AWS::SQS::Queue": "arn:aws:sqs:{region}:{account}:{name}",
}
"""ARNs by type; {path} is / unless the resource has one."""

REF_IS_ARN = {"AWS::IAM::ManagedPolicy", "AWS::Lambda::LayerVersion", "AWS::SNS::Topic"}


@dataclass(frozen=True)
class Role:
    """An IAM role with everything that limits it."""

    name: str
    arn: str
    description: str
    trust: Document
    policies: Policies
    boundary: Document | None = None

    def trusts(self, service: str) -> bool:
        """Whether a service may assume the role."""
        return any(service in _list(each["Principal"].get("Service", [])) for each in self.trust["Statement"])


@dataclass(frozen=True)
class Found:
    """A resource of a template: its properties without functions, and its ARN."""

    stack: str
    logical_id: str
    type: str
    properties: dict[str, Any]
    ref: str
    arn: str


class Account:
    """The resources of all stacks of an environment. `templates` are by part of the stack name, as tests share them."""

    def __init__(
        self, name: str, region: str, templates: Mapping[str, Any], *, boundary: Document | None = None
    ) -> None:
        self.region, self._boundary = region, boundary
        self._stacks = {part: _Stack(f"{name}-{part}", region, template, self) for part, template in templates.items()}

    def exported(self, name: str) -> str:
        """The value of an export, in whichever stack."""
        for stack in self._stacks.values():
            for output in stack.template.get("Outputs", {}).values():
                if stack.resolve(output.get("Export", {}).get("Name")) == name:
                    return str(stack.resolve(output["Value"]))
        raise KeyError(name)

    def of_type(self, *types: str) -> list[Found]:
        """Resources of some types, in all stacks."""
        return [found for stack in self._stacks.values() for found in stack.found() if found.type in types]

    @cached_property
    def roles(self) -> dict[str, Role]:
        """Roles by ARN."""
        return {found.arn: self._role(found) for found in self.of_type("AWS::IAM::Role")}

    def trusting(self, service: str, words: str = "") -> Role:
        """The only role that a service may assume and whose description contains `words`."""
        (role,) = [role for role in self.roles.values() if role.trusts(service) and words in role.description]
        return role

    def one(self, type_name: str, **properties: Any) -> Found:
        """The only resource of a type with these properties."""
        (found,) = self.all(type_name, **properties)
        return found

    def all(self, type_name: str, **properties: Any) -> list[Found]:
        """Resources of a type with these properties."""
        return [
            found
            for found in self.of_type(type_name)
            if all(found.properties.get(key) == value for key, value in properties.items())
        ]

    def role_of(self, value: str) -> Role:
        """The role that a property names, by ARN or by name."""
        (role,) = [role for role in self.roles.values() if value in (role.arn, role.name)]
        return role

    def served_by(self, function: Found) -> list[Found]:
        """Custom resources that a function serves."""
        return [
            found
            for stack in self._stacks.values()
            for found in stack.found()
            if found.properties.get("ServiceToken") == function.arn
        ]

    @cached_property
    def resource_policies(self) -> dict[str, Document]:
        """Policies of buckets, keys, queues, topics and roles, by the ARN of the resource."""
        named = {found.ref: found.arn for found in self.of_type("AWS::S3::Bucket", "AWS::SQS::Queue")}
        policies = {named[found.properties["Bucket"]]: found for found in self.of_type("AWS::S3::BucketPolicy")}
        for found in self.of_type("AWS::SQS::QueuePolicy"):
            policies.update({named[queue]: found for queue in found.properties["Queues"]})
        for found in self.of_type("AWS::SNS::TopicPolicy"):
            policies.update(dict.fromkeys(found.properties["Topics"], found))
        documents = {arn: found.properties["PolicyDocument"] for arn, found in policies.items()}
        documents.update({found.arn: found.properties["KeyPolicy"] for found in self.of_type("AWS::KMS::Key")})
        return documents | {role.arn: role.trust for role in self.roles.values()}

    @cached_property
    def endpoints(self) -> dict[str, Document | None]:
        """Endpoint policies by service; None for the default policy, which allows everything."""
        prefix = f"com.amazonaws.{self.region}."
        return {
            found.properties["ServiceName"].removeprefix(prefix): found.properties.get("PolicyDocument")
            for found in self.of_type("AWS::EC2::VPCEndpoint")
        }

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Every policy of every template, with its place."""
        for role in self.roles.values():
            yield f"{role.name} trust", role.trust
        for found in self.of_type("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::S3::BucketPolicy"):
            yield f"{found.stack} {found.logical_id}", found.properties["PolicyDocument"]
        for found in self.of_type("AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy", "AWS::EC2::VPCEndpoint"):
            if "PolicyDocument" in found.properties:
                yield f"{found.stack} {found.logical_id}", found.properties["PolicyDocument"]
        for found in self.of_type("AWS::KMS::Key"):
            yield f"{found.stack} {found.logical_id}", found.properties["KeyPolicy"]
        for role_found in self.of_type("AWS::IAM::Role"):
            for inline in role_found.properties.get("Policies", []):
                yield f"{role_found.stack} {role_found.logical_id}", inline["PolicyDocument"]

    def _role(self, found: Found) -> Role:
        properties = found.properties
        attached = list(self._attached(found))
        attached += [(each["PolicyName"], each["PolicyDocument"]) for each in properties.get("Policies", [])]
        boundary = self._boundary if "PermissionsBoundary" in properties else None
        return Role(
            name=found.ref,
            arn=found.arn,
            description=properties.get("Description", ""),
            trust=properties["AssumeRolePolicyDocument"],
            policies=tuple(attached),
            boundary=boundary,
        )

    def _attached(self, role: Found) -> Iterator[tuple[str, Document]]:
        """Policies that the role names, and policies that name the role."""
        own = {found.ref: found for found in self.of_type("AWS::IAM::ManagedPolicy")}
        for arn in role.properties.get("ManagedPolicyArns", []):
            if arn in own:
                yield arn, own[arn].properties["PolicyDocument"]
            elif arn in THEIR_POLICIES:
                yield arn, THEIR_POLICIES[arn]
            else:
                yield arn, AWS_POLICIES[arn.rpartition("/")[2]]["document"]
        for found in self.of_type("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"):
            if role.ref in found.properties.get("Roles", []):
                yield found.ref, found.properties["PolicyDocument"]


def aws_role(path: str, policy: str) -> Role:
    """A service-linked role with the contents of its policy. `path` ends with its name."""
    name = path.rpartition("/")[2]
    arn = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{path}"
    service = {"Principal": {"Service": path.partition("/")[0]}, "Effect": "Allow", "Action": "sts:AssumeRole"}
    document = AWS_POLICIES[policy]["document"]
    return Role(name, arn, policy, {"Version": "2012-10-17", "Statement": [service]}, ((policy, document),))


class _Stack:
    """A stack of the account. Also what its functions look up."""

    def __init__(self, name: str, region: str, template: Mapping[str, Any], account: Account) -> None:
        self.name, self.template, self._region, self._account = name, template, region, account
        self.exported = account.exported
        uuid = "0123abcd-0000-4000-8000-000000000000"
        parameters = {key: value.get("Default", "") for key, value in template.get("Parameters", {}).items()}
        parameters |= {
            "AWS::AccountId": ACCOUNT,
            "AWS::NoValue": intrinsics.NO_VALUE,
            "AWS::Partition": "aws",
            "AWS::Region": region,
            "AWS::StackId": f"arn:aws:cloudformation:{region}:{ACCOUNT}:stack/{name}/{uuid}",
            "AWS::StackName": name,
            "AWS::URLSuffix": "amazonaws.com",
        }
        self._scope = intrinsics.Scope(
            parameters=parameters,
            mappings=template.get("Mappings", {}),
            lookup=self,
            conditions={},
            resources=_Resources(self),
        )
        self._properties: dict[str, dict[str, Any]] = {}

    def resolve(self, value: Any) -> Any:
        return intrinsics.resolve(value, self._scope)

    def stack_output(self, stack: str, output: str, region: str | None) -> str:
        raise KeyError(stack, output, region)

    def ssm_parameter(self, name: str, version: str | None) -> str:
        return f"value-of-{name}"

    def zones(self, region: str) -> list[str]:
        return [f"{region}{letter}" for letter in "abc"]

    def found(self) -> list[Found]:
        return [self.resource(logical_id) for logical_id in self.template["Resources"]]

    @cache  # noqa: B019 - a stack lives as long as the test run
    def resource(self, logical_id: str) -> Found:
        written = self.template["Resources"][logical_id]
        kind = written["Type"]
        ref, arn = self.identity(logical_id)
        return Found(self.name, logical_id, kind, self.resolve(written.get("Properties", {})), ref, arn)

    @cache  # noqa: B019
    def identity(self, logical_id: str) -> tuple[str, str]:
        """Values of Ref and of the attribute Arn."""
        written = self.template["Resources"][logical_id]
        kind, properties = written["Type"], written.get("Properties", {})
        generated = f"{self.name}-{logical_id}"
        name = str(self.resolve(properties.get(NAMES.get(kind, ""), generated)))
        if kind == "AWS::S3::Bucket":
            name = name.lower()
        pattern = ARNS.get(kind, "arn:aws:{kind}:{region}:{account}:{name}")
        path = self.resolve(properties.get("Path", "/"))
        values = {"name": name, "path": path, "kind": kind.lower().replace("::", "-")}
        arn = pattern.format(region=self._region, account=ACCOUNT, **values)
        if kind == "AWS::SQS::Queue":
            return f"https://sqs.{self._region}.amazonaws.com/{ACCOUNT}/{name}", arn
        return (arn if kind in REF_IS_ARN else name), arn


class _Resources(Mapping[str, Any]):
    """Resources of a stack as functions see them: what Ref and Fn::GetAtt return."""

    def __init__(self, stack: _Stack) -> None:
        self._stack = stack

    def __getitem__(self, logical_id: str) -> Any:
        from localaws.resources import Resource

        ref, arn = self._stack.identity(logical_id)
        return Resource(ref, _Attributes(arn, ref))

    def __iter__(self) -> Iterator[str]:
        return iter(self._stack.template["Resources"])

    def __len__(self) -> int:
        return len(self._stack.template["Resources"])


class _Attributes(dict[str, Any]):
    """Attributes of a resource: its ARN, the name in it, and else a value that no other resource has."""

    def __init__(self, arn: str, ref: str) -> None:
        super().__init__(Arn=arn)
        self._ref = ref

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        if name in ("QueueName", "WorkspaceId", "FunctionName"):
            return re.split(r"[:/]", self["Arn"])[-1]
        return f"{self._ref}.{name}"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
