"""Who may connect to the Kubernetes API and to login nodes: security groups, the access host, and nobody else."""

import hashlib
import json

import pytest
from aws_cdk.assertions import Match

from tests.bad_files import FOLDER
from tests.constructs.nag import open_findings
from tests.linting import findings
from tests.synthesis import synthesise
from ultracluster.config.access import Host
from ultracluster.config.loader import check, load, validate
from ultracluster.config.source import parse
from ultracluster.config.users import LONGEST_LIST, Users
from ultracluster.constructs.access_host import AccessHost
from ultracluster.nodes.steps import Step
from ultracluster.stacks import build_app

SLURM, KUBERNETES = (FOLDER / "minimal.yaml", FOLDER / "minimal-eks.yaml")
RANGES = "10.50.0.0/16, 10.1.11.0/24, 10.11.1.0/24"
EXISTING = """existing:
    vpc_id: vpc-01234567
    node_subnet_id: subnet-01234567
    control_plane_subnet_ids: [subnet-01234568, subnet-01234569]"""


def environment(file, access, *, existing=""):
    text = file.read_text("utf-8") + f"access: {access}\n"
    if existing:
        text = text.replace("{create: {cidr: 10.0.0.0/16}}", f"\n  {existing}")
    reading = check(parse(text))
    assert reading.errors == ()
    return reading.environment


def resources(template, kind):
    return {name: each["Properties"] for name, each in template["Resources"].items() if each["Type"] == kind}


def open_ports(template, port):
    """Sources of ingress rules on a port."""
    rules = resources(template, "AWS::EC2::SecurityGroupIngress").values()
    return [rule.get("CidrIp") or rule["SourceSecurityGroupId"] for rule in rules if rule.get("FromPort") == port]


def test_without_the_section_nothing_is_created():
    reading = validate(KUBERNETES)
    parts = synthesise(reading.environment)
    assert "access" not in parts


@pytest.mark.parametrize("existing", ["", EXISTING])
def test_private_ranges_reach_the_kubernetes_api(existing):
    parts = synthesise(environment(KUBERNETES, f"{{private_ranges: [{RANGES}]}}", existing=existing))
    rules = resources(parts["access"], "AWS::EC2::SecurityGroupIngress").values()
    assert sorted(rule["CidrIp"] for rule in rules) == sorted(RANGES.split(", "))
    assert {(rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) for rule in rules} == {("tcp", 443, 443)}
    # the group that EKS creates is on the control plane's interfaces only: no node opens the port
    assert all("ClusterSecurityGroupId" in str(rule["GroupId"]) for rule in rules)
    assert not resources(parts["access"], "AWS::EC2::Instance")


@pytest.mark.parametrize("existing", ["", EXISTING])
def test_private_ranges_reach_ssh_of_login_nodes_and_of_no_other(existing):
    parts = synthesise(environment(SLURM, f"{{private_ranges: [{RANGES}]}}", existing=existing))
    assert sorted(open_ports(parts["access"], 22)) == sorted(RANGES.split(", "))
    templates = resources(parts["compute"], "AWS::EC2::LaunchTemplate")
    carriers = [name for name, each in templates.items() if "LoginGroup" in str(each["LaunchTemplateData"])]
    assert carriers == [name for name in templates if name.startswith("LoginTemplate")]


def test_the_host_connects_to_the_api_and_nobody_connects_to_it():
    parts = synthesise(environment(KUBERNETES, "{host: true}"))
    rules = list(resources(parts["access"], "AWS::EC2::SecurityGroupIngress").values())
    (host,) = resources(parts["access"], "AWS::EC2::SecurityGroup")
    group = {"Fn::GetAtt": [host, "GroupId"]}
    assert {(rule["FromPort"], rule["ToPort"]) for rule in rules} == {(443, 443)}
    assert all(rule["SourceSecurityGroupId"] == group for rule in rules)
    # of the cluster, and of the endpoints of Systems Manager
    assert sorted("ClusterSecurityGroupId" in str(rule["GroupId"]) for rule in rules) == [False, True]
    assert sorted("EndpointsAccess" in str(rule["GroupId"]) for rule in rules) == [False, True]
    assert "SecurityGroupIngress" not in resources(parts["access"], "AWS::EC2::SecurityGroup")[host]


