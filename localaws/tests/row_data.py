"""Parts and cases of the round trip, and what it cannot test, from the files in `rows`, and functions they name."""

import io
import json
import zipfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from moto.backends import get_backend

from handler_parts import ACCOUNT, Stack
from round_trip import Case

FOLDER = Path(__file__).with_name("rows")


def policy(**statement: Any) -> dict[str, Any]:
    """A policy document of one statement."""
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]}


def trust(text: str) -> dict[str, Any]:
    """A trust policy: the service may assume the role, or do the actions after its name."""
    service, *actions = text.split()
    return policy(Principal={"Service": f"{service}.amazonaws.com"}, Action=actions or "sts:AssumeRole")


class Loader(yaml.CSafeLoader):
    """YAML with policy documents."""


Loader.add_constructor("!trust", lambda loader, node: trust(str(loader.construct_scalar(node))))
Loader.add_constructor("!allow", lambda loader, node: policy(Action=loader.construct_scalar(node), Resource="*"))
Loader.add_constructor(
    "!settings",
    lambda loader, node: [
        {"parameterName": name, "parameterValue": value} for name, value in loader.construct_mapping(node).items()
    ],
)
Loader.add_constructor("!json", lambda loader, node: json.dumps(loader.construct_mapping(node, deep=True)))


def load(name: str) -> Any:
    """What a file in `rows` says."""
    return yaml.load((FOLDER / f"{name}.yaml").read_text(), Loader)  # noqa: S506 - a safe loader


def group_of_itself(stack: Stack) -> str:
    """A security group that lets its members reach each other, as EFA needs it."""
    ec2 = stack.client("ec2")
    (subnet,) = ec2.describe_subnets(Filters=[{"Name": "cidr-block", "Values": ["10.0.0.0/24"]}])["Subnets"]
    group: str = ec2.create_security_group(GroupName="efa", Description="efa", VpcId=subnet["VpcId"])["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
    return group


def code_bucket(stack: Stack) -> str:
    """A bucket with the code of functions and layers."""
    s3 = stack.client("s3")
    s3.create_bucket(Bucket="code")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", "a = 1")
    s3.put_object(Bucket="code", Key="code.zip", Body=packed.getvalue())
    return "code"


def attached_gateway(stack: Stack) -> str:
    """An internet gateway of the VPC."""
    ec2 = stack.client("ec2")
    (vpc,) = ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.0.0.0/16"]}])["Vpcs"]
    gateway: str = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc["VpcId"])
    return gateway


def subnet_with_table(stack: Stack) -> str:
    """A subnet that has a route table."""
    vpc = stack.make("AWS::EC2::VPC", CidrBlock="10.8.0.0/16")
    subnet = stack.make("AWS::EC2::Subnet", VpcId=vpc, CidrBlock="10.8.0.0/24")
    table = stack.make("AWS::EC2::RouteTable", VpcId=vpc)
    stack.make("AWS::EC2::SubnetRouteTableAssociation", SubnetId=subnet, RouteTableId=table)
    return subnet


def address_of_a_gateway(stack: Stack) -> str:
    """The allocation of an address that a NAT gateway has."""
    subnet = subnet_with_table(stack)
    address = str(stack.create("AWS::EC2::EIP", Domain="vpc").attributes["AllocationId"])
    stack.make("AWS::EC2::NatGateway", SubnetId=subnet, AllocationId=address)
    return address


def second_version(stack: Stack) -> str:
    """Another version of the launch template for EKS."""
    ec2 = stack.client("ec2")
    template = ec2.describe_launch_templates()["LaunchTemplates"][0]["LaunchTemplateId"]
    data = {"InstanceType": "p5en.48xlarge"}
    made = ec2.create_launch_template_version(LaunchTemplateId=template, SourceVersion="1", LaunchTemplateData=data)
    return str(made["LaunchTemplateVersion"]["VersionNumber"])


