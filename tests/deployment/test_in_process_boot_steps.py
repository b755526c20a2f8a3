"""Boot steps of one's own, deployed in this process: scripts, policies and security groups of node groups."""

import re

import pytest

from localaws import local_aws
from localaws.accounts import DEFAULT as ACCOUNT
from tests.deployment.conftest import changed
from tests.deployment.in_process import client, create, failures, in_order, prepare
from tests.synthesis import synthesise

POLICY = f"arn:aws:iam::{ACCOUNT}:policy/site"
SCRIPTS = ["tests/unit/config/faults/scripts/site.sh"]


def with_steps(name, security_group, login):
    def change(data):
        group = data["node_groups"][0]
        group |= {"bootstrap": SCRIPTS, "policies": [POLICY], "security_groups": [security_group]}
        if login:
            data["control_plane"]["login"] = {
                "bootstrap": SCRIPTS,
                "policies": [POLICY],
                "security_groups": [security_group],
                "root_volume_gib": 200,
            }

    return changed(name, change)


def deploy(name, login):
    """Deploys a shipped environment with boot steps. The network is first: the security group is in its VPC."""
    plain = with_steps(name, "sg-0123456789abcdef0", login)
    prepare(plain, parts := synthesise(plain))
    assert create(plain, "network", parts["network"]) == "CREATE_COMPLETE"
    ec2 = client(plain, "ec2")
    own = {"Name": "tag:ultracluster:environment", "Values": [plain.name]}  # the group of before has a VPC of its own
    [vpc] = ec2.describe_vpcs(Filters=[own])["Vpcs"]
    group = ec2.create_security_group(GroupName="site", Description="site", VpcId=vpc["VpcId"])["GroupId"]
    environment = with_steps(name, group, login)
    prepare(environment, parts := synthesise(environment))
    for part in in_order(parts):
        if part != "network":
            status = create(environment, part, parts[part])
            assert status == "CREATE_COMPLETE", failures(environment, part)
    return environment, group


def roles_with(environment, policy):
    found = client(environment, "iam").list_entities_for_policy(PolicyArn=policy, EntityFilter="Role")
    return {role["RoleName"] for role in found["PolicyRoles"]}


def inline_policies(environment, role):
    iam = client(environment, "iam")
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    return {name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names}


@pytest.fixture(scope="class")
def on_pcs():
    with local_aws(ACCOUNT):
        yield deploy("dev", login=True)


@pytest.fixture(scope="class")
def on_eks():
    with local_aws(ACCOUNT):
        yield deploy("staging", login=False)


def pcs_groups(environment):
    pcs = client(environment, "pcs")
    [cluster] = pcs.list_clusters()["clusters"]
    listed = pcs.list_compute_node_groups(clusterIdentifier=cluster["id"])["computeNodeGroups"]
    details = (
        pcs.get_compute_node_group(clusterIdentifier=cluster["id"], computeNodeGroupIdentifier=each["id"])
        for each in listed
    )
    return {group["computeNodeGroup"]["name"].rpartition("-")[0]: group["computeNodeGroup"] for group in details}


def role_of(environment, group):
    profile = group["iamInstanceProfileArn"].rpartition("/")[2]
    found = client(environment, "iam").get_instance_profile(InstanceProfileName=profile)
    return found["InstanceProfile"]["Roles"][0]["RoleName"]


def interfaces(environment, name):
    ec2 = client(environment, "ec2")
    for found in ec2.describe_launch_templates()["LaunchTemplates"]:
        [version] = ec2.describe_launch_template_versions(
            LaunchTemplateId=found["LaunchTemplateId"], Versions=["$Latest"]
        )["LaunchTemplateVersions"]
        data = version["LaunchTemplateData"]
        tags = {tag["Key"]: tag["Value"] for each in data["TagSpecifications"] for tag in each["Tags"]}
        if tags["ultracluster:node-group"] == name:
            return data
    raise AssertionError(name)