def test_the_host_of_slurm_connects_to_login_nodes():
    parts = synthesise(environment(SLURM, "{host: true}"))
    rules = resources(parts["access"], "AWS::EC2::SecurityGroupIngress").values()
    (login,) = [rule for rule in rules if rule["FromPort"] == 22]
    assert "LoginGroup" in str(login["GroupId"])
    assert resources(parts["access"], "AWS::EC2::Instance")


def test_access_changes_no_other_stack_but_its_own():
    """What access imports is always exported, so the section comes and goes; and login nodes stay."""
    for file in (SLURM, KUBERNETES):
        without, access = synthesise(validate(file).environment), synthesise(environment(file, "{host: true}"))
        assert {part: template for part, template in access.items() if part != "access"} == without


@pytest.mark.parametrize(
    ("instance_type", "architecture"), [("t4g.small", "arm64"), ("t3.small", "x86_64"), ("m7gd.large", "arm64")]
)
def test_the_host_is_locked_down(synth, instance_type, architecture):
    def fill(stack):
        settings = Host(instance_type=instance_type)
        AccessHost(stack, "Host", settings=settings, vpc="vpc-1", subnet="subnet-1", name="prod-host")

    template = synth(fill)
    image = f"{{{{resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}}}}}"
    template.has_resource_properties(
        "AWS::EC2::Instance",
        {
            "ImageId": image,
            "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "BlockDeviceMappings": [{"Ebs": {"Encrypted": True}}],
            "SubnetId": "subnet-1",
            "KeyName": Match.absent(),
            "Tags": [{"Key": "Name", "Value": "prod-host"}],
        },
    )


def test_another_boot_script_is_another_host(synth):
    """CloudFormation changes user data in place, and an instance runs them at its first boot only."""

    def name(*steps):
        def fill(stack):
            place = {"vpc": "vpc-1", "subnet": "subnet-1", "name": "prod-host"}
            AccessHost(stack, "Host", settings=Host(), steps=steps, **place)

        return list(synth(fill).find_resources("AWS::EC2::Instance"))

    assert name(Step("hold-kernel")) == name(Step("hold-kernel")) != name(Step("admit-jobs")) != name()


def test_the_role_of_the_host_is_under_the_permissions_boundary():
    boundary = "permissions_boundary: arn:aws:iam::111122223333:policy/boundary\naccess: {host: true}\n"
    parts = synthesise(check(parse(KUBERNETES.read_text("utf-8") + boundary)).environment)
    (role,) = resources(parts["access"], "AWS::IAM::Role").values()
    assert role["PermissionsBoundary"] == "arn:aws:iam::111122223333:policy/boundary"
    ((name, policy),) = resources(parts["access"], "AWS::IAM::ManagedPolicy").items()
    assert role["ManagedPolicyArns"] == [{"Ref": name}]
    assert "Policies" not in role
    (statement,) = policy["PolicyDocument"]["Statement"]
    # Session Manager and no other feature of Systems Manager: the managed policy of AWS reads every parameter
    assert {action.partition(":")[0] for action in statement["Action"]} == {"ssm", "ssmmessages"}
    assert "ssm:GetParameter" not in statement["Action"]


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB"


def with_users(file, tmp_path, users, access=""):
    """An environment whose users are `users`, a list as YAML."""
    (tmp_path / "users.yaml").write_text(f"users: {users}\n")
    text = file.read_text("utf-8") + f"access: {{users: users.yaml{access}}}\n"
    (tmp_path / file.name).write_text(text)
    return load(tmp_path / file.name)