def cluster_logging(stack: Stack, cluster: str) -> Any:
    """The enabled log types of a cluster, as templates have them."""
    found = stack.client("eks").describe_cluster(name=cluster)["cluster"]["logging"]["clusterLogging"]
    types = [{"Type": kind} for each in found if each["enabled"] for kind in each["types"]]
    return {"ClusterLogging": {"EnabledTypes": types}} if types else None


def prefix_list(stack: Stack) -> str:
    """A prefix list of the account."""
    made = stack.client("ec2").create_managed_prefix_list(PrefixListName="p", MaxEntries=1, AddressFamily="IPv4")
    return str(made["PrefixList"]["PrefixListId"])


def key_pair(stack: Stack) -> str:
    """A key pair."""
    return str(stack.client("ec2").create_key_pair(KeyName="ops")["KeyName"])


def s3_prefix_list(stack: Stack) -> str:
    """The prefix list of S3."""
    lists = stack.client("ec2").describe_managed_prefix_lists()["PrefixLists"]
    return next(str(found["PrefixListId"]) for found in lists if found["PrefixListName"].endswith(".s3"))


def lustre_with_import(stack: Stack, file_system: str) -> dict[str, Any]:
    """The configuration of a file system, with that of its data repository."""
    found = stack.client("fsx").describe_file_systems(FileSystemIds=[file_system])["FileSystems"][0]
    lustre: dict[str, Any] = found["LustreConfiguration"]
    return {**lustre, **lustre.get("DataRepositoryConfiguration", {})}


def interface_groups(stack: Stack, file_system: str) -> list[str]:
    """The security groups of a file system's network interface."""
    found = stack.client("fsx").describe_file_systems(FileSystemIds=[file_system])["FileSystems"][0]
    ids = found["NetworkInterfaceIds"]
    interface = stack.client("ec2").describe_network_interfaces(NetworkInterfaceIds=ids)["NetworkInterfaces"][0]
    return [group["GroupId"] for group in interface["Groups"]]


def pod_identities(stack: Stack, addon: str) -> list[dict[str, str]]:
    """The pod identity associations of an add-on."""
    eks, cluster = stack.client("eks"), addon.split("|")[0]
    listed = eks.list_pod_identity_associations(clusterName=cluster)["associations"]
    ids = [each["associationId"] for each in listed]
    return [eks.describe_pod_identity_association(clusterName=cluster, associationId=n)["association"] for n in ids]


def scrape_configuration(stack: Stack, scraper: str) -> dict[str, str]:
    """The configuration of a scraper in base64, as templates have it."""
    found = stack.client("amp").describe_scraper(scraperId=scraper.split("/")[-1])["scraper"]
    return {"ConfigurationBlob": b64encode(found["scrapeConfiguration"]["configurationBlob"]).decode()}


def rules(direction: str) -> Callable[[Stack, str], list[dict[str, Any]]]:
    """The rules of a security group in a direction, as templates have them."""

    def read(stack: Stack, group: str) -> list[dict[str, Any]]:
        chosen = [{"Name": "group-id", "Values": [group]}]
        found = stack.client("ec2").describe_security_group_rules(Filters=chosen)["SecurityGroupRules"]
        return [_rule(rule) for rule in found if rule["IsEgress"] == (direction == "egress")]

    return read


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    kept = ("IpProtocol", "FromPort", "ToPort", "CidrIpv6", "Description", "PrefixListId")
    peers = dict.fromkeys(("SourceSecurityGroupId", "DestinationSecurityGroupId"), _peer(rule))
    lists = {"DestinationPrefixListId": rule.get("PrefixListId")}
    return {name: rule.get(name) for name in kept} | {"CidrIp": rule.get("CidrIpv4")} | peers | lists


def _peer(rule: dict[str, Any]) -> Any:
    return rule.get("ReferencedGroupInfo", {}).get("GroupId")


ingress, egress = rules("ingress"), rules("egress")


def inline_policies(stack: Stack, role: str) -> list[dict[str, Any]]:
    """The inline policies of a role."""
    iam = stack.client("iam")
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    return [iam.get_role_policy(RoleName=role, PolicyName=name) for name in names]


