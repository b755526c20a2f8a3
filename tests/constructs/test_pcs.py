"""The PCS cluster, its node groups and queues."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from aws_cdk.assertions import Match, Template
from ultracluster.constructs.compute import CpuLaunchTemplate, group_name

from ultracluster.config.pcs import Pcs, Queue
from ultracluster.config.purchase import PurchaseType
from ultracluster.constructs.pcs import PcsCluster, PcsNodeGroup, PcsNodeRole, PcsQueue, one_after_another

QUEUE = Queue(name="train", node_groups=("train",))


def settings(**changes):
    return Pcs(**{"type": "pcs", "slurm_version": "25.11", "queues": (QUEUE,), **changes})


class Deployed(cdk.Stack):
    """A stack with one cluster, and what a test adds to it."""

    def __init__(self, cluster_settings, nodes=10):
        super().__init__(cdk.App(), "stack", env=cdk.Environment(region="us-east-2"))
        self.subnet = ec2.Subnet.from_subnet_id(self, "Subnet", "subnet-1")
        self.group = ec2.SecurityGroup.from_security_group_id(self, "Group", "sg-1")
        self.cluster = PcsCluster(
            self,
            "Cluster",
            name="dev-cluster",
            settings=cluster_settings,
            nodes=nodes,
            subnet=self.subnet,
            security_group=self.group,
        )

    def node_group(self, role, name="train", instance_type="m7i.large", **changes):
        template = CpuLaunchTemplate(
            self,
            f"Template-{name}",
            security_groups=[self.group],
            root_volume_gib=100,
            user_data="",
            tags={"Name": name},
        )
        return PcsNodeGroup(
            self,
            f"Group-{name}",
            **{
                "name": name,
                "cluster": self.cluster,
                "instance_type": instance_type,
                "architecture": "x86_64",
                "launch_template": template,
                "role": role,
                "subnet": self.subnet,
                "min_count": 0,
                "max_count": 2,
                **changes,
            },
        )

    def template(self):
        return Template.from_stack(self)

    def properties(self, kind):
        return [resource["Properties"] for resource in self.template().find_resources(kind).values()]


@pytest.mark.parametrize(("nodes", "size"), [(32, "SMALL"), (33, "MEDIUM"), (512, "MEDIUM"), (513, "LARGE")])
def test_size_auto_is_the_smallest_that_manages_the_nodes(nodes, size):
    (cluster,) = Deployed(settings(), nodes).properties("AWS::PCS::Cluster")
    assert cluster["Size"] == size


def test_a_given_size_stays():
    (cluster,) = Deployed(settings(size="large")).properties("AWS::PCS::Cluster")
    assert cluster["Size"] == "LARGE"


def test_no_list_of_settings_is_empty():
    (cluster,) = Deployed(settings()).properties("AWS::PCS::Cluster")
    assert cluster["SlurmConfiguration"] == {"Accounting": {"Mode": "STANDARD"}}


def test_settings_of_cluster_and_queue_are_name_and_value():
    stack = Deployed(settings(slurm_settings={"MinJobAge": 300}))
    queue = Queue(name="long", node_groups=("train",), slurm_settings={"MaxTime": "7-00"})
    PcsQueue(stack, "Queue", settings=queue, cluster=stack.cluster, node_groups=[])
    (cluster,), (made,) = stack.properties("AWS::PCS::Cluster"), stack.properties("AWS::PCS::Queue")
    minimum_age = {"ParameterName": "MinJobAge", "ParameterValue": "300"}
    assert cluster["SlurmConfiguration"]["SlurmCustomSettings"] == [minimum_age]
    week = {"ParameterName": "MaxTime", "ParameterValue": "7-00"}
    assert made["SlurmConfiguration"]["SlurmCustomSettings"] == [week]


@pytest.mark.parametrize(("accounting", "policy"), [(True, "Retain"), (False, Match.absent())])
def test_a_cluster_with_accounting_is_retained(accounting, policy):
    template = Deployed(settings(accounting=accounting)).template()
    template.has_resource("AWS::PCS::Cluster", {"DeletionPolicy": policy, "UpdateReplacePolicy": policy})


@pytest.mark.parametrize(
    ("version", "kinds"),
    [
        ("25.05", {"PCS_SCHEDULER_LOGS", "PCS_JOBCOMP_LOGS"}),
        ("25.11", {"PCS_SCHEDULER_LOGS", "PCS_JOBCOMP_LOGS", "PCS_SCHEDULER_AUDIT_LOGS"}),
    ],
)
def test_scheduler_logs_are_delivered_to_the_log_group(version, kinds):
    stack = Deployed(settings(slurm_version=version))
    stack.cluster.deliver_logs(logs.LogGroup(stack, "Logs", log_group_name="/aws/vendedlogs/pcs/cluster/dev"))
    assert {source["LogType"] for source in stack.properties("AWS::Logs::DeliverySource")} == kinds
    assert len(stack.properties("AWS::Logs::Delivery")) == len(kinds)
    (destination,) = stack.properties("AWS::Logs::DeliveryDestination")
    assert "*" not in str(destination["DestinationResourceArn"])


def test_the_node_role_has_the_path_that_pcs_asks_for_and_no_more_than_it_needs():
    stack = Deployed(settings())
    PcsNodeRole(stack, "Nodes")
    (role,), (profile,) = stack.properties("AWS::IAM::Role"), stack.properties("AWS::IAM::InstanceProfile")
    assert role["Path"] == profile["Path"] == "/aws-pcs/"
    (policy,) = stack.properties("AWS::IAM::ManagedPolicy")
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"][0] == "pcs:RegisterComputeNodeGroupInstance"
    assert not any("*" in action for action in statement["Action"])


def test_another_instance_type_makes_another_name():
    one, other = group_name("train", "p5.48xlarge"), group_name("train", "p5e.48xlarge")
    assert one != other
    assert len(group_name("a" * 18, "p5.48xlarge")) == 25


def test_a_node_group_follows_the_latest_version_of_its_template():
    stack = Deployed(settings())
    stack.node_group(PcsNodeRole(stack, "Nodes"))
    (group,) = stack.properties("AWS::PCS::ComputeNodeGroup")
    template = group["CustomLaunchTemplate"]["TemplateId"]["Ref"]
    assert group["CustomLaunchTemplate"]["Version"] == {"Fn::GetAtt": [template, "LatestVersionNumber"]}


@pytest.mark.parametrize(
    ("purchase", "option"),
    [
        ("on_demand", "ONDEMAND"),
        ("reservation", "ONDEMAND"),
        ("spot", "SPOT"),
        ("capacity_block", "CAPACITY_BLOCK"),
        ("interruptible_reservation", "INTERRUPTIBLE_CAPACITY_RESERVATION"),
    ],
)
def test_each_purchase_has_its_option(purchase: PurchaseType, option):
    stack = Deployed(settings())
    stack.node_group(PcsNodeRole(stack, "Nodes"), purchase=purchase)
    (group,) = stack.properties("AWS::PCS::ComputeNodeGroup")
    assert group["PurchaseOption"] == option


@pytest.mark.parametrize(
    ("image", "ami"),
    [
        ("auto", "{{resolve:ssm:/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id}}"),
        ("ssm:/images/mine", "{{resolve:ssm:/images/mine}}"),
        ("ami-0123456789abcdef0", "ami-0123456789abcdef0"),
    ],
)
def test_an_image_is_looked_up_at_deployment_or_pinned(image, ami):
    stack = Deployed(settings())
    stack.node_group(PcsNodeRole(stack, "Nodes"), image=image)
    (group,) = stack.properties("AWS::PCS::ComputeNodeGroup")
    assert group["AmiId"] == ami


def test_changes_of_one_cluster_are_made_one_after_another():
    stack = Deployed(settings())
    role = PcsNodeRole(stack, "Nodes")
    first, second = stack.node_group(role, "first"), stack.node_group(role, "second")
    queue = PcsQueue(stack, "Queue", settings=QUEUE, cluster=stack.cluster, node_groups=[first])
    one_after_another([first, second, queue])
    template = stack.template()
    groups = template.find_resources("AWS::PCS::ComputeNodeGroup")
    earlier, later = groups
    assert earlier in groups[later]["DependsOn"]
    (made,) = template.find_resources("AWS::PCS::Queue").values()
    assert later in made["DependsOn"]
