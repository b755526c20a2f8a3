"""Environments with Kubernetes, updated or deployed beside others in this process."""

from tests.deployment.conftest import changed
from tests.deployment.in_process import client, cluster, deployed_whole, objects, update


def administered_by(*names):
    def change(data):
        data["control_plane"]["admins"] = [f"arn:aws:iam::111122223333:role/{name}" for name in names]

    return change


def control_plane(key, value):
    def change(data):
        data["control_plane"][key] = value

    return change


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
        update(changed("staging", control_plane("kubernetes_version", "1.36")))
        assert (cluster(staging)["arn"], cluster(staging)["version"]) == (first, "1.36")


def test_environments_with_pcs_and_eks_can_be_deployed_together():
    with deployed_whole("staging", "dev", "eks-volcano") as staging:
        stacks = client(staging, "cloudformation").describe_stacks()["Stacks"]
        assert {stack["StackStatus"] for stack in stacks} == {"CREATE_COMPLETE"}
        assert {stack["StackName"].rpartition("-")[0] for stack in stacks} >= {"staging", "dev", "eks-volcano"}
        names = client(staging, "eks").list_clusters()["clusters"]
        assert len(names) == 2
        groups = [client(staging, "eks").list_nodegroups(clusterName=name)["nodegroups"] for name in names]
        assert sorted(len(found) for found in groups) == [2, 3]
        assert len(client(staging, "pcs").list_clusters()["clusters"]) == 1
