"""Shipped environments with Slurm, deployed in this process: PCS resources."""

import pytest

from tests.deployment.in_process import client, deployed_whole
from tests.deployment.whole import WholeEnvironment
from tests.synthesis import FILES
from ultracluster.config.loader import load


@pytest.fixture(scope="module", params=[name for name in FILES if load(FILES[name]).control_plane.type == "pcs"])
def deployed(request):
    """A deployed environment."""
    with deployed_whole(request.param) as environment:
        yield environment


class TestWholeEnvironment(WholeEnvironment):
    pass


def test_the_cluster_manages_every_group_and_queue_of_the_file(deployed):
    pcs = client(deployed, "pcs")
    (cluster,) = pcs.list_clusters()["clusters"]
    groups = pcs.list_compute_node_groups(clusterIdentifier=cluster["id"])["computeNodeGroups"]
    named = sorted(group["name"].rpartition("-")[0] for group in groups)
    assert named == sorted(["login", *(group.name for group in deployed.launched_groups)])
    queues = pcs.list_queues(clusterIdentifier=cluster["id"])["queues"]
    assert {queue["name"] for queue in queues} == {queue.name for queue in deployed.control_plane.queues}
