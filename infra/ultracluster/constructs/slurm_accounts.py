"""Teams in the accounting of a PCS cluster: a State Manager association runs sacctmgr on a login node."""

from collections.abc import Sequence

from aws_cdk import aws_ssm as ssm
from constructs import Construct

from ultracluster.config.slurm_teams import SlurmTeam
from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.names import own_arn
from ultracluster.constructs.node_role import NodeRole
from ultracluster.constructs.pcs import PcsNodeGroup, SlurmCluster
from ultracluster.constructs.references import expect
from ultracluster.constructs.roles import managed_policy
from ultracluster.nodes.slurm_accounts import document_content, revision

LOGIN_TAG = "tag:aws:pcs:compute-node-group-id"
"""PCS gives it to every instance (AWS PCS User Guide, "Connect to your cluster", 2026). State Manager takes tags of AWS
too, and runs on instances that get them later (Systems Manager User Guide, "Running Auto Scaling groups with
associations", 2026)."""

WAIT_SECONDS = 1800
"""How long a deployment waits for the login nodes: they boot, and slurmdbd may take ten minutes."""

ASSOCIATION_ACTIONS = ("ssm:DescribeAssociation", "ssm:ListInstanceAssociations", "ssm:UpdateInstanceAssociationStatus")
"""What the agent of a node needs beside Session Manager to run associations (AmazonSSMManagedInstanceCore, 2026)."""


class SlurmAccounts(Construct):
    """Accounts, QOS, limits and members of `teams` in Slurm's accounting, which the cluster must have.

    PCS has no API for them. The login nodes run `sacctmgr` as root, one after the other, at deployment, when teams
    change, and when a new login node starts: slurmdbd takes root of a node with the cluster's key as administrator. A
    failure fails the deployment. Nothing is deleted: teams and members that are no longer listed get no further jobs.

    It is deployed after the login nodes, and before all queues that are added to the cluster later: PCS refuses a queue
    whose QOS does not exist. `role` is the role of the login nodes, which may then run associations. Limits hold with
    AccountingStorageEnforce of the cluster, and limits of GPUs need its AccountingStorageTRES=gres/gpu.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        teams: Sequence[SlurmTeam],
        cluster: SlurmCluster,
        login: PcsNodeGroup,
        role: NodeRole,
    ) -> None:
        super().__init__(scope, id)
        expect(cluster, SlurmCluster, "cluster")
        document = ssm.CfnDocument(
            self,
            "Document",
            document_type="Command",
            document_format="JSON",
            content=document_content(teams),
            target_type="/AWS::EC2::Instance",
            update_method="NewVersion",
        )
        policy = managed_policy(
            self,
            "Policy",
            roles=[role],
            statements=[
                {"Action": "ssm:GetDocument", "Resource": own_arn("ssm", f"document/{document.ref}")},
                {"Action": list(ASSOCIATION_ACTIONS), "Resource": "*"},
            ],
            accepted=wildcards(self, ["*"], "a node asks for its own associations, and reports how they ended"),
        )
        association = ssm.CfnAssociation(
            self,
            "Association",
            name=document.ref,
            targets=[{"key": LOGIN_TAG, "values": [login.compute_node_group_id]}],
            parameters={"revision": [revision(teams)]},
            max_concurrency="1",
            max_errors="0",
            wait_for_success_timeout_seconds=WAIT_SECONDS,
        )
        association.add_resource_dependency(policy)
        cluster._accounts = self