def test_another_list_of_users_changes_a_parameter_and_no_node(tmp_path):
    one = synthesise(with_users(SLURM, tmp_path, f"[{{name: ada, uid: 10001, keys: [{KEY}]}}]"))
    two = synthesise(with_users(SLURM, tmp_path, f"[{{name: bob, uid: 10002, keys: [{KEY}]}}]"))
    assert {part for part in one if one[part] != two[part]} == {"access"}
    changed = {name for name, each in one["access"]["Resources"].items() if each != two["access"]["Resources"][name]}
    assert {one["access"]["Resources"][name]["Type"] for name in changed} == {"AWS::SSM::Parameter"}


def test_machines_may_read_the_list_when_they_boot(tmp_path):
    parts = synthesise(with_users(SLURM, tmp_path, f"[{{name: ada, uid: 10001, keys: [{KEY}]}}]", ", host: true"))
    parameters = resources(parts["access"], "AWS::SSM::Parameter")
    assert [each["Name"] for each in parameters.values()] == ["/ultracluster/test/users/1", "/ultracluster/test/users"]
    *texts, head = parameters
    assert parts["access"]["Resources"][head]["DependsOn"] == texts
    for part, kind in (("access", "AWS::EC2::Instance"), ("compute", "AWS::PCS::ComputeNodeGroup")):
        (policy,) = resources(parts[part], "AWS::IAM::Policy")
        (statement,) = parts[part]["Resources"][policy]["Properties"]["PolicyDocument"]["Statement"]
        assert statement["Action"] == ["ssm:GetParameter", "ssm:GetParameters"]
        assert "parameter/ultracluster/test/users/*" in json.dumps(statement["Resource"])
        # groups of PCS are deployed one after the other
        first = next(each for each in parts[part]["Resources"].values() if each["Type"] == kind)
        assert policy in first["DependsOn"]


def test_a_long_list_is_cut_into_parameters(tmp_path):
    people = ", ".join(f"{{name: user{i}, uid: {10001 + i}, keys: [{KEY} user{i}]}}" for i in range(200))
    found = synthesise(with_users(SLURM, tmp_path, f"[{people}]"))["access"]
    values = [each["Value"] for each in resources(found, "AWS::SSM::Parameter").values()]
    number, checksum = values.pop().split()
    assert len(values) == int(number) > 5
    assert max(map(len, values)) <= 4096
    assert hashlib.sha256(("\n".join(values) + "\n").encode()).hexdigest() == checksum


def test_the_longest_list_fits_a_template(tmp_path):
    """Just below the limit, with 15 tags of the environment."""
    comment = "x" * 250
    people = [{"name": f"user{i}", "uid": 10001 + i, "keys": [f"{KEY} {comment}"]} for i in range(1830)]
    assert 0.97 * LONGEST_LIST < len("".join(f"{text}  " for text in Users(users=people).lines())) < LONGEST_LIST
    tags = "".join(f"  key-{i}: {'v' * 40}\n" for i in range(15))
    (tmp_path / "tagged.yaml").write_text(f"{SLURM.read_text('utf-8')}tags:\n{tags}")
    found = synthesise(with_users(tmp_path / "tagged.yaml", tmp_path, json.dumps(people)))["access"]
    assert len(json.dumps(found, indent=1, ensure_ascii=False).encode()) < 1_000_000


def test_the_steps_of_every_node_name_the_parameter(tmp_path):
    parts = synthesise(with_users(SLURM, tmp_path, f"[{{name: ada, uid: 10001, keys: [{KEY}]}}]"))
    groups = resources(parts["compute"], "AWS::PCS::ComputeNodeGroup")
    assert len(groups) == 2
    for group in groups.values():
        steps = {each["Name"]: each for each in group["NodeLifecycleActions"]["Stages"]["NodeBootstrapped"]}
        assert steps["create-users"]["Arguments"] == ["/ultracluster/test/users", "us-east-2", "local"]


