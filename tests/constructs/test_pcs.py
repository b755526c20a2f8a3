"""The PCS cluster, its node groups and queues."""

from datetime import UTC, datetime

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk.assertions import Annotations, Match, Template

from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login, PcsControlPlane, Queue
from ultracluster.config.purchase import PurchaseType
from ultracluster.constructs.launch_templates import CpuLaunchTemplate
from ultracluster.constructs.pcs import PcsNodeGroup
from ultracluster.constructs.pcs_cluster import PcsCluster
from ultracluster.constructs.pcs_role import PcsNodeRole
from ultracluster.errors import InvalidArgument
from ultracluster.nodes.pcs import PCS_SCRIPTS
from ultracluster.nodes.steps import Step, script

QUEUE = Queue(name="train", node_groups=("train",))


def settings(**changes):
    return PcsControlPlane(**{"slurm_version": "25.11", **changes})


class Deployed(cdk.Stack):
    """A stack with one cluster, and what a test adds to it."""

    def __init__(self, cluster_settings, nodes=10, **logging):
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
            **{name: make(self) for name, make in logging.items()},
        )

    def node_group(self, role, name="train", instance_type="m7i.large", **changes):
        template = CpuLaunchTemplate(
            self,
            f"Template-{name}",
            control_plane="pcs",
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
                "instance_types": [instance_type],
                "architecture": "x86_64",
                "launch_template": template,
                "role": role,
                "subnets": [self.subnet],
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


def test_more_nodes_than_the_largest_cluster_manages_are_refused():
    with pytest.raises(InvalidArgument, match=r"nodes is 2049\. Pass at most 2048"):
        Deployed(settings(), 2049)


def test_a_given_size_is_used():
    (cluster,) = Deployed(settings(size="large")).properties("AWS::PCS::Cluster")
    assert cluster["Size"] == "LARGE"


def test_without_slurm_settings_the_list_is_absent():
    (cluster,) = Deployed(settings()).properties("AWS::PCS::Cluster")
    assert cluster["SlurmConfiguration"] == {"Accounting": {"Mode": "STANDARD"}}


def test_cgroup_slurmdbd_idle_time_and_rest_api_reach_the_cluster():
    stack = Deployed(
        settings(
            cgroup_settings={"ConstrainRAMSpace": "yes"},
            slurmdbd_settings={"PurgeJobAfter": "12month"},
            idle_seconds=1800,
            rest_api=True,
        )
    )
    (cluster,) = stack.properties("AWS::PCS::Cluster")
    assert cluster["SlurmConfiguration"] == {
        "Accounting": {"Mode": "STANDARD"},
        "CgroupCustomSettings": [{"ParameterName": "ConstrainRAMSpace", "ParameterValue": "yes"}],
        "SlurmdbdCustomSettings": [{"ParameterName": "PurgeJobAfter", "ParameterValue": "12month"}],
        "ScaleDownIdleTimeInSeconds": 1800,
        "SlurmRest": {"Mode": "STANDARD"},
    }


def test_slurm_settings_of_a_node_group_are_name_and_value():
    stack = Deployed(settings())
    stack.node_group(PcsNodeRole(stack, "Nodes"), slurm_settings={"Weight": 10})
    (group,) = stack.properties("AWS::PCS::ComputeNodeGroup")
    weight = {"ParameterName": "Weight", "ParameterValue": "10"}
    assert group["SlurmConfiguration"] == {"SlurmCustomSettings": [weight]}


def test_gres_records_and_idle_time_of_a_node_group_reach_it_as_text():
    stack = Deployed(settings())
    records = [{"Name": "mps", "Count": 400}, {"AutoDetect": "nvml"}]
    stack.node_group(PcsNodeRole(stack, "Nodes"), gres_settings=records, idle_seconds=60)
    (group,) = stack.properties("AWS::PCS::ComputeNodeGroup")
    assert group["SlurmConfiguration"] == {
        "GresCustomSettings": [{"Name": "mps", "Count": "400"}, {"AutoDetect": "nvml"}],
        "ScaleDownIdleTimeInSeconds": 60,
    }


def test_slurm_settings_of_cluster_and_queue_are_name_and_value():
    stack = Deployed(settings(slurm_settings={"MinJobAge": 300}))
    queue = Queue(name="long", node_groups=("train",), slurm_settings={"MaxTime": "7-00"})
    stack.cluster.add_queue(queue, node_groups=[])
    (cluster,), (made,) = stack.properties("AWS::PCS::Cluster"), stack.properties("AWS::PCS::Queue")
    minimum_age = {"ParameterName": "MinJobAge", "ParameterValue": "300"}
    assert cluster["SlurmConfiguration"]["SlurmCustomSettings"] == [minimum_age]
    week = {"ParameterName": "MaxTime", "ParameterValue": "7-00"}
    assert made["SlurmConfiguration"]["SlurmCustomSettings"] == [week]


@pytest.mark.parametrize(
    ("accounting", "policies"), [(True, ("RetainExceptOnCreate", "Retain")), (False, (Match.absent(), Match.absent()))]
)
def test_a_cluster_with_accounting_is_retained_once_created(accounting, policies):
    template = Deployed(settings(accounting=accounting)).template()
    deletion, replacement = policies
    template.has_resource("AWS::PCS::Cluster", {"DeletionPolicy": deletion, "UpdateReplacePolicy": replacement})


@pytest.mark.parametrize(
    ("version", "kinds"),
    [
        ("25.05", {"PCS_SCHEDULER_LOGS", "PCS_JOBCOMP_LOGS", "PCS_SCALING_LOGS"}),
        ("25.11", {"PCS_SCHEDULER_LOGS", "PCS_JOBCOMP_LOGS", "PCS_SCALING_LOGS", "PCS_SCHEDULER_AUDIT_LOGS"}),
    ],
)
def test_logs_are_delivered_to_the_log_group(version, kinds, monkeypatch):
    # 25.05 ends on 2026-11-30
    monkeypatch.setattr("ultracluster.config.clock.now", lambda: datetime(2026, 11, 20, tzinfo=UTC))
    name = "/aws/vendedlogs/pcs/cluster/dev"
    stack = Deployed(
        settings(slurm_version=version), log_group=lambda stack: logs.LogGroup(stack, "Logs", log_group_name=name)
    )
    assert {source["LogType"] for source in stack.properties("AWS::Logs::DeliverySource")} == kinds
    assert len(stack.properties("AWS::Logs::Delivery")) == len(kinds)
    (destination,) = stack.properties("AWS::Logs::DeliveryDestination")
    assert "*" not in str(destination["DestinationResourceArn"])


def test_one_delivery_is_created_after_another():
    stack = Deployed(settings(), log_group=lambda stack: logs.LogGroup(stack, "Logs"))
    deliveries = Template.from_stack(stack).find_resources("AWS::Logs::Delivery")
    waits = {name: deliveries.keys() & set(found["DependsOn"]) for name, found in deliveries.items()}
    assert sorted(map(len, waits.values())) == [0, 1, 1, 1]
    assert len(set().union(*waits.values())) == 3


def test_a_node_group_uses_the_latest_version_of_its_launch_template():
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
def test_each_purchase_type_has_its_purchase_option(purchase: PurchaseType, option):
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
def test_an_image_is_resolved_at_deployment_or_pinned(image, ami):
    stack = Deployed(settings())
    stack.node_group(PcsNodeRole(stack, "Nodes"), image=image)
    (group,) = stack.properties("AWS::PCS::ComputeNodeGroup")
    assert group["AmiId"] == ami


def test_changes_of_one_cluster_are_deployed_one_after_another():
    stack = Deployed(settings())
    role = PcsNodeRole(stack, "Nodes")
    first = stack.node_group(role, "first")
    stack.node_group(role, "second")
    stack.cluster.add_queue(QUEUE, node_groups=[first])
    template = stack.template()
    groups = template.find_resources("AWS::PCS::ComputeNodeGroup")
    earlier, later = groups
    assert earlier in groups[later]["DependsOn"]
    (made,) = template.find_resources("AWS::PCS::Queue").values()
    assert later in made["DependsOn"]


def test_without_a_log_group_the_cluster_creates_an_encrypted_one():
    stack = Deployed(settings(), key=lambda stack: kms.Key(stack, "Key"))
    (group,) = stack.properties("AWS::Logs::LogGroup")
    assert "KmsKeyId" in group
    assert "/aws/vendedlogs/pcs/cluster/stack-" in str(group["LogGroupName"])
    assert len(stack.properties("AWS::Logs::Delivery")) == 4


def test_add_node_group_and_add_login_nodes_create_launch_templates():
    stack = Deployed(settings())
    train = NodeGroup.model_validate(
        {"name": "train", "instance_type": "p5.48xlarge", "count": 2, "purchase": {"type": "on_demand"}}
    )
    role = PcsNodeRole(stack, "Nodes")
    place = {"role": role, "subnet": stack.subnet, "security_groups": [stack.group]}
    login = stack.cluster.add_login_nodes(Login(), **place)
    group = stack.cluster.add_node_group(train, **place)
    stack.cluster.add_queue(QUEUE, node_groups=[group])
    template = stack.template()
    launches = [found["LaunchTemplateData"] for found in stack.properties("AWS::EC2::LaunchTemplate")]
    assert [len(launch.get("NetworkInterfaces", ())) for launch in launches] == [0, 32]
    groups = template.find_resources("AWS::PCS::ComputeNodeGroup")
    (first,) = (name for name in groups if "Login" in name)
    (second,) = (found for name, found in groups.items() if "Train" in name or "train" in name)
    assert first in second["DependsOn"]
    assert login.compute_node_group_id != group.compute_node_group_id


def test_node_groups_and_queues_of_an_imported_cluster_are_deployed_in_order():
    stack = cdk.Stack(cdk.App(), "stack")
    cluster = PcsCluster.from_cluster_attributes(
        stack, "Cluster", cluster_id="pcs_1", cluster_arn="arn:aws:pcs:us-east-2:111122223333:cluster/pcs_1"
    )
    role = PcsNodeRole(stack, "Nodes")
    group = cluster.add_login_nodes(Login(), role=role, subnet="subnet-1", security_groups=["sg-1"])
    cluster.add_queue(QUEUE, node_groups=[])
    cluster.add_queue(Queue(name="more", node_groups=("train",)), node_groups=[group])
    first, second = Template.from_stack(stack).find_resources("AWS::PCS::Queue").values()
    assert first["DependsOn"]
    assert second["DependsOn"]
    assert first["Properties"]["ClusterId"] == "pcs_1"


def add_groups(stack, role):
    """Login nodes and a node group, with Lustre."""
    train = NodeGroup.model_validate(
        {"name": "train", "instance_type": "p5en.48xlarge", "count": 2, "purchase": {"type": "on_demand"}}
    )
    place = {"role": role, "subnet": stack.subnet, "security_groups": [stack.group]}
    return [stack.cluster.add_login_nodes(Login(), **place), stack.cluster.add_node_group(train, **place)]


def actions(stack):
    """Node lifecycle actions of the login nodes, and of the node group."""
    groups = stack.properties("AWS::PCS::ComputeNodeGroup")
    return [group["NodeLifecycleActions"]["Stages"]["NodeBootstrapped"] for group in groups]


def test_a_failed_step_terminates_a_compute_node_and_keeps_a_login_node():
    stack = Deployed(settings())
    add_groups(stack, PcsNodeRole(stack, "Nodes"))
    login, compute = actions(stack)
    assert {action["OnError"] for action in login} == {"CONTINUE"}
    assert {action["OnError"] for action in compute} == {"TERMINATE"}


def test_steps_are_lifecycle_actions_with_checksum_arguments_and_frequency():
    stack = Deployed(settings())
    add_groups(stack, PcsNodeRole(stack, "Nodes"))
    _, compute = actions(stack)
    scratch = next(action for action in compute if action["Name"] == "mount-scratch")
    assert scratch["Arguments"] == ["/scratch"]
    assert scratch["ExecutionPolicy"] == "EVERY_BOOT"
    assert scratch["ScriptSource"]["Checksum"] == script("mount-scratch").checksum
    assert next(action for action in compute if action["Name"] == "hold-kernel")["ExecutionPolicy"] == "FIRST_BOOT_ONLY"
    assert compute[-1]["Name"] == "admit-jobs"


def test_nodes_may_read_their_scripts_before_they_boot():
    stack = Deployed(settings())
    add_groups(stack, PcsNodeRole(stack, "Nodes"))
    template = stack.template()
    (policy,) = (name for name in template.find_resources("AWS::IAM::ManagedPolicy") if "ScriptsRead" in name)
    (statement,) = template.find_resources("AWS::IAM::ManagedPolicy")[policy]["Properties"]["PolicyDocument"][
        "Statement"
    ]
    assert statement["Action"] == "s3:GetObject"
    readable = {str(resource).rpartition("/")[2].rstrip("]}'") for resource in statement["Resource"]}
    named = {
        str(action["ScriptSource"]["ScriptLocation"]).rpartition("/")[2].rstrip("]}'")
        for steps in actions(stack)
        for action in steps
    }
    assert named <= readable
    assert "*" not in str(statement)
    for group in template.find_resources("AWS::PCS::ComputeNodeGroup").values():
        assert policy in group["DependsOn"]


def test_the_owner_of_another_instance_profile_is_told_what_to_allow():
    stack = Deployed(settings())
    profile = iam.CfnInstanceProfile(stack, "Profile", roles=["AWSPCS-nodes"])
    _, group = add_groups(stack, profile)
    assert len(group.script_arns) == len(PCS_SCRIPTS)
    assert "ScriptsRead" not in str(stack.template().to_json())


def test_a_group_whose_nodes_fail_to_boot_again_and_again_has_an_alarm():
    stack = Deployed(
        settings(), log_group=lambda stack: logs.LogGroup(stack, "Logs", log_group_name="/aws/vendedlogs/x")
    )
    add_groups(stack, PcsNodeRole(stack, "Nodes"))
    (counted,) = stack.properties("AWS::Logs::MetricFilter")
    (metric,) = counted["MetricTransformations"]
    (alarm,) = stack.properties("AWS::CloudWatch::Alarm")
    assert counted["FilterPattern"] == '{ $.reason_code = "BOOTSTRAP_FAILED" }'
    assert (metric["MetricNamespace"], metric["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
    assert metric["Dimensions"] == [{"Key": "ComputeNodeGroupId", "Value": "$.compute_node_group_id"}]
    groups = stack.template().find_resources("AWS::PCS::ComputeNodeGroup")
    (compute,) = (name for name in groups if "train" in name)
    assert alarm["Dimensions"] == [{"Name": "ComputeNodeGroupId", "Value": {"Fn::GetAtt": [compute, "Id"]}}]
    assert (alarm["Threshold"], alarm["TreatMissingData"]) == (3, "notBreaching")
    launch_and_boot_seconds = 35 * 60
    assert (
        alarm["Period"] // launch_and_boot_seconds >= alarm["Threshold"]
    )  # even one node that boots for ever raises it


def test_without_logs_there_is_no_alarm():
    stack = Deployed(settings())
    add_groups(stack, PcsNodeRole(stack, "Nodes"))
    assert stack.properties("AWS::CloudWatch::Alarm") == []


NEW_IMAGE, OLD_IMAGE = "ami-0c91bfa1d3999dfea", "ami-0c1b2f4317de42125"
"""AWS's PCS-ready builds of 2026-07-20 and 2026-07-13, before and after PCS agent 1.5.0."""


def test_an_image_with_an_agent_that_runs_no_boot_steps_is_refused():
    stack = Deployed(settings())
    with pytest.raises(InvalidArgument, match="runs no boot steps"):
        stack.node_group(PcsNodeRole(stack, "Nodes"), image=OLD_IMAGE, steps=[Step("hold-kernel")])
    assert stack.properties("AWS::PCS::ComputeNodeGroup") == []


@pytest.mark.parametrize(
    ("image", "warnings"), [("auto", 0), (NEW_IMAGE, 0), ("ami-0123456789abcdef0", 1), ("ssm:/images/mine", 1)]
)
def test_a_synth_warns_of_an_image_whose_pcs_agent_is_unknown(image, warnings):
    stack = Deployed(settings())
    stack.node_group(PcsNodeRole(stack, "Nodes"), image=image, steps=[Step("hold-kernel")])
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("needs PCS agent 1.5.0 or newer"))
    assert len(found) == warnings


@pytest.mark.parametrize(("instance_type", "warnings"), [("m7i.large", 0), ("m7g.large", 1)])
def test_a_synth_warns_of_aws_s_image_for_arm64_whose_builds_are_not_listed(instance_type, warnings):
    stack = Deployed(settings())
    role = PcsNodeRole(stack, "Nodes")
    login = Login(instance_type=instance_type)
    stack.cluster.add_login_nodes(login, role=role, subnet=stack.subnet, security_groups=[stack.group])
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("needs PCS agent 1.5.0 or newer"))
    assert len(found) == warnings
