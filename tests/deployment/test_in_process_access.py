"""The access of people, deployed: who may connect, the host, later changes, and the commands that lead there."""

import base64
import json

import boto3
import pytest
from typer.testing import CliRunner

from localaws import local_aws
from tests.constructs.test_access import DIRECTORY, EXISTING, KEY, KUBERNETES, SLURM, environment, with_users
from tests.deployment.in_process import change, client, cluster, create, deployed_as, in_order, prepare
from tests.synthesis import synthesise
from ultracluster.cli import app

NEEDED = ("network", "control-plane", "access")
EVERYTHING = "{private_ranges: [10.50.0.0/16], host: true}"


def parts_of(found):
    return {part: template for part, template in synthesise(found).items() if part in NEEDED}


def open_to(found, group, port):
    """Networks and groups that may connect to the members of a group."""
    (described,) = client(found, "ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    rules = [rule for rule in described["IpPermissions"] if rule.get("FromPort") == port]
    ranges = {each["CidrIp"] for rule in rules for each in rule["IpRanges"]}
    return ranges, {pair["GroupId"] for rule in rules for pair in rule["UserIdGroupPairs"]}


def hosts(found):
    named = [{"Name": "tag:Name", "Values": ["test-host"]}, {"Name": "instance-state-name", "Values": ["running"]}]
    answer = client(found, "ec2").describe_instances(Filters=named)["Reservations"]
    return [instance for reservation in answer for instance in reservation["Instances"]]


def group_of(instance):
    return {each["GroupId"] for each in instance["SecurityGroups"]}


def run(tmp_path, file, *words):
    written = tmp_path / file.name
    written.write_text(f"{file.read_text('utf-8')}access: {EVERYTHING}\n")
    return CliRunner().invoke(app, [*words, str(written)])


def test_people_reach_the_private_api_from_their_networks_and_from_the_host(tmp_path):
    found = environment(KUBERNETES, EVERYTHING)
    with deployed_as(found, parts_of(found)):
        (host,) = hosts(found)
        described = cluster(found)
        group = described["resourcesVpcConfig"]["clusterSecurityGroupId"]
        assert open_to(found, group, 443) == ({"10.50.0.0/16"}, group_of(host))
        assert host["MetadataOptions"]["HttpTokens"] == "required"
        assert "PublicIpAddress" not in host

        session = ["aws", "ssm", "start-session", "--region", found.region, "--target", host["InstanceId"]]
        assert run(tmp_path, KUBERNETES, "connect").stdout.split() == session
        endpoint = described["endpoint"].removeprefix("https://")
        tunnel = run(tmp_path, KUBERNETES, "connect", "--api", "--port", "9443").stdout
        assert tunnel.startswith(f"{' '.join(session)} --document-name AWS-StartPortForwardingSessionToRemoteHost ")
        parameters = json.loads(tunnel.partition(" --parameters ")[2].strip().strip("'"))
        assert parameters == {"host": [endpoint], "portNumber": ["443"], "localPortNumber": ["9443"]}
        add, through = run(tmp_path, KUBERNETES, "kubeconfig", "--port", "9443").stdout.splitlines()
        assert add.startswith("aws eks update-kubeconfig ")
        server = f"--server https://localhost:9443 --tls-server-name {endpoint}"
        assert through == f"kubectl config set-cluster {described['arn']} {server}"

        changed = parts_of(environment(KUBERNETES, "{private_ranges: [10.60.0.0/16, 192.168.7.0/24]}"))
        assert change(found, "access", changed["access"]) == "UPDATE_COMPLETE"
        assert open_to(found, group, 443) == ({"10.60.0.0/16", "192.168.7.0/24"}, set())
        assert hosts(found) == []


def test_login_nodes_have_ssh_configuration(tmp_path):
    found = environment(SLURM, EVERYTHING)
    with deployed_as(found, parts_of(found)):
        (host,) = hosts(found)
        login = launch_login(found)
        (rule,) = [
            each
            for each in client(found, "ec2").describe_security_groups()["SecurityGroups"]
            if each["Description"] == "SSH to login nodes"
        ]
        assert open_to(found, rule["GroupId"], 22) == ({"10.50.0.0/16"}, group_of(host))
        lines = run(tmp_path, SLURM, "connect", "--ssh-config").stdout.splitlines()
        proxy = f"    ProxyCommand aws ssm start-session --region {found.region} --target %h "
        proxy += "--document-name AWS-StartSSHSession --parameters portNumber=%p"
        accept = "    StrictHostKeyChecking accept-new"
        assert lines == [
            f"# from one of access.private_ranges: HostName {login['PrivateIpAddress']}, without ProxyCommand",
            "Host test-login", f"    HostName {login['InstanceId']}", proxy, accept,
            "Host test-host", f"    HostName {host['InstanceId']}", proxy, accept,
        ]  # fmt: skip
        assert run(tmp_path, SLURM, "connect").stdout.split()[-1] == login["InstanceId"]
        assert run(tmp_path, SLURM, "connect", "--host").stdout.split()[-1] == host["InstanceId"]


def launch_login(found):
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "test-login"}]}]
    launched = client(found, "ec2").run_instances(
        ImageId="ami-0123456789abcdef0", MinCount=1, MaxCount=1, TagSpecifications=tags
    )
    return launched["Instances"][0]