def roles_with_inline_policies(stack: Stack, _: str) -> list[str]:
    """The roles that have an inline policy."""
    iam = stack.client("iam")
    names = [role["RoleName"] for role in iam.list_roles()["Roles"]]
    return [name for name in names if iam.list_role_policies(RoleName=name)["PolicyNames"]]


def bucket_encryption(stack: Stack, bucket: str) -> Any:
    """The encryption of a bucket, as templates have it."""
    found = stack.client("s3").get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    rules = [{**rule, "ServerSideEncryptionByDefault": rule["ApplyServerSideEncryptionByDefault"]} for rule in found]
    return {"ServerSideEncryptionConfiguration": rules}


def bucket_logging(stack: Stack, bucket: str) -> Any:
    """The access logs of a bucket, as templates have them."""
    found = stack.client("s3").get_bucket_logging(Bucket=bucket).get("LoggingEnabled")
    names = {"DestinationBucketName": "TargetBucket", "LogFilePrefix": "TargetPrefix"}
    return found and {**found, **{name: found.get(other) for name, other in names.items()}}


def topic_policy(stack: Stack, _: str) -> Any:
    """The topics with a policy of their own, and one of the policies."""
    sns = stack.client("sns")
    topics = [topic["TopicArn"] for topic in sns.list_topics()["Topics"]]
    found = {arn: sns.get_topic_attributes(TopicArn=arn)["Attributes"]["Policy"] for arn in topics}
    own = {arn: policy for arn, policy in found.items() if "__default_policy_ID" not in policy}
    return own and {"Topics": [*own], "TopicArn": next(iter(own)), "PolicyDocument": next(iter(own.values()))}


def queue_policy(stack: Stack, _: str) -> Any:
    """The queues with a policy, and one of the policies."""
    sqs = stack.client("sqs")
    queues = sqs.list_queues()["QueueUrls"]
    found = {url: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"]) for url in queues}
    own = {url: answer["Attributes"]["Policy"] for url, answer in found.items() if "Attributes" in answer}
    return own and {"Queues": [*own], "Queue": next(iter(own)), "PolicyDocument": next(iter(own.values()))}


def function_statement(stack: Stack, statement: str) -> Any:
    """A statement of a function's policy, as templates have it."""
    lambdas = stack.client("lambda")
    name = lambdas.list_functions()["Functions"][0]["FunctionName"]
    found = json.loads(lambdas.get_policy(FunctionName=name)["Policy"])["Statement"]
    one = next((each for each in found if each["Sid"] == statement), None)
    if one is None:
        return None
    conditions = {key: value for pairs in one.get("Condition", {}).values() for key, value in pairs.items()}
    names = {"SourceArn": "AWS:SourceArn", "SourceAccount": "AWS:SourceAccount", "PrincipalOrgID": "aws:PrincipalOrgID"}
    principal = one["Principal"].get("Service") if isinstance(one["Principal"], dict) else one["Principal"]
    told = {name: conditions.get(key) for name, key in names.items()}
    return {"FunctionName": one["Resource"], "Action": one["Action"], "Principal": principal, **told}


def inline_code(stack: Stack, function: str) -> Any:
    """The code of a function with one file, as templates have it."""
    backend = get_backend("lambda")[ACCOUNT][stack.region]
    archive = zipfile.ZipFile(io.BytesIO(backend.get_function(function).code_bytes))
    return {"ZipFile": archive.read(archive.namelist()[0]).decode()}


def grafana_configuration(stack: Stack, workspace: str) -> Any:
    """Whether the plug-ins of a workspace can be managed."""
    found = stack.client("grafana").describe_workspace_configuration(workspaceId=workspace)["configuration"]
    return json.loads(found)["plugins"]["pluginAdminEnabled"]


def template_tags(stack: Stack, template: str) -> list[dict[str, Any]]:
    """The tags of a launch template, as templates of CloudFormation have them."""
    found = stack.client("ec2").describe_launch_templates(LaunchTemplateIds=[template])["LaunchTemplates"][0]
    own = [tag for tag in found.get("Tags", ()) if not tag["Key"].startswith("aws:")]
    return [{"ResourceType": "launch-template", "Tags": own}] if own else []


def managed_document(stack: Stack, arn: str) -> Any:
    """The default version of a managed policy."""
    iam = stack.client("iam")
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    return iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]