def test_the_user_data_of_the_host_with_users_fits(tmp_path):
    parts = synthesise(with_users(KUBERNETES, tmp_path, f"[{{name: ada, uid: 10001, keys: [{KEY}]}}]", ", host: true"))
    (instance,) = resources(parts["access"], "AWS::EC2::Instance").values()
    text = instance["UserData"]["Fn::Base64"]
    assert len(text) < 16 * 1024
    assert "create-users /ultracluster/test/users us-east-2 local <<" in text


BIND_USER = "arn:aws:secretsmanager:us-east-2:111122223333:secret:directory-a1b2c3"
MASTER_KEY = "arn:aws:kms:us-east-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
DIRECTORY = f"""{{host: true, directory: {{type: ad, domain: corp.example.com, ldap_urls: [ldaps://dc1.corp.example.com],
  secret_arn: "{BIND_USER}", secret_key_arn: "{MASTER_KEY}", groups: [cluster users], sudo_groups: [admins]}}}}"""


@pytest.mark.parametrize(
    ("file", "kinds"),
    [(SLURM, {"access": "AWS::EC2::Instance", "compute": "AWS::PCS::ComputeNodeGroup"}),
     (KUBERNETES, {"access": "AWS::EC2::Instance"})],
)  # fmt: skip
def test_machines_read_the_secret_of_the_directory(file, kinds):
    found = environment(file, DIRECTORY)
    parts = synthesise(found)
    for part, kind in kinds.items():
        (policy,) = resources(parts[part], "AWS::IAM::Policy").values()
        assert policy["PolicyDocument"]["Statement"] == [
            {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": BIND_USER},
            {
                "Effect": "Allow",
                "Action": "kms:Decrypt",
                "Resource": MASTER_KEY,
                "Condition": {"StringEquals": {"kms:ViaService": "secretsmanager.us-east-2.amazonaws.com"}},
            },
        ]
        asked = json.dumps(resources(parts[part], kind))
        assert "ask-directory" in asked
        assert "group=cluster users" in asked
    assert not resources(parts["access"], "AWS::SSM::Parameter")
    assert {each.rule for each in open_findings(lambda app: build_app(found, app=app))} <= {
        "Annotation::ultracluster:pcs-agent"
    }


@pytest.mark.parametrize("file", [SLURM, KUBERNETES])
def test_scanners_find_nothing(file, tmp_path):
    people = f"[{{name: ada, uid: 10001, keys: [{KEY}]}}]"
    found = with_users(file, tmp_path, people, f", private_ranges: [{RANGES}], host: true")
    assert findings(synthesise(found), found.region) == []
    assert {finding.rule for finding in open_findings(lambda app: build_app(found, app=app))} <= {
        "Annotation::ultracluster:pcs-agent"  # the AMI of the file is not AWS's
    }


def test_homes_of_users_lie_on_the_file_system_of_homes(tmp_path):
    text = SLURM.read_text("utf-8").replace("storage:\n", "storage:\n  home: {type: efs}\n")
    (tmp_path / "with-homes.yaml").write_text(text)
    people = f"[{{name: ada, uid: 10001, keys: [{KEY}]}}]"
    found = with_users(tmp_path / "with-homes.yaml", tmp_path, people, ", host: true")
    parts = synthesise(found)
    for group in resources(parts["compute"], "AWS::PCS::ComputeNodeGroup").values():
        steps = group["NodeLifecycleActions"]["Stages"]["NodeBootstrapped"]
        (users,) = [each for each in steps if each["Name"] == "create-users"]
        assert users["Arguments"][2] == "shared"
        (mounted,) = [each for each in steps if each["Name"] == "mount-nfs"]
        assert "/home " in str(mounted["Arguments"])
        assert steps.index(mounted) < steps.index(users)
    # the host mounts nothing
    (instance,) = resources(parts["access"], "AWS::EC2::Instance").values()
    assert "create-users /ultracluster/test/users us-east-2 local" in str(instance["UserData"])