@pytest.mark.parametrize("file", [SLURM, KUBERNETES])
def test_access_to_an_existing_network(file):
    with local_aws():
        ec2 = boto3.client("ec2", region_name="us-east-2")
        vpc = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
        for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
            ec2.modify_vpc_attribute(VpcId=vpc, **{attribute: {"Value": True}})
        ids = {"vpc-01234567": vpc}
        for i, zone in enumerate("bac"):
            place = {"CidrBlock": f"10.8.{16 * i}.0/20", "AvailabilityZone": f"us-east-2{zone}"}
            ids[f"subnet-0123456{7 + i}"] = ec2.create_subnet(VpcId=vpc, **place)["Subnet"]["SubnetId"]
        existing = EXISTING
        for example, real in ids.items():
            existing = existing.replace(example, real)
        found = environment(file, EVERYTHING, existing=existing)
        parts = parts_of(found)
        prepare(found, parts)
        for part in in_order(parts):
            assert create(found, part, parts[part]) == "CREATE_COMPLETE"
        (host,) = hosts(found)
        assert host["SubnetId"] == ids["subnet-01234568"]


@pytest.mark.parametrize("file", [SLURM, KUBERNETES])
def test_another_list_of_users_replaces_no_machine(tmp_path, file):
    ada, bob = (f"[{{name: {name}, uid: 10001, keys: [{KEY}]}}]" for name in ("ada", "bob"))
    found = with_users(file, tmp_path, ada, ", host: true")
    with deployed_as(found, parts_of(found)):
        (host,) = hosts(found)
        value = listed(found)
        changed = with_users(file, tmp_path, bob, ", host: true")
        assert change(changed, "access", parts_of(changed)["access"]) == "UPDATE_COMPLETE"
        assert listed(found) != value
        assert [each["InstanceId"] for each in hosts(found)] == [host["InstanceId"]]


def listed(found):
    """Number of parts and checksum of the list of users, and its text."""
    names = ["/ultracluster/test/users", "/ultracluster/test/users/1"]
    return [client(found, "ssm").get_parameter(Name=name)["Parameter"]["Value"] for name in names]


def test_a_host_that_asks_a_directory_is_deployed():
    found = environment(KUBERNETES, DIRECTORY)
    with deployed_as(found, parts_of(found)):
        (host,) = hosts(found)
        answer = client(found, "ec2").describe_instance_attribute(InstanceId=host["InstanceId"], Attribute="userData")
        assert "ask-directory" in base64.b64decode(answer["UserData"]["Value"]).decode()


def test_a_directory_alone_needs_no_stack_and_reaches_the_nodes():
    """CloudFormation refuses a stack without resources."""
    found = environment(SLURM, DIRECTORY.replace("host: true, ", ""))
    parts = synthesise(found)
    assert "access" not in parts
    assert all(template.get("Resources") for template in parts.values())
    policies = [each for each in parts["compute"]["Resources"].values() if each["Type"] == "AWS::IAM::Policy"]
    assert any(each["Properties"]["PolicyName"] == "read-users" for each in policies)