def monitoring(stack: Stack, instance: str) -> bool:
    """Whether an instance has detailed monitoring."""
    return bool(described_instance(stack, instance)["Monitoring"]["State"] == "enabled")


def interfaces(stack: Stack, instance: str) -> list[dict[str, Any]]:
    """The network interfaces of an instance as templates have them."""
    return [
        {
            "DeviceIndex": str(each["Attachment"]["DeviceIndex"]),
            "SubnetId": each["SubnetId"],
            "GroupSet": [group["GroupId"] for group in each["Groups"]],
            "AssociatePublicIpAddress": "Association" in each,
        }
        for each in described_instance(stack, instance)["NetworkInterfaces"]
    ]


def described_instance(stack: Stack, instance: str) -> Any:
    """An instance as EC2 describes it."""
    return stack.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]


def template_of_instance(stack: Stack, instance: str) -> Any:
    """The launch template of an instance, by the tags that EC2 gives it."""
    found = {tag["Key"]: tag["Value"] for tag in described_instance(stack, instance)["Tags"]}
    return {"LaunchTemplateId": found["aws:ec2launchtemplate:id"], "Version": found["aws:ec2launchtemplate:version"]}


def volumes(stack: Stack, instance: str) -> list[dict[str, Any]]:
    """The block devices of an instance with the settings of their volumes."""
    ec2 = stack.client("ec2")
    ids = {each["DeviceName"]: each["Ebs"] for each in described_instance(stack, instance)["BlockDeviceMappings"]}
    described = ec2.describe_volumes(VolumeIds=[each["VolumeId"] for each in ids.values()])["Volumes"]
    sizes = {each["VolumeId"]: {"VolumeSize": each["Size"], "VolumeType": each["VolumeType"]} for each in described}
    return [{"DeviceName": name, "Ebs": {**each, **sizes[each["VolumeId"]]}} for name, each in ids.items()]


def generated_secret(stack: Stack, secret: str) -> dict[str, Any]:
    """How the value of a secret was generated."""
    value = stack.client("secretsmanager").get_secret_value(SecretId=secret)["SecretString"]
    try:
        parts = json.loads(value)
    except json.JSONDecodeError:  # a password alone, which may begin with a brace
        return {"PasswordLength": len(value)}
    username = json.dumps({"username": parts["username"]})
    return {"GenerateStringKey": "password", "SecretStringTemplate": username, "PasswordLength": len(parts["password"])}


def _named(value: Any) -> Any:
    """The value, or the function of this module that it names."""
    return globals()[value[1:]] if isinstance(value, str) and value.startswith("=") else value


def _case(given: dict[str, Any]) -> Case:
    given = dict(given)
    first, second = given.pop("first", {}), given.pop("second", {})
    values = {name: (value, second[name]) if name in second else value for name, value in first.items()}
    at = {name: _named(place) for name, place in given.pop("at", {}).items()}
    return Case(values=values, at=at, read=_named(given.pop("read", "")), **given)


def _part(given: Any) -> Any:
    return next(iter(given.items())) if isinstance(given, Mapping) else _named(given)


PARTS = {name: _part(given) for name, given in load("parts").items()}
AREAS = ("compute", "eks", "hpc", "identity", "messages", "monitoring", "servers", "storage")
CASES = [_case(given) for name in AREAS for given in load(name)]
REFUSALS = [(name, *refusal) for name, refusals in load("refusals").items() for refusal in refusals]
UNTESTED: dict[str, dict[str, str]] = load("untested")
"""`Property step` of a type that the round trip cannot test, and why. A test fails if one of them can be tested."""