class TestSlurm:
    """On PCS."""

    def test_pcs_runs_the_scripts_before_jobs_and_terminates_a_node_on_which_they_fail(self, on_pcs):
        environment, _ = on_pcs
        name = environment.node_groups[0].name
        groups = pcs_groups(environment)
        actions = groups[name]["nodeLifecycleActions"]["stages"]["nodeBootstrapped"]
        assert [action["name"] for action in actions][-2:] == ["run-bootstrap", "admit-jobs"]
        own = actions[-2]
        assert (own["onError"], own["executionPolicy"]) == ("TERMINATE", "FIRST_BOOT_ONLY")
        assert own["arguments"] == [environment.region, name]
        assert own["scriptSource"]["scriptLocation"].startswith("s3://cdk-")
        assert re.fullmatch("[0-9a-f]{64}", own["scriptSource"]["checksum"])
        login = groups["login"]["nodeLifecycleActions"]["stages"]["nodeBootstrapped"][-1]
        assert (login["name"], login["onError"]) == ("run-bootstrap", "CONTINUE")

    def test_a_pcs_group_with_policies_has_a_role_of_its_own_that_may_do_what_the_others_may(self, on_pcs):
        environment, _ = on_pcs
        groups = pcs_groups(environment)
        own = {name: role_of(environment, group) for name, group in groups.items()}
        asked = {environment.node_groups[0].name, "login"}
        found, own_of_asked = roles_with(environment, POLICY), {own[name] for name in asked}
        assert len(own_of_asked) == 2
        assert own_of_asked <= found
        assert all("Jobs" in role for role in found - own_of_asked)  # what nodes may do, their jobs may too
        assert len(found) == 4
        iam = client(environment, "iam")
        attached = [iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"] for role in own.values()]
        assert all(len(policies) <= 10 for policies in attached)
        for name in asked:
            [policy] = inline_policies(environment, own[name]).values()
            [statement] = policy["Statement"]
            assert statement["Action"] == "s3:GetObject"
            assert statement["Resource"].endswith(".sh")

    def test_login_nodes_have_their_group_and_disk(self, on_pcs):
        environment, group = on_pcs
        data = interfaces(environment, "login")
        assert data["SecurityGroupIds"][-1] == group
        assert data["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 200

    def test_every_interface_of_the_group_has_its_security_group_after_ours(self, on_pcs):
        environment, group = on_pcs
        data = interfaces(environment, environment.node_groups[0].name)
        assert data["NetworkInterfaces"]
        for interface in data["NetworkInterfaces"]:
            assert len(interface["Groups"]) == 3
            assert interface["Groups"][-1] == group


class TestKubernetes:
    """On EKS."""

    def test_an_eks_group_with_policies_has_a_role_of_its_own(self, on_eks):
        environment, _ = on_eks
        eks = client(environment, "eks")
        [cluster] = eks.list_clusters()["clusters"]
        roles = {}
        for name in eks.list_nodegroups(clusterName=cluster)["nodegroups"]:
            group = eks.describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"]
            roles[name.rpartition("-")[0]] = group["nodeRole"].rpartition("/")[2]
        own = roles.pop(environment.node_groups[0].name)
        assert roles_with(environment, POLICY) == {own}
        assert own not in roles.values()
        [policy] = inline_policies(environment, own).values()
        assert policy["Statement"][0]["Resource"].endswith(".sh")
        entries = eks.list_access_entries(clusterName=cluster)["accessEntries"]
        assert any(entry.endswith(own) for entry in entries)

    def test_every_interface_of_the_group_has_its_security_group_after_ours(self, on_eks):
        environment, group = on_eks
        data = interfaces(environment, environment.node_groups[0].name)
        assert data["NetworkInterfaces"]
        for interface in data["NetworkInterfaces"]:
            assert len(interface["Groups"]) == 3
            assert interface["Groups"][-1] == group
