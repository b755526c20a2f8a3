"""Environments updated or deployed beside others in this process."""

import json

import pytest
from botocore.exceptions import ClientError

from tests.deployment.conftest import changed
from tests.deployment.in_process import client, cluster, deployed_whole, objects, prepared, update
from tests.synthesis import synthesise, templates
from ultracluster.catalog.eks import KUBERNETES_VERSIONS


def administered_by(*names):
    def change(data):
        data["control_plane"]["admins"] = [f"arn:aws:iam::111122223333:role/{name}" for name in names]

    return change


def control_plane(key, value):
    def change(data):
        data["control_plane"][key] = value

    return change


def upgraded(data):
    release = KUBERNETES_VERSIONS["1.36"].image_release
    data["control_plane"] |= {"kubernetes_version": "1.36", "image_release": release}


def test_administrators_schedulers_and_versions_follow_the_file():
    """A removed admin, another scheduler and an upgrade are updates in place."""
    with deployed_whole("staging") as staging:
        first = cluster(staging)["arn"]
        update(changed("staging", administered_by("A", "B", "C")))
        update(changed("staging", administered_by("B", "C")))
        entries = client(staging, "eks").list_access_entries(clusterName=cluster(staging)["name"])["accessEntries"]
        assert {entry.rpartition("/")[2] for entry in entries} >= {"B", "C"}
        assert not [entry for entry in entries if entry.endswith(("role/A", "role/Platform"))]
        update(changed("staging", control_plane("scheduler", "volcano")))
        groups = {item["apiVersion"].partition("/")[0] for item in objects(staging)}
        assert "kueue.x-k8s.io" not in groups
        assert "scheduling.volcano.sh" in groups
        update(changed("staging", upgraded))
        assert (cluster(staging)["arn"], cluster(staging)["version"]) == (first, "1.36")


def test_settings_of_slurm_are_updated_in_place_and_removed_again():
    """Rows of the table in docs/operations.md."""
    records = [{"Name": "gpu", "Type": "h100", "File": "/dev/nvidia0"}, {"Name": "mps", "Count": "100"}]

    def tuned(data):
        data["node_groups"][0] |= {"slurm_settings": {"Gres": "gpu:h100:1,mps:100"}, "gres_settings": records}
        data["node_groups"][0] |= {"idle_seconds": 60}
        data["control_plane"]["queues"][0]["slurm_settings"] = {"MaxTime": "12:00:00"}
        data["control_plane"] |= {"cgroup_settings": {"ConstrainRAMSpace": "yes"}, "idle_seconds": 1800}
        data["control_plane"] |= {"slurm_settings": {"MinJobAge": 300}, "rest_api": True}
        data["control_plane"] |= {"slurmdbd_settings": {"PurgeJobAfter": "12month"}}

    with deployed_whole("dev") as dev:
        pcs = client(dev, "pcs")

        def described():
            (found,) = pcs.list_clusters()["clusters"]
            listed = pcs.list_compute_node_groups(clusterIdentifier=found["id"])["computeNodeGroups"]
            (train,) = [group["id"] for group in listed if group["name"].startswith("train-")]
            named = {"clusterIdentifier": found["id"], "computeNodeGroupIdentifier": train}
            group = pcs.get_compute_node_group(**named)["computeNodeGroup"]
            whole = pcs.get_cluster(clusterIdentifier=found["id"])["cluster"]["slurmConfiguration"]
            return found["id"], train, whole, group.get("slurmConfiguration", {})

        first = described()
        update(changed("dev", tuned))
        cluster_id, train, whole, group = described()
        assert (cluster_id, train) == first[:2]
        assert (whole["scaleDownIdleTimeInSeconds"], whole["slurmRest"]["mode"]) == (1800, "STANDARD")
        assert (group["scaleDownIdleTimeInSeconds"], group["gresCustomSettings"]) == (60, records)
        update(changed("dev", lambda _: None))
        again = described()
        assert (*again[:2], again[3]) == (*first[:2], first[3])
        assert again[2]["scaleDownIdleTimeInSeconds"] == 600
        assert again[2]["slurmRest"]["mode"] == "NONE"


def test_environments_with_pcs_and_eks_can_be_deployed_together():
    with deployed_whole("staging", "dev", "eks-volcano") as staging:
        stacks = client(staging, "cloudformation").describe_stacks()["Stacks"]
        assert {stack["StackStatus"] for stack in stacks} == {"CREATE_COMPLETE"}
        assert {stack["StackName"].rpartition("-")[0] for stack in stacks} >= {"staging", "dev", "eks-volcano"}
        names = client(staging, "eks").list_clusters()["clusters"]
        assert len(names) == 2
        groups = [client(staging, "eks").list_nodegroups(clusterName=name)["nodegroups"] for name in names]
        assert sorted(len(found) for found in groups) == [3, 4]  # with system and CPU nodes
        assert len(client(staging, "pcs").list_clusters()["clusters"]) == 1


def test_subnets_of_an_older_version_stay_if_the_file_names_their_zones_and_are_otherwise_not_replaced():
    """The change to zone ids, as CHANGELOG.md describes it."""

    def zones(data):
        data["network"]["create"]["control_plane_zones"] = ["us-east-2a", "us-east-2b"]

    named = synthesise(changed("dev", zones))["network"]
    older = json.loads(json.dumps(named))
    for name, resource in older["Resources"].items():
        if resource["Type"] == "AWS::EC2::Subnet" and "Nodes" not in name:
            number = int("1Subnet" in name)
            resource["Properties"]["AvailabilityZone"] = {"Fn::Select": [number, {"Fn::GetAZs": ""}]}
    with prepared("dev") as dev:
        cloudformation = client(dev, "cloudformation")
        stack = {"StackName": "dev-network", "Capabilities": ["CAPABILITY_NAMED_IAM"]}
        cloudformation.create_stack(**stack, TemplateBody=json.dumps(older))
        with pytest.raises(ClientError, match="No updates are to be performed"):
            cloudformation.update_stack(**stack, TemplateBody=json.dumps(named))
        before = {subnet["SubnetId"] for subnet in client(dev, "ec2").describe_subnets()["Subnets"]}
        cloudformation.update_stack(**stack, TemplateBody=json.dumps(templates("dev")["network"]))
        (found,) = cloudformation.describe_stacks(StackName="dev-network")["Stacks"]
        assert found["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
        assert {subnet["SubnetId"] for subnet in client(dev, "ec2").describe_subnets()["Subnets"]} == before
