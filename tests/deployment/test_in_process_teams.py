"""Teams of a PCS cluster, deployed in this process: their QOS exist before queues name them, and no node changes."""

import copy

import pytest

from tests.deployment.conftest import changed
from tests.deployment.in_process import client, create, failures, in_order, prepared, update
from tests.synthesis import templates


@pytest.fixture
def prod():
    """An account with all stacks of prod before its compute, with the templates of prod."""
    parts = templates("prod")
    with prepared("prod") as environment:
        for part in in_order(parts):
            if part != "compute":
                create(environment, part, parts[part])
        yield environment, copy.deepcopy(parts["compute"])


def only(template, kind):
    ((name, found),) = [(name, each) for name, each in template["Resources"].items() if each["Type"] == kind]
    return name, found


def with_qos(template):
    _, queue = only(template, "AWS::PCS::Queue")
    queue["Properties"]["SlurmConfiguration"]["SlurmCustomSettings"].append(
        {"ParameterName": "AllowQos", "ParameterValue": "high,normal"}
    )
    return queue


def test_a_queue_may_name_a_qos_of_teams(prod):
    environment, template = prod
    with_qos(template)
    assert create(environment, "compute", template) == "CREATE_COMPLETE", failures(environment, "compute")


def test_a_queue_that_does_not_wait_for_the_accounts_fails(prod):
    environment, template = prod
    queue = with_qos(template)
    for name in [name for name in template["Resources"] if name.startswith("Accounts")]:
        del template["Resources"][name]
    queue["DependsOn"] = [name for name in queue["DependsOn"] if not name.startswith("Accounts")]
    assert create(environment, "compute", template) == "ROLLBACK_COMPLETE"
    (reason,) = [reason for name, reason in failures(environment, "compute").items() if "Queue" in name]
    assert "The Slurm custom settings of the cluster might be incompatible" in reason


def test_login_nodes_whose_role_may_not_run_the_association_fail_the_deployment(prod):
    environment, template = prod
    name, association = only(template, "AWS::SSM::Association")
    (policy,) = [each for each in template["Resources"] if each.startswith("AccountsPolicy")]
    del template["Resources"][policy]
    association["DependsOn"] = [each for each in association["DependsOn"] if each != policy]
    for resource in template["Resources"].values():
        if isinstance(resource.get("DependsOn"), list):
            resource["DependsOn"] = [each for each in resource["DependsOn"] if each != policy]
    assert create(environment, "compute", template) == "ROLLBACK_COMPLETE"
    assert "it is Pending" in failures(environment, "compute")[name]


def test_other_teams_replace_no_node(prod):
    environment, template = prod
    assert create(environment, "compute", template) == "CREATE_COMPLETE", failures(environment, "compute")

    def described():
        pcs = client(environment, "pcs")
        (cluster,) = pcs.list_clusters()["clusters"]
        groups = pcs.list_compute_node_groups(clusterIdentifier=cluster["id"])["computeNodeGroups"]
        named = [{"clusterIdentifier": cluster["id"], "computeNodeGroupIdentifier": each["id"]} for each in groups]
        whole = [pcs.get_compute_node_group(**each)["computeNodeGroup"] for each in named]
        return [(each["id"], each["customLaunchTemplate"], each["nodeLifecycleActions"]) for each in whole]

    def revisions():
        ssm = client(environment, "ssm")
        names = [each["Name"] for each in ssm.list_documents()["DocumentIdentifiers"]]
        (found,) = [ssm.describe_document(Name=name)["Document"] for name in names if "Accounts" in name]
        return found["DefaultVersion"]

    before, version = described(), revisions()

    def one_more(data):
        data["control_plane"]["teams"].append({"name": "evaluation", "qos": "low", "members": ["ana"]})
        data["control_plane"]["teams"][0]["fairshare"] = 10

    update(changed("prod", one_more))
    assert described() == before
    assert revisions() != version
