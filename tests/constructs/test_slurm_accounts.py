"""Teams in Slurm's accounting: what login nodes run, when, and with which rights."""

import json

import pytest

from tests.constructs.test_pcs import Deployed, settings
from ultracluster.config.pcs import Queue
from ultracluster.config.slurm_teams import SlurmTeam
from ultracluster.constructs.pcs_role import PcsNodeRole
from ultracluster.constructs.references import WrongReference
from ultracluster.constructs.slurm_accounts import SlurmAccounts
from ultracluster.nodes.steps import script

TEAMS = (SlurmTeam(name="pretrain", qos="high", max_gpus=64), SlurmTeam(name="research", members=("ana",)))


def deployed(teams=TEAMS):
    stack = Deployed(settings())
    role = PcsNodeRole(stack, "Nodes")
    login = stack.node_group(role, "login", min_count=1)
    train = stack.node_group(role)
    SlurmAccounts(stack, "Accounts", teams=teams, cluster=stack.cluster, login=login, role=role)
    stack.cluster.add_queue(Queue(name="train", node_groups=("train",)), node_groups=[train])
    return stack


def only(stack, kind, prefix=""):
    ((name, found),) = [
        (name, each) for name, each in stack.template().find_resources(kind).items() if name.startswith(prefix)
    ]
    return name, found


def test_login_nodes_run_the_script_one_after_the_other_and_the_deployment_waits():
    stack = deployed()
    _, association = only(stack, "AWS::SSM::Association")
    properties = association["Properties"]
    document, _ = only(stack, "AWS::SSM::Document")
    assert properties["Name"] == {"Ref": document}
    [target] = properties["Targets"]
    assert target["Key"] == "tag:aws:pcs:compute-node-group-id"
    assert "Grouplogin" in str(target["Values"])
    assert (properties["MaxConcurrency"], properties["MaxErrors"]) == ("1", "0")
    assert properties["WaitForSuccessTimeoutSeconds"] == 1800


def test_the_document_holds_the_script_and_the_teams():
    _, document = only(deployed(), "AWS::SSM::Document")
    [step] = document["Properties"]["Content"]["mainSteps"]
    commands = step["inputs"]["runCommand"]
    first, *lines = script("set-up-accounting").text.splitlines()
    assert commands[0] == first
    assert commands[-len(lines) :] == lines
    teams = ["account pretrain 1 64 high,normal,low high", "account research 1 -1 normal,low normal"]
    assert commands[1 : -len(lines)] == [
        "echo 'revision {{ revision }}'",
        "set -- '",
        *teams,
        "member research ana",
        "'",
    ]


def test_other_teams_make_the_association_run_again():
    first, second = (only(deployed(TEAMS[:count]), "AWS::SSM::Association")[1] for count in (1, 2))
    assert first["Properties"]["Parameters"] != second["Properties"]["Parameters"]


def test_the_role_may_read_one_document_and_ask_for_associations():
    stack = deployed()
    name, policy = only(stack, "AWS::IAM::ManagedPolicy", "AccountsPolicy")
    document, _ = only(stack, "AWS::SSM::Document")
    read, ask = policy["Properties"]["PolicyDocument"]["Statement"]
    assert read["Action"] == "ssm:GetDocument"
    assert document in json.dumps(read["Resource"])
    assert set(ask["Action"]) == {
        "ssm:DescribeAssociation",
        "ssm:ListInstanceAssociations",
        "ssm:UpdateInstanceAssociationStatus",
    }
    _, association = only(stack, "AWS::SSM::Association")
    assert name in association["DependsOn"]


def test_queues_wait_for_the_accounts_and_these_for_no_gpus():
    stack = deployed()
    _, queue = only(stack, "AWS::PCS::Queue")
    association, found = only(stack, "AWS::SSM::Association")
    assert association in queue["DependsOn"]
    assert "Grouptrain" not in json.dumps(found)


def test_a_cluster_that_is_none_is_refused():
    stack = Deployed(settings())
    role = PcsNodeRole(stack, "Nodes")
    login = stack.node_group(role, "login")
    with pytest.raises(WrongReference):
        SlurmAccounts(stack, "Accounts", teams=TEAMS, cluster="pcs_1", login=login, role=role)
