"""Boot steps of one's own in constructs: scripts in S3, the right to read them, and roles with further policies."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from tests.bad_files import FOLDER
from tests.constructs.test_eks import Deployed as Kubernetes
from tests.constructs.test_pcs import Deployed as Slurm
from tests.constructs.test_pcs import settings
from ultracluster.config.bootstrap import Script
from ultracluster.config.named_files import NamedFile
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login
from ultracluster.constructs.eks_roles import EksNodeRole
from ultracluster.constructs.endpoints import VERSION_ACTIONS, S3Endpoint
from ultracluster.constructs.pcs_role import PcsNodeRole
from ultracluster.errors import InvalidArgument

SITE = str(FOLDER / "faults" / "scripts" / "site.sh")
REMOTE = Script(s3="s3://site-scripts/limits.sh", version_id="abc", sha256="0123456789abcdef" * 4)
POLICIES = ("arn:aws:iam::111122223333:policy/site", "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess")


def group(name="train", bootstrap=(SITE,)):
    purchase = {"type": "on_demand"}
    return NodeGroup(name=name, instance_type="p5.48xlarge", count=2, purchase=purchase, bootstrap=bootstrap)


def inline(stack):
    found = Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    return [policy["Properties"] for policy in found]


class OnSlurm(Slurm):
    """A PCS cluster with node groups that share a role."""

    def __init__(self, *groups, role=None):
        super().__init__(settings())
        role = role or PcsNodeRole(self, "Nodes")
        self.added = [
            self.cluster.add_node_group(each, role=role, subnet=self.subnet, security_groups=[self.group])
            for each in groups
        ]


def test_groups_that_share_a_role_each_add_an_inline_policy_for_their_scripts():
    stack = OnSlurm(group("train"), group("eval"), group("plain", ()))
    assert sorted(policy["PolicyName"].rpartition("-")[0] for policy in inline(stack)) == [
        "bootstrap-eval",
        "bootstrap-train",
    ]
    groups = Template.from_stack(stack).find_resources("AWS::PCS::ComputeNodeGroup")
    waits = {name: str(each.get("DependsOn")) for name, each in groups.items()}
    assert sum("ReadBootstrap" in text for text in waits.values()) == 2


def test_a_group_may_read_its_own_script_and_the_versions_that_it_names():
    stack = OnSlurm(group(bootstrap=(SITE, REMOTE)))
    [policy] = inline(stack)
    own, theirs = policy["PolicyDocument"]["Statement"]
    assert own["Action"] == "s3:GetObject"
    assert own["Resource"]["Fn::Join"][1][-1].endswith(".sh")
    assert theirs["Action"] == list(VERSION_ACTIONS)
    assert "site-scripts/limits.sh" in str(theirs["Resource"])
    [nodes] = stack.added
    assert [arn for arn in map(str, nodes.script_arns) if "site-scripts/limits.sh" in arn]


def test_the_name_of_the_policy_changes_with_the_scripts():
    [first] = inline(OnSlurm(group(bootstrap=(SITE,))))
    [second] = inline(OnSlurm(group(bootstrap=(Script(file=NamedFile(SITE), timeout_seconds=5),))))
    assert first["PolicyName"] != second["PolicyName"]


def test_login_nodes_run_scripts_and_stay_when_one_fails():
    stack = Slurm(settings())
    login = Login(bootstrap=(SITE,), root_volume_gib=250)
    role = PcsNodeRole(stack, "Nodes")
    stack.cluster.add_login_nodes(login, role=role, subnet=stack.subnet, security_groups=[stack.group])
    [properties] = stack.properties("AWS::PCS::ComputeNodeGroup")
    last = properties["NodeLifecycleActions"]["Stages"]["NodeBootstrapped"][-1]
    assert (last["Name"], last["OnError"]) == ("run-bootstrap", "CONTINUE")
    [template] = stack.properties("AWS::EC2::LaunchTemplate")
    assert template["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 250


class OnEks(Kubernetes):
    """An EKS cluster with one node group."""

    def __init__(self, settings, role=None):
        super().__init__()
        self.network_addon()
        subnet = ec2.Subnet.from_subnet_id(self, "NodeSubnet", "subnet-nodes")
        role = role or EksNodeRole(self, "Nodes")
        self.cluster.add_node_group(settings, role=role, subnet=subnet, security_groups=[])


def test_an_eks_node_downloads_the_script_by_its_hash():
    stack = OnEks(group())
    [template] = Template.from_stack(stack).find_resources("AWS::EC2::LaunchTemplate").values()
    text = str(template["Properties"]["LaunchTemplateData"]["UserData"])
    assert "run required run-from-s3" in text
    [policy] = inline(stack)
    assert policy["PolicyDocument"]["Statement"][0]["Action"] == "s3:GetObject"
    [nodes] = Template.from_stack(stack).find_resources("AWS::EKS::Nodegroup").values()
    assert "ReadBootstrap" in str(nodes["DependsOn"])


def test_user_data_does_not_grow_with_the_scripts():
    texts = []
    for bootstrap in ((SITE,), (SITE, REMOTE)):
        [template] = (
            Template.from_stack(OnEks(group(bootstrap=bootstrap))).find_resources("AWS::EC2::LaunchTemplate").values()
        )
        texts.append(str(template["Properties"]["LaunchTemplateData"]["UserData"]))
    assert len(texts[0]) == len(texts[1])


def test_an_eks_role_that_is_an_arn_cannot_be_allowed_to_read():
    with pytest.raises(InvalidArgument, match="role is an ARN"):
        OnEks(group(), role="arn:aws:iam::111122223333:role/nodes")


@pytest.mark.parametrize("kind", [PcsNodeRole, EksNodeRole])
def test_a_role_has_further_policies_beside_ours(kind):
    stacks = [cdk.Stack(cdk.App(), "stack") for _ in range(2)]
    kind(stacks[0], "Nodes")
    kind(stacks[1], "Nodes", policies=POLICIES)
    plain, further = (
        next(iter(Template.from_stack(stack).find_resources("AWS::IAM::Role").values()))["Properties"][
            "ManagedPolicyArns"
        ]
        for stack in stacks
    )
    assert further == [*plain, *POLICIES]


def test_the_endpoint_lets_nodes_read_scripts_of_other_accounts_and_nothing_else_there():
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(region="us-east-2"))
    S3Endpoint(stack, "S3", vpc="vpc-1", route_tables=[], boot_scripts=["site-scripts/limits.sh"])
    [endpoint] = Template.from_stack(stack).find_resources("AWS::EC2::VPCEndpoint").values()
    [found] = [
        statement
        for statement in endpoint["Properties"]["PolicyDocument"]["Statement"]
        if statement["Sid"] == "BootScripts"
    ]
    assert found["Action"] == list(VERSION_ACTIONS)
    assert [arn["Fn::Join"][1][-1] for arn in found["Resource"]] == [":s3:::site-scripts/limits.sh"]
